/* SPDX-License-Identifier: Apache-2.0 */
/* pattern: the ready patterns, and one that invites runaway backtracking. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ip",   "user",  "method",  "path",  "status",  "bytes",
	                                    "host", "event", "message", "level", "backend", NULL};
	static const char *const configs[] = {
		"{\"type\": \"nginx_error\", \"time_zone\": \"America/New_York\"}",
		"{\"type\": \"haproxy\"}",
		"{\"type\": \"sshd\", \"year\": \"2023-06\", \"unmatched\": \"skip\"}",
		"{\"type\": \"pattern\", \"pattern\": \"(?<time>[0-9.]+) (?<ip>(a|aa)+)*(?<user>.*?)b\", \"unit\": \"ms\"}",
		NULL,
	};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, NULL);
	return 0;
}
