/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of files: what is written is read again, what is damaged is refused with its place, parts come and go. */
#include "collector/source/source_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "tests/unit/log_files.h"

#include <sched.h>
#include <stdio.h>

#include <cmocka.h>

static struct source_memory *filled(void)
{
	static const uint8_t id[SOURCE_ID_BYTES] = {0xde, 0xad, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 255};
	struct source_memory *memory = source_memory_new(id);
	struct source_memory_stream *stream = source_memory_add(memory, "/var/log/a \"quoted\" name");
	struct source_memory_file *file = source_memory_file_add(memory, stream);
	file->device = UINT64_MAX;
	file->inode = 42;
	file->state = SOURCE_FILE_LEFT;
	file->taken = 1000;
	file->size = 2000;
	file->modified_ns = 1700000000123456789;
	file->seen_s = 1700000000;
	char text[4096];
	memset(text, 'x', sizeof text);
	fingerprint_head(&file->fingerprint, text, sizeof text);
	fingerprint_note(&file->fingerprint, 0, text, sizeof text);
	source_memory_part_add(memory, stream, file->number, 0)->to = 1000;
	file = source_memory_file_add(memory, stream);
	source_memory_part_add(memory, stream, file->number, 7);
	source_memory_acknowledge(memory, stream, source_position(1, 300));
	source_memory_add(memory, "/not/utf-8/\xff\xfe.log");
	return memory;
}

static char *text_of(const struct source_memory *memory)
{
	size_t length;
	char *text = source_memory_export(memory, &length);
	assert_int_equal(strlen(text), length);
	assert_null(strchr(text, '\n'));
	return text;
}

