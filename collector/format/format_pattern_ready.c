/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ready patterns: formats whose expression is given.
 *
 * A group whose name ends in 2 serves for the name without it where that group took no part: an alternative of the
 * expression has its own groups.
 */
#include "collector/format/format_options.h"

/* 2024/05/01 12:00:00 [error] 123#123: *45 message, client: 192.0.2.7, server: x, request: "GET / HTTP/1.1", ... */
static const char nginx_error[] =
	"^(?<time>\\d{4}/\\d\\d/\\d\\d \\d\\d:\\d\\d:\\d\\d) \\[(?<level>[a-z]+)\\] (?<pid>\\d+)#\\d+: (?:\\*\\d+ )?"
	"(?<message>.*?)(?:, client: (?<ip>[^, ]+), server: (?<server>[^, ]*)"
	"(?:, request: \"(?:(?<method>[A-Za-z0-9_-]+) (?<path>[^ ?\"]+)[^\"]*|[^\"]*)\")?(?:, .*)?)?$";

/*
 * HAProxy's HTTP log, behind the head that syslog writes, or without one:
 * 192.0.2.7:33317 [06/Feb/2009:12:14:14.655] frontend backend/server 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0
 * "GET /index.html HTTP/1.1"
 */
static const char haproxy[] =
	"(?:^|\\s)(?<ip>[0-9A-Fa-f.:]+):\\d+ \\[(?<time>[^\\]]+)\\] (?<frontend>\\S+) (?<backend>[^\\s/]+)/(?<server>\\S+) "
	"[-+0-9/]+ (?<status>-?\\d+) \\+?(?<bytes>\\d+) .*"
	"\"(?:(?<method>[A-Za-z0-9_-]+) (?<path>[^ ?\"]+)[^\"]*|[^\"]*)\"$";

/*
 * OpenSSH's server, as rsyslog and journalctl -o short-iso write it; with the option "year" also behind the head of
 * old, "May  1 12:00:00":
 * 2024-05-01T12:00:00.123456+02:00 host sshd[123]: Failed password for invalid user x from 192.0.2.7 port 22 ssh2
 */
static const char sshd[] =
	"^(?<time>\\d{4}-\\d\\d-\\d\\dT\\S+|[A-Z][a-z][a-z] [ \\d]\\d \\d\\d:\\d\\d:\\d\\d) (?<host>\\S+) "
	"sshd(?:-session)?\\[(?<pid>\\d+)\\]: "
	"(?<message>(?:(?<event>Failed|Accepted) (?<method>\\S+) for (?:invalid user )?(?<user>.*) from (?<ip>\\S+) port "
	"\\d+.*|(?<event2>Invalid) user (?<user2>.*) from (?<ip2>\\S+) port \\d+.*|.*))$";

/* The same without the head, which syslog and the journal keep apart. */
static const char sshd_message[] =
	"^(?<message>(?:(?<event>Failed|Accepted) (?<method>\\S+) for (?:invalid user )?(?<user>.*) from (?<ip>\\S+) port "
	"\\d+.*|(?<event2>Invalid) user (?<user2>.*) from (?<ip2>\\S+) port \\d+.*|.*))$";

static enum weir_status create_nginx_error(const struct weir_json *config, const struct format_kind *kind,
                                           const struct field_table *fields, struct format **format,
                                           struct weir_error *error)
{
	return format_expression_new(config, kind, nginx_error, fields, format, error);
}

static enum weir_status create_haproxy(const struct weir_json *config, const struct format_kind *kind,
                                       const struct field_table *fields, struct format **format,
                                       struct weir_error *error)
{
	return format_expression_new(config, kind, haproxy, fields, format, error);
}

static enum weir_status create_sshd(const struct weir_json *config, const struct format_kind *kind,
                                    const struct field_table *fields, struct format **format, struct weir_error *error)
{
	return format_expression_new(config, kind, sshd, fields, format, error);
}

static enum weir_status create_sshd_message(const struct weir_json *config, const struct format_kind *kind,
                                            const struct field_table *fields, struct format **format,
                                            struct weir_error *error)
{
	return format_expression_new(config, kind, sshd_message, fields, format, error);
}

const struct format_kind format_nginx_error = {
	.name = "nginx_error",
	.meaning = "nginx's error log",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.create = create_nginx_error,
};

const struct format_kind format_haproxy = {
	.name = "haproxy",
	.meaning = "HAProxy's HTTP log",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.create = create_haproxy,
};

static const struct format_kind behind_a_head = {
	.name = "sshd",
	.meaning = "OpenSSH's messages without a syslog header",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.create = create_sshd_message,
};

const struct format_kind format_sshd = {
	.name = "sshd",
	.meaning = "OpenSSH's messages in auth.log, and as `journalctl -o short-iso` prints them",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_YEAR,
	.options = format_ready_options,
	.inside = &behind_a_head,
	.create = create_sshd,
};
