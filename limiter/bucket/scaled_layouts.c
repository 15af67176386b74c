/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list behind a mutex: factors are few, and a shard remembers the layout that
 * it asked for last.
 */
#include "limiter/bucket/scaled_layouts.h"

#include "common/base/alloc.h"

#include <pthread.h>
#include <stdlib.h>

/* All layouts of one zone, scaled by one factor. */
struct family {
	struct family *next;
	uint32_t zone_id, thousandths, count;
	struct layout layouts[]; /* by id, ascending */
};

struct scaled_layouts {
	pthread_mutex_t lock;
	struct family *first;
};

struct scaled_layouts *scaled_layouts_new(void)
{
	struct scaled_layouts *scaled = weir_alloc(1, sizeof *scaled);
	pthread_mutex_init(&scaled->lock, NULL);
	return scaled;
}

void scaled_layouts_free(struct scaled_layouts *scaled)
{
	if (scaled == NULL)
		return;
	while (scaled->first != NULL) {
		struct family *family = scaled->first;
		scaled->first = family->next;
		free(family);
	}
	pthread_mutex_destroy(&scaled->lock);
	free(scaled);
}

static struct layout *find(struct family *family, uint32_t id)
{
	for (uint32_t i = 0; i < family->count; i++)
		if (family->layouts[i].id == (id | LAYOUT_SCALED))
			return &family->layouts[i];
	return NULL;
}

static struct family *make(struct layout *const *layouts, uint32_t count, uint32_t zone_id, uint32_t thousandths)
{
	uint32_t own = 0;
	for (uint32_t i = 0; i < count; i++)
		own += layouts[i]->zone_id == zone_id;
	struct family *family = weir_alloc(1, sizeof *family + own * sizeof family->layouts[0]);
	family->zone_id = zone_id;
	family->thousandths = thousandths;
	for (uint32_t i = 0; i < count; i++)
		if (layouts[i]->zone_id == zone_id)
			layout_init_scaled(&family->layouts[family->count++], layouts[i], thousandths);
	for (uint32_t i = 0; i < count; i++)
		if (layouts[i]->zone_id == zone_id && layouts[i]->next != NULL)
			find(family, layouts[i]->id)->next = find(family, layouts[i]->next->id);
	return family;
}

const struct layout *scaled_layouts_get(struct scaled_layouts *scaled, struct layout *const *layouts, uint32_t count,
                                        uint32_t id, uint32_t thousandths)
{
	uint32_t zone_id = layouts[id - 1]->zone_id;
	pthread_mutex_lock(&scaled->lock);
	struct family *family = scaled->first;
	while (family != NULL && (family->zone_id != zone_id || family->thousandths != thousandths))
		family = family->next;
	if (family == NULL) {
		family = make(layouts, count, zone_id, thousandths);
		family->next = scaled->first;
		scaled->first = family;
	}
	const struct layout *layout = find(family, id);
	pthread_mutex_unlock(&scaled->lock);
	return layout;
}
