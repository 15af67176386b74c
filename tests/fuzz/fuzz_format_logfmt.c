/* SPDX-License-Identifier: Apache-2.0 */
/* logfmt: pairs and quotes. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ip", "user", "a", "b", "msg", NULL};
	static const char *const configs[] = {
		"{\"type\": \"logfmt\"}",
		"{\"type\": \"logfmt\", \"time\": \"t\", \"unit\": \"us\", \"cost\": \"c\", \"fields\": {\"ip\": \"a\"}}",
		NULL,
	};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, NULL);
	return 0;
}
