/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread's loop, and the steps that it makes.
 *
 * What is complete is read oldest first, as its lines are in that order, too. Meanwhile each object that grows has a range
 * in its turn, so that a huge one keeps none of them waiting. At most REMOTE_STEPS_AHEAD steps wait to be handed out: then the thread waits, too.
 */
#include "collector/source/remote/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { NAMED_MOST = 100, NAMED_MS = 60000 }; /* notices in a minute */
enum { RETRY_LEAST_MS = 500, RETRY_MOST_MS = 30000, LOSS_SHOWN_MS = 60000, ONCE_TRIES = 4, PAUSE_MS = 500 };

struct remote_fetch *remote_fetch_new(const struct remote_fetch_options *options, struct remote_table *table,
                                      struct remote_piece *replays, size_t replay_count)
{
	struct remote_fetch *fetch = weir_alloc(1, sizeof *fetch);
	fetch->options = *options;
	fetch->table = *table;
	*table = (struct remote_table){0};
	fetch->replays = replays;
	fetch->replay_count = replay_count;
	fetch->range_bytes = REMOTE_RANGE_BYTES;
	fetch->ahead = weir_alloc(REMOTE_AHEAD_MOST, sizeof *fetch->ahead);
	fetch->buffer = weir_alloc(REMOTE_BUFFER_BYTES, 1);
	fetch->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&fetch->mutex, NULL);
	weir_condition_init(&fetch->moved);
	return fetch;
}

void remote_fetch_replay(struct remote_fetch *fetch, struct remote_piece *replays, size_t replay_count)
{
	remote_pieces_free(fetch->replays, fetch->replay_count);
	fetch->replays = replays;
	fetch->replay_count = replay_count;
}

/* ---- waiting ---- */

bool remote_stopped(struct remote_fetch *fetch)
{
	pthread_mutex_lock(&fetch->mutex);
	bool stopped = fetch->stop;
	pthread_mutex_unlock(&fetch->mutex);
	return stopped;
}

static void wait_until(struct remote_fetch *fetch, int64_t end_ms)
{
	struct weir_deadline deadline = weir_deadline_at_ms(end_ms);
	pthread_mutex_lock(&fetch->mutex);
	while (!fetch->stop && weir_monotonic_ms() < end_ms)
		(void)weir_condition_wait(&fetch->moved, &fetch->mutex, &deadline);
	pthread_mutex_unlock(&fetch->mutex);
}

/* ---- bytes ---- */

enum weir_status remote_read_bytes(struct remote_fetch *fetch, const struct remote_object *object, uint64_t from,
                                   uint64_t to, int fd, uint64_t *got, struct weir_error *error)
{
	const struct remote_fetch_options *options = &fetch->options;
	enum weir_status status = options->ops->read(options->kind, object, from, to, fd, got, error);
	pthread_mutex_lock(&fetch->mutex);
	fetch->state.reads |= status == WEIR_OK && *got > 0;
	pthread_mutex_unlock(&fetch->mutex);
	return status;
}

/* ---- steps ---- */

int remote_temporary(const struct remote_fetch *fetch, struct weir_error *error)
{
	char path[4096];
	const char *directory = fetch->options.directory;
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof path, "%s/weir-remote-XXXXXX", directory) < (int)sizeof path)
		fd = mkostemp(path, O_CLOEXEC); /* where the file system has no files without a name */
	if (fd >= 0)
		(void)unlink(path);
	else
		weir_fail(error, WEIR_IO, "cannot make a temporary file in %s: %s", directory, weir_errno_words(errno));
	return fd;
}

int remote_step_fd(struct remote_fetch *fetch, struct weir_error *error)
{
	if (fetch->step == NULL) {
		int fd = remote_temporary(fetch, error);
		if (fd < 0)
			return -1;
		fetch->step = weir_alloc(1, sizeof *fetch->step);
		fetch->step->fd = fd;
		fetch->step_ms = weir_monotonic_ms();
	}
	if (lseek(fetch->step->fd, (off_t)fetch->step->bytes, SEEK_SET) >= 0)
		return fetch->step->fd;
	weir_fail(error, WEIR_IO, "cannot go through a temporary file: %s", weir_errno_words(errno));
	return -1;
}

