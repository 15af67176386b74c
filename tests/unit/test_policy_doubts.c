/* SPDX-License-Identifier: Apache-2.0 */
/* What a policy says and can hardly mean is told, with its place; what it may mean is not. */
#include "collector/follow/policy_doubts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scratch.h"

#include <cmocka.h>

#define LIMITS "\"limits\": [{\"algorithm\": \"fixed_window\", \"rate\": 1, \"window\": \"1m\"}]"

static struct weir_policy *policy_of(const char *zones)
{
	struct weir_json_document *document;
	struct weir_error error;
	struct weir_policy *policy;
	if (weir_json_parse("zones", zones, strlen(zones), &document, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
	return policy;
}

/* The doubts as lines "zone member: words". */
struct told {
	char text[16384];
	size_t used;
};

static void tell(void *context, uint32_t zone, const char *member, const char *words)
{
	struct told *told = context;
	told->used +=
		(size_t)snprintf(told->text + told->used, sizeof told->text - told->used, "%u %s: %s\n", zone, member, words);
	assert_true(told->used < sizeof told->text);
}

/* The doubts about one zone with these members, without its place. */
static const char *doubts(const char *members)
{
	static struct told told;
	char zones[4096];
	told = (struct told){0};
	snprintf(zones, sizeof zones, "[{\"name\": \"a\", %s%s}]", members,
	         strstr(members, "\"limits\"") != NULL ? "" : ", " LIMITS);
	struct weir_policy *policy = policy_of(zones);
	policy_doubts(policy, NULL, NULL, tell, &told);
	weir_policy_free(policy);
	return told.text;
}

static void what_never_matches_is_told(void **state)
{
	(void)state;
	static const struct {
		const char *members, *said;
	} cases[] = {
		{"\"key\": [\"ip\"], \"match\": {\"method\": \"PSOT\"}",
	     "0 match.method: \"PSOT\" is no method of HTTP: did you mean \"POST\"?"},
		{"\"key\": [\"ip\"], \"match\": {\"method\": \"delte\"}", "did you mean \"DELETE\"?"},
		{"\"key\": [\"ip\"], \"match\": {\"status\": [404, 700]}", "0 match.status: 700 is no status of HTTP"},
		{"\"key\": [\"ip\"], \"match\": {\"status\": \"6xx\"}", "0 match.status: 6xx is no status of HTTP"},
		{"\"key\": [\"ip\"], \"match\": {\"status\": \"099\"}", "0 match.status: 099 is no status of HTTP"},
		{"\"key\": [\"user\"], \"match\": {\"ip\": \"10.0.00.1\"}",
	     "0 match.ip: \"10.0.00.1\" is no address, and addresses are what "
	     "it is compared with: each of its four numbers"},
		{"\"key\": [\"user\"], \"match\": {\"ip\": \"192.0.2.1:443\"}",
	     "addresses are logged without a port, so this matches nobody"},
		{"\"key\": [\"user\"], \"match\": {\"ip\": {\"not\": \"gate.example\"}}",
	     "0 match.ip: \"gate.example\" is no address"},
		{"\"key\": [\"user\"], \"match\": {\"ip\": \"2001:db8*\"}",
	     "0 match.ip: \"2001:db8*\" is compared with addresses as text"},
		{"\"key\": [{\"field\": \"peer\", \"prefix4\": 24}], \"match\": {\"peer\": \"gate\"}",
	     "0 match.peer: \"gate\" is no address"},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"/a?b\"}", "0 match.path: \"/a?b\": a path ends before its \"?\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"/a#b\"}", "a path ends before its \"#\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"login\"}", "0 match.path: \"login\" does not begin with \"/\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"/a//*\"}", "\"/a//*\" never matches: no path contains \"//\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"*/../*\"}", "no path contains \"/../\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"/%7Eann/*\"}", "0 match.path: \"/%7Eann/*\": a path is decoded"},
		{"\"key\": [\"ip\"], \"match\": {\"path\": \"10.0.0.0/8\"}",
	     "0 match.path: 10.0.0.0/8 is a network, and the field \"path\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": {\"is\": \"/a\", \"not\": [\"/b\", \"/a\"]}}",
	     "0 match.path: never matches: \"not\""},
		{"\"key\": [\"ip\"], \"match\": {\"path\": {\"is\": [\"/ab\", \"/abc*\"], \"not\": \"/a*\"}}",
	     "never matches: \"not\""},
		{"\"key\": [\"ip\"], \"match\": {\"ip\": {\"is\": [\"10.1.0.0/16\", \"192.0.2.1\"], \"not\": \"10.0.0.0/8\"}}",
	     "0 match.ip: \"10.1.0.0/16\" never matches: \"not\" names it, too"},
		{"\"key\": [\"ip\"], \"match\": {\"ip\": {\"is\": \"192.0.2.7\", \"not\": \"192.0.2.1-192.0.2.9\"}}",
	     "never matches: \"not\""},
		{"\"key\": [\"ip\"], \"match\": {\"status\": {\"is\": 404, \"not\": \"4xx\"}}",
	     "0 match.status: never matches"},
		{"\"key\": [\"ip\"], \"exempt\": [{\"method\": \"haed\"}]", "0 exempt.method: \"haed\" is no method of HTTP"},
		{"\"key\": [\"ip\"], \"match\": {\"path\": [\"/login\", \"/api/*\"]}, \"exempt\": [{\"path\": \"/health\"}]",
	     "0 exempt.path: exempts nobody: the zone's \"match\" asks for other values"},
		{"\"key\": [\"ip\"], \"limits\": [{\"algorithm\": \"queue\", \"length\": 1, \"hold\": \"1m\", \"done\": {\"method\": \"pst\"}}]",
	     "0 limits[0].done.method: \"pst\" is no method of HTTP"},
		{"\"key\": [\"ip\"], \"match\": {\"host\": [\"a.example:8443\"]}",
	     "0 match.host: \"a.example:8443\": a host has no port here, so this is \"a.example\" on every port"},
		{"\"key\": [\"ip\"], \"exempt\": [{\"host\": [\"*:8443\"]}]", "on every port, which is every host"},
		{"\"key\": [\"ip\"], \"match\": {\"host\": [\"https://a.example\"]}",
	     "0 match.host: \"https://a.example\": a host has no \"/\""},
		{"\"key\": [\"ip\"], \"match\": {\"host\": [\"[::1]:80\"]}", "this is \"[::1]\" on every port"},
		{"\"key\": [\"ip\"], \"exempt\": [\"gate.example\"]",
	     "0 exempt: \"gate.example\" is no address, and addresses are what it is "
	     "compared with: names are not resolved, so this exempts nobody"},
		{"\"key\": [\"ip\"], \"exempt\": [\"10.0.0.256\"]", "0 exempt: \"10.0.0.256\" is no address"},
		{"\"key\": [\"ip\"], \"exempt\": [\"10.0.0.1:80\"]",
	     "addresses are logged without a port, so this exempts nobody"},
		{"\"key\": [\"ip\"], \"exempt\": [\"bot-*\"]",
	     "0 exempt: \"bot-*\" is compared with addresses as text, so it exempts"},
		{"\"key\": [], \"exempt\": [\"ann\"]",
	     "0 exempt: \"ann\" is compared with the values of the key, and there are none"},
		{"\"key\": [\"user\"], \"exempt\": [\"user #1\", \"#a;b\", \"monitor ; our probe\"]",
	     "0 exempt: \"monitor ; our probe\" is compared as a whole"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *said = doubts(cases[i].members);
		if (strstr(said, cases[i].said) == NULL || strchr(said, '\n')[1] != '\0')
			fail_msg("%s: %s", cases[i].members, said);
	}
}

/* The doubts about a zone over the decisions of another, which counts by user. */
static const char *doubts_over(const char *match)
{
	static struct told told;
	char zones[4096];
	told = (struct told){0};
	snprintf(zones, sizeof zones,
	         "[{\"name\": \"login\", \"key\": [\"user\"], " LIMITS "}, {\"name\": \"again\", \"key\": [\"user\"], "
	         "\"sources\": [\"decisions\"], \"match\": %s, " LIMITS "}]",
	         match);
	struct weir_policy *policy = policy_of(zones);
	policy_doubts(policy, NULL, NULL, tell, &told);
	weir_policy_free(policy);
	return told.text;
}

static void what_decisions_never_have_is_told(void **state)
{
	(void)state;
	assert_string_equal(
		doubts_over("{\"zone\": [\"login\"], \"action\": [\"block\"], \"user\": [\"ann\"], \"mode\": \"enforce\"}"),
		"");
	assert_string_equal(doubts_over("{\"zone\": {\"not\": [\"again\"]}, \"action\": [\"lift\"]}"), "");
	static const struct {
		const char *match, *said;
	} cases[] = {
		{"{\"zone\": [\"login\", \"logn\"], \"action\": [\"block\"]}", "1 match.zone: there is no zone \"logn\""},
		{"{\"zone\": [\"login\"], \"acton\": [\"block\"]}", "1 match.acton: decisions have no field \"acton\""},
		{"{\"zone\": [\"login\"]}", "1 match: counts lifts, too"},
		{"{\"zone\": [\"login\"], \"action\": [\"blok\"]}", "1 match.action: \"blok\" is no action"},
		{"{\"zone\": [\"login\"], \"action\": [\"block\"], \"mode\": \"shadw\"}", "1 match.mode: \"shadw\" is no mode"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (strstr(doubts_over(cases[i].match), cases[i].said) == NULL)
			fail_msg("%s: %s", cases[i].match, doubts_over(cases[i].match));
}

/* The doubts about a key of a zone over the decisions of two others. */
static const char *doubts_of_key(const char *theirs, const char *key)
{
	static struct told told;
	char zones[4096];
	told = (struct told){0};
	snprintf(zones, sizeof zones,
	         "[{\"name\": \"login\", \"key\": [%s], " LIMITS "}, {\"name\": \"other\", \"key\": [\"agent\"], " LIMITS
	         "}, {\"name\": \"again\", \"key\": [%s], \"sources\": [\"decisions\"], "
	         "\"match\": {\"zone\": [\"login\"], \"action\": [\"block\"]}, " LIMITS "}]",
	         theirs, key);
	struct weir_policy *policy = policy_of(zones);
	policy_doubts(policy, NULL, NULL, tell, &told);
	weir_policy_free(policy);
	return told.text;
}

#define GROUPED(members) "{\"field\": \"ip\", " members "}"

static void a_key_that_decisions_lack_or_do_not_group_by_is_told(void **state)
{
	(void)state;
	static const struct {
		const char *theirs, *key, *said;
	} cases[] = {
		{"\"user\"", "\"ip\"", "2 key: no zone that it counts the decisions of has \"ip\" in its key"},
		{"\"user\"", "\"agent\"", "2 key: no zone that it counts the decisions of has \"agent\""},
		{GROUPED("\"prefix6\": 64"), GROUPED("\"prefix4\": 24, \"prefix6\": 48"),
	     "2 key: decisions of the zone \"login\" have networks there"},
		{GROUPED("\"prefix4\": 24"), GROUPED("\"prefix4\": 16"),
	     "2 key: decisions of the zone \"login\" have networks"},
		{GROUPED("\"prefix4\": 24"), GROUPED("\"prefix4\": 24"), ""},
		{GROUPED("\"prefix6\": 64"), GROUPED("\"prefix4\": 24, \"prefix6\": 64"), ""},
		{"\"ip\"", GROUPED("\"prefix4\": 24"), ""},
		{"\"user\"", "\"zone\", \"key\"", ""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *said = doubts_of_key(cases[i].theirs, cases[i].key);
		if (*cases[i].said == '\0' ? *said != '\0' : strstr(said, cases[i].said) == NULL)
			fail_msg("%s, %s: %s", cases[i].theirs, cases[i].key, said);
	}
}

static void what_may_be_meant_is_not_doubted(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"\"key\": [\"ip\"], \"match\": {\"method\": [\"POST\", \"M-SEARCH\", \"FROBNICATE\", \"P*\"], \"status\": [404, \"5xx\", \"000\", \"0xx\", 599, 100]}",
		"\"key\": [\"ip\"], \"match\": {\"method\": [\"post\", \"Get\", \"password\", \"publickey\", \"hostbased\", \"PLAIN\", \"LOGIN\"]}",
		"\"key\": [\"ip\"], \"match\": {\"method\": \"POST\"}, \"exempt\": [{\"method\": \"post\", \"path\": \"/health\"}]",
		"\"key\": [\"ip\"], \"match\": {\"method\": \"p*\"}, \"exempt\": [{\"method\": \"post\", \"path\": \"/health\"}]",
		"\"key\": [\"ip\"], \"match\": {\"path\": [\"/a/../b\", \"/a//b\", \"/%41\", \"*\", \"/a*\", \"example.com:443\", \"/100%\"]}",
		"\"key\": [\"ip\"], \"match\": {\"ip\": [\"[2001:DB8::1]\", \"::ffff:10.0.0.1\", \"192.0.2.0/24\", \"192.0.2.1-192.0.2.9\"]}",
		"\"key\": [\"ip\"], \"match\": {\"host\": [\"10.0.0.1\", \"[::1]\", \"2001:db8::7\", \"a.example\", \"b.example.\", \"*.c.example\"], \"agent\": \"1.2.3.4\", \"version\": \"1.2.*\"}",
		"\"key\": [\"ip\"], \"match\": {\"path\": {\"is\": \"/a*\", \"not\": [\"/ab\", \"/ac*\"]}}",
		"\"key\": [\"ip\"], \"match\": {\"ip\": {\"is\": \"10.0.0.0/8\", \"not\": \"10.1.0.0/16\"}, \"status\": {\"is\": \"4xx\", \"not\": 404}}",
		"\"key\": [\"ip\"], \"match\": {\"path\": \"/api/*\"}, \"exempt\": [{\"path\": \"/api/health\"}, {\"path\": \"*/x\"}]",
		"\"key\": [\"user\", \"ip\"], \"exempt\": [\"ann\", \"bot-*\", \"10.0.0.1\"]",
		"\"key\": [], \"exempt\": [\"10.0.0.0/8\", {\"agent\": \"monitor/*\"}]",
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (*doubts(cases[i]) != '\0')
			fail_msg("%s: %s", cases[i], doubts(cases[i]));
}

/* A list's words are counted; a long row of words is told in part. */
static void lists_and_long_rows_are_told_in_part(void **state)
{
	char path[512], zones[1024];
	struct told told = {0};
	snprintf(path, sizeof path, "%s/list", (const char *)*state);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("10.0.0.1\ngate.example\nother.example\n", file);
	fclose(file);
	snprintf(zones, sizeof zones,
	         "[{\"name\": \"b\", \"key\": [\"ip\"], " LIMITS
	         "}, {\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [{\"list\": \"%s\"}], " LIMITS "}]",
	         path);
	struct weir_policy *policy = policy_of(zones);
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	policy_doubts(policy, NULL, lists, tell, &told);
	assert_non_null(strstr(told.text, "1 exempt: 2 entries of "));
	assert_non_null(strstr(told.text, "such as \"gate.example\""));
	told = (struct told){0};
	policy_doubts(policy, NULL, NULL, tell, &told);
	assert_string_equal(told.text, "");
	weir_exempt_lists_free(lists);
	assert_int_equal(truncate(path, 0), 0);
	lists = weir_exempt_lists_new(NULL, NULL);
	policy_doubts(policy, NULL, lists, tell, &told);
	assert_non_null(strstr(told.text, "/list has no entries: it exempts nobody"));
	weir_exempt_lists_free(lists);
	weir_policy_free(policy);
	unsigned lines = 0;
	for (const char *at =
	         doubts("\"key\": [\"ip\"], \"exempt\": [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\"]");
	     *at != '\0'; at++)
		lines += *at == '\n';
	assert_int_equal(lines, DOUBTS_TOLD);
}

/* What all zones exempt may be about some of them alone; what one has is meant for it. */
static void what_all_zones_exempt_need_not_be_about_each(void **state)
{
	(void)state;
	static const char login[] =
		"{\"name\": \"a\", \"key\": [\"ip\"], \"match\": {\"path\": \"/login\"}, \"exempt\": [{\"path\": "
		"\"/health\"}], " LIMITS "}",
					  site[] = "{\"name\": \"b\", \"key\": [\"ip\"], %s" LIMITS "}";
	static const char *const exempts[] = {"\"exempt\": {\"path\": [\"/health\"]}, ", ""};
	for (size_t i = 0; i < 2; i++) {
		struct told told = {.used = 0};
		char second[512], zones[1024];
		snprintf(second, sizeof second, site, exempts[i]);
		snprintf(zones, sizeof zones, "[%s, %s]", login, second);
		struct weir_policy *policy = policy_of(zones);
		policy_doubts(policy, NULL, NULL, tell, &told);
		assert_int_equal(strstr(told.text, "0 exempt.path: exempts nobody") != NULL, i == 1);
		weir_policy_free(policy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_never_matches_is_told),
		cmocka_unit_test(what_decisions_never_have_is_told),
		cmocka_unit_test(a_key_that_decisions_lack_or_do_not_group_by_is_told),
		cmocka_unit_test(what_may_be_meant_is_not_doubted),
		cmocka_unit_test(what_all_zones_exempt_need_not_be_about_each),
		cmocka_unit_test_setup_teardown(lists_and_long_rows_are_told_in_part, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
