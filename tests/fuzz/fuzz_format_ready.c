/* SPDX-License-Identifier: Apache-2.0 */
/* The ready formats, those whose names are JSON members or columns of a program, and lines within others. */
#include "tests/fuzz/format_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"ip",    "user",  "method",  "path",  "status",  "bytes",  "host",
	                                    "agent", "event", "message", "level", "backend", "stream", NULL};
	static const char *const configs[] = {
		"{\"type\": \"nginx_error\"}",
		"{\"type\": \"haproxy\"}",
		"{\"type\": \"sshd\", \"year\": \"2023-06\", \"unmatched\": \"skip\"}",
		"{\"type\": \"apache_error\", \"time_zone\": \"Europe/Berlin\"}",
		"{\"type\": \"ingress_nginx\"}",
		"{\"type\": \"alb\"}",
		"{\"type\": \"squid\"}",
		"{\"type\": \"postfix\", \"year\": 2024}",
		"{\"type\": \"dovecot\", \"year\": 2024}",
		"{\"type\": \"w3c\"}",
		"{\"type\": \"zeek\"}",
		"{\"type\": \"caddy\"}",
		"{\"type\": \"traefik\"}",
		"{\"type\": \"envoy\"}",
		"{\"type\": \"cloudflare\"}",
		"{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": \"combined\"}",
		"{\"type\": \"wrapped\", \"in\": \"cri\", \"message\": \"w3c\"}",
		"{\"type\": \"json\", \"message\": {\"type\": \"logfmt\"}}",
		"{\"type\": \"syslog\", \"year\": 2024, \"message\": \"sshd\"}",
		"{\"type\": \"syslog\", \"year\": 2024, \"message\": \"apache_error\"}",
		NULL,
	};
	static struct target target;
	if (target.count == 0)
		target_init(&target, names, configs);
	target_run(&target, data, size, NULL);
	return 0;
}
