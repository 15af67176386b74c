/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all formats need of an event: its second as text, written anew only when
 * it changes; its user's address, name and browser, which follow from the
 * user's number and are kept nowhere.
 */
#include "deploy/weir/generate/internal.h"

#include "common/base/alloc.h"

#include <stdlib.h>
#include <time.h>

enum {
	STAMP_MAX_BYTES = 32,
	CUT_LEAST_BYTES = 10, /* "time=2025" would be a Unix time */
	CUT_MOST_BYTES = 20,  /* no format takes what is left for a record */
	DAY_S = 86400,
};

struct generate_lines {
	const struct line_format *format;
	const struct generate_site *site;
	uint64_t seed;
	uint64_t ipv6;
	int64_t day;    /* that the date in `stamp` is of */
	int64_t second; /* that `stamp` is of */
	char stamp[STAMP_MAX_BYTES];
	uint32_t stamp_bytes;
	uint32_t month_at; /* in the stamp */
	char *stamped;     /* where the line being written has it */
	uint8_t octets[128];
};

static const struct line_format *const formats[] = {
	&line_format_combined,  &line_format_common,      &line_format_json,    &line_format_logfmt,
	&line_format_delimited, &line_format_nginx_error, &line_format_haproxy, &line_format_sshd,
};
const char *const generate_format_names[] = {"combined",    "common",  "json", "logfmt", "delimited",
                                             "nginx_error", "haproxy", "sshd", NULL};

/* First octets of addresses that belong to somebody, not to a private or
 * special network. */
static void fill_octets(uint8_t octets[128])
{
	uint32_t count = 0;
	for (uint32_t octet = 20; count < 128; octet++)
		if (octet != 100 && octet != 127)
			octets[count++] = (uint8_t)octet;
}

struct generate_lines *generate_lines_new(int format, const struct generate_site *site, uint64_t seed, uint64_t ipv6)
{
	struct generate_lines *lines = weir_alloc(1, sizeof *lines);
	lines->format = formats[format];
	lines->site = site;
	lines->seed = generate_mix(seed + 1);
	lines->ipv6 = ipv6;
	lines->day = lines->second = -1;
	fill_octets(lines->octets);
	return lines;
}

void generate_lines_free(struct generate_lines *lines)
{
	free(lines);
}

const char *generate_lines_header(const struct generate_lines *lines)
{
	return lines->format->header;
}

static void stamp_date(struct generate_lines *lines, int64_t day)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t seconds = (time_t)(day * DAY_S);
	struct tm date = {0};
	gmtime_r(&seconds, &date);
	uint32_t year = (uint32_t)date.tm_year + 1900, month = (uint32_t)date.tm_mon;
	char *at = lines->stamp;
	if (lines->format->stamp == STAMP_COMMON) {
		at = put_two(at, (uint32_t)date.tm_mday);
		*at++ = '/';
		at = put_bytes(at, months + 3 * (size_t)month, 3);
		*at++ = '/';
		at = put_two(put_two(at, year / 100), year % 100);
		*at++ = ':';
		lines->month_at = 3;
	} else {
		bool iso = lines->format->stamp == STAMP_ISO;
		at = put_two(put_two(at, year / 100), year % 100);
		*at++ = iso ? '-' : '/';
		at = put_two(at, month + 1);
		*at++ = iso ? '-' : '/';
		at = put_two(at, (uint32_t)date.tm_mday);
		*at++ = iso ? 'T' : ' ';
		lines->month_at = 5;
	}
	lines->stamp_bytes = (uint32_t)(at - lines->stamp) + 8;
	lines->day = day;
}

char *line_put_stamp(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	int64_t second = event->time_ms / 1000;
	if (second != lines->second) {
		if (second / DAY_S != lines->day)
			stamp_date(lines, second / DAY_S);
		uint32_t of_day = (uint32_t)(second % DAY_S);
		char *time = put_two(lines->stamp + lines->stamp_bytes - 8, of_day / 3600);
		*time++ = ':';
		time = put_two(time, of_day / 60 % 60);
		*time++ = ':';
		put_two(time, of_day % 60);
		lines->second = second;
	}
	lines->stamped = at;
	return put_bytes(at, lines->stamp, lines->stamp_bytes);
}

