/* SPDX-License-Identifier: Apache-2.0 */
/* json: scanner, pointers, escapes. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	target_run(&target, data, size, NULL);
	return 0;
}
