/* SPDX-License-Identifier: Apache-2.0 */
/* What a server makes of a client's bytes in its log is undone: a file has one path, however a client asks for it. */
#include "format_fixture.h"

enum { TARGET_BYTES = 64, ESCAPED_BYTES = 4 * TARGET_BYTES, ROUNDS = 3000 };

/* Writes one byte as a server does. @return behind it */
typedef char *escape_byte(unsigned char byte, char *at);

static char *put_hex(unsigned char byte, const char *mark, const char *digits, char *at)
{
	at = stpcpy(at, mark);
	*at++ = digits[byte >> 4];
	*at++ = digits[byte & 15];
	return at;
}

static char *as_it_is(unsigned char byte, char *at)
{
	*at++ = (char)byte;
	return at;
}

/* ngx_http_log_escape() */
static char *as_nginx(unsigned char byte, char *at)
{
	bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
	return plain ? as_it_is(byte, at) : put_hex(byte, "\\x", "0123456789ABCDEF", at);
}

/* ap_escape_logitem() */
static char *as_apache(unsigned char byte, char *at)
{
	static const char bytes[] = "\b\n\r\t\v\"\\", letters[] = "bnrtv\"\\";
	const char *found = byte != '\0' ? strchr(bytes, byte) : NULL;
	if (found != NULL) {
		*at++ = '\\';
		*at++ = letters[found - bytes];
		return at;
	}
	return byte >= 0x20 && byte < 0x7f ? as_it_is(byte, at) : put_hex(byte, "\\x", "0123456789abcdef", at);
}

/* HAProxy's log, which leaves backslashes. */
static char *as_haproxy(unsigned char byte, char *at)
{
	bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '#';
	return plain ? as_it_is(byte, at) : put_hex(byte, "#", "0123456789ABCDEF", at);
}

/* As a client encodes it. */
static char *encoded(unsigned char byte, char *at)
{
	return byte == '/' ? as_it_is(byte, at) : put_hex(byte, "%", "0123456789abcdef", at);
}

#define AT "[17/May/2015:10:05:03 +0000]"
#define PATTERN "{\"type\":\"pattern\",\"pattern\":\"^(?<time>\\\\S+) (?<method>\\\\S+) (?<path>\\\\S+)\"}"
#define COLUMNS "{\"type\":\"delimited\",\"header\":false,\"columns\":[\"time\",\"method\",\"path\"]}"
#define INGRESS " HTTP/1.1\" 200 12 \"-\" \"-\" 88 0.002 [a] [] - - - - 6d"
#define HAPROXY "192.0.2.7:1 [17/May/2024:10:05:03.133] fe be/s1 0/0/0/5/5 200 512 - - ---- 0/0/0/0/0 0/0 \"GET "
#define TRUSTED "\"client_ip\":{\"header\":\"xff\",\"trusted\":[\"10.0.0.0/8\"]}"

