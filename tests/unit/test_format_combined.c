/* SPDX-License-Identifier: Apache-2.0 */
/* combined and common: fields, and the quick ways against the grammar on lines of every kind. */
#include "collector/format/combined_line.h"
#include "collector/format/combined_usual.h"
#include "collector/record/time_text.h"
#include "tests/unit/format_fixture.h"

#include <ctype.h>

#define LINE "192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET /a?b HTTP/1.1\" 200 1234 \"http://x/\" \"Agent (x)\""

enum { LINE_BYTES = 512 };

static const char every_field[] = "ip ident user method path status bytes referer agent xff host target other";

static void fields_of_a_line(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", every_field);
	assert_reason(&fixture, LINE " \"198.51.100.1\" rest", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1431857103000);
	assert_int_equal(fixture.record.cost, 1);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "ident", NULL);
	assert_field(&fixture, "user", NULL);
	assert_field(&fixture, "method", "GET");
	assert_field(&fixture, "path", "/a");
	assert_field(&fixture, "status", "200");
	assert_field(&fixture, "bytes", "1234");
	assert_field(&fixture, "referer", "http://x/");
	assert_field(&fixture, "agent", "Agent (x)");
	assert_field(&fixture, "xff", "198.51.100.1");
	assert_field(&fixture, "host", NULL);
	assert_field(&fixture, "other", NULL);
	fixture_deinit(&fixture);
}

static void a_dash_is_nothing_and_so_is_an_empty_value(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"common\"", every_field);
	assert_reason(&fixture, "- -  [17/May/2015:10:05:03 +0000] \"-\" 408 - \"-\" \"\" \"-\"", FORMAT_OK);
	static const char *const absent[] = {"ip", "ident", "user", "method", "path", "bytes", "referer", "agent", "xff"};
	for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
		assert_field(&fixture, absent[i], NULL);
	assert_field(&fixture, "status", "408");
	assert_reason(&fixture, "h - - [17/May/2015:10:05:03 +0000] \"- - HTTP/1.1\" 200 5", FORMAT_OK);
	assert_field(&fixture, "method", NULL);
	assert_field(&fixture, "path", NULL);
	fixture_deinit(&fixture);
}

static void each_kind_has_its_reason(void **state)
{
	(void)state;
	struct fixture combined, common;
	fixture_init(&combined, "{\"type\": \"combined\", \"cost\": \"bytes\"}", "ip");
	fixture_init(&common, "{\"type\": \"common\"}", "ip");
	assert_reason(&combined, "", FORMAT_SKIP);
	assert_malformed(&combined, " ", "not combined");
	assert_malformed(&common, " \"curl/7.54.0\"", "not common");
	assert_reason(&common, "h - - [-] \"GET / HTTP/1.1\" 200 5", FORMAT_NO_TIME);
	assert_reason(&common, "h - - [] \"GET / HTTP/1.1\" 200 5", FORMAT_NO_TIME);
	assert_reason(&common, "h - - [17/Foo/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5", FORMAT_BAD_TIME);
	assert_reason(&common, "h - - [31/Dec/1969:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5", FORMAT_TIME_RANGE);
	assert_reason(&common, "h - - [2015-05-17T10:05:03Z] \"GET / HTTP/1.1\" 200 5", FORMAT_OK);
	assert_reason(&combined, LINE, FORMAT_OK);
	assert_int_equal(combined.record.cost, 1234);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 -", FORMAT_OK);
	assert_int_equal(combined.record.cost, 1);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1099511627776", FORMAT_OK);
	assert_int_equal(combined.record.cost, WEIR_COST_MAX);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1099511627777",
	              FORMAT_BAD_COST);
	assert_reason(&combined, "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 18446744073709551617",
	              FORMAT_BAD_COST);
	fixture_deinit(&combined);
	fixture_deinit(&common);
}

#define AT "[17/May/2015:10:05:03 +0000]"

/* The client and the virtual host of a line that begins so. */
static void assert_head(struct fixture *fixture, const char *head, const char *ip, const char *host)
{
	char line[256];
	snprintf(line, sizeof line, "%s " AT " \"GET / HTTP/1.1\" 200 5", head);
	assert_reason(fixture, line, FORMAT_OK);
	assert_field(fixture, "ip", ip);
	assert_field(fixture, "host", host);
}

