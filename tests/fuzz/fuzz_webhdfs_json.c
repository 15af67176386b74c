/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an answer of WebHDFS: they are refused in words, or what they give is within its bounds. */
#include "collector/source/remote/webhdfs/webhdfs_json.h"

#include "common/base/words.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(void *context, const struct webhdfs_status *status)
{
	size_t *count = context;
	assert(status->id > 0 && strlen(status->name) < WEBHDFS_NAME_MOST && strchr(status->name, '/') == NULL);
	++*count;
}

static void check_clean(const char *words)
{
	for (size_t left = strlen(words); left > 0; left--, words++)
		assert(weir_control_bytes(words, left) == 0);
}

static void check_words(enum weir_status status, const struct weir_error *error)
{
	assert(status == WEIR_OK || (status == WEIR_IO && error->text[0] != '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), last[WEBHDFS_NAME_MOST];
	if (copy == NULL)
		return 0;
	if (size > 0)
		memcpy(copy, data, size);
	struct weir_span body = {.at = copy, .length = (uint32_t)size};
	struct weir_error error = {.text = ""};
	size_t count = 0;
	uint64_t remaining;
	bool open;
	check_words(webhdfs_json_listing(body, take, &count, &remaining, last, &error), &error);
	check_words(webhdfs_json_status(body, take, &count, &error), &error);
	check_words(webhdfs_json_open(body, &open, &error), &error);
	char name[WEBHDFS_WORDS_BYTES], words[WEBHDFS_WORDS_BYTES];
	webhdfs_json_exception(body, name, words);
	assert(strlen(name) < sizeof name && strlen(words) < sizeof words && words[strspn(words, " ")] != '\0');
	check_clean(name);
	check_clean(words);
	free(copy);
	return 0;
}
