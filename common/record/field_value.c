/* SPDX-License-Identifier: Apache-2.0 */
/* What formats do to the fields that mean the same in all of them, for single values. */
#include "common/record/field_value.h"

void weir_field_value_room_deinit(struct weir_field_value_room *room)
{
	weir_served_path_room_deinit(&room->path);
}

struct weir_span weir_field_value(uint32_t field, struct weir_span value, struct weir_field_value_room *room)
{
	struct weir_address address;
	if (field == WEIR_FIELD_PATH)
		return weir_served_path(value, &room->path);
	if (field == WEIR_FIELD_HOST)
		return weir_served_host(value, room->host);
	if (field == WEIR_FIELD_METHOD)
		return weir_served_method(value);
	if (field != WEIR_FIELD_IP || !weir_address_read(value, &address))
		return value;
	return (struct weir_span){.at = room->address, .length = weir_address_format(&address, room->address)};
}

struct weir_span weir_field_value_of_path(struct weir_span path, struct weir_field_value_room *room)
{
	bool more = memchr(path.at, '?', path.length) != NULL || memchr(path.at, '#', path.length) != NULL;
	return path.at[0] != '/' || more ? path : weir_field_value(WEIR_FIELD_PATH, path, room);
}