static void a_virtual_host_stands_before_the_client(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", every_field);
	assert_head(&fixture, "www.example.com:443 203.0.113.7 - -", "203.0.113.7", "www.example.com");
	assert_head(&fixture, "www.example.com 203.0.113.7 - -", "203.0.113.7", "www.example.com");
	assert_head(&fixture, "www.example.com 2001:DB8::7 - bob", "2001:db8::7", "www.example.com");
	assert_head(&fixture, "_ 203.0.113.7:5000 - -", "203.0.113.7", "_");
	assert_head(&fixture, "- 203.0.113.7 - -", "203.0.113.7", NULL);
	/* A client chooses the name of the host that it asks. */
	assert_head(&fixture, "198.51.100.1 203.0.113.7 - -", "203.0.113.7", "198.51.100.1");
	assert_head(&fixture, "a<b>\\x22 203.0.113.7 - -", "203.0.113.7", "a<b>\"");
	assert_head(&fixture, "[2001:db8::1]:443 203.0.113.7 - -", "203.0.113.7", "[2001:db8::1]");
	assert_head(&fixture, "www.example.com:80 client.example.net - -", "client.example.net", "www.example.com");
	assert_head(&fixture, "203.0.113.7 - -", "203.0.113.7", NULL);
	assert_head(&fixture, "203.0.113.7 bob -", "203.0.113.7", NULL);
	/* An ident is what a client's machine says. */
	assert_head(&fixture, "203.0.113.7 198.51.100.1 bob", "203.0.113.7", NULL);
	assert_head(&fixture, "203.0.113.7 198.51.100.1 -", "203.0.113.7", NULL);
	assert_head(&fixture, "203.0.113.7 198.51.100.1 a b", "203.0.113.7", NULL);
	assert_reason(&fixture, "203.0.113.7 198.51.100.1 - " AT " \"GET /a " AT " \" 400 0 \"-\" \"-\"", FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.7");
	/* A user is what he calls himself. */
	assert_head(&fixture, "203.0.113.7 - a] \"x", "203.0.113.7", NULL);
	assert_head(&fixture, "203.0.113.7 - x [z] \"GET /b", "203.0.113.7", NULL);
	assert_head(&fixture, "client.example.net - John Q. Public", "client.example.net", NULL);
	assert_int_equal(fixture.record.ip, WEIR_RECORD_IP_WORD);
	static const char *const users[] = {"[x",
	                                    "[x]",
	                                    "[",
	                                    "198.51.100.1",
	                                    "198.51.100.1 -",
	                                    "::1 -",
	                                    "[::1]:80 - a",
	                                    "198.51.100.1 - x",
	                                    "a 198.51.100.1 - x",
	                                    "- -",
	                                    "www.example.com:80 198.51.100.1 - -",
	                                    "[17/May/2015:10:05:04 +0000] \\\"GET /b HTTP/1.1\\\" 200 5"};
	static const char *const before[] = {"", "www.example.com ", "www.example.com:443 ", "198.51.100.9 "};
	for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
		for (size_t k = 0; k < sizeof before / sizeof before[0]; k++) {
			char head[160];
			snprintf(head, sizeof head, "%s203.0.113.7 - %s", before[k], users[i]);
			assert_head(&fixture, head, "203.0.113.7", k == 0 ? NULL : k == 3 ? "198.51.100.9" : "www.example.com");
			assert_field(&fixture, "user",
			             users[i][0] == '[' && users[i][1] == '1'
			                 ? "[17/May/2015:10:05:04 +0000] \"GET /b HTTP/1.1\" 200 5"
			                 : users[i]);
		}
	fixture_deinit(&fixture);
}

static void other_heads_are_malformed(void **state)
{
	(void)state;
	static const char *const heads[] = {
		"May 17 10:05:03 web nginx: 203.0.113.7 - -",
		"<190>May 17 10:05:03 web nginx: 203.0.113.7 - -",
		"2015-05-17T10:05:03+00:00 web nginx: 203.0.113.7 - -",
		"2015-05-17T10:05:03.123456789Z stdout F 203.0.113.7 - -",
		"\"203.0.113.7 - -",
		"\"203.0.113.7\" - -",
		"{\"log\":\"203.0.113.7 - -",
		"web-1 | 203.0.113.7 - -",
		"[pod/web/nginx] 203.0.113.7, - -",
		/* hosts that a stranger asked for */
		"x 198.51.100.1 203.0.113.7 - -",
		"x:80 198.51.100.1 203.0.113.7 - -",
		/* lists of clients, which client_ip can read where they stand in a field of their own */
		"203.0.113.7, 198.51.100.1 - -",
		"203.0.113.7, 198.51.100.1, 198.51.100.2 - -",
		"203.0.113.7,198.51.100.1 - -",
	};
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", every_field);
	for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
		char line[256];
		snprintf(line, sizeof line, "%s " AT " \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8\"", heads[i]);
		assert_malformed(&fixture, line, "not combined");
	}
	fixture_deinit(&fixture);
}

