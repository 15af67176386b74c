/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a listing says of the objects: which are new, have grown, are complete, are shorter than they were.
 *
 * What is listed as complete is remembered until it is older than "late"; then it is settled with all that are as old.
 */
#include "collector/source/remote/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	WHOLE_LEAST_MS = 10000, /* how often all is listed, changed or not */
	ONCE_TRIES = 4,
	FAILED_LEAST_MS = 1000,
	FULL_MOST_MS = 3600000, /* how often names below the floor are looked at: some may be made there that are new */
};

struct remote_round {
	struct remote_fetch *fetch;
	bool whole, full;
	int64_t cutoff_ms;
	int64_t bound_ms; /* where ids do not rise: what is as old is settled, or makes no room */
	char *folder;     /* of a kind that is ordered */
	char *settled;    /* the last of the folder's first names that are all settled */
	bool run;         /* all names so far were */
	uint64_t refused, strange;
	uint64_t least_id; /* of those that are not done, or were refused */
	int64_t least_ms;  /* of those that were refused */
	char remark[200];
};

void remote_remark(struct remote_round *round, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(round->remark, sizeof round->remark, format, arguments);
	va_end(arguments);
}

void remote_replaced(struct remote_round *round, const char *name)
{
	struct remote_fetch *fetch = round->fetch;
	remote_notice(
		fetch, "%.120s was written again: it is another object now, and all its lines are read, also those that it had",
		name);
	pthread_mutex_lock(&fetch->mutex);
	fetch->state.replaced++;
	pthread_mutex_unlock(&fetch->mutex);
}

static void end_folder(struct remote_round *round)
{
	if (round->folder != NULL && round->settled != NULL)
		(void)remote_table_floor(&round->fetch->table, round->folder, round->settled);
	free(round->folder);
	free(round->settled);
	round->folder = round->settled = NULL;
}

const char *remote_floor(struct remote_round *round, const char *folder)
{
	end_folder(round);
	round->folder = weir_copy(folder, strlen(folder));
	round->run = true;
	const char *floor = round->full ? NULL : remote_table_floor(&round->fetch->table, folder, NULL);
	return floor != NULL ? floor : "";
}

static bool is_settled(const struct remote_fetch *fetch, const struct remote_object *object)
{
	if (fetch->options.from_end && !fetch->table.begun) /* what is passed over does not settle those named after it */
		return false;
	return fetch->options.ops->rising ? object->id <= fetch->table.settled_id
	                                  : object->modified_ms <= fetch->table.settled_ms;
}

bool remote_wants_open(struct remote_round *round, struct remote_object *object)
{
	const struct remote_known *known = remote_table_find(&round->fetch->table, object->id);
	if (known != NULL && known->listed_size == object->size && known->modified_ms == object->modified_ms) {
		object->open = known->open;
		return false;
	}
	if (known == NULL && remote_table_is_full(&round->fetch->table, object->name))
		return false; /* it waits */
	/* However old its time is: a NameNode's stands still while a file is written to, as its length does. */
	object->open = known != NULL || !is_settled(round->fetch, object);
	return object->open;
}

static void note_settled(struct remote_round *round, const struct remote_object *object)
{
	const struct remote_table *table = &round->fetch->table;
	if (round->fetch->options.ops->rising && table->begun && (object->open || object->modified_ms > table->settled_ms))
		round->strange++;
	if (!round->run || round->folder == NULL)
		return;
	free(round->settled);
	round->settled = weir_copy(object->name, strlen(object->name));
}

/* Whether an object is passed over that was there before weir was. Where it is open, its present line is its last. */
static void begin_at_end(struct remote_known *known, const struct remote_object *object)
{
	known->skips = object->size > 0;
	known->offset = object->size > 0 ? object->size - 1 : 0;
	known->size = object->size;
	if (!object->open) {
		known->offset = object->size;
		known->skips = false;
		known->done = true;
	}
}

static void refuse(struct remote_round *round, uint64_t id, int64_t modified_ms)
{
	round->refused++;
	round->least_id = id < round->least_id ? id : round->least_id;
	round->least_ms = modified_ms < round->least_ms ? modified_ms : round->least_ms;
}

static bool waits(const struct remote_known *known)
{
	return !known->done && known->offset == 0 && !known->skips;
}

static bool makes_room(void *context, const struct remote_known *known)
{
	struct remote_round *round = context;
	bool goes = waits(known) && known->modified_ms >= round->bound_ms;
	if (goes)
		refuse(round, known->id, known->modified_ms);
	return goes;
}

static int by_time(const void *a, const void *b)
{
	int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
	return (one > other) - (one < other);
}

