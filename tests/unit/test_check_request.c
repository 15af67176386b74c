/* SPDX-License-Identifier: Apache-2.0 */
/* A request's zones and keys: by its fields, by the client behind trusted hops, by the policy in force. */
#include "common/base/clock.h"
#include "limiter/check/request/check_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

#include <cmocka.h>

#define LIMIT "\"limits\": [{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1m\"}]"

static struct weir_policy *policy_of(const char *zones, uint64_t version)
{
	struct weir_json_document *document;
	struct weir_policy *policy;
	struct weir_error error;
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
	policy->version = version;
	return policy;
}

static struct check_request *new_request(void)
{
	const struct check_request_options options = {.log = NULL};
	struct check_request *request;
	struct weir_error error;
	assert_int_equal(check_request_new(&options, &request, &error), WEIR_OK);
	return request;
}

static void begin(struct check_request *request, const struct weir_policy *policy)
{
	struct weir_error error;
	if (check_request_begin(request, policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
}

static void set(struct check_request *request, const char *name, const char *value)
{
	check_request_set(request, weir_span_of(name), weir_span_of(value));
}

static void header(struct check_request *request, const char *name, const char *value)
{
	check_request_header(request, weir_span_of(name), weir_span_of(value));
}

/* "zone=key zone=key" */
static const char *found(struct check_request *request)
{
	static char text[1024];
	struct check_found zones[CHECK_REQUEST_ZONES_MAX];
	uint32_t count;
	int length = 0;
	text[0] = '\0';
	assert_int_equal(check_request_find(request, zones, &count), WEIR_OK);
	for (uint32_t i = 0; i < count; i++)
		length += snprintf(text + length, sizeof text - (size_t)length, "%s%s=%.*s", i > 0 ? " " : "",
		                   zones[i].zone->name, (int)zones[i].key.length, zones[i].key.at);
	return text;
}

static bool client(struct check_request *request, const char *hops, const char *peer)
{
	return check_request_client(request, hops != NULL ? weir_span_of(hops) : (struct weir_span){0}, weir_span_of(peer));
}

/* What a key says of itself exempts it; what it does not say cannot. */
static void a_key_is_exempt_by_what_it_says(void **state)
{
	(void)state;
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of(
		"[{\"name\": \"site\", \"key\": [\"ip\"], \"exempt\": [\"192.0.2.9\", \"10.0.0.0/8\", \"2001:db8::7\", {\"path\": "
		"\"/health\"}], " LIMIT "},"
		"{\"name\": \"nets\", \"key\": [{\"field\": \"ip\", \"prefix4\": 24}], \"exempt\": [\"192.0.2.9\"], " LIMIT "},"
		"{\"name\": \"two\", \"key\": [\"user\", \"path\"], \"exempt\": [\"a|b\", {\"path\": [\"/health/*\"]}], " LIMIT
		"},"
		"{\"name\": \"users\", \"key\": [\"user\"], \"exempt\": [\"a|b\", \"robot-*\", \"10.0.0.0/8\"], " LIMIT "},"
		"{\"name\": \"all\", \"key\": [], \"exempt\": [\"192.0.2.9\"], " LIMIT "},"
		"{\"name\": \"plain\", \"key\": [\"ip\"], " LIMIT "},"
		"{\"name\": \"but\", \"key\": [\"ip\"], \"exempt\": [{\"path\": {\"not\": [\"/login\"]}}, {\"ip\": {\"not\": [\"10.0.0.0/8\", "
		"\"192.0.2.8\"]}}], \"match\": {\"path\": \"/login\"}, " LIMIT "}]",
		1);
	static const struct {
		unsigned zone;
		const char *given;
		bool exempt;
	} cases[] = {
		{0, "192.0.2.9", true},
		{0, "::ffff:192.0.2.9", true},
		{0, "192.0.2.9:443", true},
		{0, "192.0.2.8", false},
		{0, "10.1.2.3", true},
		{0, "2001:DB8:0::7", true}, /* although it is counted with its network */
		{0, "2001:db8::8", false},
		{0, "/health", false},
		{0, "", false},
		{1, "192.0.2.9", true},
		{1, "192.0.2.8", false},
		{2, "a\\|b|/x", true},
		{2, "ann|/health/live", true},
		{2, "ann|/x", false},
		{2, "a|b|/x", false}, /* no key of the zone */
		{3, "a|b", true},
		{3, "a\\|b", false}, /* of one field: as it is */
		{3, "robot-7", true},
		{3, "10.1.2.3", false}, /* an address would be the record's */
		{4, "", false},
		{6, "192.0.2.8", false}, /* what its path was is not known */
		{6, "192.0.2.77", true},
		{6, "10.9.9.9", false}, /* an object that looks at the key alone */
		{5, "192.0.2.9", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (check_request_exempts(request, policy, &policy->zones[cases[i].zone], weir_span_of(cases[i].given)) !=
		    cases[i].exempt)
			fail_msg("zone %s, key %s", policy->zones[cases[i].zone].name, cases[i].given);
	begin(request, policy); /* nothing of a key is left in the request after it */
	set(request, "method", "GET");
	assert_true(client(request, NULL, "192.0.2.8"));
	assert_string_equal(found(request), "site=192.0.2.8 plain=192.0.2.8 nets=192.0.2.0/24 all=");
	check_request_free(request);
	weir_policy_free(policy);
}

static void finds_zones_as_of_a_log_line(void **state)
{
	(void)state;
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of(
		"[{\"name\": \"login\", \"key\": [\"ip\"], \"match\": {\"method\": \"POST\", \"path\": \"/login\"}, " LIMIT "},"
		"{\"name\": \"site\", \"key\": [{\"field\": \"ip\", \"prefix4\": 24}], \"exempt\": [\"192.0.2.9\"], " LIMIT "},"
		"{\"name\": \"token\", \"key\": [\"x_api_key\"], " LIMIT "},"
		"{\"name\": \"logs\", \"key\": [\"ip\"], \"sources\": [\"nginx\"], " LIMIT "}]",
		1);
	begin(request, policy);
	set(request, "method", "POST");
	set(request, "path", "//log%69n?next=/");
	assert_true(client(request, NULL, "192.0.2.7"));
	assert_string_equal(found(request), "login=192.0.2.7 site=192.0.2.0/24");

	/* no zone looks at the target: the path is had from it all the same, but where there is one */
	for (int i = 0; i < 2; i++) {
		begin(request, policy);
		set(request, "method", "POST");
		set(request, "target", "/x/../login?next=/");
		if (i == 1)
			set(request, "path", "/other");
		assert_true(client(request, NULL, "192.0.2.7"));
		assert_string_equal(found(request), i == 0 ? "login=192.0.2.7 site=192.0.2.0/24" : "site=192.0.2.0/24");
	}

	/* a target without a path is the root */
	struct weir_policy *root =
		policy_of("[{\"name\": \"root\", \"key\": [\"path\"], \"match\": {\"path\": \"/*\"}, " LIMIT "}]", 2);
	static const char *const roots[] = {"/", "?s=1", "#x", "http://h?s=1", "http://h", "http:?s"};
	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		begin(request, root);
		set(request, i % 2 == 0 ? "target" : "path", roots[i]);
		assert_string_equal(found(request), "root=/");
	}
	weir_policy_free(root);

	begin(request, policy);
	set(request, "method", "GET");
	set(request, "path", "/");
	header(request, "X-Api-Key", "secret");
	header(request, "X-Api-Key", "second");
	header(request, "Ip", "1.2.3.4");
	header(request, "Path", "/login");
	assert_true(client(request, NULL, "192.0.2.9"));
	assert_string_equal(found(request), "token=secret");
	check_request_free(request);
	weir_policy_free(policy);
}

static void a_host_counts_once_however_it_is_written(void **state)
{
	(void)state;
	static const char *const hosts[] = {"api.example.com", "API.example.com", "api.example.com:443", "api.example.com.",
	                                    "Api.Example.com.:8443"};
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of(
		"[{\"name\": \"api\", \"key\": [\"host\"], \"match\": {\"host\": [\"Api.example.com\"]}, "
		"\"exempt\": [\"WWW.example.com\"], " LIMIT "},"
		"{\"name\": \"each\", \"key\": [\"host\"], \"exempt\": [\"WWW.example.com\"], " LIMIT "},"
		"{\"name\": \"some\", \"key\": [\"host\"], \"match\": {\"host\": {\"is\": [\"*.Example.COM\"], \"not\": "
		"[\"WWW.example.com:80\"]}}, " LIMIT "}]",
		1);
	for (size_t i = 0; i < 2 * sizeof hosts / sizeof *hosts; i++) {
		begin(request, policy);
		if (i % 2 == 0)
			set(request, "host", hosts[i / 2]);
		else
			header(request, "Host", hosts[i / 2]);
		assert_string_equal(found(request), "api=api.example.com each=api.example.com some=api.example.com");
	}
	begin(request, policy);
	set(request, "host", "www.example.COM");
	assert_string_equal(found(request), "");
	begin(request, policy);
	set(request, "host", "[::1]:8443");
	assert_string_equal(found(request), "each=[::1]");
	check_request_free(request);
	weir_policy_free(policy);
}

static void a_method_counts_once_however_it_is_written(void **state)
{
	(void)state;
	static const char *const methods[] = {"POST", "post", "Post", "pOST"};
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of(
		"[{\"name\": \"login\", \"key\": [\"user\"], \"match\": {\"method\": [\"POST\"], \"path\": \"/login\"}, " LIMIT
		"},"
		"{\"name\": \"each\", \"key\": [\"method\"], \"exempt\": [\"get\"], " LIMIT "},"
		"{\"name\": \"small\", \"key\": [\"user\"], \"match\": {\"method\": {\"is\": [\"p*\"], \"not\": [\"put\"]}}, " LIMIT
		"},"
		"{\"name\": \"but\", \"key\": [\"user\"], \"exempt\": [{\"method\": [\"post\", \"password\", \"get\"]}], " LIMIT
		"}]",
		1);
	for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
		begin(request, policy);
		set(request, "user", "ann");
		set(request, "method", methods[i]);
		set(request, "path", "/login");
		assert_string_equal(found(request), "login=ann small=ann each=POST");
		assert_true(check_request_exempts(request, policy, &policy->zones[1], weir_span_of("Get")));
	}
	static const struct {
		const char *method, *found;
	} others[] = {
		{"Get", ""},
		{"put", "each=PUT but=ann"},
		{"password", "each=password small=ann"},
		{"PASSWORD", "each=PASSWORD small=ann but=ann"},
		{"eth_call", "each=eth_call but=ann"},
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		begin(request, policy);
		set(request, "user", "ann");
		set(request, "method", others[i].method);
		assert_string_equal(found(request), others[i].found);
	}
	check_request_free(request);
	weir_policy_free(policy);
}

static void zones_of_log_lines_alone_are_not_asked(void **state)
{
	(void)state;
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of("[{\"name\": \"both\", \"key\": [\"ip\"], " LIMIT "},"
	                                       "{\"name\": \"lines\", \"key\": [\"ip\"], \"feed\": \"log\", " LIMIT "},"
	                                       "{\"name\": \"asked\", \"key\": [\"ip\"], \"feed\": \"check\", " LIMIT "}]",
	                                       1);
	begin(request, policy);
	assert_true(client(request, NULL, "192.0.2.7"));
	assert_string_equal(found(request), "both=192.0.2.7 asked=192.0.2.7");
	check_request_free(request);
	weir_policy_free(policy);
}

static void walks_over_trusted_hops(void **state)
{
	(void)state;
	static const struct {
		const char *hops, *peer, *found; /* NULL: there is no client */
	} cases[] = {
		{NULL, "127.0.0.1", "a=127.0.0.1"},
		{"192.0.2.7", "127.0.0.1", "a=192.0.2.7"},
		{"198.51.100.1, 192.0.2.7", "127.0.0.1", "a=192.0.2.7"},
		{"192.0.2.7, 127.0.0.1", "127.0.0.1", "a=192.0.2.7"},
		{"127.0.0.2, 127.0.0.1", "127.0.0.1", "a=127.0.0.2"},
		{"::ffff:192.0.2.7", "127.0.0.1", "a=192.0.2.7"},
		{"2001:DB8::0:1", "127.0.0.1", "a=2001:db8::1"},
		{NULL, " 192.0.2.7\t", "a=192.0.2.7"},
		{NULL, "[192.0.2.7]:443", "a=192.0.2.7"},
		{"[192.0.2.7]", "127.0.0.1", "a=192.0.2.7"},
		{NULL, "", NULL},                  /* an empty value is none */
		{"-", "192.0.2.9", "a=192.0.2.9"}, /* nor is "-", or a list without an element */
		{" , ,", "192.0.2.9", "a=192.0.2.9"},
		{"-", "", NULL},
		{"-, 192.0.2.7", "127.0.0.1", "a=192.0.2.7"},
		{"192.0.2.7, -", "127.0.0.1", NULL}, /* a hop that names nobody */
		{"nobody", "127.0.0.1", NULL},
		{"192.0.2.7, unknown", "127.0.0.1", NULL},
	};
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of("[{\"name\": \"a\", \"key\": [\"ip\"], " LIMIT "}]", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(request, policy);
		assert_int_equal(client(request, cases[i].hops, cases[i].peer), cases[i].found != NULL);
		if (cases[i].found != NULL)
			assert_string_equal(found(request), cases[i].found);
	}
	check_request_free(request);
	weir_policy_free(policy);
}

/* Most logs have `-` for both: a header of `-` is none, as one that is not there. What a caller names is as it is. */
static void a_header_of_a_dash_is_none(void **state)
{
	(void)state;
	struct check_request *request = new_request();
	struct weir_policy *policy = policy_of("[{\"name\": \"agents\", \"key\": [\"agent\"], " LIMIT "},"
	                                       "{\"name\": \"hosts\", \"key\": [\"host\"], " LIMIT "},"
	                                       "{\"name\": \"users\", \"key\": [\"user\"], " LIMIT "},"
	                                       "{\"name\": \"keys\", \"key\": [\"x_api_key\"], " LIMIT "}]",
	                                       1);
	static const char *const names[] = {"User-Agent", "Host", "X-Forwarded-User", "X-Api-Key"};
	static const char *const values[][2] = {{"-", ""},
	                                        {"", ""},
	                                        {"--", "agents=-- hosts=-- users=-- keys=--"},
	                                        {" -", "agents= - hosts= - users= - keys= -"}};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		begin(request, policy);
		for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
			header(request, names[k], values[i][0]);
			header(request, names[k], "another"); /* the first counts, as one that is empty does */
		}
		assert_string_equal(found(request), values[i][1]);
	}
	begin(request, policy);
	set(request, "agent", "-");
	set(request, "user", "-");
	assert_string_equal(found(request), "agents=- users=-");
	check_request_free(request);
	weir_policy_free(policy);
}