/* What is behind the head: the target and the status, NULL where they are absent. */
static void assert_rest(struct fixture *fixture, const char *rest, const char *target, const char *status)
{
	char line[256];
	snprintf(line, sizeof line, "203.0.113.7 - - " AT "%s", rest);
	assert_reason(fixture, line, FORMAT_OK);
	assert_field(fixture, "ip", "203.0.113.7");
	assert_field(fixture, "target", target);
	assert_field(fixture, "status", status);
}

static void what_follows_the_time_is_taken_as_far_as_it_goes(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", every_field);
	assert_rest(&fixture, " \"GET /a HTTP/1.1\" - - \"-\" \"curl/8\" 7 \"-\"", "/a", NULL);
	assert_field(&fixture, "agent", "curl/8");
	assert_rest(&fixture, " \"GET /a HTTP/1.1\" - 0", "/a", NULL);
	assert_rest(&fixture, " \"GET /a HTTP/1.1\" 499 -", "/a", "499");
	assert_rest(&fixture, " \"GET /a\"b HTTP/1.1\" 200 5 \"-\" \"curl/8\"", "/a\"b", "200");
	assert_rest(&fixture, " \"GET /a\" b HTTP/1.1\" 200 5 \"-\" \"curl/8\"", "/a\" b", "200");
	assert_rest(&fixture, " \"GET /a\\\" 200 5 \"-\" \"curl/8\"", "/a\\", "200");
	assert_field(&fixture, "agent", "curl/8");
	assert_rest(&fixture, "", NULL, NULL);
	assert_rest(&fixture, " ", NULL, NULL);
	assert_rest(&fixture, " \"", NULL, NULL);
	assert_rest(&fixture, " \"POST", NULL, NULL);
	assert_rest(&fixture, " \"POST /login", "/login", NULL);
	assert_rest(&fixture, " \"POST /login?AAAA", "/login?AAAA", NULL);
	assert_rest(&fixture, " \"POST /login HTTP/1.1\"", "/login", NULL);
	assert_rest(&fixture, " \"POST /login HTTP/1.1\" 40", "/login", NULL);
	assert_rest(&fixture, " \"POST /login HTTP/1.1\" 401", "/login", "401");
	assert_rest(&fixture, " \"POST /login HTTP/1.1\" 401 ", "/login", "401");
	assert_rest(&fixture, " \"POST /login HTTP/1.1\" 401 5 \"http://", "/login", "401");
	assert_malformed(&fixture, "203.0.113.7 - - [17/May/2015:10:05:03", "not combined");
	assert_malformed(&fixture, "203.0.113.7 - -", "not combined");
	assert_malformed(&fixture, "203.0.113.7", "not combined");
	fixture_deinit(&fixture);
}

static void a_request_line_as_nginx_serves_it(void **state)
{
	(void)state;
	static const char *const requests[] = {
		"POST /login HTTP/1.1",
		"POST   /login   HTTP/1.1",
		"POST /login HTTP/1.1  ",
		"POST  /login HTTP/1.1 ",
		"POST  /login",
		"POST /login?a=b HTTP/1.1",
		"POST //login HTTP/1.1",
		"POST /%6Cogin HTTP/1.1",
		"POST /x/../login HTTP/2.0",
		"POST http://h/login HTTP/1.1",
		"POST HTTPS://h:1//login? HTTP/1.1",
		"POST /./login#x HTTP/1.1",
	};
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", "method path");
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		char line[256];
		snprintf(line, sizeof line, "203.0.113.7 - - " AT " \"%s\" 200 5", requests[i]);
		assert_reason(&fixture, line, FORMAT_OK);
		assert_field(&fixture, "method", "POST");
		assert_field(&fixture, "path", "/login");
	}
	fixture_deinit(&fixture);
}

