/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread of a topic: gathers what all producers sent, writes it, syncs it, and
 * only then tells producers and consumers.
 *
 * Each sync costs a processor 0.1 ms on a fast disk, which whoever is served meanwhile would lack. So one begins no sooner
 * than `sync_delay` after the one before: a message that comes alone is synced at once, and of many some are gathered.
 *
 * Messages wait in its queue until they are on disk. If the disk is full, the same
 * bytes are written again at the same place. If a write or an fsync fails
 * otherwise, nobody knows what the file has after its last synced byte (a second
 * fsync may succeed without having written anything). So the file ends at that
 * byte, its successor's header says so, and the messages go to the successor.
 * A file without records is its own successor: all behind its header, which is
 * synced, is cut off and written anew. So a disk that keeps failing leaves no more
 * than one of them, and none that readers or the next start know is taken away.
 */
#include "common/bus/local/bus_local_journal.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"
#include "common/base/wake.h"
#include "common/bus/local/bus_local_producer.h"

#include <errno.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	BATCH_BYTES = 4 * 1024 * 1024, /* bound on a batch, so that producers fill the next one meanwhile */
	HOUSEKEEPING_MS = 1000,        /* period of trimming */
	READERS_SAVE_MS = 10000,
	RETRY_FIRST_MS = 50,
	RETRY_MOST_MS = 1000,
	OTHERS_TURN_MS = 1500, /* a store tries again each second */
	IOVECS = 512,
};

static struct weir_bus_segment *last_segment(const struct weir_bus_journal *journal)
{
	return journal->segment_count > 0 ? journal->segments[journal->segment_count - 1] : NULL;
}

static void set_problem(struct weir_bus_journal *journal, const char *text)
{
	pthread_mutex_lock(&journal->lock);
	snprintf(journal->problem, sizeof journal->problem, "%.*s", (int)sizeof journal->problem - 1, text);
	pthread_mutex_unlock(&journal->lock);
}

/* Moves the front of the queue to `batch`, up to the size of a batch or a segment. The lock is held. */
static void take_front(struct weir_bus_journal *journal, struct weir_bus_entries *batch)
{
	uint64_t most = BATCH_BYTES;
	if ((uint64_t)journal->options.segment_bytes < most)
		most = (uint64_t)journal->options.segment_bytes;
	while (journal->queue.first != NULL &&
	       (batch->first == NULL || batch->bytes + journal->queue.first->bytes <= most)) {
		struct weir_bus_entry *entry = journal->queue.first;
		journal->queue.first = entry->next;
		journal->queue.bytes -= entry->bytes;
		weir_bus_entries_add(batch, entry);
	}
	if (journal->queue.first == NULL)
		weir_bus_entries_init(&journal->queue);
}

/* Waits for messages, or until housekeeping is due. @return false: the journal is closing, and nothing is left */
static bool take(struct weir_bus_journal *journal, struct weir_bus_entries *batch)
{
	weir_bus_entries_init(batch);
	pthread_mutex_lock(&journal->lock);
	journal->busy_ms = 0;
	struct weir_deadline housekeeping = weir_deadline_in_ms(HOUSEKEEPING_MS);
	while (journal->queue.first == NULL && !journal->stopping) {
		if (!journal->readers_moved && !journal->readers_unsaved)
			pthread_cond_wait(&journal->work, &journal->lock);
		else if (!weir_condition_wait(&journal->work, &journal->lock, &housekeeping))
			break;
	}
	journal->pausing = true;
	while (journal->queue.first != NULL && journal->queue.bytes < WEIR_BUS_GATHERED_BYTES && !journal->hurried &&
	       !journal->stopping)
		if (!weir_condition_wait(&journal->work, &journal->lock, &journal->next_sync))
			break;
	journal->pausing = false;
	take_front(journal, batch);
	journal->hurried &= journal->queue.first != NULL; /* it may be among what is left */
	bool more = batch->first != NULL || !journal->stopping;
	journal->busy_ms = weir_monotonic_ms();
	pthread_mutex_unlock(&journal->lock);
	return more;
}

/* Creates the next segment and continues there. Reads without the lock only what no other thread changes. */
static enum weir_status roll(struct weir_bus_journal *journal, struct weir_error *error)
{
	struct weir_bus_segment *last = last_segment(journal), *made;
	struct weir_bus_segment_header header = {
		.topic = journal->options.topic,
		.partitions = journal->partitions,
		.sequence = 1,
		.next_offsets = journal->next,
	};
	if (last != NULL) {
		header.sequence = last->sequence + 1;
		header.previous_bytes = last->length;
	}
	int fd;
	enum weir_status status = weir_bus_segment_create(journal->directory, &header, &made, &fd, error);
	if (status != WEIR_OK)
		return status;
	if (last != NULL && journal->broken) {
		/* What is after the end of a broken file has no meaning. If it cannot be cut, it only takes space. */
		int cut = ftruncate(journal->fd, (off_t)last->length);
		(void)cut;
	}
	if (journal->fd >= 0)
		close(journal->fd);
	journal->fd = fd;
	journal->broken = journal->torn = false;