static void follows_the_policy(void **state)
{
	(void)state;
	struct check_request *request = new_request();
	struct weir_error error;
	assert_int_equal(check_request_begin(request, NULL, &error), WEIR_AGAIN);
	struct weir_policy *first = policy_of("[{\"name\": \"a\", \"key\": [\"ip\"], " LIMIT "}]", 1);
	struct weir_policy *second = policy_of("[{\"name\": \"b\", \"key\": [\"user\"], " LIMIT "}]", 2);
	begin(request, first);
	assert_true(client(request, NULL, "192.0.2.7"));
	assert_string_equal(found(request), "a=192.0.2.7");
	begin(request, second);
	assert_true(client(request, NULL, "192.0.2.7"));
	header(request, "x-forwarded-user", "ada");
	assert_string_equal(found(request), "b=ada");
	check_request_free(request);
	weir_policy_free(first);
	weir_policy_free(second);
}

static void write_list(const char *path, const char *text)
{
	char next[600];
	snprintf(next, sizeof next, "%s.next", path);
	FILE *file = fopen(next, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(rename(next, path), 0);
}

/* Who asks judges, too: a list that was read is read anew by others alone, and taken from them within seconds. */
static void a_list_is_read_anew_by_others(void **state)
{
	char path[512], zones[1024];
	snprintf(path, sizeof path, "%s/list", (const char *)*state);
	snprintf(zones, sizeof zones, "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [{\"list\": \"%s\"}], " LIMIT "}]",
	         path);
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	const struct check_request_options options = {.lists = lists};
	struct check_request *request;
	struct weir_error error;
	write_list(path, "192.0.2.1\n");
	struct weir_policy *policy = policy_of(zones, 1);
	assert_int_equal(check_request_new(&options, &request, &error), WEIR_OK);
	assert_true(check_request_exempts(request, policy, &policy->zones[0], weir_span_of("192.0.2.1")));
	write_list(path, "192.0.2.22\n");
	int64_t end_ms = weir_monotonic_ms() + 5500;
	while (weir_monotonic_ms() < end_ms) {
		assert_false(check_request_exempts(request, policy, &policy->zones[0], weir_span_of("192.0.2.22")));
		usleep(100000);
	}
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	end_ms = weir_monotonic_ms() + 5500;
	while (!check_request_exempts(request, policy, &policy->zones[0], weir_span_of("192.0.2.22"))) {
		assert_true(weir_monotonic_ms() < end_ms);
		usleep(100000);
	}
	check_request_free(request);
	weir_exempt_lists_free(lists);
	weir_policy_free(policy);
}

static void says_what_is_wrong_with_client_ip(void **state)
{
	(void)state;
	static const char text[] = "{\"header\": \"xff\", \"trusted\": []}";
	struct weir_json_document *document;
	struct check_request *request;
	struct weir_error error;
	assert_int_equal(weir_json_parse("weir.json", text, sizeof text - 1, &document, &error), WEIR_OK);
	const struct check_request_options options = {.client_ip = weir_json_root(document)};
	assert_int_equal(check_request_new(&options, &request, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, "trusted: must list the proxies' networks"));
	weir_json_document_free(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_zones_as_of_a_log_line),
		cmocka_unit_test(a_key_is_exempt_by_what_it_says),
		cmocka_unit_test(a_host_counts_once_however_it_is_written),
		cmocka_unit_test(a_method_counts_once_however_it_is_written),
		cmocka_unit_test(zones_of_log_lines_alone_are_not_asked),
		cmocka_unit_test(walks_over_trusted_hops),
		cmocka_unit_test(a_header_of_a_dash_is_none),
		cmocka_unit_test(follows_the_policy),
		cmocka_unit_test_setup_teardown(a_list_is_read_anew_by_others, scratch_setup, scratch_teardown),
		cmocka_unit_test(says_what_is_wrong_with_client_ip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
