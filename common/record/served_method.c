/* SPDX-License-Identifier: Apache-2.0 */
/* Nearly every method is in capitals: one scan of its few bytes tells. */
#include "common/record/served_method.h"

#include <stdbool.h>

enum { LONGEST_BYTES = 17 };

/* clang-format off */
/* IANA's "HTTP Method Registry", and what caches (PURGE, BAN) and UPnP (M-SEARCH, NOTIFY, SUBSCRIBE) are asked. */
static const char *const names[] = {
	"GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE",
	"PROPFIND", "PROPPATCH", "REPORT", "SEARCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK",
	"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "LABEL", "LINK", "MERGE", "MKACTIVITY", "MKCALENDAR",
	"MKREDIRECTREF", "MKWORKSPACE", "ORDERPATCH", "QUERY", "REBIND", "UNBIND", "UNCHECKOUT", "UNLINK", "UPDATE",
	"UPDATEREDIRECTREF", "VERSION-CONTROL",
	"PURGE", "BAN", "M-SEARCH", "NOTIFY", "SUBSCRIBE", NULL};
/* clang-format on */

const char *const *weir_served_methods(void)
{
	return names;
}

static bool is_small(char c)
{
	return c >= 'a' && c <= 'z';
}

static char capital(char c)
{
	return is_small(c) ? (char)(c - 'a' + 'A') : c;
}

static bool is_spelt(struct weir_span method, const char *name)
{
	for (uint32_t i = 0; i < method.length; i++)
		if (name[i] == '\0' || capital(method.at[i]) != name[i])
			return false;
	return name[method.length] == '\0';
}

static __attribute__((noinline, cold)) struct weir_span in_capitals(struct weir_span method)
{
	for (const char *const *name = names; *name != NULL; name++)
		if (is_spelt(method, *name))
			return (struct weir_span){.at = *name, .length = method.length};
	return method;
}

struct weir_span weir_served_method(struct weir_span method)
{
	if (method.length > LONGEST_BYTES)
		return method;
	for (uint32_t i = 0; i < method.length; i++)
		if (is_small(method.at[i]))
			return in_capitals(method);
	return method;
}
