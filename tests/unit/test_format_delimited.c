/* SPDX-License-Identifier: Apache-2.0 */
/* delimited: names by header, by list, by number; quotes; files that begin and go on. */
#include "tests/unit/format_fixture.h"

static void a_header_names_the_columns(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"delimited\", \"unit\": \"s\", \"fields\": {\"ip\": \"host\"}}",
	             "ip status missing");
	assert_reason(&fixture, "", FORMAT_SKIP);
	assert_reason(&fixture, "host\tlogname\ttime\tstatus", FORMAT_SKIP);
	assert_reason(&fixture, "pppa006.compuserve.com\t-\t807256800\t200", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 807256800000);
	assert_field(&fixture, "ip", "pppa006.compuserve.com");
	assert_field(&fixture, "status", "200");
	assert_field(&fixture, "missing", NULL);
	assert_reason(&fixture, "a\tb\t1", FORMAT_OK); /* fewer columns */
	assert_field(&fixture, "status", NULL);
	assert_reason(&fixture, "a\tb\t1\t404\tmore\t\t", FORMAT_OK); /* more of them */
	assert_field(&fixture, "status", "404");
	assert_reason(&fixture, "-\t\t1\t-", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_field(&fixture, "status", NULL);
	assert_malformed(&fixture, "no separator", "not delimited");
	assert_reason(&fixture, "a\tb", FORMAT_NO_TIME);
	assert_reason(&fixture, "a\tb\t-\t1", FORMAT_NO_TIME);
	assert_reason(&fixture, "a\tb\tx\t1", FORMAT_BAD_TIME);
	fixture_deinit(&fixture);
}

static void each_file_has_its_own_header(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"delimited\", \"unit\": \"s\", \"separator\": \",\"}", "ip user");
	assert_null(format_header(fixture.format).at);
	assert_reason(&fixture, "\xef\xbb\xbftime,ip", FORMAT_SKIP);
	assert_reason(&fixture, "1,a", FORMAT_OK);
	assert_field(&fixture, "ip", "a");
	struct weir_span header = format_header(fixture.format);
	assert_true(weir_span_equal(header, weir_span_of("\xef\xbb\xbftime,ip")));
	char *remembered = weir_copy(header.at, header.length);
	uint32_t remembered_length = header.length;

	format_begin(fixture.format, (struct weir_span){0}); /* another file */
	assert_null(format_header(fixture.format).at);
	assert_reason(&fixture, "user,time,user", FORMAT_SKIP);
	assert_reason(&fixture, "b,1,c", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	assert_field(&fixture, "user", "c"); /* of equal names the last */

	format_begin(fixture.format,
	             (struct weir_span){.at = remembered, .length = remembered_length}); /* the first goes on */
	assert_reason(&fixture, "2,d", FORMAT_OK);
	assert_field(&fixture, "ip", "d");
	assert_field(&fixture, "user", NULL);
	free(remembered);
	fixture_deinit(&fixture);
}

static void columns_named_by_the_configuration(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"delimited\", \"unit\": \"s\", \"separator\": \"|\", \"header\": false, \"columns\": [\"time\", \"ip\"]}",
		"ip");
	assert_reason(&fixture, "1|a", FORMAT_OK);
	assert_field(&fixture, "ip", "a");
	assert_malformed(&fixture, "1", "not delimited");
	fixture_deinit(&fixture);
	fixture_init(
		&fixture,
		"{\"type\": \"delimited\", \"unit\": \"s\", \"separator\": \"|\", \"columns\": [\"ip\", \"time\", \"ip\"]}",
		"ip");
	assert_reason(&fixture, "1|a", FORMAT_SKIP); /* the header, which names nothing */
	assert_reason(&fixture, "x|1|a", FORMAT_OK);
	assert_field(&fixture, "ip", "a");
	assert_reason(&fixture, "x|1", FORMAT_OK);
	assert_field(&fixture, "ip", NULL);
	fixture_deinit(&fixture);
}

