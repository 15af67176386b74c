/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool: a queue of batches, and the thread that writes them.
 *
 * The thread sends what comes to the local bus at once, and answers each batch when the bus has delivered it: so batches
 * that come while an fsync runs share the next one, which begins with all of them. It alone knows the ids. A batch whose
 * id is on its way to disk waits for the outcome of the first.
 *
 * Files go when their batches are acknowledged and the ids of these are in files of their own ("settled").
 */
#include "collector/source/push/push_spool.h"

#include "collector/source/push/internal.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/wake.h"
#include "common/bus/local/bus_local.h"
#include "common/bytes/hash.h"
#include "common/files/durable_file.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	QUEUE_MOST_BYTES = 64 << 20,
	QUEUE_MOST_BATCHES = 1 << 14, /* some 4 KiB each, whatever their lines have: with whom to answer, and why */
	ROUND_MOST = 1024,            /* batches */
	DELIVERIES = 256,
	SETTLE_MS = 1000,
	CALM_MS = 10000, /* without a refusal, where there is room again: senders wait no longer */
	TROUBLE_MS = 500,
	DISK_MS = 100,  /* how often it is looked who has waited for long */
	STOP_MS = 2000, /* how long a stop waits for the disk */
	KEY_BYTES = 8 + PUSH_ID_HASH_BYTES + 8,
	SEGMENTS = 16, /* about so many files has a full spool */
	SEGMENT_MOST_BYTES = 64 << 20,
	OPEN_WAIT_MS = 1000,
};

static const char reader[] = "collector";

static void push_last(struct push_appends *list, struct push_append *append)
{
	append->next = NULL;
	if (list->last != NULL)
		list->last->next = append;
	else
		list->first = append;
	list->last = append;
}

static struct push_append *pop_first(struct push_appends *list)
{
	struct push_append *append = list->first;
	if (append != NULL) {
		list->first = append->next;
		if (list->first == NULL)
			list->last = NULL;
	}
	return append;
}

/* ---- answers ---- */

static void state_problem(struct push_spool *spool, const char *words)
{
	pthread_mutex_lock(&spool->mutex);
	snprintf(spool->counts.problem, sizeof spool->counts.problem, "%.255s", words);
	pthread_mutex_unlock(&spool->mutex);
}

/* A sender is told to wait. The caller holds the mutex. */
static void note_refusal(struct push_spool *spool, uint64_t bytes)
{
	spool->counts.full_refusals++;
	spool->refused_bytes = bytes;
	spool->refused_ms = weir_monotonic_ms();
	if (spool->waiting_since_ms == 0)
		spool->waiting_since_ms = spool->refused_ms;
}

/* The bus counts them by now, or nobody. The caller holds the mutex. */
static void let_bytes_go(struct push_spool *spool, struct push_append *append)
{
	spool->taken_bytes -= append->taken;
	spool->taken_batches -= append->taken > 0;
	append->taken = 0;
}

static void answer(struct push_spool *spool, struct push_append *append, const struct push_outcome *outcome)
{
	if (append->answered)
		return;
	append->answered = true;
	pthread_mutex_lock(&spool->mutex);
	spool->counts.again_batches += outcome->status == WEIR_OK && outcome->again;
	if (outcome->status == WEIR_OK)
		let_bytes_go(spool, append); /* now, as whoever is answered may send the next at once */
	if (outcome->status == WEIR_AGAIN)
		note_refusal(spool, append->bytes);
	pthread_mutex_unlock(&spool->mutex);
	append->done(append->context, outcome);
}

static void answer_late(struct push_spool *spool, struct push_append *append)
{
	char words[256];
	struct push_outcome outcome = {.status = WEIR_AGAIN};
	bool known = spool->bus->ops->problem(spool->bus, words, sizeof words);
	weir_fail(&outcome.why, WEIR_AGAIN, "the batch is not on disk in time%s%s", known ? ": " : "", known ? words : "");
	answer(spool, append, &outcome);
}

