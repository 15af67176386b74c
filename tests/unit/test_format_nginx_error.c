/* SPDX-License-Identifier: Apache-2.0 */
/* nginx_error: records in which strangers wrote line feeds, as nginx writes them to a file. */
#include "collector/follow/record_reader.h"
#include "tests/unit/format_fixture.h"

#define HEAD "2024/05/17 10:05:03 [error] 31#31: *45 "
#define TRUSTED \
	HEAD "access forbidden by rule, client: 192.0.2.8, server: a, request: \"GET /b HTTP/1.1\", host: \"a\"\n"
#define FORGED \
	HEAD "access forbidden by rule, client: 198.51.100.77, server: a, request: \"GET / HTTP/1.1\", host: \"a\"\n"
#define REST \
	"\" failed (2: No such file or directory), client: 192.0.2.7, server: a, request: \"GET /x%0Ay HTTP/1.1\", host: \"a\"\n"
#define FORGED_REST                                                                                                   \
	"\" failed (2: No such file or directory), client: 198.51.100.77, server: a, request: \"GET / HTTP/1.1\", host: " \
	"\"a\"\n"
#define MISSING(client)                                                             \
	HEAD "open() \"/srv/a\" failed (2: No such file or directory), client: " client \
		 ", server: a, request: \"GET /a HTTP/1.1\", host: \"a\"\n"

enum { RECORD_BYTES = 2048, TEXT_BYTES = 1 << 16 };

/* Reads chunks that end at the places given; writes the addresses of the records, separated by blanks. */
static void read_in(const char *config, const char *text, size_t length, const size_t *ends, bool more, char *ips,
                    size_t room)
{
	struct fixture fixture;
	struct source_stream stream = {.name = (char *)(uintptr_t) "stream"};
	struct record_reader reader;
	size_t used = 0;
	fixture_init(&fixture, config, "ip");
	record_reader_init(&reader, &stream, fixture.format, NULL);
	ips[0] = '\0';
	for (size_t from = 0, to; from < length; from = to) {
		to = ends != NULL && *ends < length ? *ends++ : length;
		char *copy = weir_copy(text + from, to - from); /* a look beyond the chunk is found by the sanitizer */
		struct source_chunk chunk = {
			.stream = &stream, .data = copy, .length = to - from, .position = from, .more = more && to < length};
		record_reader_feed(&reader, &chunk);
		while (record_reader_next(&reader) == WEIR_OK) {
			struct weir_span ip =
				fixture_field(&(struct fixture){.fields = fixture.fields, .record = reader.record}, "ip");
			if (ip.at != NULL)
				used += (size_t)snprintf(ips + used, room - used, "%.*s ", (int)ip.length, ip.at);
			assert_true(used < room);
			record_reader_take(&reader, 0);
		}
		free(copy);
	}
	reader.format = NULL;
	record_reader_deinit(&reader);
	fixture_deinit(&fixture);
}

static void expect(const char *config, const char *text, const char *expected)
{
	char ips[1024];
	read_in(config, text, strlen(text), NULL, false, ips, sizeof ips);
	if (strcmp(ips, expected) != 0)
		fail_msg("%s\ngives \"%s\" and should give \"%s\"", text, ips, expected);
}

static const char config[] = "\"nginx_error\"";

/* 2,048 bytes of lines of nginx's that give nothing. */
static void pad(char *text)
{
	for (int i = 0; i < 32; i++)
		strcat(text, "2024/05/17 10:05:03 [notice] 1#1: start worker process 123456\n");
}

static void a_line_within_a_record_is_not_believed(void **state)
{
	(void)state;
	static const char *const broken[] = {
		HEAD "open() \"/srv/x\n" FORGED REST,
		HEAD "open() \"/srv/x\"\n" FORGED REST,
		HEAD "open() \"/srv/x\n" FORGED_REST FORGED REST,
		HEAD "open() \"/srv/x\n" MISSING("198.51.100.77") REST,
		HEAD "open() \"/srv/x" FORGED_REST FORGED REST,
		MISSING("198.51.100.77") REST,
		MISSING("198.51.100.77") FORGED MISSING("198.51.100.77") REST,
		MISSING("198.51.100.77") HEAD "open() \"x" REST,
		HEAD "user \"x\n\n\n" FORGED
			 "y\" was not found in \"/f\", client: 192.0.2.7, server: a, request: \"GET / HTTP/1.1\"\n",
		HEAD "client sent invalid header line: \"x\", client: 198.51.100.77, server: a\n" FORGED HEAD
			 "client sent x \"y\", client: 192.0.2.7, server: a\n",
		HEAD "FastCGI sent in stderr: \"x\n" FORGED
			 "\" while reading, client: 192.0.2.7, server: a, request: \"POST / HTTP/1.1\"\n",
		"2024/05/17 10:05:03 [emerg] 31#31: unknown \"x\n" FORGED "y\"\n",
		NULL};
	for (const char *const *record = broken; *record != NULL; record++) {
		char text[8192];
		snprintf(text, sizeof text, TRUSTED "%s", *record);
		expect(config, text, "192.0.2.8 ");
		/* Behind a record's bytes lines are believed again. */
		pad(text);
		pad(text);
		strcat(text, TRUSTED MISSING("192.0.2.9"));
		expect(config, text, "192.0.2.8 192.0.2.8 192.0.2.9 ");
	}
}

