/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `zeek`: Zeek's logs as tab-separated values, whose directives name the columns.
 *
 *     #fields	ts	uid	id.orig_h	id.orig_p	id.resp_h	id.resp_p	proto
 *     1715940303.133721	CXWv6p3arKYeMETxOg	192.0.2.7	52110	198.51.100.1	443	tcp
 *
 * Zeek escapes tabs within values, and bytes that are no UTF-8, as access logs do.
 */
#include "collector/format/format_options.h"

static const struct format_alias aliases[] = {
	{"time", "ts"},
	{"ip", "id.orig_h"},
	{"user", "username"},
	{"path", "uri"},
	{"status", "status_code"},
	{"agent", "user_agent"},
	{"bytes", "response_body_len"},
	{"referer", "referrer"},
	{NULL, NULL},
};

static const struct format_dialect dialect = {.aliases = aliases, .absent = "(empty)"};

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	return format_delimited_new(config, kind, &dialect, fields, format, error);
}

const struct format_kind format_zeek = {
	.name = "zeek",
	.meaning = "Zeek's logs as tab-separated values",
	.malformed = "not delimited",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR | FORMAT_NEEDS_IP,
	.escapes = FORMAT_ESCAPES_BACKSLASHES,
	.create = create,
};
