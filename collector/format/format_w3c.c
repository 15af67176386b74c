/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `w3c`: W3C's extended log format, as IIS and CloudFront write it.
 *
 *     #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip sc-status time-taken
 *     2024-05-17 10:05:03 10.0.0.5 GET /login - 443 - 203.0.113.9 200 12
 *
 * The columns are those that the last "#Fields:" names. IIS separates values by blanks, CloudFront by tabs, and both
 * encode blanks within them. CloudFront encodes each '%' too, as "%25": what the client wrote as "/%61" stands there as
 * "/%2561", and without decoding it would be another path. Its own columns, "x-edge-…", tell it. The time is "date" and
 * "time", in UTC.
 */
#include "collector/format/format_options.h"

static const struct format_alias aliases[] = {
	{"ip", "c-ip"},
	{"user", "cs-username"},
	{"method", "cs-method"},
	{"path", "cs-uri-stem"},
	{"path", "cs-uri"},
	{"status", "sc-status"},
	{"bytes", "sc-bytes"},
	{"host", "cs(Host)"},
	{"host", "cs-host"},
	{"host", "x-host-header"},
	{"agent", "cs(User-Agent)"},
	{"referer", "cs(Referer)"},
	{"xff", "x-forwarded-for"},
	{"xff", "cs(X-Forwarded-For)"},
	{"xff", "X-Forwarded-For"},
	{NULL, NULL},
};

static const struct format_dialect dialect = {.aliases = aliases, .tabs_or_blanks = true, .encoded = "x-edge-"};

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	return format_delimited_new(config, kind, &dialect, fields, format, error);
}

const struct format_kind format_w3c = {
	.name = "w3c",
	.meaning = "W3C's extended log format: IIS, CloudFront",
	.malformed = "not delimited",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR | FORMAT_NEEDS_IP,
	.create = create,
};
