/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store on foreign and damaged files, on full disks and under kill -9. WEIR_ROUNDS sets how often (200). */
#include "common/bytes/hash.h"
#include "common/files/durable_file.h"
#include "common/store/sqlite/store_sqlite.h"
#include "common/store/store.h"
#include "scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { LIMITER = WEIR_STORE_ROLE_LIMITER, SEGMENTS = 16 };

static struct weir_error error;

static struct weir_store *open_store(const char *directory)
{
	struct weir_store *store = NULL;
	if (weir_store_sqlite_open(directory, &store, &error) != WEIR_OK || store == NULL) {
		fail_msg("%s", error.text);
		abort();
	}
	return store;
}

static const char *database_path(void **state)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/weir.db", (const char *)*state);
	return path;
}

static void run_sql(void **state, const char *sql)
{
	char command[1024];
	snprintf(
		command, sizeof command,
		"python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()' "
		"'%s' '%s'",
		database_path(state), sql);
	assert_int_equal(0, system(command));
}

/* ---- a deterministic sequence of checkpoints: what checkpoint c writes follows from c alone ---- */

static uint32_t mix(uint64_t checkpoint, uint32_t segment)
{
	uint64_t numbers[2] = {checkpoint, segment};
	return (uint32_t)weir_hash64(numbers, sizeof numbers);
}

static bool is_written(uint64_t checkpoint, uint32_t segment)
{
	return mix(checkpoint, segment) % 3 != 0;
}

static bool is_base(uint64_t checkpoint, uint32_t segment)
{
	return mix(checkpoint, segment) % 5 == 0;
}

static struct weir_span content(uint64_t checkpoint, uint32_t segment, char *bytes)
{
	uint32_t length = mix(checkpoint, segment) / 64 % 9000;
	memset(bytes, (int)(mix(checkpoint, segment) / 16), length);
	return (struct weir_span){.at = bytes, .length = length};
}

/* Writes checkpoint c in several transactions and makes it current. */
static enum weir_status write_checkpoint(struct weir_store *store, struct weir_partition_state *mine, uint64_t c)
{
	static char bytes[SEGMENTS][9000];
	struct weir_segment_blob blobs[SEGMENTS];
	size_t count = 0;
	enum weir_status status = WEIR_OK;
	for (uint32_t segment = 0; segment < SEGMENTS && status == WEIR_OK; segment++) {
		if (is_written(c, segment))
			blobs[count++] =
				(struct weir_segment_blob){segment, c, is_base(c, segment), content(c, segment, bytes[segment])};
		if (count > 0 && (count == 6 || segment == SEGMENTS - 1)) {
			status = store->ops->write_segments(store, mine->partition, mine->epoch, blobs, count, &error);
			count = 0;
		}
	}
	struct weir_partition_state next = *mine;
	next.checkpoint = c;
	next.next_offset = c * 10;
	next.extra = (struct weir_span){0};
	char text[32];
	int length = snprintf(text, sizeof text, "%llu", (unsigned long long)c);
	const char *const names[] = {"checkpoint"};
	struct weir_span values[] = {{.at = text, .length = (uint32_t)length}};
	if (status == WEIR_OK)
		status = store->ops->commit(store, LIMITER, &next, 1, names, values, 1, &error);
	if (status == WEIR_OK)
		mine->checkpoint = c;
	return status;
}

struct reading {
	uint64_t next; /* checkpoint that the next blob must have; SIZE: none */
	uint64_t upto;
	uint32_t blobs;
};

static enum weir_status check_blob(void *context, const struct weir_segment_blob *blob)
{
	static char bytes[9000];
	struct reading *reading = context;
	struct weir_span expected = content(blob->checkpoint, blob->segment, bytes);
	assert_int_equal(reading->next, blob->checkpoint);
	assert_int_equal(is_base(blob->checkpoint, blob->segment), blob->base);
	assert_int_equal(expected.length, blob->bytes.length);
	assert_memory_equal(expected.at, blob->bytes.at, expected.length);
	do
		reading->next++;
	while (reading->next <= reading->upto && !is_written(reading->next, blob->segment));
	return WEIR_OK;
}

/* Everything that is current is what the sequence says. */
static void check_all(struct weir_store *store, uint64_t checkpoint)
{
	struct weir_partition_state found;
	char *note, text[32];
	size_t length;
	assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 0, &found, &error));
	assert_int_equal(checkpoint, found.checkpoint);
	assert_int_equal(checkpoint * 10, found.next_offset);
	assert_int_equal(WEIR_OK, store->ops->note_get(store, "checkpoint", &note, &length, &error));
	snprintf(text, sizeof text, "%llu", (unsigned long long)checkpoint);
	if (checkpoint > 0)
		assert_string_equal(text, note);
	free(note);
	for (uint32_t segment = 0; segment < SEGMENTS && found.epoch > 0; segment++) { /* 0: killed before it was taken */
		struct reading reading = {.next = 1, .upto = checkpoint};
		for (uint64_t c = 1; c <= checkpoint; c++)
			if (is_written(c, segment) && is_base(c, segment))
				reading.next = c;
		while (reading.next <= checkpoint && !is_written(reading.next, segment))
			reading.next++;
		assert_int_equal(WEIR_OK, store->ops->read_segments(store, 0, found.epoch, found.checkpoint, &segment, 1,
		                                                    check_blob, &reading, &error));
		assert_int_equal(checkpoint + 1, reading.next);
	}
}