	pthread_mutex_lock(&journal->lock);
	journal->segments = weir_realloc(journal->segments, journal->segment_count + 1, sizeof(struct weir_bus_segment *));
	journal->segments[journal->segment_count++] = made;
	journal->index_bytes += made->index->bytes;
	weir_bus_journal_bound_indexes(journal, made);
	pthread_mutex_unlock(&journal->lock);
	(void)weir_bus_journal_trim(journal);
	return WEIR_OK;
}

/* Sets every message's offset and header. */
static void encode(struct weir_bus_journal *journal, const struct weir_bus_entries *batch)
{
	const struct weir_bus_segment *segment = last_segment(journal);
	memcpy(journal->planned, journal->next, journal->partitions * sizeof *journal->planned);
	for (struct weir_bus_entry *entry = batch->first; entry != NULL; entry = entry->next) {
		entry->record.offset = journal->planned[entry->record.partition]++;
		entry->record.durable = (uint32_t)segment->length;
		weir_bus_record_encode(&entry->record, segment->id, entry->encoded);
	}
}

/* Writes all by pwritev(), continuing after short writes. @return 0, or -1 with errno */
static int write_vectors(int fd, struct iovec *vectors, int count, uint64_t at)
{
	while (count > 0) {
		ssize_t written = pwritev(fd, vectors, count, (off_t)at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written == 0)
			errno = ENOSPC;
		if (written <= 0)
			return -1;
		at += (uint64_t)written;
		for (size_t left = (size_t)written; left > 0 && count > 0;) {
			size_t part = left < vectors->iov_len ? left : vectors->iov_len;
			vectors->iov_base = (char *)vectors->iov_base + part;
			vectors->iov_len -= part;
			left -= part;
			if (vectors->iov_len == 0) {
				vectors++;
				count--;
			}
		}
	}
	return 0;
}

static int write_entries(int fd, const struct weir_bus_entries *batch, uint64_t at)
{
	struct iovec vectors[IOVECS];
	struct weir_bus_entry *entry = batch->first;
	while (entry != NULL) {
		int count = 0;
		uint64_t bytes = 0;
		for (; entry != NULL && count < IOVECS; entry = entry->next) {
			vectors[count++] = (struct iovec){.iov_base = entry->encoded, .iov_len = entry->bytes};
			bytes += entry->bytes;
		}
		if (write_vectors(fd, vectors, count, at) != 0)
			return -1;
		at += bytes;
	}
	return 0;
}

/* Says behind the last batch that it is on disk. Without the mark, damage to this batch would pass for a torn tail. */
static void mark(const struct weir_bus_journal *journal, uint64_t durable)
{
	char bytes[WEIR_BUS_RECORD_HEADER_BYTES];
	weir_bus_mark_encode(durable, last_segment(journal)->id, bytes);
	int written = weir_bus_write(journal->fd, bytes, sizeof bytes, durable);
	(void)written; /* a full disk has no room for it: the next batch says the same */
}

/* Makes one attempt to get a batch on disk. @return WEIR_OK; WEIR_IO: no part of it counts as written */
static enum weir_status write_batch(struct weir_bus_journal *journal, const struct weir_bus_entries *batch,
                                    struct weir_error *error)
{
	struct weir_bus_segment *last = last_segment(journal);
	bool empty = last != NULL && last->length == weir_bus_segment_header_bytes(journal->partitions);
	bool full = last != NULL && !empty && last->length + batch->bytes > (uint64_t)journal->options.segment_bytes;
	if (journal->broken && empty && journal->fd >= 0) {
		journal->broken = false;
		journal->torn = true;
	}
	if (last == NULL || journal->fd < 0 || journal->broken || full) {
		enum weir_status status = roll(journal, error);
		if (status != WEIR_OK)
			return status;
		last = journal->segments[journal->segment_count - 1];
	}
	encode(journal, batch);
	const char *what = "write";
	int result = journal->torn ? ftruncate(journal->fd, (off_t)last->length) : 0;
	journal->torn &= result != 0;
	if (result == 0)
		result = write_entries(journal->fd, batch, last->length);
	if (result != 0)
		journal->broken = errno != ENOSPC && errno != EDQUOT;
	if (result == 0) {
		what = "sync";
		result = fdatasync(journal->fd);
		if (result != 0)
			journal->broken = true;
	}
	if (result != 0)
		return weir_fail(error, WEIR_IO, "cannot %s %s/%020llu.log: %s", what, journal->directory,
		                 (unsigned long long)last->sequence, weir_errno_words(errno));
	mark(journal, last->length + batch->bytes);
	return WEIR_OK;
}

