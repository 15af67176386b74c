/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `envoy`: Envoy's access log as JSON, with the names that Istio and Envoy Gateway give.
 *
 *     {"start_time":"2024-05-17T10:05:03.133Z","method":"GET","path":"/a?b","response_code":200,"bytes_sent":12,
 *     "downstream_remote_address":"192.0.2.7:40000","x_forwarded_for":"…","user_agent":"curl/8","authority":"example.com"}
 *
 * The address is the connection's; where Envoy stands behind proxies, "client_ip" with the header "xff" finds the client.
 */
#include "collector/format/format_options.h"

static const struct json_place places[] = {
	{"time", {"start_time"}},
	{"ip", {"downstream_remote_address", "downstream_direct_remote_address"}},
	{"method", {"method", ":method"}},
	{"path", {"path", "x-envoy-origin-path", ":path"}},
	{"host", {"authority", ":authority"}},
	{"status", {"response_code"}},
	{"bytes", {"bytes_sent"}},
	{"agent", {"user_agent", "user-agent"}},
	{"referer", {"referer"}},
	{"xff", {"x_forwarded_for", "x-forwarded-for"}},
	{NULL, {NULL}},
};

const struct format_kind format_envoy = {
	.name = "envoy",
	.meaning = "Envoy's access log as JSON, as Istio and Envoy Gateway write it",
	.malformed = "not json",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_NEEDS_IP,
	.places = places,
	.create = format_json_preset_create,
};
