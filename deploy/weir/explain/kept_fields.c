/* SPDX-License-Identifier: Apache-2.0 */
/* A sweep is due when twice as much is there as the one before has left, so it costs no more than copying does. */
#include "deploy/weir/explain/kept_fields.h"

#include "common/base/alloc.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SWEEP_LEAST_BYTES = 2 * 1024 * 1024 };

enum kept_state { KEPT_UNKNOWN, KEPT_NEEDED, KEPT_TOO_MUCH };

struct kept {
	enum kept_state state;
	uint32_t length;
	char bytes[];
};

static struct kept *kept_of(struct weir_span fields)
{
	return (struct kept *)((uintptr_t)fields.at - offsetof(struct kept, bytes));
}

static size_t size_of(const struct kept *kept)
{
	return sizeof *kept + kept->length + sizeof(struct kept *);
}

struct weir_span kept_fields_add(struct kept_fields *kept, struct weir_span fields)
{
	if (fields.at == NULL || fields.length == 0)
		return (struct weir_span){.at = NULL};
	struct kept *last = kept->count > 0 ? kept->all[kept->count - 1] : NULL;
	if (last == NULL || last->length != fields.length || memcmp(last->bytes, fields.at, fields.length) != 0) {
		last = weir_alloc(sizeof *last + fields.length, 1);
		last->length = fields.length;
		memcpy(last->bytes, fields.at, fields.length);
		if (kept->count == kept->room) {
			kept->room = 2 * kept->room + 16;
			kept->all = weir_realloc(kept->all, kept->room, sizeof *kept->all);
		}
		kept->all[kept->count++] = last;
		kept->bytes += size_of(last);
	}
	return (struct weir_span){.at = last->bytes, .length = last->length};
}

bool kept_fields_is_full(const struct kept_fields *kept)
{
	return kept->bytes > SWEEP_LEAST_BYTES && kept->bytes > kept->sweep_bytes;
}

void kept_fields_mark(struct explained_event *event)
{
	if (event->kept.at != NULL)
		kept_of(event->kept)->state = KEPT_NEEDED;
}

/* Drops those of a state; the others are to be marked anew, but for what is too much. */
static void drop(struct kept_fields *kept, enum kept_state state)
{
	size_t count = 0;
	kept->bytes = 0;
	for (size_t i = 0; i < kept->count; i++) {
		struct kept *one = kept->all[i];
		if (one->state == state) {
			free(one);
			continue;
		}
		one->state = KEPT_UNKNOWN;
		kept->bytes += size_of(one);
		kept->all[count++] = one;
	}
	kept->count = count;
	kept->sweep_bytes = 2 * kept->bytes;
}

bool kept_fields_sweep(struct kept_fields *kept)
{
	size_t over = 0;
	drop(kept, KEPT_UNKNOWN);
	for (size_t i = 0; kept->bytes - over > KEPT_FIELDS_MAX_BYTES / 2; i++) {
		kept->all[i]->state = KEPT_TOO_MUCH;
		over += size_of(kept->all[i]);
	}
	return over > 0;
}

void kept_fields_let_go(struct explained_event *event)
{
	if (event->kept.at == NULL || kept_of(event->kept)->state != KEPT_TOO_MUCH)
		return;
	event->kept = (struct weir_span){.at = NULL};
	event->fields_left_out = true;
}

void kept_fields_drop(struct kept_fields *kept)
{
	drop(kept, KEPT_TOO_MUCH);
}

void kept_fields_deinit(struct kept_fields *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		free(kept->all[i]);
	free(kept->all);
	*kept = (struct kept_fields){0};
}