static void what_is_written_is_read_again(void **state)
{
	(void)state;
	struct weir_error error;
	struct source_memory *memory = filled(), *again;
	char *text = text_of(memory);
	if (source_memory_import("memory", text, strlen(text), &again, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	char *text_again = text_of(again);
	assert_string_equal(text, text_again);
	assert_memory_equal(memory->collector_id, again->collector_id, SOURCE_ID_BYTES);
	struct source_memory_stream *stream = source_memory_find(again, "/var/log/a \"quoted\" name");
	assert_non_null(stream);
	assert_non_null(source_memory_find(again, "/not/utf-8/\xff\xfe.log"));
	assert_null(source_memory_find(again, "/none"));
	assert_int_equal(stream->low_water, source_position(1, 300));
	assert_int_equal(stream->part_count, 2);
	assert_int_equal(stream->parts[0].to, 1000);
	assert_int_equal(stream->parts[1].to, SOURCE_PART_OPEN);
	assert_int_equal(stream->next_incarnation, 3);
	struct source_memory_file *file = source_memory_file(stream, 1);
	assert_int_equal(file->device, UINT64_MAX);
	assert_int_equal(file->state, SOURCE_FILE_LEFT);
	assert_int_equal(file->fingerprint.head_bytes, FINGERPRINT_HEAD_BYTES);
	assert_int_equal(file->fingerprint.mark_count, 3); /* at 64, 256 and 1024; 4096 is behind the end */
	uint8_t id[SOURCE_ID_BYTES], id_again[SOURCE_ID_BYTES];
	source_memory_stream_id(memory, stream->path, id);
	source_memory_stream_id(again, stream->path, id_again);
	assert_memory_equal(id, id_again, SOURCE_ID_BYTES);
	source_memory_free(memory);
	source_memory_free(again);
	free(text);
	free(text_again);
}

/* Rotated by the thousand since the oldest were forgotten last. */
static void many_files_are_read_again(void **state)
{
	(void)state;
	struct weir_error error;
	struct source_memory *memory = source_memory_new(NULL), *again = NULL;
	struct source_memory_stream *stream = source_memory_add(memory, "a.log");
	for (int i = 0; i < 5000; i++)
		(void)source_memory_file_add(memory, stream);
	size_t length;
	char *text = source_memory_export(memory, &length);
	assert_int_equal(source_memory_import("memory", text, length, &again, &error), WEIR_OK);
	assert_int_equal(source_memory_find(again, "a.log")->file_count, 5000);
	source_memory_free(memory);
	source_memory_free(again);
	free(text);
}

static void expect_refused(const char *text, enum weir_status expected, const char *words)
{
	struct weir_error error;
	struct source_memory *memory = NULL;
	assert_int_equal(source_memory_import("memory", text, strlen(text), &memory, &error), expected);
	if (strstr(error.text, words) == NULL)
		fail_msg("%s", error.text);
	assert_null(memory);
}

/* A memory of one stream with these files and parts. */
static void expect_lists_refused(const char *files, const char *parts, const char *words)
{
	char text[2048];
	snprintf(text, sizeof text,
	         "{\"version\":1,\"collector\":\"00000000000000000000000000000000\",\"streams\":[{\"path\":\"a\","
	         "\"low_water\":0,\"forgotten\":0,\"next_file\":9,\"next_incarnation\":9,\"files\":[%s],\"parts\":[%s]}]}",
	         files, parts);
	expect_refused(text, WEIR_INVALID, words);
}

static void damage_is_refused_with_its_place(void **state)
{
	(void)state;
	expect_refused("", WEIR_INVALID, "memory:");
	expect_refused("[]", WEIR_INVALID, "version");
	expect_refused("{\"version\":2}", WEIR_NEWER, "version 2");
	expect_refused("{\"version\":1,\"collector\":\"00\",\"streams\":[]}", WEIR_INVALID, "collector");
	expect_refused("{\"version\":1,\"collector\":\"0g000000000000000000000000000000\",\"streams\":[]}", WEIR_INVALID,
	               "hexadecimal");
	expect_refused("{\"version\":1,\"collector\":\"00000000000000000000000000000000\"}", WEIR_INVALID, "streams");
	expect_refused("{\"version\":1,\"collector\":\"00000000000000000000000000000000\",\"streams\":[{\"path\":\"\"}]}",
	               WEIR_INVALID, "streams[0]: has no path");
	expect_refused("{\"version\":1,\"collector\":\"00000000000000000000000000000000\",\"streams\":[]}", WEIR_INVALID,
	               "first_incarnation: is missing");
	const char *file = "{\"number\":1,\"state\":0,\"device\":1,\"inode\":1,\"taken\":0,\"size\":0,\"modified\":0,"
					   "\"seen\":0,\"head\":[0,\"0000000000000000\"],\"marks\":[]}";
	char twice[1024];
	snprintf(twice, sizeof twice, "%s,%s", file, file);
	expect_lists_refused(twice, "", "the number of another file");
	expect_lists_refused("{\"number\":0}", "", "files[0].number");
	expect_lists_refused("{\"number\":1,\"state\":7}", "", "files[0].state");
	expect_lists_refused(file, "{\"incarnation\":1,\"file\":2,\"from\":0}", "parts[0]: is of a file");
	expect_lists_refused(file, "{\"incarnation\":1,\"file\":1,\"from\":9,\"to\":3}", "parts[0].to");
	expect_lists_refused(file, "{\"incarnation\":1,\"file\":1,\"from\":0},{\"incarnation\":2,\"file\":1,\"from\":0}",
	                     "parts[1]: follows a part that has no end");
	expect_lists_refused(file,
	                     "{\"incarnation\":1,\"file\":1,\"from\":0,\"to\":1},{\"incarnation\":3,\"file\":1,\"from\":0}",
	                     "parts[1]: does not follow");
	expect_lists_refused(file, "{\"incarnation\":1,\"file\":1,\"from\":0}", "next incarnation");
}

static void a_directory_keeps_it(void **state)
{
	(void)state;
	struct weir_error error;
	struct source_memory *memory, *again;
	assert_int_equal(source_memory_open(log_directory, &memory, &error), WEIR_OK);
	struct source_memory_stream *stream = source_memory_add(memory, "a.log");
	struct source_memory_file *file = source_memory_file_add(memory, stream);
	struct source_memory_part *part = source_memory_part_add(memory, stream, file->number, 0);
	assert_false(source_memory_part_saved(memory, part));
	assert_int_equal(source_memory_save(memory, &error), WEIR_OK);
	assert_true(source_memory_part_saved(memory, part));
	assert_int_equal(source_memory_open(log_directory, &again, &error), WEIR_OK);
	assert_memory_equal(memory->collector_id, again->collector_id, SOURCE_ID_BYTES);
	assert_int_equal(again->stream_count, 1);
	source_memory_free(memory);
	source_memory_free(again);
	/* never begun afresh in silence */
	log_replace("sources.json", "{\"version\":1");
	assert_int_equal(source_memory_open(log_directory, &memory, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "sources.json:1"));
	assert_int_equal(source_memory_open("/nowhere", &memory, &error), WEIR_IO);
	log_remove("sources.json");
}

static void parts_go_when_they_are_acknowledged(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	struct source_memory_stream *stream = source_memory_add(memory, "a.log");
	struct source_memory_file *file = source_memory_file_add(memory, stream);
	for (uint32_t i = 1; i <= 5; i++) {
		struct source_memory_part *part = source_memory_part_add(memory, stream, file->number, 0);
		assert_int_equal(part->incarnation, i);
		part->to = 10;
	}
	source_memory_acknowledge(memory, stream, source_position(3, 10));
	assert_int_equal(stream->part_count, 3);
	assert_null(source_memory_part(stream, 2));
	assert_int_equal(source_memory_part(stream, 3)->incarnation, 3);
	assert_null(source_memory_part(stream, 6));
	source_memory_acknowledge(memory, stream, source_position(2, 1)); /* late news of a worker */
	assert_int_equal(stream->low_water, source_position(3, 10));
	source_memory_acknowledge(memory, stream, source_position(5, 10));
	assert_int_equal(stream->part_count, 1);
	assert_int_equal(source_memory_last_part(stream)->incarnation, 5);
	source_memory_free(memory);
}

static void files_are_forgotten_when_they_are_gone(void **state)
{
	(void)state;
	const int64_t day_s = 86400, now_s = 100 * day_s;
	struct source_memory *memory = source_memory_new(NULL);
	struct source_memory_stream *stream = source_memory_add(memory, "a.log");
	for (int i = 0; i < 5; i++) {
		struct source_memory_file *file = source_memory_file_add(memory, stream);
		file->state = SOURCE_FILE_SETTLED;
		file->seen_s = now_s - (i % 2 == 0 ? 8 : 1) * day_s;
		file->modified_ns = i;
	}
	source_memory_file(stream, 1)->state = SOURCE_FILE_LEFT; /* late lines may come */
	source_memory_part_add(memory, stream, 3, 0);            /* it is read */
	source_memory_forget(memory, stream, now_s);
	assert_int_equal(stream->file_count, 4);
	assert_null(source_memory_file(stream, 5));
	assert_int_equal(stream->forgotten_ns, 4);
	for (int i = 0; i < SOURCE_MEMORY_FILES_MAX; i++) {
		struct source_memory_file *file = source_memory_file_add(memory, stream);
		file->state = SOURCE_FILE_SETTLED;
		file->seen_s = now_s;
	}
	source_memory_forget(memory, stream, now_s);
	assert_int_equal(stream->file_count, SOURCE_MEMORY_FILES_MAX);
	assert_non_null(source_memory_file(stream, 1));
	assert_null(source_memory_file(stream, 2));
	assert_non_null(source_memory_file(stream, 3));
	source_memory_free(memory);
}

static void many_streams_share_the_files(void **state)
{
	(void)state;
	struct source_memory *memory = source_memory_new(NULL);
	struct source_memory_stream *stream = source_memory_add(memory, "a.log");
	char path[32];
	for (int i = 1; i < SOURCE_MEMORY_FILES_ALL / 16; i++) {
		snprintf(path, sizeof path, "%d.log", i);
		source_memory_add(memory, path);
	}
	for (int i = 0; i < 20; i++)
		source_memory_file_add(memory, stream)->state = SOURCE_FILE_SETTLED;
	source_memory_forget(memory, stream, 0);
	assert_int_equal(stream->file_count, 16);
	assert_null(source_memory_file(stream, 4));
	source_memory_free(memory);
}

/* Limiters take what is not above a stream's highest position for a repeat, however long ago that was. */
static void a_path_that_comes_again_has_higher_positions(void **state)
{
	(void)state;
	struct source_memory *memory = filled(), *again;
	struct weir_error error;
	uint32_t next = source_memory_find(memory, "/var/log/a \"quoted\" name")->next_incarnation;
	source_memory_remove(memory, 0);
	char *text = text_of(memory);
	assert_int_equal(source_memory_import("memory", text, strlen(text), &again, &error), WEIR_OK);
	struct source_memory_stream *stream = source_memory_add(again, "/var/log/a \"quoted\" name");
	struct source_memory_file *file = source_memory_file_add(again, stream);
	assert_int_equal(source_memory_part_add(again, stream, file->number, 0)->incarnation, next);
	free(text);
	source_memory_free(memory);
	source_memory_free(again);
}

/* In the background as at once; what changes meanwhile is in the next. */
static void a_background_save_holds_what_was_there_when_it_began(void **state)
{
	(void)state;
	struct weir_error error;
	struct source_memory *memory;
	enum weir_status status;
	assert_int_equal(source_memory_open(log_directory, &memory, &error), WEIR_OK);
	assert_int_equal(source_memory_save_begin(memory, &error), WEIR_OK); /* nothing has changed */
	for (int round = 0; round < 20; round++) {
		char name[16];
		snprintf(name, sizeof name, "/log-%d", round);
		source_memory_add(memory, name);
		uint64_t changes = memory->changes;
		assert_int_equal(source_memory_save_begin(memory, &error), WEIR_AGAIN);
		source_memory_changed(memory);
		if (round % 4 == 3) { /* one at once comes behind it */
			assert_int_equal(source_memory_save(memory, &error), WEIR_OK);
			assert_int_equal(memory->saved, memory->changes);
		}
		while ((status = source_memory_save_end(memory, &error)) == WEIR_AGAIN)
			sched_yield();
		assert_int_equal(status, WEIR_OK);
		assert_int_equal(memory->saved, round % 4 == 3 ? changes + 1 : changes);
		struct source_memory *again;
		assert_int_equal(source_memory_open(log_directory, &again, &error), WEIR_OK);
		assert_int_equal(again->stream_count, round + 1);
		assert_non_null(source_memory_find(again, name));
		source_memory_free(again);
	}
	source_memory_add(memory, "/last");
	assert_int_equal(source_memory_save_begin(memory, &error), WEIR_AGAIN);
	source_memory_free(memory); /* what is being written is written */
	assert_int_equal(source_memory_open(log_directory, &memory, &error), WEIR_OK);
	assert_non_null(source_memory_find(memory, "/last"));
	source_memory_free(memory);
	log_remove("sources.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(many_files_are_read_again),
		cmocka_unit_test(damage_is_refused_with_its_place),
		cmocka_unit_test(a_directory_keeps_it),
		cmocka_unit_test(a_background_save_holds_what_was_there_when_it_began),
		cmocka_unit_test(parts_go_when_they_are_acknowledged),
		cmocka_unit_test(files_are_forgotten_when_they_are_gone),
		cmocka_unit_test(many_streams_share_the_files),
		cmocka_unit_test(a_path_that_comes_again_has_higher_positions),
	};
	return cmocka_run_group_tests(tests, log_directory_make, log_directory_remove);
}