/* The oldest are read first: of those that wait the newer half makes room, and is found again by another listing. */
static void make_room(struct remote_round *round)
{
	const struct remote_table *table = &round->fetch->table;
	int64_t *times = weir_alloc(table->count, sizeof *times);
	size_t count = 0;
	for (size_t i = 0; i < table->count; i++)
		if (waits(table->objects[i]))
			times[count++] = table->objects[i]->modified_ms;
	qsort(times, count, sizeof *times, by_time);
	size_t place = count / 2;
	while (place < count && times[place] == times[0])
		place++;
	if (place < count) {
		round->bound_ms = times[place];
		remote_table_sweep(&round->fetch->table, makes_room, round);
	}
	free(times);
}

/* Where ids do not rise, none is added that is as new as one that waits for room: else it could not be told from those. */
static struct remote_known *find_room(struct remote_round *round, const struct remote_object *object)
{
	struct remote_table *table = &round->fetch->table;
	bool rising = round->fetch->options.ops->rising;
	if (!rising && object->modified_ms < round->least_ms && remote_table_is_full(table, object->name))
		make_room(round);
	if ((rising || object->modified_ms < round->least_ms) && !remote_table_is_full(table, object->name))
		return remote_table_add(table, object->id);
	refuse(round, object->id, object->modified_ms);
	return NULL;
}

static struct remote_known *add(struct remote_round *round, const struct remote_object *object)
{
	struct remote_fetch *fetch = round->fetch;
	bool passed = fetch->options.from_end && !fetch->table.begun;
	if (passed && !object->open && object->modified_ms <= round->cutoff_ms) {
		if (object->id > fetch->table.settled_id)
			fetch->table.settled_id = object->id;
		return NULL;
	}
	struct remote_known *known = find_room(round, object);
	if (known != NULL && passed)
		begin_at_end(known, object);
	return known;
}

/* It has fewer bytes than were read of it. */
static void truncated(struct remote_fetch *fetch, struct remote_known *known, const struct remote_object *object)
{
	uint64_t unread = known->size > known->offset ? known->size - known->offset : 0;
	remote_lost(fetch, object->name, unread,
	            "was truncated from %" PRIu64 " bytes to %" PRIu64 "; reading goes on there", known->size,
	            object->size);
	known->offset = object->size > 0 ? object->size - 1 : 0;
	known->skips = object->size > 0;
	known->check_bytes = 0;
	if (known->packed)
		known->done = true;
}

/* What a listing says of one that is known. */
static void renew(struct remote_fetch *fetch, struct remote_known *known, const struct remote_object *object)
{
	known->listing = fetch->listing;
	bool changed = object->modified_ms != known->modified_ms; /* else the listing lags behind what was read */
	if (!object->open && !known->packed && changed && object->size < known->offset)
		truncated(fetch, known, object);
	bool grown = known->packed ? object->size > known->size : object->size > known->offset;
	known->size = !object->open || object->size > known->size ? object->size : known->size;
	known->open = object->open;
	known->listed_size = object->size;
	known->modified_ms = object->modified_ms;
	bool nothing = !grown && !known->skips && (known->packed ? known->done : !object->open);
	if (nothing && (known->done || known->name == NULL)) {
		remote_set_done(fetch, known);
		return;
	}
	known->done = false;
	if (known->name == NULL || strcmp(known->name, object->name) != 0)
		remote_table_name(&fetch->table, known, object->name);
	memcpy(known->tag, object->tag, sizeof known->tag);
}

void remote_found(struct remote_round *round, const struct remote_object *object)
{
	struct remote_fetch *fetch = round->fetch;
	struct remote_known *known = remote_table_find(&fetch->table, object->id);
	if (strlen(object->name) > REMOTE_NAME_MOST) {
		remote_remark(round, "names of more than %d bytes are not read", REMOTE_NAME_MOST);
		return;
	}
	if (known == NULL && is_settled(fetch, object)) {
		note_settled(round, object);
		return;
	}
	round->run = false;
	if (known == NULL)
		known = add(round, object);
	if (known == NULL)
		return;
	renew(fetch, known, object);
	if (!known->done && known->id < round->least_id)
		round->least_id = known->id;
}

/* ---- what is settled ---- */

static bool is_old(void *context, const struct remote_known *known)
{
	const struct remote_round *round = context;
	bool rising = round->fetch->options.ops->rising;
	return known->done && known->modified_ms <= round->bound_ms && (!rising || known->id < round->least_id);
}

static void settle(struct remote_round *round)
{
	struct remote_table *table = &round->fetch->table;
	bool rising = round->fetch->options.ops->rising, all = round->fetch->options.once && round->refused > 0;
	bool late = !all && round->cutoff_ms < round->least_ms;
	round->bound_ms = rising || late ? round->cutoff_ms : round->least_ms - 1;
	for (size_t i = 0; i < table->count; i++) {
		const struct remote_known *known = table->objects[i];
		if (!known->done && known->id < round->least_id) /* one that this listing has not named, too */
			round->least_id = known->id;
	}
	for (size_t i = 0; i < table->count; i++)
		if (is_old(round, table->objects[i]) && table->objects[i]->id > table->settled_id)
			table->settled_id = table->objects[i]->id;
	remote_table_sweep(table, is_old, round);
	if (round->bound_ms > table->settled_ms)
		table->settled_ms = round->bound_ms;
}