uint64_t line_visitor(const struct generate_lines *lines, uint32_t user)
{
	return generate_mix(lines->seed ^ generate_mix(user + UINT64_C(1)));
}

/* One of 2^31 for each number below that: multiplying by an odd number and
 * folding lose nothing. */
static uint32_t scatter(uint64_t seed, uint32_t number)
{
	const uint32_t mask = INT32_MAX;
	number = (number ^ (uint32_t)seed) & mask;
	number = (number * UINT32_C(0x9e3779b1)) & mask;
	number ^= number >> 16;
	number = (number * UINT32_C(0x85ebca77)) & mask;
	return number ^ number >> 15;
}

char *line_put_address(const struct generate_lines *lines, uint32_t user, char *at)
{
	uint32_t place = scatter(lines->seed, user);
	if (lines->ipv6 > 0 && (uint32_t)generate_mix(lines->seed + user) < lines->ipv6) {
		/* Groups of four digits without a leading zero: the canonical form needs no
     * thought. */
		at = put_hex(PUT(at, "2001:db8:"), 0x1000 + (place >> 16));
		*at++ = ':';
		at = put_hex(at, 0x1000 + (place >> 1 & 0x7fff));
		at = PUT(at, "::");
		return put_number(at, 1 + (place & 1));
	}
	at = put_number(at, lines->octets[place >> 24]);
	*at++ = '.';
	at = put_number(at, place >> 16 & 255);
	*at++ = '.';
	at = put_number(at, place >> 8 & 255);
	*at++ = '.';
	return put_number(at, place & 255);
}

char *line_put_name(const struct generate_lines *lines, uint32_t user, char *at)
{
	at = put_span(at, generate_site_name((uint32_t)line_visitor(lines, user)));
	return put_number(at, user);
}

struct weir_span line_agent(const struct generate_lines *lines, const struct generate_event *event)
{
	uint64_t visitor = line_visitor(lines, event->user);
	return event->abuser ? generate_site_robot(visitor) : generate_site_agent(lines->site, visitor);
}

char *line_put_referer(const struct generate_lines *lines, const struct generate_event *event, char *at)
{
	uint32_t bits = (uint32_t)(event->noise >> 20), from = bits % 100;
	uint32_t none = event->abuser ? 100 : event->page->asset ? 8 : 48;
	if (from < none)
		return at;
	if (!event->page->asset && from >= 85)
		return put_span(at, generate_site_link(bits));
	const struct generate_page *page =
		&lines->site->pages[generate_zipf_draw(&lines->site->page_draw, generate_mix(bits))];
	at = PUT(at, "https://" GENERATE_HOST);
	return page->asset ? PUT(at, "/") : put_bytes(at, page->target, page->path_length);
}

char *line_put_request(const struct generate_lines *lines, const struct generate_event *event, char *at)
{
	at = put_span(at, weir_span_of(generate_method_names[event->method]));
	*at++ = ' ';
	at = put_bytes(at, event->page->target, event->page->length);
	return line_visitor(lines, event->user) >> 60 < 5 ? PUT(at, " HTTP/2.0") : PUT(at, " HTTP/1.1");
}

/* A piece of a line that was torn, or what a program sends that speaks another
 * protocol. */
static char *put_fragment(const struct generate_event *event, char *at)
{
	static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\xb9\xf4\xe2\x7f\x9d\x80\x00 \xc3\x28";
	if (event->noise % 4 == 0)
		return put_bytes(at, hello, sizeof hello - 1);
	return put_span(at, generate_site_robot(event->noise));
}

char *generate_lines_put(struct generate_lines *lines, const struct generate_event *event, char *at)
{
	char *end = event->damage == GENERATE_FRAGMENT ? put_fragment(event, at) : lines->format->put(lines, event, at);
	if (event->damage == GENERATE_CUT_LINE)
		end = at + CUT_LEAST_BYTES + event->noise % (CUT_MOST_BYTES - CUT_LEAST_BYTES + 1);
	if (event->damage == GENERATE_BAD_TIME)
		put_two(lines->stamped + lines->month_at, 99);
	*end++ = '\n';
	return end;
}
