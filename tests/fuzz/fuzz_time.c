/* SPDX-License-Identifier: Apache-2.0 */
/* Times: any text gives a time in range or a reason, and the shortcut for a known day says the same. */
#include "collector/record/time_text.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ZONES = 4 };

static void check(bool condition, const char *words)
{
	if (condition)
		return;
	fprintf(stderr, "not so: %s\n", words);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[ZONES] = {"UTC", "+05:30", "Europe/Berlin", "Australia/Lord_Howe"};
	static struct time_reader readers[ZONES];
	static bool ready;
	for (int i = 0; !ready && i < ZONES; i++) {
		struct time_zone *zone;
		struct weir_error error;
		check(time_zone_new(names[i], &zone, &error) == WEIR_OK, "the zone is there");
		time_reader_init(&readers[i], zone);
	}
	ready = true;
	if (size == 0 || size > 4096)
		return 0;

	struct time_reader *reader = &readers[data[0] % ZONES];
	reader->unit = (enum time_unit)(data[0] / ZONES % 4);
	reader->unit_given = data[0] / 64 % 2 != 0;
	if (data[0] / 128 != 0)
		time_reader_set_reference(reader, INT64_C(1715940303000) + data[0] * INT64_C(86400000));
	reader->first_year = data[0] / 16 % 2 == 0 ? 0 : 2023;
	reader->first_month = 1 + data[0] / 32;
	char *text = malloc(size);
	check(text != NULL, "there is memory");
	memcpy(text, data + 1, size - 1);
	struct weir_span span = {.at = text, .length = (uint32_t)(size - 1)};
	int64_t quick_ms = -1, ms = -1, again_ms = -1;
	bool known = size - 1 == TIME_COMMON_BYTES && time_read_common(reader, text, &quick_ms);
	enum format_reason reason = time_read(reader, span, &ms);
	check(reason == FORMAT_OK || reason == FORMAT_NO_TIME || reason == FORMAT_BAD_TIME || reason == FORMAT_TIME_RANGE,
	      "a reason is one of four");
	check(reason != FORMAT_OK || (ms >= 0 && ms < WEIR_TIME_END_MS), "a time is in range");
	check(!known || (reason == FORMAT_OK && quick_ms == ms), "the shortcut agrees");
	check(time_read(reader, span, &again_ms) == reason && (reason != FORMAT_OK || again_ms == ms),
	      "a text means the same twice");
	free(text);
	return 0;
}
