/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a journal by their headers: which there are, in which order, and where reading goes on. */
#include "collector/source/journal/journal_files.h"

#include "common/files/durable_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source.h"
#include "collector/source/source_memory.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include <cmocka.h>

static void put_le64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

static void make_header(uint8_t bytes[JOURNAL_HEADER_BYTES], uint8_t id, uint64_t head, uint64_t tail, uint64_t entries)
{
	memset(bytes, 0, JOURNAL_HEADER_BYTES);
	memcpy(bytes, "LPKSHHRH", 8);
	memset(bytes + 72, id, JOURNAL_ID_BYTES);
	put_le64(bytes + 152, entries);
	put_le64(bytes + 160, tail);
	put_le64(bytes + 168, head);
}

static void put_file(const char *directory, const char *name, uint8_t id, uint64_t head, uint64_t tail)
{
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	char path[WEIR_PATH_BYTES];
	make_header(bytes, id, head, tail, head == 0 ? 0 : tail - head + 1);
	assert_int_equal(WEIR_OK, weir_path_format(path, NULL, "%s/%s", directory, name));
	FILE *file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
	fclose(file);
}

static void headers_are_told_from_other_bytes(void **state)
{
	(void)state;
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct journal_header header;
	make_header(bytes, 7, 3, UINT64_C(0x0102030405060708), 5);
	assert_true(journal_header_parse(bytes, sizeof bytes, &header));
	assert_int_equal(header.id[0], 7);
	assert_int_equal(header.head, 3);
	assert_int_equal(header.tail, UINT64_C(0x0102030405060708));
	assert_int_equal(header.entries, 5);
	assert_false(journal_header_parse(bytes, sizeof bytes - 1, &header));
	make_header(bytes, 7, 9, 8, 5);
	assert_false(journal_header_parse(bytes, sizeof bytes, &header));
	bytes[0] = 'X';
	assert_false(journal_header_parse(bytes, sizeof bytes, &header));
}

static void files_follow_one_another_by_their_numbers(void **state)
{
	const char *directory = *state;
	char below[512], other[512];
	snprintf(below, sizeof below, "%s/0123456789abcdef0123456789abcdef", directory);
	snprintf(other, sizeof other, "%s/remote", directory);
	assert_int_equal(mkdir(below, 0700), 0);
	assert_int_equal(mkdir(other, 0700), 0);
	put_file(directory, "system.journal", 1, 201, 250);
	put_file(directory, "system@a.journal", 1, 101, 200);
	put_file(below, "system@b.journal~", 1, 11, 60);
	put_file(below, "user-1000.journal", 2, 5, 90);
	put_file(directory, "empty.journal", 1, 0, 250);
	put_file(directory, "system.journal.bak", 1, 1, 10);
	put_file(other, "remote.journal", 3, 1, 10);

	struct journal_files files;
	journal_files_init(&files, directory);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, 4);
	assert_int_equal(files.empty, 1);
	assert_string_equal(files.problem, "");
	static const struct {
		uint64_t after, head;
		bool kept;
	} expected[] = {{0, 11, false},   {10, 11, false},  {11, 11, true},   {59, 11, true},   {60, 101, true},
	                {100, 101, true}, {200, 201, true}, {249, 201, true}, {250, 201, true}, {9999, 201, true}};
	uint8_t id[JOURNAL_ID_BYTES];
	memset(id, 1, sizeof id);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		bool kept;
		size_t place = journal_files_after(&files, id, "system", expected[i].after, &kept);
		assert_int_equal(place < files.count ? files.list[place].header.head : 0, expected[i].head);
		assert_int_equal(kept, expected[i].kept);
	}
	memset(id, 9, sizeof id);
	bool kept;
	assert_int_equal(journal_files_after(&files, id, "system", 0, &kept), files.count);
	/* to an archived one nothing is written */
	memset(id, 2, sizeof id);
	size_t place = journal_files_after(&files, id, "user-1000", 90, &kept);
	assert_true(place < files.count);
	files.list[place].header.archived = true;
	assert_int_equal(journal_files_after(&files, id, "user-1000", 90, &kept), files.count);
	assert_int_equal(journal_files_after(&files, id, "user-1000", 89, &kept), place);

	/* while there is a file without an entry, the list is made again */
	put_file(directory, "empty.journal", 1, 251, 260);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, 5);
	assert_int_equal(files.empty, 0);
	journal_files_deinit(&files);
}

/* As from systemd 254 on: one id and one counter for all files. */
static void names_that_share_an_id_are_apart(void **state)
{
	const char *directory = *state;
	put_file(directory, "system.journal", 1, 1, 250);
	put_file(directory, "user-1000.journal", 1, 181, 240);
	put_file(directory, "user-1000@0123-5-6.journal", 1, 5, 180);
	struct journal_files files;
	journal_files_init(&files, directory);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, 3);
	static const struct {
		const char *name;
		uint64_t after, head;
		bool kept;
	} expected[] = {
		{"system", 0, 1, false},       {"system", 249, 1, true},      {"system", 250, 1, true},
		{"user-1000", 0, 5, false},    {"user-1000", 4, 5, false},    {"user-1000", 179, 5, true},
		{"user-1000", 180, 181, true}, {"user-1000", 250, 181, true}, {"user-100", 0, 0, false},
	};
	uint8_t id[JOURNAL_ID_BYTES];
	memset(id, 1, sizeof id);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		bool kept;
		size_t place = journal_files_after(&files, id, expected[i].name, expected[i].after, &kept);
		assert_int_equal(place < files.count ? files.list[place].header.head : 0, expected[i].head);
		assert_int_equal(kept, expected[i].kept);
	}
	journal_files_deinit(&files);
}