static void free_append(struct push_spool *spool, struct push_append *append)
{
	pthread_mutex_lock(&spool->mutex);
	let_bytes_go(spool, append);
	pthread_mutex_unlock(&spool->mutex);
	weir_text_deinit(&append->lines);
	free(append);
}

/* Answers what needs no disk. @return false: the batch must be stored */
static bool is_known(struct push_spool *spool, struct push_append *append)
{
	const struct push_id *known = append->has_id ? push_ids_find(spool->ids, append->id.hash) : NULL;
	if (known == NULL || known->over)
		return false;
	struct push_outcome outcome = {.status = WEIR_OK, .again = true, .lines = append->line_count};
	outcome.clashes = known->body != append->id.body;
	if (outcome.clashes)
		outcome.status =
			weir_fail(&outcome.why, WEIR_INVALID,
		              "this id came within the last hour with other lines: give each batch an id of its own");
	answer(spool, append, &outcome);
	return true;
}

static bool has_twin_away(const struct push_spool *spool, const struct push_append *append)
{
	for (const struct push_append *other = spool->away.first; append->has_id && other != NULL; other = other->next)
		if (other->has_id && memcmp(other->id.hash, append->id.hash, PUSH_ID_HASH_BYTES) == 0)
			return true;
	return false;
}

/* ---- writing ---- */

static void put_uint64(char *bytes, uint64_t number)
{
	for (int i = 0; i < 8; i++)
		bytes[i] = (char)(number >> (8 * i));
}

static uint64_t get_uint64(const char *bytes)
{
	uint64_t number = 0;
	for (int i = 0; i < 8; i++)
		number |= (uint64_t)(uint8_t)bytes[i] << (8 * i);
	return number;
}

/* The message's key: when the batch came, and its hashes. */
static void put_key(char key[KEY_BYTES], const struct push_id *id)
{
	put_uint64(key, (uint64_t)id->at_ms);
	memcpy(key + 8, id->hash, PUSH_ID_HASH_BYTES);
	put_uint64(key + 8 + PUSH_ID_HASH_BYTES, id->body);
}

static bool get_key(const struct weir_message *message, struct push_id *id)
{
	if (message->key.at == NULL || message->key.length != KEY_BYTES)
		return false;
	id->at_ms = (int64_t)get_uint64(message->key.at);
	memcpy(id->hash, message->key.at + 8, PUSH_ID_HASH_BYTES);
	id->body = get_uint64(message->key.at + 8 + PUSH_ID_HASH_BYTES);
	id->offset = message->offset;
	id->over = false;
	return true;
}

static void take_delivery(struct push_spool *spool, const struct weir_delivery *delivery)
{
	struct push_append *append = pop_first(&spool->away);
	if (append == NULL)
		return;
	if (delivery->status == WEIR_OK) {
		append->id.offset = delivery->offset;
		if (append->has_id)
			push_ids_add(spool->ids, &append->id, weir_wall_ms());
		pthread_mutex_lock(&spool->mutex);
		spool->counts.batches++;
		spool->counts.lines += append->line_count;
		spool->counts.nameless_batches += !append->has_id;
		pthread_mutex_unlock(&spool->mutex);
		struct push_outcome outcome = {.status = WEIR_OK, .lines = append->line_count};
		answer(spool, append, &outcome);
	} else {
		answer_late(spool, append);
	}
	free_append(spool, append);
}

/* Whether a batch has waited for long enough: a disk that takes nothing is not waited for as long as one that is slow. */
static bool is_late(struct push_spool *spool, const struct push_append *append)
{
	char ignored[256];
	int64_t end_ms = append->deadline_ms;
	if (spool->bus->ops->problem(spool->bus, ignored, sizeof ignored))
		end_ms -= PUSH_COMMIT_MOST_MS - TROUBLE_MS;
	pthread_mutex_lock(&spool->mutex);
	if (spool->stopping && spool->stop_ms < end_ms)
		end_ms = spool->stop_ms;
	pthread_mutex_unlock(&spool->mutex);
	return end_ms <= weir_monotonic_ms();
}

