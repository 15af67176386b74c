/* SPDX-License-Identifier: Apache-2.0 */
/* Each worker numbers zones as it meets them: what belongs together is found by sorting names. */
#include "limiter/daemon/checks_by_zone.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

struct counted {
	const char *zone;
	uint64_t answers[CHECK_COUNTED_MAX];
};

static int by_zone(const void *left, const void *right)
{
	return strcmp(((const struct counted *)left)->zone, ((const struct counted *)right)->zone);
}

static size_t collect(const struct check_counts *const *counts, uint32_t count, struct counted **out)
{
	struct counted *all = NULL;
	size_t used = 0, room = 0;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t number = 0; counts[i] != NULL && number <= CHECK_COUNTED_OTHER; number++) {
			struct counted one;
			if (!check_counts_read(counts[i], number, &one.zone, one.answers))
				continue;
			if (used == room) {
				room = room == 0 ? 16 : 2 * room;
				all = weir_realloc(all, room, sizeof *all);
			}
			all[used++] = one;
		}
	if (used > 0)
		qsort(all, used, sizeof *all, by_zone);
	*out = all;
	return used;
}

static void put(struct weir_text *page, const struct weir_metric *metric, const char *surface,
                const struct counted *zone)
{
	for (int i = 0; i < CHECK_COUNTED_MAX; i++) {
		const struct weir_span labels[] = {weir_span_of(zone->zone), weir_span_of(surface),
		                                   weir_span_of(check_counted_name((enum check_counted)i))};
		if (zone->answers[i] > 0)
			weir_metrics_uint(page, metric, labels, zone->answers[i]);
	}
}

void checks_by_zone(struct weir_text *page, const struct weir_metric *metric, const char *surface,
                    const struct check_counts *const *counts, uint32_t count)
{
	struct counted *all;
	size_t used = collect(counts, count, &all);
	for (size_t i = 0; i < used; i++) {
		struct counted *sum = &all[i];
		for (; i + 1 < used && strcmp(all[i + 1].zone, sum->zone) == 0; i++)
			for (int answer = 0; answer < CHECK_COUNTED_MAX; answer++)
				sum->answers[answer] += all[i + 1].answers[answer];
		put(page, metric, surface, sum);
	}
	free(all);
}