static void columns_by_number(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture,
	             "{\"type\": \"delimited\", \"unit\": \"s\", \"separator\": \" \", \"header\": false, \"time\": \"2\", "
	             "\"fields\": {\"ip\": \"1\", \"user\": \"1\", \"zero\": \"0\", \"odd\": \"01\"}}",
	             "ip user 3 zero odd");
	assert_reason(&fixture, "a 5 c", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 5000);
	assert_field(&fixture, "ip", "a");
	assert_field(&fixture, "user", "a");
	assert_field(&fixture, "3", "c");
	assert_field(&fixture, "zero", NULL);
	assert_field(&fixture, "odd", NULL);
	assert_reason(&fixture, "alone", FORMAT_NO_TIME);
	fixture_deinit(&fixture);
}

static void quoted_values(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"delimited\", \"unit\": \"s\", \"separator\": \",\", \"quote\": \"\\\"\"}",
	             "ip user a\"b");
	assert_reason(&fixture, "\"time\",ip,\"user\",\"a\"\"b\"", FORMAT_SKIP);
	assert_reason(&fixture, "1,\"x,y\",\"a \"\"q\"\" b\",\"\"\"\"", FORMAT_OK);
	assert_field(&fixture, "ip", "x,y");
	assert_field(&fixture, "user", "a \"q\" b");
	assert_field(&fixture, "a\"b", "\"");
	assert_reason(&fixture, "\"1\",a\"b\"c,\"\",", FORMAT_OK);
	assert_field(&fixture, "ip", "a\"b\"c"); /* a quote in the middle is a byte like any other */
	assert_field(&fixture, "user", NULL);
	assert_malformed(&fixture, "1,\"x\"y", "not delimited");
	assert_malformed(&fixture, "1,\"x", "not delimited");
	assert_malformed(&fixture, "1,a,b,c,d,\"x\"\"", "not delimited"); /* behind all wanted columns too */
	fixture_deinit(&fixture);
}

static void a_broken_header_is_not_the_header(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"delimited\", \"unit\": \"s\", \"separator\": \",\", \"quote\": \"'\"}", "ip");
	assert_malformed(&fixture, "'time,ip", "not delimited");
	assert_reason(&fixture, "time,ip", FORMAT_SKIP);
	assert_reason(&fixture, "1,a", FORMAT_OK);
	assert_field(&fixture, "ip", "a");
	fixture_deinit(&fixture);
}

static void options(void **state)
{
	(void)state;
	assert_refused("{\"type\": \"delimited\", \"separator\": \"ab\"}", "one byte");
	assert_refused("{\"type\": \"delimited\", \"separator\": \"\"}", "one byte");
	assert_refused("{\"type\": \"delimited\", \"separator\": \",\", \"quote\": \",\"}", "differ");
	assert_refused("{\"type\": \"delimited\", \"columns\": \"a\"}", "list");
	assert_refused("{\"type\": \"delimited\", \"columns\": []}", "list");
	assert_refused("{\"type\": \"delimited\", \"columns\": [1]}", "columns[0]");
	assert_refused("{\"type\": \"delimited\", \"header\": 1}", "true or false");
	assert_refused("{\"type\": \"delimited\", \"seperator\": \",\"}", "did you mean \"separator\"");
}

