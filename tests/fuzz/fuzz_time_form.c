/* SPDX-License-Identifier: Apache-2.0 */
/* Described forms of time: any form is taken or refused with words, and any text gives a time in range or a reason. */
#include "collector/record/time_text.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition, const char *words)
{
	if (condition)
		return;
	fprintf(stderr, "not so: %s\n", words);
	abort();
}

/* The form ends at the first newline; the text is the rest. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
	if (newline == NULL || size > 4096)
		return 0;
	size_t form_bytes = (size_t)(newline - data), text_bytes = size - form_bytes - 1;
	char *form = calloc(form_bytes + 1, 1), *text = malloc(text_bytes > 0 ? text_bytes : 1);
	check(form != NULL && text != NULL, "there is memory");
	memcpy(form, data, form_bytes);
	memcpy(text, newline + 1, text_bytes);
	struct time_zone *zone;
	struct weir_error error = {0};
	struct time_reader reader;
	check(time_zone_new("Europe/Berlin", &zone, &error) == WEIR_OK, "the zone is there");
	time_reader_init(&reader, zone);
	if (time_form_new(form, &reader.form, &error) != WEIR_OK) {
		check(error.text[0] != '\0', "a refusal has words");
	} else {
		int64_t ms = -1;
		time_reader_set_reference(&reader, INT64_C(1715940303000));
		enum format_reason reason =
			time_read(&reader, (struct weir_span){.at = text, .length = (uint32_t)text_bytes}, &ms);
		check(reason != FORMAT_OK || (ms >= 0 && ms < WEIR_TIME_END_MS), "a time is in range");
		check(time_help_words(&reader) != NULL, "there is help");
	}
	time_reader_deinit(&reader);
	free(form);
	free(text);
	return 0;
}