/* Takes what the disk has. @param wait_ms  for the first */
static void take_deliveries(struct push_spool *spool, int wait_ms)
{
	struct weir_delivery deliveries[DELIVERIES];
	size_t count;
	do {
		count = spool->bus->ops->poll(spool->producer, deliveries, DELIVERIES, wait_ms);
		for (size_t i = 0; i < count; i++)
			take_delivery(spool, &deliveries[i]);
		if (count > 0)
			(void)!write(spool->event, &(uint64_t){1}, sizeof(uint64_t));
	} while (count == DELIVERIES); /* only then the bus wakes this thread for the next */
}

/* Gives up on who has waited for long. */
static void answer_all_late(struct push_spool *spool)
{
	for (struct push_append *append = spool->away.first; append != NULL; append = append->next)
		if (is_late(spool, append))
			answer_late(spool, append);
}

/* Sends a batch to the bus, once there is room before it. */
static void send_batch(struct push_spool *spool, struct push_append *append)
{
	char key[KEY_BYTES];
	struct weir_error error;
	put_key(key, &append->id);
	struct weir_span named = {.at = append->has_id ? key : NULL, .length = append->has_id ? KEY_BYTES : 0};
	enum weir_status status;
	while ((status = spool->bus->ops->send(spool->producer, WEIR_TOPIC_EVENTS, 0, named, weir_text_span(&append->lines),
	                                       0, &error)) == WEIR_FULL &&
	       !is_late(spool, append)) {
		take_deliveries(spool, DISK_MS);
		answer_all_late(spool);
	}
	if (status != WEIR_OK) {
		answer_late(spool, append);
		free_append(spool, append);
		return;
	}
	weir_text_deinit(&append->lines);
	append->lines = (struct weir_text){0};
	push_last(&spool->away, append);
}

/* Sends what came. */
static void store(struct push_spool *spool, struct push_appends *round)
{
	struct push_append *append;
	while ((append = pop_first(round)) != NULL) {
		if (append->ends) {
			push_ids_end(spool->ids, append->id.hash);
			free_append(spool, append);
		} else if (is_known(spool, append)) {
			free_append(spool, append);
		} else if (is_late(spool, append)) {
			answer_late(spool, append);
			free_append(spool, append);
		} else if (has_twin_away(spool, append)) {
			push_last(&spool->twins, append);
		} else {
			send_batch(spool, append);
		}
	}
}

/* Answers batches whose id was on its way, once the outcome of the first is known, or they have waited for long. */
static void answer_twins(struct push_spool *spool)
{
	struct push_appends twins = spool->twins;
	struct push_append *append;
	spool->twins = (struct push_appends){NULL, NULL};
	while ((append = pop_first(&twins)) != NULL) {
		if (has_twin_away(spool, append) && !is_late(spool, append)) {
			push_last(&spool->twins, append);
			continue;
		}
		if (!is_known(spool, append))
			answer_late(spool, append);
		free_append(spool, append);
	}
}

/* Whether somebody waits for the disk. */
static bool somebody_waits(const struct push_spool *spool)
{
	const struct push_append *append = spool->away.first;
	while (append != NULL && append->answered)
		append = append->next;
	return append != NULL || spool->twins.first != NULL;
}

/* Puts on disk which ids the acknowledged batches had, so that their files may go, and which ids have ended. */
static void settle(struct push_spool *spool)
{
	struct weir_error error;
	int64_t now_ms = weir_wall_ms();
	spool->settle_ms = weir_monotonic_ms() + SETTLE_MS;
	pthread_mutex_lock(&spool->mutex);
	uint64_t acknowledged = spool->acknowledged;
	pthread_mutex_unlock(&spool->mutex);
	enum weir_status status = push_ids_save(spool->ids, acknowledged, now_ms, &error);
	bool saved = status == WEIR_OK;
	if (saved) /* what has ended comes second: on a full disk, files may go without it */
		status = push_ids_save_ends(spool->ids, now_ms, &error);
	if (status != WEIR_OK)
		state_problem(spool, error.text);
	spool->settle_failed = !saved;
	if (!saved)
		return;
	pthread_mutex_lock(&spool->mutex);
	if (acknowledged > spool->settled)
		spool->settled = acknowledged;
	spool->hurry = false;
	if (status == WEIR_OK)
		spool->counts.problem[0] = '\0';
	pthread_mutex_unlock(&spool->mutex);
	(void)!write(spool->event, &(uint64_t){1}, sizeof(uint64_t)); /* the reader tells the bus */
}