/* A file with directives, whatever reads it. */
static void read_directives(const char *config)
{
	struct fixture fixture;
	fixture_init(&fixture, config, "ip path");
	assert_reason(&fixture, "#Software: Microsoft Internet Information Services 10.0", FORMAT_SKIP);
	assert_reason(&fixture, "#Version: 1.0", FORMAT_SKIP);
	assert_reason(&fixture, "#Fields: date time s-ip cs-uri-stem c-ip sc-status", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.5 /a 192.0.2.7 200", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1715940303000);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "path", "/a");
	assert_malformed(&fixture, "2024-05-17 10:05:03 192.0.2.7 200", "not delimited");
	assert_reason(&fixture, "#Date: 2024-05-17 11:00:00", FORMAT_SKIP);
	assert_reason(&fixture, "#Fields: date time c-ip cs-uri-stem", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17 11:05:05 192.0.2.8 -", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.8");
	assert_field(&fixture, "path", NULL);
	assert_string_equal(format_header(fixture.format).at, "#Fields: date time c-ip cs-uri-stem");
	format_begin(fixture.format, weir_span_of("#Fields: c-ip date time"));
	assert_reason(&fixture, "192.0.2.9 2024-05-17 11:05:05", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.9");
	fixture_deinit(&fixture);
}

static void directives_name_the_columns(void **state)
{
	(void)state;
	read_directives(
		"{\"type\": \"delimited\", \"separator\": \" \", \"fields\": {\"ip\": \"c-ip\", \"path\": \"cs-uri-stem\"}}");
	read_directives("\"w3c\"");
	struct fixture fixture;
	fixture_init(&fixture, "\"w3c\"", "ip host agent");
	assert_malformed(&fixture, "2024-05-17 10:05:03 192.0.2.7", "not delimited"); /* without names */
	assert_reason(&fixture, "#Version: 1.0", FORMAT_SKIP);
	assert_reason(&fixture, "#Fields: date time c-ip cs(Host) cs(User-Agent) x-host-header", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17\t10:05:03\t2001:db8::7\td1.cloudfront.net\tcurl/8%20x\texample.com", FORMAT_OK);
	assert_field(&fixture, "ip", "2001:db8::7");
	assert_field(&fixture, "host", "example.com");
	assert_field(&fixture, "agent", "curl/8%20x");
	fixture_deinit(&fixture);
	/* A header that begins with '#' and is no directive names columns as ever. */
	fixture_init(&fixture, "{\"type\": \"delimited\", \"separator\": \",\", \"time\": \"#ts\"}", "ip");
	assert_reason(&fixture, "#ts,ip", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17 10:05:03,192.0.2.7", FORMAT_OK);
	assert_reason(&fixture, "#x,192.0.2.7", FORMAT_BAD_TIME);
	fixture_deinit(&fixture);
}

static const char cloudfront_fields[] =
	"#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) "
	"cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes "
	"time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status "
	"fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len "
	"sc-range-start sc-range-end";

static void assert_cloudfront(struct fixture *fixture, const char *path, const char *referer, const char *agent,
                              const char *xff)
{
	char line[1024];
	snprintf(line, sizeof line,
	         "2024-05-17\t10:05:03\tFRA56-P1\t2390\t192.0.2.7\tGET\td1.cloudfront.net\t%s\t304\t%s\t%s\ta=b%%2526\t-\t"
	         "Hit\tQv9==\twww.example.com\thttps\t31\t0.004\t%s\tTLSv1.3\tTLS_AES_128_GCM_SHA256\tHit\tHTTP/2.0\t-\t-\t"
	         "51222\t0.004\tHit\t-\t-\t-\t-",
	         path, referer, agent, xff);
	assert_reason(fixture, line, FORMAT_OK);
	assert_int_equal(fixture->record.time_ms, 1715940303000);
	assert_field(fixture, "ip", "192.0.2.7");
	assert_field(fixture, "bytes", "2390");
	assert_field(fixture, "method", "GET");
	assert_field(fixture, "host", "www.example.com");
	assert_field(fixture, "status", "304");
}

/* CloudFront encodes all but plain characters, '%' too: what it wrote stands for what the client wrote, and for no more. */
static void cloudfront(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"w3c\"", "ip method path status bytes host agent referer xff");
	assert_reason(&fixture, "#Version: 1.0", FORMAT_SKIP);
	assert_reason(&fixture, cloudfront_fields, FORMAT_SKIP);
	assert_cloudfront(&fixture, "/login", "-", "Mozilla/5.0%20(X11;%20Linux)%20x", "-");
	assert_field(&fixture, "path", "/login");
	assert_field(&fixture, "agent", "Mozilla/5.0 (X11; Linux) x");
	assert_field(&fixture, "referer", NULL);
	assert_field(&fixture, "xff", NULL);
	assert_cloudfront(&fixture, "/%256Cogin", "https://a/?x=%2522", "%2F%", "198.51.100.1,%20203.0.113.9");
	assert_field(&fixture, "path", "/login"); /* the client wrote "/%6Cogin" */
	assert_field(&fixture, "referer", "https://a/?x=%22");
	assert_field(&fixture, "agent", "/%");
	assert_field(&fixture, "xff", "198.51.100.1, 203.0.113.9");
	/* What a client sends becomes no column, and no line. */
	assert_cloudfront(&fixture, "/%09192.0.2.66%0A", "%2D", "a%09b%zz%4", "-");
	assert_field(&fixture, "path", "/\t192.0.2.66\n");
	assert_field(&fixture, "agent", "a\tb%zz%4");
	assert_field(&fixture, "referer", "-");
	/* IIS encodes no '%': what stands there is what came. */
	assert_reason(&fixture, "#Fields: date time c-ip cs-uri-stem cs(User-Agent)", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17 10:05:03 192.0.2.8 /a a%20b", FORMAT_OK);
	assert_field(&fixture, "agent", "a%20b");
	fixture_deinit(&fixture);
}

static void zeek(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"zeek\"", "ip path host user agent");
	assert_reason(&fixture, "#separator \\x09", FORMAT_SKIP);
	assert_reason(&fixture, "#set_separator\t,", FORMAT_SKIP);
	assert_reason(&fixture, "#fields\tts\tuid\tid.orig_h\tid.orig_p\thost\turi\tuser_agent\tusername", FORMAT_SKIP);
	assert_reason(&fixture, "#types\ttime\tstring\taddr\tport\tstring\tstring\tstring\tstring", FORMAT_SKIP);
	assert_reason(&fixture, "1715940303.133721\tCX\t192.0.2.7\t52110\texample.com\t/a?b\t(empty)\t-", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1715940303133);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "path", "/a");
	assert_field(&fixture, "host", "example.com");
	assert_field(&fixture, "agent", NULL);
	assert_field(&fixture, "user", NULL);
	assert_reason(&fixture, "#close\t2024-05-17-11-00-00", FORMAT_SKIP);
	/* The column "date" of smtp.log is what the mail says. */
	assert_reason(&fixture, "#fields\tts\tid.orig_h\tmailfrom\tdate\tfrom", FORMAT_SKIP);
	static const char *const dates[] = {"-", "Fri, 17 May 2024 10:05:03 +0200", "2099-01-01", ""};
	for (size_t i = 0; i < sizeof dates / sizeof *dates; i++) {
		char row[200];
		snprintf(row, sizeof row, "1715940303.133721\t192.0.2.7\ta@b\t%s\tc", dates[i]);
		assert_reason(&fixture, row, FORMAT_OK);
		assert_int_equal(fixture.record.time_ms, 1715940303133);
	}
	fixture_deinit(&fixture);
}

#define IIS "#Fields: date time s-ip cs-method cs-uri-stem s-port c-ip cs(User-Agent) sc-status X-Forwarded-For"

static void a_row_that_is_cut_counts_if_it_says_when_and_who(void **state)
{
	(void)state;
	static const char row[] = "2024-05-17 10:05:03 10.0.0.5 POST /login 443 203.0.113.9 Mozilla/5.0+(X) 200 1.1.1.1";
	size_t behind_ip = (size_t)(strstr(row, " Mozilla") - row);
	struct fixture fixture;
	fixture_init(&fixture, "\"w3c\"", "path agent");
	assert_reason(&fixture, IIS, FORMAT_SKIP);
	for (size_t length = 1; length < sizeof row; length++) {
		enum format_reason reason = fixture_parse_bytes(&fixture, row, length);
		if (length <= behind_ip) {
			assert_true(reason == fixture.format->malformed || reason == FORMAT_BAD_TIME);
			continue;
		}
		assert_int_equal(reason, FORMAT_OK);
		assert_int_equal(fixture.record.time_ms, 1715940303000);
		assert_field(&fixture, "path", "/login");
		assert_true(fixture.record.cut == (length < sizeof row - strlen("1.1.1.1")));
	}
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.5 GET /a 443 203.0.113.9 M 200 - ", FORMAT_OK);
	assert_false(fixture.record.cut);
	assert_malformed(&fixture, "2024-05-17 10:05:03 10.0.0.5 GET /a 443 203.0.113.9 M 200 - -", "not delimited");
	assert_malformed(&fixture, "2024-05-17 10:05:03 10.0.0.5 GET /a 443 - M", "not delimited");
	assert_malformed(&fixture, "2024-05-17 10:05:03 10.0.0.5 GET /a 443 Mozilla 200", "not delimited");
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.5 GET /a 443 203.0.113.9 a\tb 200 -", FORMAT_OK);
	assert_field(&fixture, "agent", "a\tb");
	fixture_deinit(&fixture);
}

static void a_cut_row_says_nothing_of_the_header_behind_it(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"w3c\", \"client_ip\": {\"header\": \"xff\", \"trusted\": [\"10.0.0.0/8\"]}}",
	             "ip");
#define ROW(ip) "2024-05-17 10:05:03 10.0.0.5 POST /login 443 " ip " Mozilla/5.0 "
	assert_reason(&fixture, IIS, FORMAT_SKIP);
	assert_reason(&fixture, ROW("10.0.0.1") "200 1.1.1.1,+203.0.113.9", FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.9");
	assert_reason(&fixture, ROW("10.0.0.1") "200 -", FORMAT_OK);
	assert_field(&fixture, "ip", "10.0.0.1");
	assert_reason(&fixture, ROW("10.0.0.1") "200 ", FORMAT_NO_CLIENT);
	assert_reason(&fixture, ROW("10.0.0.1") "20", FORMAT_NO_CLIENT);
	assert_reason(&fixture, ROW("203.0.113.9") "20", FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.9");
#undef ROW
	/* It did not come, which stands before the cut. */
	assert_reason(&fixture, "#Fields: date time c-ip X-Forwarded-For cs-uri-stem sc-status", FORMAT_SKIP);
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.1 - /lo", FORMAT_OK);
	assert_field(&fixture, "ip", "10.0.0.1");
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.1 -", FORMAT_NO_CLIENT);
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.1 203.0.113.9 /lo", FORMAT_OK);
	assert_field(&fixture, "ip", "203.0.113.9");
	assert_reason(&fixture, "2024-05-17 10:05:03 10.0.0.1 203.0.113", FORMAT_NO_CLIENT);
	fixture_deinit(&fixture);
}

static void a_row_of_zeek_that_is_cut(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "\"zeek\"", "ip path");
	assert_reason(&fixture, "#fields\tts\tuid\tid.orig_h\tid.orig_p\turi", FORMAT_SKIP);
	assert_reason(&fixture, "1715940303.133721\tCX\t192.0.2.7\t52", FORMAT_OK);
	assert_true(fixture.record.cut);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_reason(&fixture, "1715940303.133721\tCX\t192.0.2.7\t", FORMAT_OK);
	assert_malformed(&fixture, "1715940303.133721\tCX\t192.0.2.7", "not delimited");
	assert_malformed(&fixture, "1715940303.133721\tCX\t192.0.2.7\t52\t/a\tb", "not delimited");
	assert_reason(&fixture, "1715940303.133721\tCX\t192.0.2.7\t52\t/a\t", FORMAT_OK);
	assert_false(fixture.record.cut);
	fixture.format->cut = true; /* a line above the limit */
	assert_reason(&fixture, "1715940303.133721\tCX\t192.0.2.7\t52\t/a", FORMAT_OK);
	assert_true(fixture.record.cut);
	fixture_deinit(&fixture);
}

/* Above the limit a row of any columns counts if it says when and who. */
static void a_row_without_its_end(void **state)
{
	(void)state;
	static const char *const configs[] = {
		"{\"type\": \"delimited\", \"header\": false, \"columns\": [\"time\", \"ip\", \"path\", \"status\"], \"unit\": \"s\"}",
		"{\"type\": \"delimited\", \"header\": false, \"columns\": [\"time\", \"ip\", \"path\", \"status\"], \"unit\": \"s\", "
		"\"separator\": \"blanks\"}",
		"{\"type\": \"delimited\", \"header\": false, \"columns\": [\"time\", \"ip\", \"path\", \"status\"], \"unit\": \"s\", "
		"\"separator\": \",\", \"quote\": \"'\"}"};
	static const char *const rows[] = {"1\t192.0.2.7\t/abc\t401\tx", "1  192.0.2.7  /abc  401  x",
	                                   "'1','192.0.2.7','/abc',401,x"};
	for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
		struct fixture fixture;
		fixture_init(&fixture, configs[i], "path status");
		const char *row = rows[i], *behind_ip = strstr(row, "192.0.2.7") + strlen("192.0.2.7");
		for (size_t length = 1; length <= strlen(row); length++) {
			enum format_reason reason = fixture_parse_cut(&fixture, row, length);
			bool whole = row + length > behind_ip + (i == 2);
			assert_int_equal(reason, whole ? FORMAT_OK : fixture.format->malformed);
			if (reason != FORMAT_OK)
				continue;
			assert_true(fixture.record.cut);
			assert_span(fixture.record.fields[WEIR_FIELD_IP], "192.0.2.7", "ip");
			assert_int_equal(fixture.record.time_ms, 1000);
			if (row + length > strstr(row, "401") + 3)
				assert_field(&fixture, "status", "401");
		}
		fixture_deinit(&fixture);
	}
	/* A line of names that lacks its end is none. */
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"delimited\", \"unit\": \"s\"}", "ip");
	assert_int_equal(fixture_parse_cut(&fixture, "time\tip\tpa", 10), fixture.format->malformed);
	assert_reason(&fixture, "time\tpath\tip", FORMAT_SKIP);
	assert_reason(&fixture, "1\t/\t192.0.2.7", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_int_equal(fixture_parse_cut(&fixture, "1\t/a\t192.0.2.7", 13), fixture.format->malformed);
	fixture_deinit(&fixture);
}

static void two_columns_are_one_time(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(
		&fixture,
		"{\"type\": \"delimited\", \"separator\": \";\", \"time\": [\"day\", \"clock\"], \"time_format\": \"%d.%m.%Y %H:%M:%S\"}",
		"ip");
	assert_reason(&fixture, "clock;ip;day", FORMAT_SKIP);
	assert_reason(&fixture, "10:05:03;192.0.2.7;17.05.2024", FORMAT_OK);
	assert_int_equal(fixture.record.time_ms, 1715940303000);
	assert_reason(&fixture, ";192.0.2.7;17.05.2024", FORMAT_NO_TIME);
	assert_reason(&fixture, "10:05;192.0.2.7;17.05.2024", FORMAT_BAD_TIME);
	fixture_deinit(&fixture);
	assert_refused("{\"type\": \"json\", \"time\": [\"a\"]}", "list of two");
	assert_refused("{\"type\": \"json\", \"time\": [\"a\", 5]}", "time[1]");
	assert_refused("{\"type\": \"json\", \"time_format\": \"%Y\"}", "day");
	assert_refused("{\"type\": \"json\", \"time_format\": \"%s %q\"}", "%q");
}

static void blanks_may_be_many(void **state)
{
	(void)state;
	struct fixture fixture;
	fixture_init(&fixture, "{\"type\": \"delimited\", \"separator\": \"blanks\"}", "ip user");
	assert_reason(&fixture, "time  ip    user", FORMAT_SKIP);
	assert_reason(&fixture, "1715940303\t 192.0.2.7   bob  ", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "user", "bob");
	assert_reason(&fixture, "   1715940303 192.0.2.7", FORMAT_OK);
	assert_field(&fixture, "ip", "192.0.2.7");
	assert_field(&fixture, "user", NULL);
	fixture_deinit(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_names_the_columns),
		cmocka_unit_test(each_file_has_its_own_header),
		cmocka_unit_test(columns_named_by_the_configuration),
		cmocka_unit_test(directives_name_the_columns),
		cmocka_unit_test(cloudfront),
		cmocka_unit_test(zeek),
		cmocka_unit_test(a_row_that_is_cut_counts_if_it_says_when_and_who),
		cmocka_unit_test(a_cut_row_says_nothing_of_the_header_behind_it),
		cmocka_unit_test(a_row_of_zeek_that_is_cut),
		cmocka_unit_test(a_row_without_its_end),
		cmocka_unit_test(two_columns_are_one_time),
		cmocka_unit_test(blanks_may_be_many),
		cmocka_unit_test(columns_by_number),
		cmocka_unit_test(quoted_values),
		cmocka_unit_test(a_broken_header_is_not_the_header),
		cmocka_unit_test(options),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