/* Wakes the consumers that wait on descriptors. The lock is held. */
static void wake_watchers(struct weir_bus_journal *journal)
{
	for (struct weir_bus_watcher *watcher = journal->watchers; watcher != NULL; watcher = watcher->next) {
		if (watcher->waits)
			weir_wake_up(watcher->descriptor);
		watcher->waits = false;
	}
}

/* Makes a batch that is on disk readable, and returns it to its producers. */
static void publish(struct weir_bus_journal *journal, struct weir_bus_entries *batch)
{
	pthread_mutex_lock(&journal->lock);
	struct weir_bus_segment *last = last_segment(journal);
	uint64_t index_bytes = last->index->bytes;
	for (struct weir_bus_entry *entry = batch->first; entry != NULL; entry = entry->next) {
		weir_bus_index_add(last->index, entry->record.partition,
		                   (struct weir_bus_place){.at = (uint32_t)last->length, .bytes = entry->bytes});
		last->length += entry->bytes;
		journal->next[entry->record.partition] = entry->record.offset + 1;
		entry->status = WEIR_OK;
	}
	journal->published = true;
	journal->index_bytes += last->index->bytes - index_bytes;
	journal->problem[0] = '\0';
	pthread_cond_broadcast(&journal->durable);
	wake_watchers(journal);
	pthread_mutex_unlock(&journal->lock);
	weir_producer_deliver(batch);
}

/* Trims what the readers' positions allow, and saves these positions from time to time. */
static void keep_house(struct weir_bus_journal *journal)
{
	pthread_mutex_lock(&journal->lock);
	bool moved = journal->readers_moved, unsaved = journal->readers_unsaved;
	journal->readers_moved = false;
	pthread_mutex_unlock(&journal->lock);
	if (moved)
		(void)weir_bus_journal_trim(journal);
	if (!unsaved || weir_monotonic_ms() - journal->readers_saved_ms < READERS_SAVE_MS)
		return;
	/* If it fails, the old positions remain, which only delay trimming. The next attempt is soon. */
	if (weir_bus_readers_save(journal, NULL) == WEIR_OK)
		journal->readers_saved_ms = weir_monotonic_ms();
}

/* Waits before the next attempt, longer each time. @return false: the journal is closing */
static bool wait_to_retry(struct weir_bus_journal *journal, int64_t *delay_ms)
{
	struct weir_deadline deadline = weir_deadline_in_ms(*delay_ms);
	*delay_ms = *delay_ms * 2 < RETRY_MOST_MS ? *delay_ms * 2 : RETRY_MOST_MS;
	pthread_mutex_lock(&journal->lock);
	while (!journal->stopping && weir_condition_wait(&journal->work, &journal->lock, &deadline))
		;
	bool go_on = !journal->stopping;
	pthread_mutex_unlock(&journal->lock);
	return go_on;
}

static void abandon(struct weir_bus_entries *batch)
{
	for (struct weir_bus_entry *entry = batch->first; entry != NULL; entry = entry->next)
		entry->status = WEIR_IO;
	weir_producer_deliver(batch);
}

void *weir_bus_journal_run(void *context)
{
	struct weir_bus_journal *journal = context;
	struct weir_bus_entries batch;
	struct weir_error error;
	bool gave_up = false; /* when closing: a message was given up, and none after it may be written either */
	journal->readers_saved_ms = weir_monotonic_ms();
	(void)weir_bus_journal_trim(journal);
	while (take(journal, &batch)) {
		keep_house(journal);
		if (batch.first == NULL)
			continue;
		int64_t delay_ms = RETRY_FIRST_MS;
		journal->next_sync = weir_deadline_in_ms(journal->options.sync_delay_ms);
		enum weir_status status = gave_up ? WEIR_IO : write_batch(journal, &batch, &error);
		while (status != WEIR_OK && !gave_up) {
			set_problem(journal, error.text);
			gave_up = !wait_to_retry(journal, &delay_ms);
			if (gave_up)
				break;
			uint32_t freed = weir_bus_journal_trim(journal);
			keep_house(journal);
			/* A store on the same disk has its turn first: once it commits, readers move on, and more gives way. */
			int64_t turn_ms = OTHERS_TURN_MS;
			gave_up = freed > 0 && !wait_to_retry(journal, &turn_ms);
			if (gave_up)
				break;
			status = write_batch(journal, &batch, &error);
		}
		if (status == WEIR_OK)
			publish(journal, &batch);
		else
			abandon(&batch);
	}
	return NULL;
}
