/* SPDX-License-Identifier: Apache-2.0 */
/* json: scanner, pointers, escapes. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same line without its middle. */
static void check_ends(struct target *target, const char *line, uint32_t length, enum format_reason reason,
                       const struct weir_record *whole)
{
	(void)reason;
	(void)whole;
	struct format *format = target->formats[0];
	for (uint32_t head = 1; head < length && head < 64; head++) {
		uint32_t rest = length - head, tail = rest < 3 * head ? rest : 3 * head;
		char *first = malloc(head), *last = malloc(tail); /* of just their sizes: a read past them is seen */
		require(first != NULL && last != NULL);
		memcpy(first, line, head);
		memcpy(last, line + length - tail, tail);
		struct weir_record record;
		format->cut = true;
		format->tail = (struct weir_span){.at = last, .length = tail};
		if (format_parse(format, first, head, &record) == FORMAT_OK)
			target_check_record(target, &record);
		format->cut = false;
		format->tail = (struct weir_span){0};
		free(first);
		free(last);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ip", "user", "a", "/a", "/a/b", "/a/0", "/a/1/b", "/", "/~0~1", NULL};
	static const char *const configs[] = {
		"{\"type\": \"json\"}",
		"{\"type\": \"json\", \"time\": \"/a/t\", \"unit\": \"ms\", \"cost\": \"b\", \"fields\": {\"ip\": \"/a/b/0\"}}",
		"{\"type\": \"json\", \"time\": \"t\", \"unit\": \"ns\", \"year\": 2024, \"client_ip\": {\"header\": \"a\", "
		"\"trusted\": [\"10.0.0.0/8\"]}}",
		NULL,
	};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, check_ends);
	return 0;
}
