/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `caddy`: Caddy's access log, of 2.x.
 *
 *     {"level":"info","ts":1715940303.133,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":
 *     "192.0.2.7","client_ip":"192.0.2.7","method":"GET","host":"example.com","uri":"/a?b","headers":{…}},"status":200}
 *
 * client_ip is the address that Caddy found behind its trusted proxies. The uri is as the client wrote it: "/a#b" is served, and
 * passed on, as "/a%23b".
 */
#include "collector/format/format_options.h"

static const struct json_place places[] = {
	{"time", {"ts"}},
	{"ip", {"/request/client_ip", "/request/remote_ip", "/request/remote_addr"}},
	{"user", {"user_id", "/request/user_id"}},
	{"method", {"/request/method"}},
	{"path", {"/request/uri"}},
	{"host", {"/request/host"}},
	{"status", {"status"}},
	{"bytes", {"size"}},
	{"agent", {"/request/headers/User-Agent/0"}},
	{"referer", {"/request/headers/Referer/0"}},
	{"xff", {"/request/headers/X-Forwarded-For", "/request/headers/X-Forwarded-For/0"}},
	{NULL, {NULL}},
};

const struct format_kind format_caddy = {
	.name = "caddy",
	.meaning = "Caddy's access log",
	.malformed = "not json",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_NEEDS_IP,
	.places = places,
	.serves_hashes = true,
	.create = format_json_preset_create,
};