static void a_whole_line_opens_no_record(void **state)
{
	(void)state;
	static const char *const whole[] = {
		HEAD "user \"a\"b\": password mismatch, client: 192.0.2.7, server: a, request: \"GET / HTTP/1.1\"\n",
		HEAD
		"user \"a\"b\" was not found in \"/f\", client: 192.0.2.7, server: a, request: \"GET / HTTP/1.1\", host: \"\n",
		HEAD
		"FastCGI sent in stderr: \"Primary script unknown\" while reading response header from upstream, client: "
		"192.0.2.7, server: a, request: \"GET /x.php HTTP/1.1\", upstream: \"fastcgi://127.0.0.1:9000\", host: \"a\"\n",
		MISSING("192.0.2.7"),
		HEAD "open() \"/srv/a\"b\" failed (2: x), client: 192.0.2.7, server: a, request: \"GET /a\"b HTTP/1.1\"\n",
		NULL};
	for (const char *const *line = whole; *line != NULL; line++) {
		char text[4096];
		snprintf(text, sizeof text, "%s" TRUSTED MISSING("192.0.2.9"), *line);
		expect(config, text, "192.0.2.7 192.0.2.8 192.0.2.9 ");
	}
	expect(config, HEAD "client 192.0.2.7 closed keepalive connection\n" TRUSTED, "192.0.2.8 ");
	expect(config, "2024/05/17 10:05:03 [notice] 1#1: using the \"epoll\" event method\n" TRUSTED, "192.0.2.8 ");
	/* The mail proxy's client stands before a login, but what follows it may be the login's. */
	expect(config, HEAD "client logged in, client: 192.0.2.7, server: a:25, login: \"x\"\n" FORGED "\"\n",
	       "192.0.2.7 ");
}

/* Where lines come one by one, nothing behind them can be seen; a record in one message is whole. */
static void lines_in_messages(void **state)
{
	(void)state;
	static const char docker[] = "{\"type\": \"wrapped\", \"in\": \"docker\", \"message\": \"nginx_error\"}";
#define OUTER(line) "{\"log\":\"" line "\\n\",\"stream\":\"stderr\",\"time\":\"2024-05-17T10:05:03Z\"}\n"
#define INNER(text, client) \
	"2024/05/17 10:05:03 [error] 31#31: *45 " text ", client: " client ", server: a, request: \\\"GET / HTTP/1.1\\\""
	expect(docker, OUTER(INNER("access forbidden by rule", "192.0.2.8")), "192.0.2.8 ");
	expect(docker,
	       OUTER(INNER("open() \\\"/x\\\" failed (2: x)", "198.51.100.77"))
	           OUTER(INNER("access forbidden by rule", "198.51.100.77")),
	       "");
	/* Of two streams each has its own records. */
	expect(
		docker,
		OUTER(INNER("open() \\\"/x", "198.51.100.77")) "{\"log\":\"" INNER(
			"access forbidden by rule",
			"192.0.2.8") "\\n\",\"stream\":\"stdout\",\"time\":\"2024-05-17T10:05:03Z\"}\n" OUTER(INNER("access forbidden by rule",
	                                                                                                    "198.51.100.77")),
		"192.0.2.8 ");
	expect(docker, OUTER(INNER("open() \\\"/x\\n\\\" failed (2: x)", "192.0.2.7")), "192.0.2.7 ");
	expect(docker,
	       OUTER(INNER("open() \\\"/x\\n\\\" failed (2: x)", "198.51.100.77") "\\n" INNER("\\\" failed", "192.0.2.7")),
	       "");
	expect("{\"type\": \"syslog\", \"message\": \"nginx_error\"}",
	       "<187>2024-05-17T10:05:03Z h nginx: " MISSING("192.0.2.7") "<187>2024-05-17T10:05:03Z h nginx: " HEAD
	                                                                  "open() \"/x\n"
	                                                                  "<187>2024-05-17T10:05:03Z h nginx: " TRUSTED,
	       "192.0.2.7 192.0.2.8 ");
}