/* ---- listing ---- */

/* Whether objects wait, and none makes room for them but by its age. */
static bool is_stuck(const struct remote_round *round)
{
	const struct remote_table *table = &round->fetch->table;
	bool stuck = round->refused > 0 && table->count == REMOTE_OBJECTS_MOST;
	for (size_t i = 0; stuck && i < table->count; i++)
		stuck = table->objects[i]->done;
	return stuck;
}

static void say(struct remote_round *round, enum weir_status status, const struct weir_error *error)
{
	struct remote_fetch *fetch = round->fetch;
	const char *noun = fetch->options.ops->noun;
	char *problem = fetch->listing_problem;
	size_t room = sizeof fetch->listing_problem;
	if (status != WEIR_OK && status != WEIR_AGAIN)
		snprintf(problem, room, "%.250s", error->text);
	else if (is_stuck(round))
		snprintf(problem, room,
		         "more than %d %ss have changed within \"late\": %" PRIu64 " wait; lower \"late\", or name fewer",
		         REMOTE_OBJECTS_MOST, noun, round->refused);
	else if (round->strange > 0)
		snprintf(problem, room,
		         "%" PRIu64 " %ss are older than what was settled, and were written since: they are not read; if the "
		         "file system was made anew, give the source another \"name\"",
		         round->strange, noun);
	else if (round->whole || round->remark[0] != '\0')
		snprintf(problem, room, "%.200s", round->remark);
}

static void list(struct remote_fetch *fetch, bool whole, int64_t now_ms)
{
	struct remote_round round = {.fetch = fetch,
	                             .whole = whole,
	                             .full = whole && fetch->options.ops->ordered && now_ms >= fetch->full_ms,
	                             .cutoff_ms = weir_wall_ms() - fetch->options.late_ms,
	                             .least_id = UINT64_MAX,
	                             .least_ms = INT64_MAX};
	struct weir_error error;
	fetch->listing += whole;
	enum weir_status status = fetch->options.ops->list(fetch->options.kind, whole, &round, &error);
	bool good = status == WEIR_OK || status == WEIR_AGAIN;
	if (good && whole)
		end_folder(&round);
	free(round.folder);
	free(round.settled);
	if (good && whole)
		settle(&round);
	say(&round, status, &error);
	if (good && whole) {
		fetch->table.begun = true;
		int64_t pause_ms = 10 * fetch->options.poll_ms;
		fetch->whole_ms = now_ms + (pause_ms > WHOLE_LEAST_MS ? pause_ms : WHOLE_LEAST_MS);
		fetch->more = round.refused > 0;
	}
	if (good && round.full && round.refused == 0) {
		int64_t pause_ms = fetch->options.late_ms / 2;
		fetch->full_ms = now_ms + (pause_ms < FULL_MOST_MS ? pause_ms : FULL_MOST_MS);
	}
	int64_t pause_ms = good || fetch->options.poll_ms > FAILED_LEAST_MS ? fetch->options.poll_ms : FAILED_LEAST_MS;
	fetch->list_ms = now_ms + (fetch->options.once && fetch->more ? 0 : pause_ms);
	fetch->list_failures = good ? 0 : status == WEIR_INVALID ? ONCE_TRIES : fetch->list_failures + 1;
	bool stuck = fetch->options.once && good && is_stuck(&round);
	if (stuck) {
		fetch->more = false;
		weir_fail(&error, WEIR_IO, "%s", fetch->listing_problem);
	}
	if (fetch->options.once && (status == WEIR_INVALID || fetch->list_failures >= ONCE_TRIES || stuck)) {
		if (fetch->failed)
			remote_notice(fetch, "%s", error.text);
		else
			fetch->once_error = error;
		fetch->failed = true;
	}
	pthread_mutex_lock(&fetch->mutex);
	fetch->state.errors += !good;
	pthread_mutex_unlock(&fetch->mutex);
}

void remote_list_if_due(struct remote_fetch *fetch, int64_t now_ms)
{
	bool once = fetch->options.once;
	if (now_ms < fetch->list_ms || (once && remote_is_listed(fetch)))
		return;
	bool whole = once || fetch->options.ops->ordered || now_ms >= fetch->whole_ms || fetch->list_failures > 0;
	list(fetch, whole, now_ms);
}

bool remote_is_listed(const struct remote_fetch *fetch)
{
	return fetch->listing > 0 && ((fetch->list_failures == 0 && !fetch->more) || fetch->list_failures >= ONCE_TRIES);
}
