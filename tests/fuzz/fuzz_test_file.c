/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of policy tests: what is accepted has cases that can fail, within the bounds; all else is refused in words. */
#include <assert.h>

#include "deploy/weir/test/test_file.c" /* of a program, which no library has */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_given(const struct test_given *given)
{
	int64_t repeat = given->repeat == TEST_UNSAID ? 1 : given->repeat;
	int64_t every_ms = given->every_ms == TEST_UNSAID ? 0 : given->every_ms;
	assert(repeat >= 1 && repeat <= TEST_LINES_MAX && given->lines <= TEST_LINES_MAX);
	assert(given->at_ms >= TEST_UNSAID && given->at_ms < WEIR_TIME_END_MS);
	assert(every_ms >= 0 && given->at_ms + every_ms * (repeat - 1) <= WEIR_TIME_END_MS);
	assert(given->kind != TEST_GIVES_COMMAND || (given->zone != NULL && given->at_ms >= 0 && given->key.count >= 1));
	assert(given->kind != TEST_GIVES_FIELDS || (given->at_ms >= 0 && json_is_object(given->what.value)));
	assert(given->kind != TEST_GIVES_FILE || given->path != NULL);
}

static void check_case(const struct test_case *one)
{
	assert(one->name[0] != '\0' && one->given_count >= 1 && one->start_ms >= 0);
	assert(one->decisions_given || one->count_count > 0 || one->malformed >= 0);
	for (size_t i = 0; i < one->given_count; i++)
		check_given(&one->given[i]);
	for (size_t i = 0; i < one->decision_count; i++)
		assert(!one->decisions[i].key_given || one->decisions[i].zone != NULL);
	for (size_t i = 0; i < one->count_count; i++)
		assert(one->counts[i].zone != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_json_document *document;
	struct test_file *file;
	struct weir_error error = {.text = ""};
	enum weir_status status = weir_json_parse_file("tests", (const char *)data, size, &document, &error);
	if (status == WEIR_OK)
		status = test_file_read(document, &file, &error);
	if (status != WEIR_OK) {
		assert(error.text[0] != '\0' && strchr(error.text, '\n') == NULL);
		return 0;
	}
	assert(file->case_count >= 1 && file->case_count <= TEST_CASES_MAX);
	for (size_t i = 0; i < file->case_count; i++)
		check_case(&file->cases[i]);
	test_file_free(file);
	return 0;
}
