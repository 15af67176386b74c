/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `traefik`: Traefik's access log with "format: json".
 *
 *     {"ClientHost":"192.0.2.7","ClientUsername":"-","DownstreamContentSize":12,"DownstreamStatus":200,"RequestHost":
 *     "example.com","RequestMethod":"GET","RequestPath":"/a?b","StartUTC":"2024-05-17T10:05:03.133Z","time":…}
 *
 * The time is when the request began; header fields are there where Traefik is told to keep them.
 */
#include "collector/format/format_options.h"

static const struct json_place places[] = {
	{"time", {"StartUTC", "StartLocal", "time"}},
	{"ip", {"ClientHost", "ClientAddr"}},
	{"user", {"ClientUsername"}},
	{"method", {"RequestMethod"}},
	{"path", {"RequestPath"}},
	{"host", {"RequestAddr", "RequestHost"}},
	{"status", {"DownstreamStatus", "OriginStatus"}},
	{"bytes", {"DownstreamContentSize", "OriginContentSize"}},
	{"agent", {"request_User-Agent"}},
	{"referer", {"request_Referer"}},
	{"xff", {"request_X-Forwarded-For"}},
	{NULL, {NULL}},
};

const struct format_kind format_traefik = {
	.name = "traefik",
	.meaning = "Traefik's access log as JSON",
	.malformed = "not json",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_NEEDS_IP,
	.places = places,
	.create = format_json_preset_create,
};
