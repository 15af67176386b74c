/* SPDX-License-Identifier: Apache-2.0 */
/* Collects rows and sorts them. Most of a commit's time is spent in the store, so this need not be faster. */
#include "archiver/work/batch.h"

#include "common/base/alloc.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/*
 * An event's sort key, in the table's order. There may be millions of event rows, and they are large, so these are
 * sorted in their place. Most comparisons need only what is here.
 */
struct place {
	uint64_t begin[2]; /* the first bytes of the bucket, as numbers that compare as the bytes do */
	const char *bucket;
	uint32_t length, zone;
	const struct weir_archive_event *event;
	const char *fields; /* NULL: none */
};

struct batch {
	struct weir_key_hash *hash;
	struct weir_archive_batch rows;
	struct weir_archive_count *hours, *days;
	struct weir_archive_total *totals;
	struct counts *sums; /* by zone and hour: all buckets together, under an empty name */
	struct weir_archive_decision *decisions, *shadows;
	struct place *places;
	struct weir_archive_event *events;
	char (*digits)[WEIR_KEY_HASH_BYTES]; /* of every row's key, if keys are hashed */
};

struct batch *batch_new(struct weir_key_hash *hash)
{
	struct batch *batch = weir_alloc(1, sizeof *batch);
	batch->sums = counts_new();
	batch->hash = hash;
	return batch;
}

void batch_free(struct batch *batch)
{
	if (batch == NULL)
		return;
	free(batch->hours);
	free(batch->days);
	free(batch->totals);
	counts_free(batch->sums);
	free(batch->decisions);
	free(batch->shadows);
	free(batch->places);
	free(batch->events);
	free(batch->digits);
	free(batch);
}

/* ---- the tables' order ---- */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_bytes(struct weir_span a, struct weir_span b)
{
	uint32_t shorter = a.length < b.length ? a.length : b.length;
	int order = shorter > 0 ? memcmp(a.at, b.at, shorter) : 0;
	return order != 0 ? order : compare_numbers(a.length, b.length);
}

static int compare_counts(const void *one, const void *other)
{
	const struct weir_archive_count *a = one, *b = other;
	int order = compare_numbers(a->zone, b->zone);
	if (order == 0)
		order = compare_bytes(a->bucket, b->bucket);
	return order != 0 ? order : compare_numbers(a->begin_ms, b->begin_ms);
}

static int compare_totals(const void *one, const void *other)
{
	const struct weir_archive_total *a = one, *b = other;
	int order = compare_numbers(a->zone, b->zone);
	return order != 0 ? order : compare_numbers(a->hour_ms, b->hour_ms);
}

static int compare_ids(const struct weir_archive_id *a, const struct weir_archive_id *b)
{
	int order = compare_numbers(a->partition, b->partition);
	if (order == 0)
		order = (a->offset > b->offset) - (a->offset < b->offset);
	return order != 0 ? order : compare_numbers(a->pair, b->pair);
}

static int compare_decisions(const void *one, const void *other)
{
	const struct weir_archive_decision *a = one, *b = other;
	int order = compare_numbers(a->at_ms, b->at_ms);
	return order != 0 ? order : compare_ids(&a->id, &b->id);
}

static int compare_places(const void *one, const void *other)
{
	const struct place *a = one, *b = other;
	int order = compare_numbers(a->zone, b->zone);
	for (int i = 0; i < 2 && order == 0; i++)
		order = (a->begin[i] > b->begin[i]) - (a->begin[i] < b->begin[i]);
	if (order == 0)
		order = compare_bytes((struct weir_span){a->bucket, a->length}, (struct weir_span){b->bucket, b->length});
	if (order == 0)
		order = compare_numbers(a->event->at_ms, b->event->at_ms);
	return order != 0 ? order : compare_ids(&a->event->id, &b->event->id);
}

/* ---- gathering ---- */

static void gather(struct batch *batch, const struct ledger *ledger)
{
	struct weir_archive_batch *rows = &batch->rows;
	for (size_t i = 0; i < counts_size(ledger->counts); i++)
		counts_row(ledger->counts, i, &batch->hours[rows->hour_count++]);
	for (size_t i = 0; i < ledger->decision_count; i++) {
		const struct decision_row *decision = &ledger->decisions[i];
		if (decision->shadow)
			batch->shadows[rows->shadow_count++] = decision->row;
		else
			batch->decisions[rows->decision_count++] = decision->row;
	}
	for (size_t i = 0; i < ledger->event_count; i++) {
		const struct weir_archive_event *event = &ledger->events[i].row;
		const char *bucket = ledger->names.at + ledger->events[i].bucket_at;
		batch->places[rows->event_count++] =
			(struct place){.bucket = event->bucket.length > 0 ? bucket : "",
		                   .length = event->bucket.length,
		                   .zone = event->zone,
		                   .event = event,
		                   .fields = event->fields.length > 0 ? bucket + event->bucket.length : NULL};
	}
}