static void no_directory_is_no_file(void **state)
{
	char path[512];
	snprintf(path, sizeof path, "%s/none", (const char *)*state);
	struct journal_files files;
	journal_files_init(&files, path);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, 0);
	assert_string_equal(files.problem, "");
	/* and one that comes later is found */
	assert_int_equal(mkdir(path, 0700), 0);
	put_file(path, "a.journal", 1, 1, 2);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, 1);
	journal_files_deinit(&files);
}

static const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};

static void make_machine(const char *directory, unsigned number, char path[PATH_MAX])
{
	assert_true(snprintf(path, PATH_MAX, "%s/%032x", directory, number) < PATH_MAX);
	assert_int_equal(mkdir(path, 0700), 0);
}

/* The last machine's files come behind hundreds of the first's in the list, and another has none yet. */
static void a_change_in_any_folder_is_seen(void **state)
{
	enum { MANY = 300 };
	const char *directory = *state;
	char first[PATH_MAX], last[PATH_MAX], none[PATH_MAX], name[32];
	make_machine(directory, 1, first);
	make_machine(directory, 2, last);
	make_machine(directory, 3, none);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "system@%u.journal", i);
		put_file(first, name, 1, 2 * i + 1, 2 * i + 2);
	}
	put_file(last, "system.journal", 2, 1, 2);
	const char *const folders[] = {directory, first, last, none};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(utimensat(AT_FDCWD, folders[i], long_ago, 0), 0);

	struct journal_files files;
	journal_files_init(&files, directory);
	assert_true(journal_files_scan(&files));
	assert_false(journal_files_scan(&files));
	put_file(last, "system@a.journal", 2, 3, 4);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, MANY + 2);
	assert_int_equal(utimensat(AT_FDCWD, last, long_ago, 0), 0);
	assert_true(journal_files_scan(&files));
	assert_false(journal_files_scan(&files));
	put_file(none, "system.journal", 3, 1, 2);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, MANY + 3);

	/* and what no time tells of is found a while later */
	assert_int_equal(utimensat(AT_FDCWD, none, long_ago, 0), 0);
	assert_true(journal_files_scan(&files));
	put_file(first, "user-1000.journal", 4, 1, 2);
	assert_int_equal(utimensat(AT_FDCWD, first, long_ago, 0), 0);
	assert_false(journal_files_scan(&files));
	files.scanned_ms -= JOURNAL_RESCAN_MS;
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, MANY + 4);
	journal_files_deinit(&files);
}

/* As the first entry of a file changes no folder, it is looked for soon, and of one that stays empty ever more rarely. */
static void an_empty_file_is_looked_at_ever_more_rarely(void **state)
{
	const char *directory = *state;
	struct journal_files files;
	put_file(directory, "system.journal", 1, 1, 2);
	put_file(directory, "foreign.journal", 2, 0, 0);
	assert_int_equal(utimensat(AT_FDCWD, directory, long_ago, 0), 0);
	journal_files_init(&files, directory);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.empty, 1);
	int scans = 0;
	for (int64_t passed_ms = 0; passed_ms < 10 * JOURNAL_RESCAN_MS; passed_ms += 200) {
		files.scanned_ms -= 200;
		scans += journal_files_scan(&files);
	}
	assert_in_range(scans, 10, 20);
	put_file(directory, "foreign.journal", 2, 1, 2);
	files.scanned_ms -= JOURNAL_RESCAN_MS;
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, 2);

	/* a change makes it likely again */
	put_file(directory, "user-1000.journal", 3, 0, 0);
	assert_true(journal_files_scan(&files));
	assert_int_equal(utimensat(AT_FDCWD, directory, long_ago, 0), 0);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.empty, 1);
	files.scanned_ms -= 200;
	assert_true(journal_files_scan(&files));
	journal_files_deinit(&files);
}

static void more_folders_than_are_looked_at_are_told(void **state)
{
	const char *directory = *state;
	char path[PATH_MAX];
	struct journal_files files;
	for (unsigned i = 1; i < JOURNAL_FOLDERS_MAX; i++)
		make_machine(directory, i, path);
	journal_files_init(&files, directory);
	assert_true(journal_files_scan(&files));
	assert_string_equal(files.problem, "");
	make_machine(directory, JOURNAL_FOLDERS_MAX, path);
	assert_true(journal_files_scan(&files));
	assert_non_null(strstr(files.problem, "more than 1024 folders"));
	journal_files_deinit(&files);
}

