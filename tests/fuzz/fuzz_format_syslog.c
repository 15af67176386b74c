/* SPDX-License-Identifier: Apache-2.0 */
/* syslog and journal: heads, structured data, and messages behind them. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"host",     "app", "procid", "msgid", "severity", "facility", "message",
	                                    "x@1.user", "x.y", "ip",     "user",  "MESSAGE",  NULL};
	static const char *const configs[] = {
		"{\"type\": \"syslog\"}",
		"{\"type\": \"syslog\", \"year\": 2024, \"fields\": {\"ip\": \"host\", \"user\": \"x@1.user\"}, \"cost\": \"procid\"}",
		"{\"type\": \"syslog\", \"message\": \"combined\"}",
		"{\"type\": \"syslog\", \"message\": {\"type\": \"json\", \"cost\": \"n\"}}",
		"{\"type\": \"syslog\", \"message\": \"sshd\"}",
		"{\"type\": \"journal\"}",
		"{\"type\": \"journal\", \"message\": {\"type\": \"syslog\", \"message\": \"logfmt\"}}",
		NULL,
	};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, NULL);
	return 0;
}
