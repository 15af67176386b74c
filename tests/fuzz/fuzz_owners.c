/* SPDX-License-Identifier: Apache-2.0 */
/* Any row of an owner: what is believed of it is written again, and read as the same place. */
#include "limiter/owners/owners.h"

#include <stdio.h>
#include <stdlib.h>

enum { EPOCH = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void learn(struct owners *owners, struct weir_span row)
{
	owners_read_begin(owners, 1000);
	owners_learn(owners, 0, EPOCH, row);
	owners_read_end(owners);
}

static void write_again(const struct owners_place *place)
{
	struct owners *there = owners_new(1, place->host, place->port), *other = owners_new(1, "here", 1);
	struct owners_place again = {.port = 0};
	char row[OWNERS_ROW_BYTES];
	learn(other, owners_row(there, EPOCH, row));
	if (owners_of(other, 0) == OWNERS_NONE || !owners_place(other, owners_of(other, 0), &again) ||
	    strcmp(place->host, again.host) != 0 || place->port != again.port) {
		fprintf(stderr, "%s port %u is written as %s\n", place->host, place->port, row);
		abort();
	}
	owners_free(there);
	owners_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct owners_place place;
	if (size > 4096)
		return 0;
	char *bytes = malloc(size + 1);
	struct owners *owners = owners_new(1, "here", 1);
	if (bytes == NULL)
		abort();
	memcpy(bytes, data, size);
	learn(owners, (struct weir_span){.at = bytes, .length = (uint32_t)size});
	if (owners_of(owners, 0) != OWNERS_NONE && owners_place(owners, owners_of(owners, 0), &place))
		write_again(&place);
	owners_free(owners);
	free(bytes);
	return 0;
}
