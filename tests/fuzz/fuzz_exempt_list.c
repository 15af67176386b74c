/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of "exempt": its entries are those of its lines, one by one, and what is wrong has its line. */
#include "common/policy/policy.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct taken {
	uint64_t networks, words, word_bytes;
};

static void take_network(void *context, const struct weir_network *network)
{
	struct taken *taken = context;
	assert(network->prefix <= 128);
	taken->networks++;
}

static void take_word(void *context, struct weir_span word)
{
	struct taken *taken = context;
	assert(word.length > 0 && word.at[word.length] == '\0' && memchr(word.at, '\0', word.length) == NULL);
	taken->words++;
	taken->word_bytes += word.length;
}

/* Whether '#' behind a word begins a remark, by what the line has behind it. */
static bool is_remark(const char *behind, const char *last)
{
	size_t blanks = 0;
	while (behind + blanks < last && strchr(" \t\r", behind[blanks]) != NULL && behind[blanks] != '\0')
		blanks++;
	return behind + blanks == last || *behind == ' ' || *behind == '\t';
}

/* "192.0.2.1 # ours", "monitor # ours". @param raw  the same in the file, with all that its line has up to `last` */
static bool cut_remark(char *entry, const char *raw, const char *last)
{
	struct weir_network networks[WEIR_RANGE_NETWORKS_MAX];
	const char *why;
	size_t word = strcspn(entry, " \t"), blanks = strspn(entry + word, " \t");
	struct weir_span first = {.at = entry, .length = (uint32_t)word};
	if (blanks > 0 && strchr("#;", entry[word + blanks]) != NULL && entry[word + blanks] != '\0' &&
	    weir_networks_parse(first, networks, &why) > 0) {
		entry[word] = '\0';
		return true;
	}
	for (size_t i = 1; entry[0] != '\0' && entry[0] != '#' && entry[0] != ';' && entry[i] != '\0'; i++) {
		if (entry[i] != '#' || strchr(" \t", entry[i - 1]) == NULL || !is_remark(raw + i + 1, last))
			continue;
		while (i > 0 && strchr(" \t", entry[i - 1]) != NULL)
			i--;
		entry[i] = '\0';
		return true;
	}
	return false;
}

/* The model: a copy of each line, without blanks, by itself. */
static bool read_lines(const char *at, const char *end, struct taken *taken, uint32_t *count)
{
	const struct weir_exempt_taker taker = {.context = taken, .network = take_network, .word = take_word};
	bool good = true;
	*count = 0;
	while (at < end && good) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *last = newline != NULL ? newline : end;
		char *line = strndup(at, (size_t)(last - at)), *begin = line + strspn(line, " \t");
		for (size_t length = strlen(begin); length > 0 && strchr(" \t\r", begin[length - 1]) != NULL;)
			begin[--length] = '\0';
		/* what is in a remark does not matter */
		bool whole = cut_remark(begin, at + (begin - line), last) || memchr(at, '\0', (size_t)(last - at)) == NULL;
		json_t *text = whole ? json_string(begin) : NULL; /* NULL: no UTF-8 */
		if (whole && (*begin == '\0' || *begin == '#' || *begin == ';')) {
			good = true;
		} else if (!whole) {
			/* a zero behind '#' or ';' is part of a remark */
			const char *first = at + strspn(at, " \t");
			good = first < last && (*first == '#' || *first == ';');
		} else {
			++*count;
			good = text != NULL && weir_exempt_entry(begin, &taker, NULL) == WEIR_OK;
		}
		json_decref(text);
		free(line);
		at = newline != NULL ? newline + 1 : end;
	}
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct taken taken = {0}, expected = {0};
	const struct weir_exempt_taker taker = {
		.context = &taken, .network = take_network, .word = take_word, .most = WEIR_EXEMPT_FILE_ENTRIES_MAX};
	struct weir_exempt_file_state state;
	struct weir_error error = {.text = ""};
	uint32_t count, lines;
	char path[64];
	if (size >= WEIR_EXEMPT_LINE_MAX_BYTES)
		return 0;
	int file = memfd_create("list", MFD_CLOEXEC);
	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	enum weir_status status = weir_exempt_file_read(path, &taker, &state, &count, &error);
	char *copy = strndup("", 1); /* terminated, so that the model may look one byte further */
	copy = realloc(copy, size + 1);
	memcpy(copy, data, size);
	copy[size] = '\0';
	bool marked = size >= 3 && memcmp(copy, "\xef\xbb\xbf", 3) == 0;
	bool good = read_lines(copy + (marked ? 3 : 0), copy + size, &expected, &lines);
	assert((status == WEIR_OK) == good);
	assert(!good || (count == lines && memcmp(&taken, &expected, sizeof taken) == 0));
	assert(good || strstr(error.text, path) == error.text);
	free(copy);
	close(file);
	return 0;
}