static void sum(struct batch *batch, uint32_t partition)
{
	static const struct weir_span every = {.at = "", .length = 0};
	struct weir_archive_batch *rows = &batch->rows;
	counts_clear(batch->sums);
	for (size_t i = 0; i < rows->hour_count; i++) {
		const struct weir_archive_count *row = &batch->hours[i];
		counts_add(batch->sums, row->zone, every, 0, row->begin_ms, row->passed, row->blocked, row->late);
	}
	rows->total_count = counts_size(batch->sums);
	batch->totals = weir_realloc(batch->totals, rows->total_count + 1, sizeof *batch->totals);
	rows->totals = batch->totals;
	for (size_t i = 0; i < rows->total_count; i++) {
		struct weir_archive_count row;
		counts_row(batch->sums, i, &row);
		batch->totals[i] =
			(struct weir_archive_total){row.zone, row.begin_ms, partition, row.passed, row.blocked, row.late};
	}
}

/* A decision about a whole zone has no key. @return how many digits are used then */
static size_t hash_decisions(struct batch *batch, struct weir_archive_decision *decisions, size_t count, size_t used)
{
	for (size_t i = 0; i < count; i++)
		if (decisions[i].bucket.at != NULL)
			decisions[i].bucket = weir_key_hash(batch->hash, decisions[i].bucket, batch->digits[used++]);
	return used;
}

/* Hashes keys before rows are sorted, as hashes sort differently. */
static void hash_keys(struct batch *batch)
{
	const struct weir_archive_batch *rows = &batch->rows;
	size_t used = 0;
	if (batch->hash == NULL)
		return;
	batch->digits = weir_realloc(batch->digits,
	                             rows->hour_count + rows->decision_count + rows->shadow_count + rows->event_count + 1,
	                             sizeof *batch->digits);
	for (size_t i = 0; i < rows->hour_count; i++)
		batch->hours[i].bucket = weir_key_hash(batch->hash, batch->hours[i].bucket, batch->digits[used++]);
	used = hash_decisions(batch, batch->decisions, rows->decision_count, used);
	used = hash_decisions(batch, batch->shadows, rows->shadow_count, used);
	for (size_t i = 0; i < rows->event_count; i++) {
		struct place *place = &batch->places[i];
		struct weir_span hashed =
			weir_key_hash(batch->hash, (struct weir_span){place->bucket, place->length}, batch->digits[used++]);
		place->bucket = hashed.at;
		place->length = hashed.length;
	}
}

static void begin_place(struct place *place)
{
	memset(place->begin, 0, sizeof place->begin);
	memcpy(place->begin, place->bucket, place->length < sizeof place->begin ? place->length : sizeof place->begin);
	for (int i = 0; i < 2; i++)
		place->begin[i] = be64toh(place->begin[i]);
}

static void sort_events(struct batch *batch)
{
	size_t count = batch->rows.event_count;
	for (size_t i = 0; i < count; i++)
		begin_place(&batch->places[i]);
	qsort(batch->places, count, sizeof *batch->places, compare_places);
	for (size_t i = 0; i < count; i++) {
		const struct place *place = &batch->places[i];
		batch->events[i] = *place->event;
		batch->events[i].bucket = (struct weir_span){place->bucket, place->length};
		batch->events[i].fields.at = place->fields;
	}
}

const struct weir_archive_batch *batch_fill(struct batch *batch, struct ledger *const *ledgers, size_t count)
{
	size_t hours = 1, decisions = 1, events = 1;
	for (size_t i = 0; i < count; i++) {
		hours += counts_size(ledgers[i]->counts);
		decisions += ledgers[i]->decision_count;
		events += ledgers[i]->event_count;
	}
	batch->hours = weir_realloc(batch->hours, hours, sizeof *batch->hours);
	batch->days = weir_realloc(batch->days, hours, sizeof *batch->days);
	batch->decisions = weir_realloc(batch->decisions, decisions, sizeof *batch->decisions);
	batch->shadows = weir_realloc(batch->shadows, decisions, sizeof *batch->shadows);
	batch->places = weir_realloc(batch->places, events, sizeof *batch->places);
	batch->events = weir_realloc(batch->events, events, sizeof *batch->events);
	batch->rows = (struct weir_archive_batch){.hours = batch->hours,
	                                          .days = batch->days,
	                                          .decisions = batch->decisions,
	                                          .shadows = batch->shadows,
	                                          .events = batch->events};
	for (size_t i = 0; i < count; i++)
		gather(batch, ledgers[i]);
	sum(batch, count > 0 ? ledgers[0]->partition : 0);
	qsort(batch->totals, batch->rows.total_count, sizeof *batch->totals, compare_totals);
	hash_keys(batch);
	qsort(batch->hours, batch->rows.hour_count, sizeof *batch->hours, compare_counts);
	batch->rows.day_count = weir_archive_days(batch->hours, batch->rows.hour_count, batch->days);
	qsort(batch->decisions, batch->rows.decision_count, sizeof *batch->decisions, compare_decisions);
	qsort(batch->shadows, batch->rows.shadow_count, sizeof *batch->shadows, compare_decisions);
	sort_events(batch);
	return &batch->rows;
}