/* The caller holds the mutex. */
static bool has_to_settle(const struct push_spool *spool)
{
	return spool->acknowledged > spool->settled || push_ids_unsaved_ends(spool->ids);
}

/* How long it is until it may settle; 0 or less: it may. The caller holds the mutex. */
static int64_t settle_wait_ms(const struct push_spool *spool)
{
	return spool->hurry && !spool->settle_failed ? 0 : spool->settle_ms - weir_monotonic_ms();
}

/* How long nothing has to be done unless something comes. The caller holds the mutex. */
static int idle_ms(const struct push_spool *spool)
{
	int64_t due_ms = settle_wait_ms(spool);
	int64_t most_ms = spool->away.first != NULL ? DISK_MS : SETTLE_MS;
	if (spool->queue.first != NULL || spool->stopping)
		return spool->away.first != NULL && spool->queue.first == NULL ? DISK_MS : 0;
	if (has_to_settle(spool) && due_ms < most_ms)
		most_ms = due_ms > 0 ? due_ms : 0;
	return (int)most_ms;
}

/*
 * Waits until something comes, or is to be done, and takes it.
 *
 * @param settles  set: whether it is time to settle
 * @return false: the end, once nobody waits any more
 */
static bool wait_for_work(struct push_spool *spool, struct push_appends *round, bool *settles)
{
	struct pollfd work = {.fd = spool->work, .events = POLLIN};
	pthread_mutex_lock(&spool->mutex);
	int wait_ms = idle_ms(spool);
	pthread_mutex_unlock(&spool->mutex);
	(void)poll(&work, 1, wait_ms);
	weir_wake_clear(spool->work);
	pthread_mutex_lock(&spool->mutex);
	*settles = (settle_wait_ms(spool) <= 0 || spool->stopping) && has_to_settle(spool);
	*round = (struct push_appends){NULL, NULL};
	for (int i = 0; i < ROUND_MOST && spool->queue.first != NULL; i++)
		push_last(round, pop_first(&spool->queue));
	bool goes_on = !spool->stopping || round->first != NULL;
	pthread_mutex_unlock(&spool->mutex);
	return goes_on;
}

static uint64_t held_bytes(const struct push_spool *spool)
{
	return weir_bus_local_bytes(spool->bus, WEIR_TOPIC_EVENTS) + spool->taken_bytes;
}

static bool has_room(const struct push_spool *spool, uint64_t bytes)
{
	return held_bytes(spool) + bytes <= spool->most_bytes && spool->taken_bytes + bytes <= QUEUE_MOST_BYTES &&
	       spool->taken_batches < QUEUE_MOST_BATCHES;
}

/* Whether senders wait no longer: a batch like the last that was refused would be taken. The caller holds the mutex. */
static bool is_calm(struct push_spool *spool)
{
	char ignored[256];
	return weir_monotonic_ms() - spool->refused_ms > CALM_MS && has_room(spool, spool->refused_bytes) &&
	       !spool->bus->ops->problem(spool->bus, ignored, sizeof ignored);
}

/* Says that senders are told to wait, and that they are no longer. */
static void tell(struct push_spool *spool)
{
	pthread_mutex_lock(&spool->mutex);
	uint64_t refusals = spool->counts.full_refusals;
	bool stopping = spool->stopping;
	if (spool->waiting_since_ms != 0 && is_calm(spool))
		spool->waiting_since_ms = 0;
	bool waiting = spool->waiting_since_ms != 0;
	pthread_mutex_unlock(&spool->mutex);
	if (spool->log == NULL || stopping)
		return;
	if (refusals != spool->full_told) {
		spool->full_told = refusals;
		weir_fault_raise(
			&spool->full, spool->log, "collector",
			"%s: its spool takes nothing now: senders are told to wait. What they send again is judged then, "
			"and later. weir reads on as soon as it can send on; if it can, free the disk or raise "
			"\"spool\" (runbook: senders-wait)",
			spool->name);
	} else if (!waiting) {
		weir_fault_clear(&spool->full, spool->log, "collector");
	}
}