/* ---- whatever a stranger writes ---- */

static uint64_t random_state = 88172645463325252u;

static size_t below(size_t bound)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)(random_state % bound);
}

static const char *const pieces[] = {
	"\n",
	"\n",
	"\n",
	"\n" FORGED,
	FORGED,
	MISSING("198.51.100.77"),
	FORGED_REST,
	REST,
	HEAD,
	HEAD "open() \"/srv/y",
	"\"",
	"x",
	", client: 198.51.100.77, server: a, request: \"GET / HTTP/1.1\", host: \"a\"",
	"\n\n\n",
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb1",
	"cc\"",
	HEAD "user \"u\": password mismatch, client: 198.51.100.77, server: a\n"};

/* A request for a path, as nginx logs that it is not there. @return its bytes */
static size_t put_path(char *at, const char *path)
{
	static char raw[1 << 15], record[1 << 16];
	size_t used = 0;
	for (const char *c = path; *c != '\0'; c++) /* a quote may stand as it is */
		used += (size_t)sprintf(raw + used, *c <= ' ' || *c == '%' ? "%%%02X" : "%c", (unsigned)*c);
	int length =
		snprintf(record, sizeof record,
	             HEAD "open() \"/srv/%s\" failed (2: No such file or directory), client: 192.0.2.7, server: a, "
	                  "request: \"GET /%s HTTP/1.1\", host: \"a\"\n",
	             path, raw);
	size_t bytes = (size_t)length < RECORD_BYTES ? (size_t)length : RECORD_BYTES;
	memcpy(at, record, bytes);
	at[bytes - 1] = '\n';
	return bytes;
}

static size_t put_record(char *at)
{
	char path[8192] = "";
	for (size_t left = 1 + below(9); left > 0; left--)
		strcat(path, pieces[below(sizeof pieces / sizeof *pieces)]);
	return put_path(at, path);
}

/* What would show the line feed in the request is cut off, and what is left looks whole: not where others were seen. */
static void a_record_that_is_cut_is_not_believed(void **state)
{
	(void)state;
	static const char filler[] = "2026/11/29 10:00:00 [notice] 1#1: signal process started\n";
	char path[4096], text[16384], ips[256];
	size_t before = put_path(text, "x\ny");
	for (; before < 2 * RECORD_BYTES; before += sizeof filler - 1)
		memcpy(text + before, filler, sizeof filler - 1);
	memset(path, '1', 900);
	strcpy(path + 900, FORGED_REST FORGED HEAD "open() \"x");
	size_t length = put_path(text + before, path);
	assert_int_equal(length, RECORD_BYTES);
	assert_int_equal(text[before + length - 2], '1');
	read_in(config, text, before + length, NULL, false, ips, sizeof ips);
	assert_string_equal(ips, "");
}

static void no_record_gives_an_address_that_was_sent(void **state)
{
	(void)state;
	static char text[TEXT_BYTES + 2 * RECORD_BYTES], ips[TEXT_BYTES];
	for (int round = 0; round < 300; round++) {
		size_t ends[512], count = 0, length = 0;
		while (length < TEXT_BYTES) {
			bool theirs = below(3) == 0;
			if (theirs)
				length += put_record(text + length);
			else
				length += (size_t)sprintf(text + length, "%s", below(2) == 0 ? TRUSTED : MISSING("192.0.2.9"));
			if (below(6) == 0 && count < 510)
				ends[count++] = length;
		}
		ends[count] = length;
		read_in(config, text, length, NULL, false, ips, sizeof ips);
		assert_null(strstr(ips, "198.51.100.77"));
		read_in(config, text, length, ends, false, ips, sizeof ips); /* as a log grows: by whole records */
		assert_null(strstr(ips, "198.51.100.77"));
		size_t at = 0;
		for (count = 0; count < 510 && at < length; count++) { /* by a buffer's size: at any line's end */
			at += 1 + below(3000);
			const char *newline = at < length ? memchr(text + at, '\n', length - at) : NULL;
			ends[count] = at = newline != NULL ? (size_t)(newline - text) + 1 : length;
		}
		ends[count] = length;
		read_in(config, text, length, ends, true, ips, sizeof ips);
		assert_null(strstr(ips, "198.51.100.77"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_within_a_record_is_not_believed),
		cmocka_unit_test(a_whole_line_opens_no_record),
		cmocka_unit_test(lines_in_messages),
		cmocka_unit_test(a_record_that_is_cut_is_not_believed),
		cmocka_unit_test(no_record_gives_an_address_that_was_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
