/* Rows are gathered, then sorted: a commit's work is the store's, this is a small part of it. */
#include "archiver/batch.h"

#include "common/alloc.h"

#include <stdlib.h>

struct batch {
	struct weir_key_hash *hash;
	struct weir_archive_batch rows;
	struct weir_archive_count *hours, *days;
	struct weir_archive_total *totals;
	struct counts *sums; /* of a zone's hour, all buckets as one of no name */
	struct weir_archive_decision *decisions;
	struct weir_archive_event *events;
	char (*digits)[WEIR_KEY_HASH_BYTES]; /* of every row's key, where they are hashed */
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

static int compare_events(const void *one, const void *other)
{
	const struct weir_archive_event *a = one, *b = other;
	int order = compare_numbers(a->zone, b->zone);
	if (order == 0)
		order = compare_bytes(a->bucket, b->bucket);
	if (order == 0)
		order = compare_numbers(a->at_ms, b->at_ms);
	return order != 0 ? order : compare_ids(&a->id, &b->id);
}

/* ---- gathering ---- */

static void gather(struct batch *batch, const struct ledger *ledger)
{
	struct weir_archive_batch *rows = &batch->rows;
	for (size_t i = 0; i < counts_size(ledger->counts); i++)
		counts_row(ledger->counts, i, &batch->hours[rows->hour_count++]);
	for (size_t i = 0; i < ledger->decision_count; i++)
		batch->decisions[rows->decision_count++] = ledger->decisions[i].row;
	for (size_t i = 0; i < ledger->event_count; i++) {
		struct weir_archive_event *row = &batch->events[rows->event_count++];
		*row = ledger->events[i].row;
		row->bucket.at = row->bucket.length > 0 ? ledger->names.at + ledger->events[i].bucket_at : "";
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

/* Before they are sorted: by their hashes they lie elsewhere. A decision about a whole zone has no key. */
static void hash_keys(struct batch *batch)
{
	const struct weir_archive_batch *rows = &batch->rows;
	size_t used = 0;
	if (batch->hash == NULL)
		return;
	batch->digits = weir_realloc(batch->digits, rows->hour_count + rows->decision_count + rows->event_count + 1,
	                             sizeof *batch->digits);
	for (size_t i = 0; i < rows->hour_count; i++)
		batch->hours[i].bucket = weir_key_hash(batch->hash, batch->hours[i].bucket, batch->digits[used++]);
	for (size_t i = 0; i < rows->decision_count; i++)
		if (batch->decisions[i].bucket.at != NULL)
			batch->decisions[i].bucket = weir_key_hash(batch->hash, batch->decisions[i].bucket, batch->digits[used++]);
	for (size_t i = 0; i < rows->event_count; i++)
		batch->events[i].bucket = weir_key_hash(batch->hash, batch->events[i].bucket, batch->digits[used++]);
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
	batch->events = weir_realloc(batch->events, events, sizeof *batch->events);
	batch->rows = (struct weir_archive_batch){
		.hours = batch->hours, .days = batch->days, .decisions = batch->decisions, .events = batch->events};
	for (size_t i = 0; i < count; i++)
		gather(batch, ledgers[i]);
	sum(batch, count > 0 ? ledgers[0]->partition : 0);
	qsort(batch->totals, batch->rows.total_count, sizeof *batch->totals, compare_totals);
	hash_keys(batch);
	qsort(batch->hours, batch->rows.hour_count, sizeof *batch->hours, compare_counts);
	batch->rows.day_count = weir_archive_days(batch->hours, batch->rows.hour_count, batch->days);
	qsort(batch->decisions, batch->rows.decision_count, sizeof *batch->decisions, compare_decisions);
	qsort(batch->events, batch->rows.event_count, sizeof *batch->events, compare_events);
	return &batch->rows;
}