void remote_step_drop(struct remote_fetch *fetch)
{
	if (fetch->step != NULL && ftruncate(fetch->step->fd, (off_t)fetch->step->bytes) != 0)
		return; /* what lies behind the pieces is read by nobody */
}

enum weir_status remote_step_add(struct remote_fetch *fetch, const struct remote_piece *piece, struct weir_error *error)
{
	struct remote_step *step = fetch->step;
	uint64_t kept = piece->to - piece->from;
	if (piece->closed && pwrite(step->fd, "\n", 1, (off_t)(piece->at + kept)) != 1)
		return weir_fail(error, WEIR_IO, "cannot write a temporary file: %s", weir_errno_words(errno));
	step->bytes = piece->at + kept + piece->closed;
	remote_step_drop(fetch);
	if ((step->count & (step->count - 1)) == 0)
		step->pieces = weir_realloc(step->pieces, step->count == 0 ? 1 : 2 * step->count, sizeof *step->pieces);
	step->pieces[step->count++] = *piece;
	step->name_bytes += strlen(piece->name);
	return WEIR_OK;
}

void remote_step_free(struct remote_step *step)
{
	if (step == NULL)
		return;
	if (step->fd >= 0)
		close(step->fd);
	remote_pieces_free(step->pieces, step->count);
	weir_text_deinit(&step->table);
	free(step);
}

/* Hands over the step that is made, once there is room. */
static void queue(struct remote_fetch *fetch, struct remote_step *step)
{
	remote_table_put(&fetch->table, &step->table);
	pthread_mutex_lock(&fetch->mutex);
	while (!fetch->stop && fetch->ready_count == REMOTE_STEPS_AHEAD)
		pthread_cond_wait(&fetch->moved, &fetch->mutex);
	if (fetch->stop) {
		remote_step_free(step);
	} else {
		fetch->ready[fetch->ready_count++] = step;
		(void)!write(fetch->event, &(uint64_t){1}, sizeof(uint64_t));
	}
	pthread_mutex_unlock(&fetch->mutex);
}

static void finish_step(struct remote_fetch *fetch)
{
	struct remote_step *step = fetch->step;
	fetch->step = NULL;
	if (step != NULL && step->count > 0)
		queue(fetch, step);
	else
		remote_step_free(step);
}

/* One without lines, so that what the table says is saved; or the last. */
static void queue_bare(struct remote_fetch *fetch, bool last)
{
	struct remote_step *step = weir_alloc(1, sizeof *step);
	step->fd = -1;
	step->last = last;
	step->status = fetch->failed ? WEIR_IO : WEIR_OK;
	step->error = fetch->once_error;
	queue(fetch, step);
}

struct remote_step *remote_fetch_take(struct remote_fetch *fetch)
{
	struct remote_step *step = NULL;
	pthread_mutex_lock(&fetch->mutex);
	if (fetch->ready_count > 0) {
		step = fetch->ready[0];
		fetch->ready_count--;
		memmove(fetch->ready, fetch->ready + 1, fetch->ready_count * sizeof(struct remote_step *));
		pthread_cond_broadcast(&fetch->moved);
	}
	uint64_t ignored;
	if (fetch->ready_count == 0)
		(void)!read(fetch->event, &ignored, sizeof ignored);
	pthread_mutex_unlock(&fetch->mutex);
	return step;
}

int remote_fetch_fd(const struct remote_fetch *fetch)
{
	return fetch->event;
}

/* ---- what is told ---- */