/* A format, and a line before and behind its target. */
static const struct {
	const char *config, *before, *behind;
	escape_byte *escape;
} formats[] = {
	{"\"combined\"", "192.0.2.7 - - " AT " \"GET ", " HTTP/1.1\" 200 5 \"-\" \"-\"", as_nginx},
	{"\"combined\"", "192.0.2.7 - - " AT " \"GET ", " HTTP/1.1\" 200 5 \"-\" \"-\"", as_apache},
	{"\"combined\"", "a:80 192.0.2.7 - - " AT " \"GET ", " HTTP/1.1\" 200 5 \"-\" \"-\"", as_apache},
	{"\"combined\"", "2001:db8::7 - ann " AT " \"GET ", " HTTP/1.1\" 200 5 \"-\" \"-\"", as_nginx},
	{"{\"type\":\"combined\"," TRUSTED "}", "10.0.0.1 - - " AT " \"GET ",
     " HTTP/1.1\" 200 5 \"-\" \"-\" \"for=\\x22192.0.2.7\\x22\"", as_nginx},
	{"\"common\"", "192.0.2.7 - - " AT " \"GET ", " HTTP/1.1\" 200 5", as_nginx},
	{"\"common\"", "192.0.2.7 - - " AT " \"GET ", " HTTP/1.1\" 200 5", as_apache},
	{"\"ingress_nginx\"", "192.0.2.7 - - " AT " \"GET ", INGRESS, as_nginx},
	{PATTERN, "2024-05-17T10:05:03Z GET ", " ", as_nginx},
	{PATTERN, "2024-05-17T10:05:03Z GET ", " ", as_apache},
	{COLUMNS, "2024-05-17T10:05:03Z\tGET\t", "", as_nginx},
	{COLUMNS, "2024-05-17T10:05:03Z\tGET\t", "", as_apache},
	{"\"zeek\"", "#fields\tts\turi\n1715940303.1\t", "", as_nginx},
	{"\"logfmt\"", "time=2024-05-17T10:05:03Z path=", "", as_nginx},
	{"\"logfmt\"", "time=2024-05-17T10:05:03Z path=\"", "\"", as_nginx},
	{"\"logfmt\"", "time=2024-05-17T10:05:03Z path=\"", "\"", as_apache},
	{"\"json\"", "{\"time\":\"2024-05-17T10:05:03Z\",\"path\":\"", "\"}", as_nginx},
	{"\"json\"", "{\"time\":\"2024-05-17T10:05:03Z\",\"path\":\"", "\"}", as_apache},
	{"{\"type\":\"wrapped\",\"in\":\"cri\",\"message\":\"combined\"}",
     "2024-05-17T10:05:03Z stdout F 192.0.2.7 - - " AT " \"GET ", " HTTP/1.1\" 200 5 \"-\" \"-\"", as_apache},
	{"\"haproxy\"", HAPROXY, " HTTP/1.1\"", as_haproxy},
};

/* Parses a line with this target; lines of directives before it are read first. */
static void parse(struct fixture *fixture, size_t format, const char *target, size_t length, escape_byte *escape)
{
	char line[1024], *at = stpcpy(line, formats[format].before), *newline = strchr(line, '\n');
	if (newline != NULL) {
		*newline = '\0';
		assert_reason(fixture, line, FORMAT_SKIP);
		memmove(line, newline + 1, strlen(newline + 1) + 1);
		at = line + strlen(line);
	}
	for (size_t i = 0; i < length; i++)
		at = escape((unsigned char)target[i], at);
	at = stpcpy(at, formats[format].behind);
	enum format_reason reason = fixture_parse_bytes(fixture, line, (size_t)(at - line));
	if (reason != FORMAT_OK)
		fail_msg("%s: %.*s: %s", formats[format].config, (int)(at - line), line, format_reason_text(reason));
}

static struct weir_span copy_of(struct weir_span span, char *room)
{
	assert_non_null(span.at);
	memcpy(room, span.at, span.length);
	return (struct weir_span){.at = room, .length = span.length};
}

static void a_path_is_one_however_a_client_asks_for_it(void **state)
{
	(void)state;
	static const char usual[] = "/..\\x2Fa5Cn\"\xc3\xa9\xff\t\n\v\x01\x7f";
	uint64_t random = 7;
	for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
		struct fixture fixture;
		fixture_init(&fixture, formats[f].config, "path target ip");
		for (int round = 0; round < ROUNDS; round++) {
			char target[TARGET_BYTES] = "/", raw[ESCAPED_BYTES], way[ESCAPED_BYTES];
			size_t length = 1 + fixture_random(&random) % (sizeof target - 1);
			for (size_t i = 1; i < length; i++) {
				do
					target[i] = fixture_random(&random) % 2 == 0 ? usual[fixture_random(&random) % (sizeof usual - 1)]
					                                             : (char)fixture_random(&random);
				while (memchr("?#% ", target[i], 5) !=
				       NULL); /* these mean something else, or NUL and blanks are refused */
			}
			parse(&fixture, f, target, length, formats[f].escape);
			struct weir_span path = copy_of(fixture_field(&fixture, "path"), raw);
			struct weir_span written = fixture_field(&fixture, "target");
			if (!weir_span_equal(written, (struct weir_span){.at = target, .length = (uint32_t)length}))
				fail_msg("%s: the target \"%.*s\" is \"%.*s\"", formats[f].config, (int)length, target,
				         (int)written.length, written.at);
			parse(&fixture, f, target, length, encoded);
			struct weir_span other = copy_of(fixture_field(&fixture, "path"), way);
			if (!weir_span_equal(path, other))
				fail_msg("%s: \"%.*s\" and \"%.*s\"", formats[f].config, (int)path.length, path.at, (int)other.length,
				         other.at);
		}
		fixture_deinit(&fixture);
	}
}

