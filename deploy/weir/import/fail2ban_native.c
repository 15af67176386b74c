/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of fail2ban that count what a format of weir's knows by itself. That one never takes an address from what a
 * stranger writes, so it goes before the filter's own expressions, where the log is read by no other filter. */
#include "deploy/weir/import/fail2ban.h"

#include <string.h>

#define LINES "fail2ban also puts the lines of one connection together; here each line stands for itself"
#define FAILED "\"Failed\", \"Invalid\", \"Maximum\", \"Denied\""

static const struct native natives[] = {
	{"sshd", "normal", "sshd", "{\"event\": [" FAILED "]}", LINES},
	{"sshd", "aggressive", "sshd", "{\"event\": [" FAILED ", \"Preauth\"]}", LINES},
	{"sshd", "ddos", "sshd", "{\"event\": [" FAILED ", \"Preauth\"]}",
     LINES "; negotiations that fail, which only mode extra counts, are counted too"},
	{"sshd", "extra", "sshd", "{\"event\": [" FAILED ", \"Preauth\"]}",
     LINES "; connections that end before a login, which only mode ddos counts, are counted too"},
	{"nginx-limit-req", "", "nginx_error",
     "{\"message\": [\"limiting request*\", \"limiting connection*\", \"delaying request*\", \"delaying connection*\"]}",
     NULL},
	{"nginx-http-auth", "normal", "nginx_error",
     "{\"level\": [\"error\", \"crit\"], \"message\": [\"user \\\"*\\\": password mismatch\", \"user \\\"*\\\" was not found in *\", "
     "\"user \\\"*\\\": was not found in *\", \"*user '*' - not authenticated: Authentication failure\"]}",
     NULL},
};

const struct native *native_of(const struct filter *filter)
{
	if (filter->changed)
		return NULL;
	for (size_t i = 0; i < sizeof natives / sizeof *natives; i++)
		if (strcmp(natives[i].filter, filter->name) == 0 &&
		    (natives[i].mode[0] == '\0' || strcmp(natives[i].mode, filter->mode) == 0))
			return &natives[i];
	return NULL;
}
