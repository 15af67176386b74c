/* SPDX-License-Identifier: Apache-2.0 */
/* delimited: headers, quotes, numbers for names; a header that is given back makes the same columns. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct target *target, const char *line, uint32_t length, enum format_reason reason,
                  const struct weir_record *record)
{
	(void)line;
	(void)length;
	(void)record;
	if (reason != FORMAT_SKIP)
		return;
	for (size_t i = 0; i < target->count; i++) {
		struct weir_span header = format_header(target->formats[i]);
		if (header.at == NULL)
			continue;
		char *copy = malloc(header.length + 1);
		require(copy != NULL);
		memcpy(copy, header.at, header.length);
		format_begin(target->formats[i], (struct weir_span){.at = copy, .length = header.length});
		struct weir_span again = format_header(target->formats[i]);
		require(again.length == header.length && memcmp(again.at, copy, again.length) == 0);
		free(copy);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ip", "user", "a", "b", "3", NULL};
	static const char columns[] =
		"{\"type\": \"delimited\", \"separator\": \"|\", \"quote\": \"'\", \"header\": false, "
		"\"columns\": [\"time\", \"a\", \"b\", \"a\"], \"fields\": {\"ip\": \"b\"}}";
	static const char *const configs[] = {
		"{\"type\": \"delimited\"}",
		"{\"type\": \"delimited\", \"separator\": \",\", \"quote\": \"\\\"\", \"cost\": \"c\"}",
		"{\"type\": \"delimited\", \"separator\": \" \", \"header\": false, \"time\": \"1\"}",
		columns,
		NULL,
	};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, check);
	return 0;
}