/* A client's own "\x2F" is four bytes, and no slash. */
static void what_a_client_writes_as_an_escape_is_none(void **state)
{
	(void)state;
	static const char target[] = "/a\\x2F..\\x2Fb\\\\\\n\\\"", path[] = "/a\\x2F..\\x2Fb\\\\\\n\\\"";
	for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
		struct fixture fixture;
		fixture_init(&fixture, formats[f].config, "path target ip");
		parse(&fixture, f, target, strlen(target), formats[f].escape);
		assert_field(&fixture, "path", path);
		parse(&fixture, f, "/login", 6, formats[f].escape);
		assert_field(&fixture, "path", "/login");
		fixture_deinit(&fixture);
	}
}

static void all_that_a_client_writes_is_plain(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"192.0.2.7 - a\\x22b " AT " \"GET /a?\\xC3\\xA9 HTTP/1.1\" 200 5 \"http://\\xC3\\xA9\" \"x\\x5Cx22\" \"\\x22\"",
		"192.0.2.7 - a\\\"b " AT " \"GET /a?\\xc3\\xa9 HTTP/1.1\" 200 5 \"http://\\xc3\\xa9\" \"x\\\\x22\" \"\\\"\"",
	};
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", "ip user path target referer agent xff");
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		assert_reason(&fixture, lines[i], FORMAT_OK);
		assert_field(&fixture, "user", "a\"b");
		assert_field(&fixture, "path", "/a");
		assert_field(&fixture, "target", "/a?\xc3\xa9");
		assert_field(&fixture, "referer", "http://\xc3\xa9");
		assert_field(&fixture, "agent", "x\\x22");
		assert_field(&fixture, "xff", "\"");
	}
	fixture_deinit(&fixture);
	/* of which each alone */
	static const char *const names[] = {"user", "target", "referer", "agent", "xff"};
	static const char *const values[] = {"a\"b", "/a?\xc3\xa9", "http://\xc3\xa9", "x\\x22", "\""};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		fixture_init(&fixture, "\"combined\"", names[i]);
		assert_reason(&fixture, lines[i % 2], FORMAT_OK);
		assert_field(&fixture, names[i], values[i]);
		fixture_deinit(&fixture);
	}
	fixture_init(&fixture, "\"ingress_nginx\"", "user referer agent");
	assert_reason(&fixture,
	              "192.0.2.7 - a\\x22b " AT
	              " \"GET / HTTP/1.1\" 200 12 \"\\xC3\\xA9\" \"x\\x5Cx22\" 88 0.002 [a] [] - - - - 6d",
	              FORMAT_OK);
	assert_field(&fixture, "user", "a\"b");
	assert_field(&fixture, "referer", "\xc3\xa9");
	assert_field(&fixture, "agent", "x\\x22");
	fixture_deinit(&fixture);
}

/* A server that escapes nothing: what is no escape stays. */
static void what_is_no_escape_stays(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", "path");
	assert_reason(&fixture, "192.0.2.7 - - " AT " \"GET /a\\b\\x4\\xgg\\q\\ HTTP/1.1\" 200 5", FORMAT_OK);
	assert_field(&fixture, "path", "/a\b\\x4\\xgg\\q\\");
	fixture_deinit(&fixture);
	fixture_init(&fixture, "\"haproxy\"", "path");
	assert_reason(&fixture, HAPROXY "/a#2#gg#22 HTTP/1.1\"", FORMAT_OK);
	assert_field(&fixture, "path", "/a");
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_one_however_a_client_asks_for_it),
		cmocka_unit_test(what_a_client_writes_as_an_escape_is_none),
		cmocka_unit_test(all_that_a_client_writes_is_plain),
		cmocka_unit_test(what_is_no_escape_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