static void a_line_without_its_end_names_no_client_behind_a_proxy(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"combined\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}", "ip");
	assert_reason(&fixture, "10.0.0.1 - - " AT " \"GET / HTTP/1.1\" 200 5 \"-\" \"AAAA", FORMAT_NO_CLIENT);
	assert_reason(&fixture, "10.0.0.1 - - " AT " \"GET /AAAA", FORMAT_NO_CLIENT);
	assert_reason(&fixture, "10.0.0.1 - - " AT " \"GET / HTTP/1.1\" 200 5 \"-\" \"A\" \"203.0.113.7", FORMAT_NO_CLIENT);
	assert_reason(&fixture, "203.0.113.8 - - " AT " \"GET /AAAA", FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.8");
	/* The quotes of RFC 7239, as nginx and Apache escape them. */
	assert_reason(&fixture,
	              "10.0.0.1 - - " AT " \"GET / HTTP/1.1\" 200 5 \"-\" \"A\" \"for=198.51.100.1, "
	              "for=\\x22[2001:DB8::7]:443\\x22;host=\\x22a, for=1.1.1.1\\x22\"",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "2001:db8::7");
	assert_reason(&fixture, "10.0.0.1 - - " AT " \"GET / HTTP/1.1\" 200 5 \"-\" \"A\" \"for=\\\"[2001:db8::8]\\\"\"",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "2001:db8::8");
	fixture_deinit(&fixture);
}

static void options(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"combined\", \"time_zone\": \"Europe/Berlin\", "
	             "\"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
	             "ip");
	assert_reason(&fixture,
	              "10.0.0.1 - - [17/May/2015:12:05:03] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" "
	              "\"203.0.113.9, 198.51.100.7, 10.1.2.3\"",
	              FORMAT_OK);
	assert_field(&fixture, "ip", "198.51.100.7");
	assert_int_equal(fixture.record.time_ms, 1431857103000);
	fixture_deinit(&fixture);
	assert_refused("{\"type\": \"combined\", \"fields\": {}}", "unknown key \"fields\"");
	assert_refused("{\"type\": \"combined\", \"time_zome\": \"UTC\"}", "did you mean \"time_zone\"");
}

static void a_time_that_the_year_is_told_for_is_read_anew(void **state)
{
	(void)state;
	static const char line[] = "203.0.113.7 - - [May 17 10:05:03.0000000000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8\"";
	struct fixture fixture;
	fixture_init(&fixture, "\"combined\"", "ip");
	format_set_reference(fixture.format, 1431900000000);
	assert_reason(&fixture, line, FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1431857103000);
	format_set_reference(fixture.format, 1463500000000);
	assert_reason(&fixture, line, FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1463479503000);
	fixture_deinit(&fixture);
}

/* What a value stands for that a server has escaped, byte by byte. */
static struct weir_span plain(struct weir_span value, char room[LINE_BYTES])
{
	static const char letters[] = "bfnrtv\"\\", bytes[] = "\b\f\n\r\t\v\"\\";
	struct weir_span left = {.at = room, .length = 0};
	for (uint32_t i = 0; i < value.length; i++) {
		const char *at = value.at + i;
		char hex[3] = {0}, *hex_end, byte = *at;
		uint32_t behind = value.length - i - 1;
		const char *letter = behind > 0 && at[1] != '\0' ? strchr(letters, at[1]) : NULL;
		if (byte == '\\' && letter != NULL) {
			byte = bytes[letter - letters];
			i++;
		} else if (byte == '\\' && behind >= 3 && at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
		           isxdigit((unsigned char)at[3])) {
			memcpy(hex, at + 2, 2);
			byte = (char)strtoul(hex, &hex_end, 16);
			i += 3;
		}
		room[left.length++] = byte;
	}
	return value.at != NULL ? left : value;
}

/* What the whole grammar makes of a line. */
static enum format_reason parse_by_grammar(struct fixture *fixture, struct time_reader *time,
                                           struct weir_record *record)
{
	static const enum combined_part parts[] = {COMBINED_IP,     COMBINED_IDENT,  COMBINED_USER,  COMBINED_METHOD,
	                                           COMBINED_TARGET, COMBINED_STATUS, COMBINED_BYTES, COMBINED_REFERER,
	                                           COMBINED_AGENT,  COMBINED_XFF,    COMBINED_HOST,  COMBINED_TARGET,
	                                           COMBINED_PARTS}; /* the last: of no such line */
	static char rooms[COMBINED_PARTS + 1][LINE_BYTES];
	char names[sizeof every_field], *rest = names;
	struct combined_line line;
	memcpy(names, every_field, sizeof names);
	if (!combined_line_split((struct weir_span){.at = fixture->line, .length = record->fields[0].length}, &line))
		return fixture->format->malformed;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		int field = weir_field_table_find(&fixture->fields, weir_span_of(strtok_r(rest, " ", &rest)));
		struct weir_span part = parts[i] < COMBINED_PARTS ? line.parts[parts[i]] : (struct weir_span){0};
		bool absent = part.length == 0 || (part.length == 1 && *part.at == '-');
		record->fields[field] = absent ? (struct weir_span){0} : plain(part, rooms[i]);
	}
	struct weir_span text = line.parts[COMBINED_TIME];
	if (text.length == 1 && *text.at == '-')
		text.length = 0;
	return time_read(time, text, &record->time_ms);
}

