/* SPDX-License-Identifier: Apache-2.0 */
/* What formats do to the fields that mean the same in all of them, for single values. */
#include "collector/record/field_value.h"

void field_value_room_deinit(struct field_value_room *room)
{
	served_path_room_deinit(&room->path);
}

struct weir_span field_value(uint32_t field, struct weir_span value, struct field_value_room *room)
{
	struct weir_address address;
	if (field == FIELD_PATH)
		return served_path(value, &room->path);
	if (field != FIELD_IP || !weir_address_read(value, &address))
		return value;
	return (struct weir_span){.at = room->address, .length = weir_address_format(&address, room->address)};
}

struct weir_span field_value_of_path(struct weir_span path, struct field_value_room *room)
{
	bool more = memchr(path.at, '?', path.length) != NULL || memchr(path.at, '#', path.length) != NULL;
	return path.at[0] != '/' || more ? path : field_value(FIELD_PATH, path, room);
}