static void what_was_committed_survives_a_kill(void **state)
{
	const char *rounds_text = getenv("WEIR_ROUNDS");
	int rounds = rounds_text != NULL ? atoi(rounds_text) : 200;
	struct told {
		_Atomic uint64_t checkpoint; /* that it has seen committed */
		_Atomic bool ready;          /* the store is open */
	} *told = mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	unsigned seed = 3;
	uint64_t ahead = 0;
	for (int round = 0; round < rounds; round++) {
		pid_t child = fork();
		if (child == 0) {
			struct weir_store *store = open_store(*state);
			struct weir_partition_state mine;
			enum weir_status status = store->ops->take(store, LIMITER, 0, &mine, &error);
			told->ready = true;
			while (status == WEIR_OK) {
				status = write_checkpoint(store, &mine, mine.checkpoint + 1);
				if (status == WEIR_OK)
					told->checkpoint = mine.checkpoint;
				if (status == WEIR_OK && mine.checkpoint % 3 == 0)
					status = store->ops->clean(store, 0, mine.epoch, &error);
			}
			fprintf(stderr, "%s\n", error.text);
			_exit(1);
		}
		/* Most of them die while they write, some while they open the store. */
		for (int wait = 0; round % 4 != 0 && wait < 10000 && !told->ready; wait++)
			usleep(1000);
		usleep((useconds_t)(rand_r(&seed) % 40000));
		told->ready = false;
		assert_int_equal(0, kill(child, SIGKILL));
		int status;
		assert_int_equal(child, waitpid(child, &status, 0));
		assert_true(WIFSIGNALED(status));
		struct weir_store *store = open_store(*state);
		struct weir_partition_state found;
		assert_int_equal(WEIR_OK, store->ops->inspect(store, LIMITER, 0, &found, &error));
		assert_in_range(found.checkpoint, told->checkpoint, told->checkpoint + 1);
		ahead += found.checkpoint - told->checkpoint;
		told->checkpoint = found.checkpoint;
		check_all(store, found.checkpoint);
		store->ops->close(store);
	}
	uint64_t checkpoints = told->checkpoint;
	print_message("%d rounds, %llu checkpoints, %llu of them committed and not yet told\n", rounds,
	              (unsigned long long)checkpoints, (unsigned long long)ahead);
	assert_true(rounds < 10 || checkpoints > 0);
	munmap(told, sizeof *told);
}

static void set_file_limit(rlim_t bytes)
{
	struct rlimit limit;
	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = bytes;
	assert_int_equal(0, setrlimit(RLIMIT_FSIZE, &limit));
}

static void a_file_that_may_not_grow_fails_in_words_and_goes_on_later(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine;
	assert_int_equal(WEIR_OK, store->ops->take(store, LIMITER, 0, &mine, &error));
	signal(SIGXFSZ, SIG_IGN);
	unsigned failures = 0, seed = 9;
	for (uint64_t c = 1; c <= 60; c++) {
		struct stat about;
		char path[600];
		snprintf(path, sizeof path, "%s-wal", database_path(state));
		off_t size = stat(path, &about) == 0 ? about.st_size : 0;
		set_file_limit((rlim_t)size / 2 + (rlim_t)(rand_r(&seed) % 200000));
		enum weir_status status = write_checkpoint(store, &mine, c);
		set_file_limit(RLIM_INFINITY);
		if (status != WEIR_OK) {
			assert_int_equal(WEIR_IO, status);
			assert_non_null(strstr(error.text, "weir.db: "));
			failures++;
			check_all(store, c - 1);
			assert_int_equal(WEIR_OK, write_checkpoint(store, &mine, c));
		}
		check_all(store, c);
	}
	assert_true(failures > 5);
	store->ops->close(store);
}