void remote_notice(struct remote_fetch *fetch, const char *format, ...)
{
	char words[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(words, sizeof words, format, arguments);
	va_end(arguments);
	int64_t now_ms = weir_monotonic_ms();
	pthread_mutex_lock(&fetch->mutex);
	if (now_ms - fetch->named_ms >= NAMED_MS) {
		fetch->named_ms = now_ms;
		fetch->named = 0;
	}
	if (fetch->named++ < NAMED_MOST)
		weir_text_append(&fetch->notices, words, strlen(words) + 1);
	else
		fetch->unnamed++;
	pthread_mutex_unlock(&fetch->mutex);
}

void remote_lost(struct remote_fetch *fetch, const char *name, uint64_t bytes, const char *format, ...)
{
	char words[160];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(words, sizeof words, format, arguments);
	va_end(arguments);
	size_t length = strlen(name), most = 80;
	snprintf(fetch->loss, sizeof fetch->loss, "%s%s %s", length > most ? "..." : "",
	         name + (length > most ? length - most : 0), words);
	fetch->loss_ms = weir_monotonic_ms();
	if (bytes > 0)
		remote_notice(fetch, "lost: %.240s", fetch->loss);
	if (fetch->options.once && bytes > 0 && !fetch->failed) {
		weir_fail(&fetch->once_error, WEIR_IO, "%s", fetch->loss);
		fetch->failed = true;
	}
	pthread_mutex_lock(&fetch->mutex);
	if (bytes == UINT64_MAX)
		fetch->state.unknown_losses++;
	else
		fetch->state.lost_bytes += bytes;
	pthread_mutex_unlock(&fetch->mutex);
}

enum remote_turn remote_failed(struct remote_fetch *fetch, struct remote_known *known, const struct weir_error *error)
{
	char words[256];
	int64_t pause_ms = RETRY_LEAST_MS << (known->failures < 6 ? known->failures : 6);
	snprintf(words, sizeof words, "%.80s: %.160s", known->name, error->text);
	free(known->problem);
	known->problem = weir_copy(words, strlen(words));
	known->failures++;
	known->retry_ms = weir_monotonic_ms() + (pause_ms < RETRY_MOST_MS ? pause_ms : RETRY_MOST_MS);
	pthread_mutex_lock(&fetch->mutex);
	fetch->state.errors++;
	pthread_mutex_unlock(&fetch->mutex);
	if (!fetch->options.once || known->failures < ONCE_TRIES)
		return REMOTE_TURN_LATER;
	if (fetch->failed)
		remote_notice(fetch, "%s", words);
	else
		weir_fail(&fetch->once_error, WEIR_IO, "%s", words);
	fetch->failed = true;
	known->retry_ms = INT64_MAX; /* the others go on */
	return REMOTE_TURN_NOTHING;
}

void remote_set_well(struct remote_known *known)
{
	free(known->problem);
	known->problem = NULL;
	known->failures = 0;
	known->retry_ms = 0;
}

void remote_set_done(struct remote_fetch *fetch, struct remote_known *known)
{
	remote_table_name(&fetch->table, known, NULL);
	remote_set_well(known);
	free(known->head);
	known->head = NULL;
	known->done = true;
}

/* Sums up what status() shows. */
static void publish(struct remote_fetch *fetch)
{
	uint64_t behind = 0, waiting = 0;
	const char *problem = fetch->listing_problem[0] != '\0' ? fetch->listing_problem : NULL;
	for (size_t i = 0; i < fetch->active_count; i++) {
		const struct remote_known *known = fetch->active[i];
		bool unread = !known->done && known->size > known->offset;
		waiting += unread;
		behind += unread ? known->size - known->offset : 0;
		if (problem == NULL && known->failures > 1)
			problem = known->problem;
	}
	bool loss = fetch->loss_ms > 0 && weir_monotonic_ms() - fetch->loss_ms < LOSS_SHOWN_MS;
	pthread_mutex_lock(&fetch->mutex);
	fetch->state.behind_bytes = behind;
	fetch->state.waiting = waiting;
	fetch->state.reads_on = problem == NULL && loss;
	snprintf(fetch->state.problem, sizeof fetch->state.problem, "%s",
	         problem != NULL ? problem
	         : loss          ? fetch->loss
	                         : "");
	pthread_mutex_unlock(&fetch->mutex);
}

bool remote_fetch_notice(struct remote_fetch *fetch, char words[256])
{
	struct weir_text *notices = &fetch->notices;
	pthread_mutex_lock(&fetch->mutex);
	bool there = notices->length > 0 || fetch->unnamed > 0;
	if (notices->length > 0) {
		size_t length = strlen(notices->at) + 1;
		memcpy(words, notices->at, length);
		notices->length -= length;
		memmove(notices->at, notices->at + length, notices->length);
	} else if (there) {
		snprintf(words, 256, "%llu more objects are lost or written again than have been named here",
		         (unsigned long long)fetch->unnamed);
		fetch->unnamed = 0;
	}
	pthread_mutex_unlock(&fetch->mutex);
	return there;
}

void remote_fetch_state(struct remote_fetch *fetch, struct remote_fetch_state *state)
{
	pthread_mutex_lock(&fetch->mutex);
	*state = fetch->state;
	pthread_mutex_unlock(&fetch->mutex);
}

/* ---- the loop ---- */

/* Pieces that were saved and not acknowledged are read again, before anything else. */
static void replay(struct remote_fetch *fetch)
{
	unsigned tries = 0;
	for (size_t i = 0; i < fetch->replay_count && !remote_stopped(fetch);) {
		struct weir_error error;
		if (remote_read_again(fetch, &fetch->replays[i], &error) != WEIR_OK) {
			snprintf(fetch->listing_problem, sizeof fetch->listing_problem, "%.80s cannot be read again: %.150s",
			         fetch->replays[i].name, error.text);
			publish(fetch);
			if (fetch->options.once && ++tries == ONCE_TRIES) {
				fetch->failed = true;
				fetch->once_error = error;
				break;
			}
			wait_until(fetch, weir_monotonic_ms() + PAUSE_MS);
			continue;
		}
		fetch->listing_problem[0] = '\0';
		if (!fetch->replays[i].gone) /* the step has it */
			fetch->replays[i].name = fetch->replays[i].before = NULL;
		i++;
		if (fetch->step != NULL)
			fetch->step->replay = true;
		if (fetch->step != NULL && fetch->step->bytes >= REMOTE_STEP_BYTES)
			finish_step(fetch);
	}
	finish_step(fetch);
}

static int by_age(const void *a, const void *b)
{
	const struct remote_known *one = *(struct remote_known *const *)a, *other = *(struct remote_known *const *)b;
	if (one->modified_ms != other->modified_ms)
		return one->modified_ms < other->modified_ms ? -1 : 1;
	return strcmp(one->name, other->name);
}

static bool has_news(const struct remote_known *known)
{
	return !known->done && (!known->packed || !known->open || known->size > known->offset);
}

static void choose_active(struct remote_fetch *fetch)
{
	fetch->active_count = 0;
	if (fetch->active_room < fetch->table.count) {
		fetch->active_room = fetch->table.slot_count;
		fetch->active = weir_realloc(fetch->active, fetch->active_room, sizeof(struct remote_known *));
	}
	for (size_t i = 0; i < fetch->table.count; i++)
		if (has_news(fetch->table.objects[i]))
			fetch->active[fetch->active_count++] = fetch->table.objects[i];
	if (fetch->active_count > 1)
		qsort(fetch->active, fetch->active_count, sizeof(struct remote_known *), by_age);
}

static bool is_full(const struct remote_fetch *fetch)
{
	const struct remote_step *step = fetch->step;
	return step != NULL && step->count > 0 &&
	       (step->bytes >= REMOTE_STEP_BYTES || step->count >= REMOTE_STEP_PIECES ||
	        step->name_bytes >= REMOTE_STEP_NAMES_BYTES || weir_monotonic_ms() - fetch->step_ms >= REMOTE_STEP_MS);
}

/*
 * A turn of one object: of one that is complete, all of it that the step still takes, as those behind it are younger.
 *
 * @return whether it has more
 */
static bool take_turn(struct remote_fetch *fetch, struct remote_known *known, bool *later)
{
	bool growing = known->open && !fetch->options.once;
	enum remote_turn turn;
	do
		turn = remote_turn_of(fetch, known);
	while (turn == REMOTE_TURN_MORE && !growing && !is_full(fetch) && !remote_stopped(fetch));
	if (turn != REMOTE_TURN_MORE)
		known->rested = fetch->round;
	*later |= turn == REMOTE_TURN_LATER;
	return turn == REMOTE_TURN_MORE;
}

/* Reads ahead for the objects that grow, from the one at `first` on. */
static void read_ahead(struct remote_fetch *fetch, size_t first)
{
	struct remote_known *chosen[REMOTE_AHEAD_MOST];
	size_t count = 0;
	int64_t now_ms = weir_monotonic_ms();
	for (size_t i = first; i < fetch->active_count && count < REMOTE_AHEAD_MOST; i++) {
		struct remote_known *known = fetch->active[i];
		if (known->open && !known->packed && !known->done && known->rested != fetch->round && known->retry_ms <= now_ms)
			chosen[count++] = known;
	}
	if (count > 1)
		remote_read_ahead(fetch, chosen, count);
	fetch->ahead_left = count;
}

/* A turn for each active object; of those that are complete, in their order. @return whether there is more at once */
static bool pass(struct remote_fetch *fetch, bool *later)
{
	bool more = false, held = false;
	fetch->ahead_left = 0;
	for (size_t i = 0; i < fetch->active_count && !remote_stopped(fetch); i++) {
		struct remote_known *known = fetch->active[i];
		bool growing = known->open && !fetch->options.once;
		if (known->done || known->rested == fetch->round)
			continue;
		if (weir_monotonic_ms() < known->retry_ms) {
			*later |= known->retry_ms != INT64_MAX;
			continue;
		}
		if (held && !growing) {
			more = true;
			continue;
		}
		bool ahead = growing && !known->packed && fetch->options.ops->at_once > 1;
		if (ahead && fetch->ahead_left == 0)
			read_ahead(fetch, i);
		fetch->ahead_left -= ahead && fetch->ahead_left > 0;
		bool rest = take_turn(fetch, known, later);
		more |= rest;
		held |= rest && !growing;
		if (is_full(fetch))
			finish_step(fetch);
	}
	remote_ahead_clear(fetch);
	finish_step(fetch);
	return more;
}

/* Of objects that are read to their end, only the open ones are asked again, once a poll. */
static bool read_all(struct remote_fetch *fetch)
{
	bool more, later = false;
	choose_active(fetch);
	publish(fetch);
	fetch->round++;
	do {
		more = pass(fetch, &later);
		publish(fetch);
	} while (more && !remote_stopped(fetch) && (fetch->options.once || weir_monotonic_ms() < fetch->list_ms));
	return more || later;
}

static void *work(void *context)
{
	struct remote_fetch *fetch = context;
	replay(fetch);
	while (!remote_stopped(fetch)) {
		bool begun = fetch->table.begun;
		int64_t now_ms = weir_monotonic_ms();
		remote_list_if_due(fetch, now_ms);
		if (!begun && fetch->table.begun && fetch->options.from_end)
			queue_bare(fetch, false); /* after a crash, "the end" must be the same one */
		bool left = read_all(fetch);
		if (fetch->options.once && remote_is_listed(fetch) && !left)
			break;
		int64_t next_ms = weir_monotonic_ms() + PAUSE_MS;
		bool listed = fetch->options.once && remote_is_listed(fetch); /* no other listing comes */
		bool first = fetch->list_ms < next_ms || (!left && !fetch->options.once);
		wait_until(fetch, first && !listed ? fetch->list_ms : next_ms);
	}
	if (!remote_stopped(fetch))
		queue_bare(fetch, true);
	return NULL;
}

enum weir_status remote_fetch_start(struct remote_fetch *fetch, struct weir_error *error)
{
	if (fetch->event < 0)
		fetch->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fetch->event < 0)
		return weir_fail(error, WEIR_IO, "cannot create a file descriptor: %s", weir_errno_words(errno));
	if (pthread_create(&fetch->thread, NULL, work, fetch) != 0)
		return weir_fail(error, WEIR_IO, "cannot start a thread");
	fetch->started = true;
	return WEIR_OK;
}

void remote_fetch_stop(struct remote_fetch *fetch)
{
	pthread_mutex_lock(&fetch->mutex);
	fetch->stop = true;
	pthread_cond_broadcast(&fetch->moved);
	pthread_mutex_unlock(&fetch->mutex);
}

void remote_fetch_free(struct remote_fetch *fetch)
{
	if (fetch == NULL)
		return;
	remote_fetch_stop(fetch);
	if (fetch->started)
		pthread_join(fetch->thread, NULL);
	for (size_t i = 0; i < fetch->ready_count; i++)
		remote_step_free(fetch->ready[i]);
	remote_step_free(fetch->step);
	remote_ahead_clear(fetch);
	free(fetch->ahead);
	remote_unpack_close(fetch);
	remote_pieces_free(fetch->replays, fetch->replay_count);
	remote_table_deinit(&fetch->table);
	pthread_cond_destroy(&fetch->moved);
	weir_text_deinit(&fetch->notices);
	pthread_mutex_destroy(&fetch->mutex);
	close(fetch->event);
	free(fetch->active);
	free(fetch->buffer);
	free(fetch);
}