static void *work(void *context)
{
	struct push_spool *spool = context;
	struct push_appends round;
	bool goes_on = true, settles;
	while (goes_on) {
		goes_on = wait_for_work(spool, &round, &settles);
		push_ids_forget(spool->ids, weir_wall_ms());
		take_deliveries(spool, 0);
		store(spool, &round);
		answer_all_late(spool);
		answer_twins(spool);
		goes_on |= somebody_waits(spool);
		tell(spool);
		if (settles)
			settle(spool);
	}
	return NULL;
}

/* ---- taking ---- */

size_t push_spool_batch_most(const struct push_spool *spool)
{
	uint64_t quarter = spool->most_bytes / 4;
	return quarter < PUSH_BATCH_MOST_BYTES ? (size_t)quarter : PUSH_BATCH_MOST_BYTES;
}

uint32_t push_count_lines(struct weir_span lines)
{
	uint32_t count = 0;
	for (const char *at = lines.at, *end = at + lines.length; at < end; count++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		at = newline != NULL ? newline + 1 : end;
	}
	return count;
}

static enum weir_status check_batch(const struct push_spool *spool, struct weir_span id, const struct weir_text *lines,
                                    uint32_t *count, struct weir_error *error)
{
	size_t most = push_spool_batch_most(spool);
	const char *otherwise = id.at == NULL ? ", or give each an id of its own, such as an Idempotency-Key" : "";
	if (id.length > PUSH_ID_MOST_BYTES)
		return weir_fail(error, WEIR_INVALID, "the batch's id has more than %d bytes", PUSH_ID_MOST_BYTES);
	if (lines->length > most)
		return weir_fail(error, WEIR_INVALID, "the batch has %zu bytes, and may have %zu: send smaller ones%s",
		                 lines->length, most, otherwise);
	*count = push_count_lines(weir_text_span(lines));
	if (*count > PUSH_BATCH_MOST_LINES)
		return weir_fail(error, WEIR_INVALID, "the batch has %" PRIu32 " lines, and may have %d: send smaller ones%s",
		                 *count, PUSH_BATCH_MOST_LINES, otherwise);
	return WEIR_OK;
}

/* Whether there is room. The caller holds the mutex. */
static enum weir_status check_room(struct push_spool *spool, uint64_t bytes, struct weir_error *error)
{
	char words[256];
	if (spool->stopping)
		return weir_fail(error, WEIR_AGAIN, "weir is stopping");
	if (spool->bus->ops->problem(spool->bus, words, sizeof words))
		return weir_fail(error, WEIR_AGAIN, "the spool cannot be written: %s", words);
	if (has_room(spool, bytes))
		return WEIR_OK;
	spool->hurry = true;
	weir_wake_up(spool->work);
	if (spool->taken_batches >= QUEUE_MOST_BATCHES)
		return weir_fail(error, WEIR_FULL, "%" PRIu64 " batches are not on disk yet", spool->taken_batches);
	return weir_fail(error, WEIR_FULL, "the spool is full: %" PRIu64 " of %" PRIu64 " bytes wait to be read",
	                 held_bytes(spool), spool->most_bytes);
}

