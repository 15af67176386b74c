/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing; the key is a hash already. */
#include "collector/source/remote/s3/s3_versions.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_LEAST = 256 };

struct s3_version {
	uint64_t key, id; /* id 0: free */
};

void s3_versions_deinit(struct s3_versions *versions)
{
	free(versions->slots);
	*versions = (struct s3_versions){0};
}

static struct s3_version *slot_of(const struct s3_versions *versions, uint64_t key)
{
	size_t place = (size_t)key & (versions->room - 1);
	while (versions->slots[place].id != 0 && versions->slots[place].key != key)
		place = (place + 1) & (versions->room - 1);
	return &versions->slots[place];
}

static void make_room(struct s3_versions *versions)
{
	struct s3_versions before = *versions;
	versions->room = before.room > 0 ? 2 * before.room : ROOM_LEAST;
	versions->slots = weir_alloc(versions->room, sizeof *versions->slots);
	for (size_t i = 0; i < before.room; i++)
		if (before.slots[i].id != 0)
			*slot_of(versions, before.slots[i].key) = before.slots[i];
	free(before.slots);
}

bool s3_versions_note(struct s3_versions *versions, uint64_t key, uint64_t id)
{
	if (versions->count == S3_VERSIONS_MOST) {
		memset(versions->slots, 0, versions->room * sizeof *versions->slots);
		versions->count = 0;
	}
	if (2 * (versions->count + 1) > versions->room)
		make_room(versions);
	struct s3_version *slot = slot_of(versions, key);
	bool changed = slot->id != 0 && slot->id != id;
	versions->count += slot->id == 0;
	*slot = (struct s3_version){.key = key, .id = id};
	return changed;
}
