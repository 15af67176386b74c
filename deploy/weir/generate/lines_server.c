/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of servers: nginx's errors, HAProxy's requests, sshd's logins. */
#include "deploy/weir/generate/internal.h"

static char *put_path(const struct generate_event *event, char *at)
{
	return put_span(at, line_path(event));
}

static char *put_nginx_error(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	uint32_t kind = (uint32_t)(event->noise >> 40) % 8, worker = 1200 + (uint32_t)(event->noise >> 50) % 4;
	if (event->abuser)
		kind = 4;
	at = line_put_stamp(lines, event, at);
	at = kind < 6 ? PUT(at, " [error] ") : PUT(at, " [warn] ");
	at = put_number(PUT(put_number(at, worker), "#"), worker);
	at = put_number(PUT(at, ": *"), 100000 + (uint32_t)(event->noise >> 8) % 900000);
	switch (kind) {
	case 0:
	case 1:
	case 2:
		at = put_path(event, PUT(at, " open() \"/var/www/html"));
		at = PUT(at, "\" failed (2: No such file or directory)");
		break;
	case 3: at = PUT(at, " connect() failed (111: Connection refused) while connecting to upstream"); break;
	case 4:
		at = put_number(PUT(at, " limiting requests, excess: "), (uint32_t)(event->noise >> 44) % 100);
		at = put_three(PUT(at, "."), (uint32_t)(event->noise >> 34) % 1000);
		at = PUT(at, " by zone \"site\"");
		break;
	case 5:
		at = PUT(at, " upstream timed out (110: Connection timed out) while reading response header from upstream");
		break;
	default:
		at = PUT(
			at,
			" an upstream response is buffered to a temporary file /var/lib/nginx/proxy/7/12/0000000127 while reading upstream");
		break;
	}
	at = line_put_address(lines, event->user, PUT(at, ", client: "));
	at = line_put_request(lines, event, PUT(at, ", server: " GENERATE_HOST ", request: \""));
	at = PUT(at, "\"");
	if (kind == 3 || kind >= 5)
		at = PUT(put_path(event, PUT(at, ", upstream: \"http://127.0.0.1:8080")), "\"");
	return PUT(at, ", host: \"" GENERATE_HOST "\"");
}

const struct line_format line_format_nginx_error = {"nginx_error", STAMP_SLASH, "", put_nginx_error};

/* "Jan  2 15:04:05", as syslog writes it, from "02/Jan/2006:15:04:05". */
static void put_syslog_time(const char *stamp, char *at)
{
	memcpy(at, stamp + 3, 3);
	at[3] = ' ';
	at[4] = stamp[0] == '0' ? ' ' : stamp[0];
	at[5] = stamp[1];
	at[6] = ' ';
	memcpy(at + 7, stamp + 12, 8);
}

/* Behind the head of a syslog, whose time has no year: the time that counts
 * stands in brackets. */
static char *put_haproxy(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	enum { HEAD_TIME_BYTES = 15 };
	uint32_t waited = (uint32_t)(event->noise >> 48) % 3, took = line_duration_ms(event);
	uint32_t open = 20 + (uint32_t)(event->noise >> 56) % 100;
	char *head = at;
	at = line_put_address(lines, event->user, PUT(at + HEAD_TIME_BYTES, " lb1 haproxy[1873]: "));
	at = put_number(PUT(at, ":"), 32768 + (uint32_t)(event->noise >> 16) % 28000);
	at = PUT(at, " [");
	char *stamp = at;
	at = put_three(PUT(line_put_stamp(lines, event, at), "."), line_milliseconds(event));
	put_syslog_time(stamp, head);
	at = put_number(PUT(at, "] https~ app/web"), 1 + (uint32_t)(event->noise >> 60) % 4);
	at = put_number(PUT(at, " 0/"), waited);
	at = put_number(PUT(at, "/1/"), took);
	at = put_number(PUT(at, "/"), waited + 1 + took);
	at = put_number(PUT(at, " "), event->status);
	at = put_number(PUT(at, " "), 200 + event->bytes); /* with its head */
	at = put_number(PUT(at, " - - ---- "), open);
	at = put_number(PUT(at, "/"), open - 3);
	at = PUT(at, "/2/1/0 0/0 \"");
	at = line_put_request(lines, event, at);
	return PUT(at, "\"");
}

const struct line_format line_format_haproxy = {"haproxy", STAMP_COMMON, "", put_haproxy};

static char *put_sshd(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	static const char *const guesses[] = {"root", "admin", "ubuntu", "test", "oracle", "postgres", "git", "pi"};
	uint32_t kind = (uint32_t)(event->noise >> 36) % 100;
	at = put_three(PUT(line_put_stamp(lines, event, at), "."), line_milliseconds(event));
	at = put_three(at, (uint32_t)(event->noise >> 44) % 1000);
	at = put_number(PUT(at, "+00:00 bastion1 sshd["), 1000 + (uint32_t)(event->noise >> 20) % 60000);
	at = PUT(at, "]: ");
	struct weir_span guess = weir_span_of(guesses[event->noise % 8]);
	bool accepted = !event->abuser && kind < 55;
	if (accepted)
		at = line_put_name(lines, event->user, PUT(at, "Accepted publickey for "));
	else if (event->abuser || kind < 75)
		at = put_span(PUT(at, "Failed password for invalid user "), guess);
	else if (kind < 90)
		at = line_put_name(lines, event->user, PUT(at, "Failed password for "));
	else
		at = put_span(PUT(at, "Invalid user "), guess);
	at = line_put_address(lines, event->user, PUT(at, " from "));
	at = put_number(PUT(at, " port "), 32768 + (uint32_t)(event->noise >> 16) % 28000);
	if (accepted)
		return PUT(at, " ssh2: ED25519 SHA256:Jk2xYq0rT8mZpWc4vN7aLs5dF1gH9bE3uRiQoKyXtBw");
	return event->abuser || kind < 90 ? PUT(at, " ssh2") : at;
}

const struct line_format line_format_sshd = {"sshd", STAMP_ISO, "", put_sshd};