static void more_files_than_are_listed_are_told(void **state)
{
	const char *directory = *state;
	char name[32];
	struct journal_files files;
	for (unsigned i = 0; i <= JOURNAL_FILES_MAX; i++) {
		snprintf(name, sizeof name, "system@%u.journal", i);
		put_file(directory, name, 1, i + 1, i + 1);
	}
	journal_files_init(&files, directory);
	assert_true(journal_files_scan(&files));
	assert_int_equal(files.count, JOURNAL_FILES_MAX);
	assert_non_null(strstr(files.problem, "more than 16384 files"));
	journal_files_deinit(&files);
}

/* ---- the source ---- */

/* @param source  set; freed by the caller */
static enum weir_status make_source(const char *config, struct source_memory *memory, struct source **source,
                                    struct weir_error *error)
{
	struct weir_json_document *document;
	assert_int_equal(weir_json_parse("config", config, strlen(config), &document, error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	struct source_context context = {.once = true, .memory = memory};
	enum weir_status status = source_new(&root, &context, source, error);
	weir_json_document_free(document);
	return status;
}

static enum weir_status try_source(const char *config, struct weir_error *error)
{
	struct source *source;
	enum weir_status status = make_source(config, NULL, &source, error);
	if (status == WEIR_OK)
		source->ops->free(source);
	return status;
}

static void require_journals(void)
{
	struct weir_error error = {.text = ""};
	if (try_source("{\"type\":\"journal\",\"directory\":\"/nonexistent\"}", &error) == WEIR_OK)
		return;
	assert_non_null(strstr(error.text, "built without libsystemd"));
	skip();
}

/* Expects so many streams of a directory, and the words of what is wrong with the source as a whole; "": nothing is. */
static void expect_streams(const char *directory, struct source_memory *memory, size_t count, const char *words)
{
	enum { ROOM = 2048 };
	static struct source_status statuses[ROOM];
	struct weir_error error;
	struct source_stream **streams;
	struct source *source;
	char config[512];
	snprintf(config, sizeof config, "{\"type\":\"journal\",\"directory\":\"%s\"}", directory);
	if (make_source(config, memory, &source, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	assert_int_equal(source->ops->streams(source, &streams), count);
	size_t filled = source->ops->status(source, statuses, ROOM);
	assert_int_equal(filled, count + (words[0] != '\0'));
	if (words[0] != '\0')
		assert_non_null(strstr(statuses[count].problem, words));
	source->ops->free(source);
}

static void streams_that_are_not_read_are_told(void **state)
{
	enum { STREAMS = 1024 };
	static const uint8_t id[SOURCE_ID_BYTES];
	const char *directory = *state;
	char name[32];
	require_journals();
	for (unsigned i = 0; i < STREAMS; i++) {
		snprintf(name, sizeof name, "user-%u.journal", i);
		put_file(directory, name, 1, i + 1, i + 1);
	}
	expect_streams(directory, NULL, STREAMS, "");
	put_file(directory, "system.journal", 1, STREAMS + 1, STREAMS + 1);
	expect_streams(directory, NULL, STREAMS, "more than 1024 streams");

	struct source_memory *memory = source_memory_new(id);
	for (unsigned i = 0; i + 1 < SOURCE_MEMORY_STREAMS_MAX; i++) {
		snprintf(name, sizeof name, "/var/log/%u", i);
		assert_non_null(source_memory_add(memory, name));
	}
	expect_streams(directory, memory, 1, "as many streams and logs as it can");
	source_memory_free(memory);
}

static void wrong_configurations_are_refused(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"{\"type\":\"journal\",\"path\":\"x\"}", "path"},
		{"{\"type\":\"journal\",\"units\":[]}", "units"},
		{"{\"type\":\"journal\",\"units\":[\"\"]}", "units[0]: must have 1 to"},
		{"{\"type\":\"journal\",\"match\":[]}", "match: must be an object"},
		{"{\"type\":\"journal\",\"match\":{\"a\":\"x\"}}", "match.a: is not a journal field"},
		{"{\"type\":\"journal\",\"match\":{\"A\":5}}", "match.A"},
		{"{\"type\":\"journal\",\"directory\":\"\"}", "directory: is empty"},
		{"{\"type\":\"journal\",\"start\":\"middle\"}", "start"},
		{"{\"type\":\"file\",\"path\":\"journal:x\"}", "must not begin with \"journal:\""},
	};
	struct weir_error error = {.text = ""};
	require_journals();
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (try_source(cases[i][0], &error) != WEIR_INVALID || strstr(error.text, cases[i][1]) == NULL)
			fail_msg("%s: %s", cases[i][0], error.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_told_from_other_bytes),
		cmocka_unit_test_setup_teardown(files_follow_one_another_by_their_numbers, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(names_that_share_an_id_are_apart, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(no_directory_is_no_file, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_change_in_any_folder_is_seen, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(an_empty_file_is_looked_at_ever_more_rarely, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(more_folders_than_are_looked_at_are_told, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(more_files_than_are_listed_are_told, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(streams_that_are_not_read_are_told, scratch_setup, scratch_teardown),
		cmocka_unit_test(wrong_configurations_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