/* The ip, the path, the host and the method are not as they stand in the line, but in their one form. */
static void assert_settled(const struct weir_record *record, const struct weir_record *expected)
{
	static struct weir_served_path_room room;
	char text[WEIR_ADDRESS_TEXT_BYTES];
	struct weir_address address;
	struct weir_span ip = expected->fields[WEIR_FIELD_IP], path = expected->fields[WEIR_FIELD_PATH];
	assert_int_equal(record->ip, ip.at == NULL                     ? WEIR_RECORD_IP_UNTOLD
	                             : weir_address_read(ip, &address) ? WEIR_RECORD_IP_PLAIN
	                                                               : WEIR_RECORD_IP_WORD);
	if (record->ip == WEIR_RECORD_IP_PLAIN)
		ip = (struct weir_span){.at = text, .length = weir_address_format(&address, text)};
	assert_true(weir_span_equal(record->fields[WEIR_FIELD_IP], ip));
	if (path.at != NULL)
		path = weir_served_path(path, &room);
	if (!weir_span_equal(record->fields[WEIR_FIELD_PATH], path))
		fail_msg("\"%.*s\" instead of \"%.*s\"", (int)record->fields[WEIR_FIELD_PATH].length,
		         record->fields[WEIR_FIELD_PATH].at, (int)path.length, path.at);
	weir_served_path_room_deinit(&room);
	char host_text[WEIR_SERVED_HOST_BYTES];
	struct weir_span host = expected->fields[WEIR_FIELD_HOST];
	if (host.at != NULL)
		host = weir_served_host(host, host_text);
	assert_true(weir_span_equal(record->fields[WEIR_FIELD_HOST], host));
	struct weir_span method = expected->fields[WEIR_FIELD_METHOD];
	if (method.at != NULL)
		method = weir_served_method(method);
	assert_true(weir_span_equal(record->fields[WEIR_FIELD_METHOD], method));
}

typedef enum format_reason (*parse_function)(struct format *format, const char *line, uint32_t length,
                                             struct weir_record *record);