enum weir_status push_append_part(struct push_spool *spool, struct weir_span id, uint64_t body, struct weir_text *lines,
                                  push_done *done, void *context, struct weir_error *error)
{
	uint32_t count = 0;
	enum weir_status status = check_batch(spool, id, lines, &count, error);
	if (status != WEIR_OK)
		return status;
	struct push_append *append = weir_alloc(1, sizeof *append);
	append->done = done;
	append->context = context;
	append->line_count = count;
	append->bytes = lines->length;
	append->has_id = id.at != NULL;
	append->deadline_ms = weir_monotonic_ms() + PUSH_COMMIT_MOST_MS;
	append->id.at_ms = weir_wall_ms();
	if (append->has_id) {
		weir_hash128(id.at, id.length, append->id.hash);
		append->id.body = body;
	}
	pthread_mutex_lock(&spool->mutex);
	status = check_room(spool, append->bytes, error);
	if (status == WEIR_OK) {
		append->lines = *lines;
		*lines = (struct weir_text){0};
		spool->taken_bytes += append->taken = append->bytes;
		spool->taken_batches += append->taken > 0;
		push_last(&spool->queue, append);
		weir_wake_up(spool->work);
	} else {
		note_refusal(spool, append->bytes);
	}
	pthread_mutex_unlock(&spool->mutex);
	if (status != WEIR_OK)
		free(append);
	return status;
}

enum weir_status push_spool_append(struct push_spool *spool, struct weir_span id, struct weir_text *lines,
                                   push_done *done, void *context, struct weir_error *error)
{
	uint64_t body = id.at != NULL ? weir_hash64(lines->at, lines->length) : 0;
	return push_append_part(spool, id, body, lines, done, context, error);
}

void push_spool_end(struct push_spool *spool, struct weir_span id)
{
	struct push_append *append = weir_alloc(1, sizeof *append);
	append->ends = true;
	weir_hash128(id.at, id.length, append->id.hash);
	pthread_mutex_lock(&spool->mutex);
	bool takes = !spool->stopping;
	if (takes) {
		push_last(&spool->queue, append);
		weir_wake_up(spool->work);
	}
	pthread_mutex_unlock(&spool->mutex);
	if (!takes)
		free(append);
}

/* ---- opening and closing ---- */

/* Adds the ids of batches that are still here and in no file of ids. */
static enum weir_status read_ids(struct push_spool *spool, struct weir_error *error)
{
	const struct weir_bus_ops *ops = spool->bus->ops;
	struct weir_consumer *consumer = NULL;
	uint64_t first = 0, next = 0;
	int64_t now_ms = weir_wall_ms();
	enum weir_status status = ops->consumer_new(spool->bus, WEIR_TOPIC_EVENTS, NULL, &consumer, error);
	if (status == WEIR_OK)
		status = ops->extent(spool->bus, WEIR_TOPIC_EVENTS, 0, &first, &next, error);
	if (status == WEIR_OK)
		status = ops->assign(consumer, 0, first, error);
	for (size_t count; status == WEIR_OK && first < next;) {
		struct weir_message messages[PUSH_MESSAGES];
		status = ops->receive(consumer, messages, PUSH_MESSAGES, OPEN_WAIT_MS, &count, error);
		for (size_t i = 0; status == WEIR_OK && i < count; i++) {
			struct push_id id;
			first = messages[i].offset + 1;
			if (get_key(&messages[i], &id))
				push_ids_learn(spool->ids, &id, now_ms);
		}
	}
	if (consumer != NULL)
		ops->consumer_free(consumer);
	return status;
}

static enum weir_status open_files(struct push_spool *spool, const struct push_spool_options *options,
                                   struct weir_error *error)
{
	struct weir_bus_local_options log = {.partitions = 1, .events_only = true};
	log.segment_bytes = options->most_bytes / SEGMENTS;
	if (log.segment_bytes > SEGMENT_MOST_BYTES)
		log.segment_bytes = SEGMENT_MOST_BYTES;
	enum weir_status status = weir_bus_local_open(options->directory, &log, &spool->bus, error);
	if (status == WEIR_OK)
		status = push_spool_id_settle(spool, options->directory, options->last, error);
	if (status == WEIR_OK)
		status = push_ids_open(options->directory, weir_wall_ms(), &spool->ids, error);
	if (status == WEIR_OK && push_ids_doubt(spool->ids)[0] != '\0')
		push_spool_tell(spool, push_ids_doubt(spool->ids));
	if (status == WEIR_OK)
		status = read_ids(spool, error);
	if (status == WEIR_OK)
		status = spool->bus->ops->producer_new(spool->bus, &spool->producer, error);
	if (status == WEIR_OK)
		spool->bus->ops->wake_producer(spool->producer, spool->work);
	if (status == WEIR_OK)
		status = spool->bus->ops->consumer_new(spool->bus, WEIR_TOPIC_EVENTS, reader, &spool->reading.consumer, error);
	if (status == WEIR_OK)
		spool->settled_before = weir_bus_local_read_to(spool->bus, WEIR_TOPIC_EVENTS, reader, 0);
	return status;
}