/* On a real small file system. */
static void a_full_disk_fails_in_words_and_goes_on_later(void **state)
{
	char *small = scratch_new(), filler[300];
	(void)state;
	if (mount("weir-test", small, "tmpfs", 0, "size=3m") != 0) {
		print_message("skipped: cannot mount a small file system: %s\n", strerror(errno));
		scratch_remove(small);
		free(small);
		return;
	}
	struct weir_store *store = open_store(small);
	struct weir_partition_state mine;
	assert_int_equal(WEIR_OK, store->ops->take(store, LIMITER, 0, &mine, &error));
	for (uint64_t c = 1; c <= 5; c++)
		assert_int_equal(WEIR_OK, write_checkpoint(store, &mine, c));
	snprintf(filler, sizeof filler, "%s/filler", small);
	int fd = open(filler, O_CREAT | O_WRONLY, 0600);
	char zeros[4096] = {0};
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	uint64_t c = 6;
	enum weir_status status;
	while ((status = write_checkpoint(store, &mine, c)) == WEIR_OK)
		c++;
	assert_int_equal(WEIR_IO, status);
	assert_non_null(strstr(error.text, "full"));
	check_all(store, c - 1);
	assert_int_equal(0, ftruncate(fd, 0));
	close(fd);
	assert_int_equal(WEIR_OK, write_checkpoint(store, &mine, c));
	check_all(store, c);
	store->ops->close(store);
	store = open_store(small);
	check_all(store, c);
	store->ops->close(store);
	assert_int_equal(0, umount(small));
	scratch_remove(small);
	free(small);
}

static void others_may_not_read_what_is_made(void **state)
{
	static const char *const ends[] = {"", "-wal", "-shm"};
	struct weir_store *store = open_store(*state);
	mode_t mask = umask(0);
	umask(mask);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		char path[520];
		struct stat about;
		snprintf(path, sizeof path, "%s%s", database_path(state), ends[i]);
		assert_int_equal(0, stat(path, &about));
		assert_int_equal(0640 & ~mask, about.st_mode & 0777);
	}
	store->ops->close(store);
}

static void foreign_files_are_refused(void **state)
{
	struct weir_store *store = NULL;
	const char *path = database_path(state);
	FILE *file = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("this is no database\n", file);
	fclose(file);
	assert_int_equal(WEIR_INVALID, weir_store_sqlite_open(*state, &store, &error));
	assert_non_null(strstr(error.text, "not a database"));
	unlink(path);
	run_sql(state, "CREATE TABLE theirs (x)");
	assert_int_equal(WEIR_INVALID, weir_store_sqlite_open(*state, &store, &error));
	assert_non_null(strstr(error.text, "weir.db: this database belongs to another program"));
	unlink(path);
	file = fopen(path, "w"); /* an empty file is as good as none */
	fclose(file);
	store = open_store(*state);
	store->ops->close(store);
}

static void damage_is_told_from_a_passing_fault(void **state)
{
	struct weir_store *store = open_store(*state);
	struct weir_partition_state mine;
	assert_int_equal(WEIR_OK, store->ops->take(store, LIMITER, 0, &mine, &error));
	for (uint64_t c = 1; c <= 20; c++)
		assert_int_equal(WEIR_OK, write_checkpoint(store, &mine, c));
	store->ops->close(store);
	struct stat about;
	assert_int_equal(0, stat(database_path(state), &about));
	int fd = open(database_path(state), O_WRONLY);
	char garbage[4096];
	memset(garbage, 0xA5, sizeof garbage);
	for (off_t at = 16384; at < about.st_size; at += (off_t)sizeof garbage)
		assert_int_equal(sizeof garbage, pwrite(fd, garbage, sizeof garbage, at));
	close(fd);
	enum weir_status status = weir_store_sqlite_open(*state, &store, &error);
	if (status == WEIR_OK) {
		status = store->ops->take(store, LIMITER, 0, &mine, &error);
		store->ops->close(store);
	}
	assert_int_equal(WEIR_INVALID, status);
	assert_non_null(strstr(error.text, "malformed"));
}

static void a_directory_that_cannot_be_used_is_said(void **state)
{
	struct weir_store *store = NULL;
	char path[512];
	snprintf(path, sizeof path, "%s/file", (const char *)*state);
	FILE *file = fopen(path, "w");
	fclose(file);
	assert_int_equal(WEIR_IO, weir_store_sqlite_open(path, &store, &error));
	snprintf(path, sizeof path, "%s/new/directory", (const char *)*state);
	store = open_store(path);
	store->ops->close(store);
	mkdir(database_path(state), 0700);
	assert_int_equal(WEIR_IO, weir_store_sqlite_open(*state, &store, &error));
	if (strstr(error.text, "weir.db: unable to open database file") == NULL)
		fail_msg("%s", error.text);
}

#define test(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(what_was_committed_survives_a_kill),
		test(a_file_that_may_not_grow_fails_in_words_and_goes_on_later),
		test(a_full_disk_fails_in_words_and_goes_on_later),
		test(others_may_not_read_what_is_made),
		test(foreign_files_are_refused),
		test(damage_is_told_from_a_passing_fault),
		test(a_directory_that_cannot_be_used_is_said),
	};
	return cmocka_run_group_tests_name("store_sqlite_recovery", tests, NULL, NULL);
}
