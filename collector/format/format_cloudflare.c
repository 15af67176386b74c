/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `cloudflare`: Cloudflare's Logpush of HTTP requests.
 *
 *     {"ClientIP":"192.0.2.7","ClientRequestMethod":"GET","ClientRequestPath":"/a","ClientRequestHost":"example.com",
 *     "EdgeResponseStatus":200,"EdgeResponseBytes":12,"EdgeStartTimestamp":1715940303133721000}
 *
 * The time is in nanoseconds, in seconds or ISO 8601, as the job says.
 */
#include "collector/format/format_options.h"

static const struct json_place places[] = {
	{"time", {"EdgeStartTimestamp", "EdgeEndTimestamp", "Datetime"}},
	{"ip", {"ClientIP"}},
	{"method", {"ClientRequestMethod"}},
	{"path", {"ClientRequestPath", "ClientRequestURI"}},
	{"host", {"ClientRequestHost"}},
	{"status", {"EdgeResponseStatus"}},
	{"bytes", {"EdgeResponseBytes"}},
	{"agent", {"ClientRequestUserAgent"}},
	{"referer", {"ClientRequestReferer"}},
	{NULL, {NULL}},
};

const struct format_kind format_cloudflare = {
	.name = "cloudflare",
	.meaning = "Cloudflare's Logpush of HTTP requests",
	.malformed = "not json",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_NEEDS_IP,
	.places = places,
	.create = format_json_preset_create,
};
