/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value that a person writes, in the form in which a record's field has it: so that what is written for `ip`, `path`,
 * `host` or `method` in a policy or a command is what records are counted and compared by, however it is spelt.
 */
#ifndef WEIR_FIELD_VALUE_H
#define WEIR_FIELD_VALUE_H

#include "common/bytes/address.h"
#include "common/record/record.h"
#include "common/record/served_host.h"
#include "common/record/served_method.h"
#include "common/record/served_path.h"

/* Owned by one thread; zeroed is empty. */
struct weir_field_value_room {
	struct weir_served_path_room path;
	char address[WEIR_ADDRESS_TEXT_BYTES];
	char host[WEIR_SERVED_HOST_BYTES];
};

void weir_field_value_room_deinit(struct weir_field_value_room *room);

/**
 * The value as formats settle it: an address in `ip` in its one spelling, in `path` what the server served, in `host` and
 * `method` its one form, in any other field as it is.
 *
 * @param value  borrowed; not empty
 * @return a part of the value, or bytes in the room, valid until it is used again; never empty
 */
struct weir_span weir_field_value(uint32_t field, struct weir_span value, struct weir_field_value_room *room);

/**
 * The same of a path that is to be compared with others. What does not begin with "/" stays; so does what has a query or
 * a fragment, as it would be about more than was meant without.
 */
struct weir_span weir_field_value_of_path(struct weir_span path, struct weir_field_value_room *room);

#endif