/* Changes usual lines at random, and holds what `parse` makes of each against the grammar; NULL: what was chosen. */
static void assert_is_the_grammar(parse_function parse)
{
	static const char *const lines[] = {
		LINE,
		LINE " \"198.51.100.1\" rest",
		"2001:db8:85a3:8d3:1319:8a2e:370:7348 - bob [17/May/2015:10:05:03 +0000] \"POST /login HTTP/2.0\" 302 - \"-\" "
		"\"-\"",
		"198.51.100.123 - - [17/May/2015:10:05:03 +0000] \"DELETE /a HTTP/1.1\" 304 0",
		"255.255.255.255 - bob [17/May/2015:10:05:04 +0000] \"GET /%61/.b HTTP/1.1\" 200 31",
		"h - - [17/May/2015:10:05:03 +0000] \"HEAD / HTTP/1.0\" 200 5",
		" 192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.0\" 200 5 \"-\" \"Agent\"",
		"a.very.long.host.name.example.com - - [18/May/2015:10:05:03 +0200] \"GET "
		"/a/path/that/is/longer/than/one/block/of/sixty/four/bytes/so/that/the/search/goes/on?with=a&query=too "
		"HTTP/1.1\" 200 123456789012345678 \"http://example.com/\" \"Mozilla/5.0 (X11; Linux x86_64)\"",
		"1.2.3.4 - frank lee [17/May/2015:10:05:03 +0000] \"OPTIONS * HTTP/1.1\" 204 0 \"-\" \"a \\\" b\"",
		"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /\\\"x HTTP/1.1\" 200 5 \"-\" \"-\"",
		"1.2.3.4 -  [17/May/2015:10:05:60 +0000] \"GET ?q HTTP/1.1\" 200 5 \"-\" \"-\"",
		"::ffff:1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET //x/../y%2fz HTTP/1.1\" 200 5 \"-\" \"-\"",
		"1.2.3.255 - - [17/May/2015:10:05:03 +0000] \"POST   /login   HTTP/1.1  \" 200 5 \"-\" \"-\"",
		"shop.example.com:443 1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET http://h/a HTTP/1.1\" - - \"-\" \"-\"",
		"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"post /login HTTP/1.1\" 200 5 \"-\" \"-\"",
		"1.2.3.4 - a\\x22b [17/May/2015:10:05:03 +0000] \"GET /caf\\xC3\\xa9/\\x5Cx2F HTTP/1.1\" 200 5 \"\\\\\" \"\\tb\\xC3\"",
		"1.2.3.4 - - [17/May/2015:10:05:03 +0000] \"GET /a?\\x22%41\\n HTTP/1.1\" 200 5 \"-\" \"-\"",
		"h 203.0.113.255:80 - - [17/May/2015:10:05:03 +0000] \"GET /\"x\" HTTP/1.1\" 200 5 \"-\" \"-\"",
	};
	static const char alphabet[] = " \"\\[]-?:/+09GPptx.\t\0\x80";
	struct fixture fixture;
	struct time_zone *zone;
	struct time_reader time;
	struct weir_error error;
	fixture_init(&fixture, "\"combined\"", every_field);
	if (parse != NULL)
		fixture.format->parse = parse;
	assert_int_equal(time_zone_new("UTC", &zone, &error), WEIR_OK);
	time_reader_init(&time, zone);
	uint64_t random = 5;
	int taken = 0;
	for (int round = 0; round < 300000; round++) {
		const char *line = lines[fixture_random(&random) % (sizeof lines / sizeof lines[0])];
		char text[LINE_BYTES];
		size_t length = strlen(line);
		memcpy(text, line, length);
		length = fixture_mutate(&random, text, length, sizeof text, alphabet, sizeof alphabet - 1);
		if (length == 0)
			continue;
		enum format_reason reason = fixture_parse_bytes(&fixture, text, length);
		struct weir_record expected = {.fields[0].length = (uint32_t)length};
		enum format_reason expected_reason = parse_by_grammar(&fixture, &time, &expected);
		if (reason != expected_reason)
			fail_msg("%s instead of %s: %.*s", format_reason_text(reason), format_reason_text(expected_reason),
			         (int)length, text);
		if (reason != FORMAT_OK)
			continue;
		taken++;
		assert_int_equal(fixture.record.time_ms, expected.time_ms);
		assert_settled(&fixture.record, &expected);
		for (uint32_t i = 0; i < fixture.fields.count; i++) {
			if (i == WEIR_FIELD_IP || i == WEIR_FIELD_PATH || i == WEIR_FIELD_HOST || i == WEIR_FIELD_METHOD)
				continue;
			if ((fixture.record.fields[i].at == NULL) != (expected.fields[i].at == NULL) ||
			    !weir_span_equal(fixture.record.fields[i], expected.fields[i]))
				fail_msg("%s differs: %.*s", fixture.fields.names[i], (int)length, text);
		}
	}
	assert_true(taken > 100000);
	time_reader_deinit(&time);
	fixture_deinit(&fixture);
}

static void the_quick_way_is_the_grammar(void **state)
{
	(void)state;
	assert_is_the_grammar(NULL);
}

static void the_quick_way_of_any_machine_is_the_grammar(void **state)
{
	(void)state;
	assert_is_the_grammar(combined_parse_plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_a_line),
		cmocka_unit_test(a_dash_is_nothing_and_so_is_an_empty_value),
		cmocka_unit_test(each_kind_has_its_reason),
		cmocka_unit_test(a_virtual_host_stands_before_the_client),
		cmocka_unit_test(other_heads_are_malformed),
		cmocka_unit_test(what_follows_the_time_is_taken_as_far_as_it_goes),
		cmocka_unit_test(a_request_line_as_nginx_serves_it),
		cmocka_unit_test(a_line_without_its_end_names_no_client_behind_a_proxy),
		cmocka_unit_test(options),
		cmocka_unit_test(a_time_that_the_year_is_told_for_is_read_anew),
		cmocka_unit_test(the_quick_way_is_the_grammar),
		cmocka_unit_test(the_quick_way_of_any_machine_is_the_grammar),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