enum weir_status push_spool_open(const struct push_spool_options *options, struct push_spool **made,
                                 struct weir_error *error)
{
	struct push_spool *spool = weir_alloc(1, sizeof *spool);
	spool->most_bytes = (uint64_t)options->most_bytes;
	spool->log = options->log;
	snprintf(spool->name, sizeof spool->name, "%s", options->name != NULL ? options->name : "spool");
	spool->reading.positions = weir_alloc(PUSH_CHUNK_LINES, sizeof *spool->reading.positions);
	pthread_mutex_init(&spool->mutex, NULL);
	spool->event = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
	spool->work = weir_wake_new();
	enum weir_status status =
		spool->event >= 0 && spool->work >= 0
			? open_files(spool, options, error)
			: weir_fail(error, WEIR_IO, "cannot create a file descriptor: %s", weir_errno_words(errno));
	if (status == WEIR_OK && pthread_create(&spool->thread, NULL, work, spool) != 0)
		status = weir_fail(error, WEIR_IO, "cannot start a thread");
	spool->started = status == WEIR_OK;
	if (status == WEIR_OK)
		*made = spool;
	else
		push_spool_close(spool);
	return status;
}

void push_spool_stop(struct push_spool *spool)
{
	pthread_mutex_lock(&spool->mutex);
	spool->stopping = true;
	spool->stop_ms = weir_monotonic_ms() + STOP_MS;
	weir_wake_up(spool->work);
	pthread_mutex_unlock(&spool->mutex);
	if (spool->started)
		pthread_join(spool->thread, NULL);
	spool->started = false;
}

void push_spool_close(struct push_spool *spool)
{
	if (spool == NULL)
		return;
	push_spool_stop(spool);
	if (spool->reading.consumer != NULL) {
		if (spool->settled > 0)
			spool->bus->ops->consumed(spool->reading.consumer, 0, spool->settled);
		spool->bus->ops->consumer_free(spool->reading.consumer);
	}
	if (spool->producer != NULL)
		spool->bus->ops->producer_free(spool->producer);
	if (spool->bus != NULL)
		spool->bus->ops->close(spool->bus);
	for (struct push_append *append; (append = pop_first(&spool->away)) != NULL;)
		free_append(spool, append); /* answered, and perhaps not on disk */
	push_ids_free(spool->ids);
	if (spool->event >= 0)
		close(spool->event);
	if (spool->work >= 0)
		close(spool->work);
	pthread_mutex_destroy(&spool->mutex);
	free(spool->reading.positions);
	free(spool);
}

const uint8_t *push_spool_id(const struct push_spool *spool)
{
	return spool->id;
}

void push_spool_status(struct push_spool *spool, struct push_spool_status *status)
{
	char words[256];
	uint64_t first = 0, next = 0;
	(void)!spool->bus->ops->extent(spool->bus, WEIR_TOPIC_EVENTS, 0, &first, &next, NULL);
	pthread_mutex_lock(&spool->mutex);
	*status = spool->counts;
	/* Batches may have come, and been read, since `next` was asked for. */
	uint64_t from = spool->handed > first ? spool->handed : first;
	status->waiting_batches = next > from ? next - from : 0;
	status->waiting_ms = spool->waiting_since_ms != 0 ? weir_monotonic_ms() - spool->waiting_since_ms + 1 : 0;
	pthread_mutex_unlock(&spool->mutex);
	status->most_bytes = spool->most_bytes;
	status->bytes = weir_bus_local_bytes(spool->bus, WEIR_TOPIC_EVENTS);
	if (spool->bus->ops->problem(spool->bus, words, sizeof words))
		memcpy(status->problem, words, sizeof words);
}
