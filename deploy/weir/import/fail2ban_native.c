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

/*
 * What filter.d/ of fail2ban has had under these names (ini_fingerprint), with all that it includes. An operator's edit is
 * another, and so is that of a fail2ban which is newer than this list: then its own expressions are taken.
 */
static const struct {
	const char *filter;
	uint64_t fingerprint;
} shipped[] = {
	{"sshd", UINT64_C(0x5dbe73327d13073a)},            /* 0.10.0 to 0.10.1 */
	{"sshd", UINT64_C(0x0543498196570d4f)},            /* 0.10.2 */
	{"sshd", UINT64_C(0xde10ced66afb63da)},            /* 0.10.3 to 0.10.3.1 */
	{"sshd", UINT64_C(0x0e7fc3af4d8b404c)},            /* 0.10.4 */
	{"sshd", UINT64_C(0xa9c5887db978dd20)},            /* 0.10.5 to 0.11.1 */
	{"sshd", UINT64_C(0x08160e36cc5f0d20)},            /* 0.10.6 to 0.11.2 */
	{"sshd", UINT64_C(0xfb0a4b33b5833bb6)},            /* 1.0.1 to 1.0.2 */
	{"sshd", UINT64_C(0x12325bfd49831e94)},            /* 1.1.0 */
	{"sshd", UINT64_C(0xa6e1df78553fd68b)},            /* 1.1.1 to 2026 */
	{"nginx-http-auth", UINT64_C(0xddc9188f84305f67)}, /* 0.10.0 to 0.10.1 */
	{"nginx-http-auth", UINT64_C(0xa22bd9664dec18df)}, /* 0.10.2 to 0.11.2 */
	{"nginx-http-auth", UINT64_C(0x98db57a77a4b43e1)}, /* 1.0.1 to 1.0.2 */
	{"nginx-http-auth", UINT64_C(0xccd9d8bf536bb571)}, /* 1.1.0 */
	{"nginx-http-auth", UINT64_C(0xd206c915f9e9054a)}, /* 1.1.1 to 2026 */
	{"nginx-limit-req", UINT64_C(0x17f1ada5dec938cd)}, /* 0.10.0 to 0.10.1 */
	{"nginx-limit-req", UINT64_C(0xfa47b218ae2a5416)}, /* 0.10.2 to 0.11.2 */
	{"nginx-limit-req", UINT64_C(0xaa5d3d0ff423c136)}, /* 1.0.1 to 1.0.2 */
	{"nginx-limit-req", UINT64_C(0xaa43f12398f6bf33)}, /* 1.1.0 */
	{"nginx-limit-req", UINT64_C(0x2a4036e543907c8a)}, /* 1.1.1 to 2026 */
};

static bool is_shipped(const struct filter *filter, bool *known)
{
	*known = false;
	for (size_t i = 0; i < sizeof shipped / sizeof *shipped; i++)
		if (strcmp(shipped[i].filter, filter->name) == 0) {
			*known = true;
			if (shipped[i].fingerprint == filter->fingerprint)
				return true;
		}
	return false;
}

bool native_is_edited(const struct filter *filter)
{
	bool known;
	return !is_shipped(filter, &known) && known;
}

const struct native *native_of(const struct filter *filter)
{
	if (filter->changed || native_is_edited(filter))
		return NULL;
	for (size_t i = 0; i < sizeof natives / sizeof *natives; i++)
		if (strcmp(natives[i].filter, filter->name) == 0 &&
		    (natives[i].mode[0] == '\0' || strcmp(natives[i].mode, filter->mode) == 0))
			return &natives[i];
	return NULL;
}
