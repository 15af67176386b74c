/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that stay files: what they hold against the plainest loops, who shares them, and when they are read anew. */
#include "common/base/clock.h"
#include "common/exempt/exempt_list.h"
#include "common/exempt/exempt_watch.h"
#include "common/matcher/matcher.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "scratch.h"

#include <cmocka.h>

enum { NETWORKS = 3000, WORDS = 500, MANY = 10001, LONG = 500000 };

static char *path_in(void **state, const char *name)
{
	static char path[512];
	snprintf(path, sizeof path, "%s/%s", (const char *)*state, name);
	return path;
}

/* Replaces the file as one should: by another, under its name. */
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

/* A policy whose zone exempts such a list. */
static struct weir_policy *policy_of(const char *kind, const char *path)
{
	char zones[1024];
	struct weir_json_document *document;
	struct weir_error error;
	struct weir_policy *policy;
	snprintf(zones, sizeof zones,
	         "[{\"name\": \"a\", \"key\": [\"ip\"], \"exempt\": [{\"%s\": \"%s\"}], \"limits\": [{\"algorithm\": "
	         "\"fixed_window\", \"rate\": 1, \"window\": \"1m\"}]}]",
	         kind, path);
	assert_int_equal(weir_json_parse("zones", zones, strlen(zones), &document, &error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	if (weir_policy_parse(&root, NULL, &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	weir_json_document_free(document);
	return policy;
}

static const char *network_text(const struct weir_network *network, char *text)
{
	uint32_t length = weir_address_format(&network->base, text);
	bool v4 = weir_address_is_v4(&network->base) && network->prefix >= 96;
	sprintf(text + length, "/%d", v4 ? network->prefix - 96 : network->prefix);
	return text;
}

static struct weir_network random_network(void)
{
	struct weir_network network = {.base = {{0}}};
	bool v4 = random() % 2;
	for (size_t k = v4 ? 12 : 0; k < 16; k++)
		network.base.bytes[k] = random() % 2 ? (uint8_t)(random() & 0xc1) : 0;
	if (v4)
		network.base.bytes[10] = network.base.bytes[11] = 0xff;
	/* long prefixes mostly, or everything is in one of the networks */
	uint8_t prefix4 = (uint8_t)(random() % 20 == 0 ? 8 + random() % 24 : 32);
	uint8_t prefix6 = (uint8_t)(random() % 20 == 0 ? 16 + random() % 113 : 128);
	weir_address_mask(&network.base, prefix4, prefix6);
	network.prefix = v4 ? (uint8_t)(96 + prefix4) : prefix6;
	return network;
}

static void a_list_holds_its_entries_alone(void **state)
{
	static struct weir_network networks[NETWORKS];
	char *path = path_in(state, "list"), text[WEIR_ADDRESS_TEXT_BYTES + 4];
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_exempt_list *list;
	struct weir_error error;
	srandom(1);
	FILE *file = fopen(path, "w");
	fputs(
		"\xef\xbb\xbf# networks, words and patterns\n\n100.0.3.0/24 # ours\n100.0.4.1\t; SBL1\nuser #1\nmonitor   # our probe\nuser #2\t#\nb ;c\n100.0.6.0 - 100.0.6.255 # LAN\n",
		file);
	for (uint32_t i = 0; i < NETWORKS; i++) {
		networks[i] = random_network();
		fprintf(file, i % 3 == 0 ? "  %s \r\n" : "%s\n", network_text(&networks[i], text));
		if (i < WORDS)
			fprintf(file, "word%u\n", i * 3);
	}
	fputs("bot-*\n100.0.2.3-100.0.2.9\nlast", file);
	fclose(file);
	assert_int_equal(weir_exempt_list_open(lists, path, &list, &error), WEIR_OK);
	assert_int_equal(list->count, NETWORKS + WORDS + 10);
	/* A word may hold what begins a remark behind a network. */
	static const char *const words[] = {"user #1", "monitor", "user #2", "b ;c"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		assert_true(weir_exempt_list_has_word(list, weir_span_of(words[i])));
	unsigned in = 0;
	for (int round = 0; round < 20000; round++) {
		struct weir_address address = random_network().base;
		bool expected = false;
		for (uint32_t i = 0; i < NETWORKS && !expected; i++)
			expected = weir_network_contains(&networks[i], &address);
		assert_int_equal(weir_network_set_has(&list->networks, &address), expected);
		in += expected;
	}
	assert_true(in > 1000 && in < 19000);
	for (uint32_t i = 0; i < 3 * WORDS + 3; i++) {
		snprintf(text, sizeof text, "word%u", i);
		assert_int_equal(weir_exempt_list_has_word(list, weir_span_of(text)), i % 3 == 0 && i < 3 * WORDS);
	}
	assert_true(weir_exempt_list_has_word(list, weir_span_of("bot-7")) &&
	            weir_exempt_list_has_word(list, weir_span_of("last")));
	assert_false(weir_exempt_list_has_word(list, weir_span_of("bot")) ||
	             weir_exempt_list_has_word(list, weir_span_of("")));
	struct weir_address remarked;
	assert_true(weir_address_parse(weir_span_of("100.0.3.7"), &remarked));
	assert_true(weir_network_set_has(&list->networks, &remarked));
	assert_true(weir_address_parse(weir_span_of("100.0.6.9"), &remarked));
	assert_true(weir_network_set_has(&list->networks, &remarked));
	assert_true(weir_address_parse(weir_span_of("100.0.4.1"), &remarked));
	assert_true(weir_network_set_has(&list->networks, &remarked));
	for (unsigned i = 1; i < 12; i++) {
		struct weir_address address;
		snprintf(text, sizeof text, "100.0.2.%u", i);
		assert_true(weir_address_parse(weir_span_of(text), &address));
		assert_int_equal(weir_network_set_has(&list->networks, &address), i >= 3 && i <= 9);
	}
	assert_string_equal(weir_exempt_lists_facts(lists, path).first_word, "user #1");
	assert_int_equal(weir_exempt_lists_facts(lists, path).words, WORDS + 6);
	assert_true(weir_exempt_lists_facts(lists, path).networks > NETWORKS / 2);
	weir_exempt_lists_free(lists);
	assert_true(weir_exempt_list_has_word(list, weir_span_of("last")));
	weir_exempt_list_close(list);
}

static bool is_said(FILE *said, const char *words)
{
	char line[4096];
	bool found = false;
	rewind(said);
	while (fgets(line, sizeof line, said) != NULL)
		found |= strstr(line, words) != NULL;
	return found;
}

static void a_list_is_shared_until_it_is_read_anew(void **state)
{
	char *path = path_in(state, "list");
	FILE *said = tmpfile();
	struct weir_log log = {.fd = fileno(said), .level = WEIR_LOG_INFO};
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, &log);
	struct weir_exempt_list *first, *second, *third;
	struct weir_error error;
	struct weir_policy *policy = policy_of("list", path);
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_IO);
	assert_non_null(strstr(error.text, "cannot open"));
	write_list(path, "ann\n");
	assert_int_equal(weir_exempt_list_open(lists, path, &first, &error), WEIR_OK);
	write_list(path, "bob\neve\n");
	assert_int_equal(weir_exempt_list_open(lists, path, &second, &error), WEIR_OK);
	assert_ptr_equal(first, second);
	weir_exempt_list_close(second);
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	assert_int_equal(weir_exempt_list_open(lists, path, &second, &error), WEIR_OK);
	assert_true(weir_exempt_list_has_word(first, weir_span_of("ann")));
	assert_true(weir_exempt_list_has_word(second, weir_span_of("eve")));
	assert_false(weir_exempt_list_has_word(second, weir_span_of("ann")));
	/* what cannot be read leaves what was read before */
	write_list(path, "ann\n10.0.0.1/8\n");
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	assert_true(is_said(
		said, "list:2: \"10.0.0.1/8\" is not a network: host bits are set. The list stays as it was read before"));
	unlink(path);
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	assert_true(is_said(said, "cannot open"));
	assert_int_equal(weir_exempt_list_open(lists, path, &third, &error), WEIR_OK);
	assert_ptr_equal(second, third);
	weir_exempt_list_close(first);
	weir_exempt_list_close(second);
	weir_exempt_list_close(third);
	/* or a list is one's own */
	assert_int_equal(weir_exempt_list_open(NULL, path, &third, &error), WEIR_IO);
	write_list(path, "joe\n");
	assert_int_equal(weir_exempt_list_open(NULL, path, &third, &error), WEIR_OK);
	assert_true(weir_exempt_list_has_word(third, weir_span_of("joe")));
	weir_exempt_list_close(third);
	/* what no policy names any more is forgotten */
	struct weir_policy *other = policy_of("list", "/nowhere");
	weir_exempt_lists_prune(lists, policy);
	assert_true(weir_exempt_lists_state(lists, path).inode != 0);
	weir_exempt_lists_prune(lists, other);
	assert_true(weir_exempt_lists_state(lists, path).inode == 0);
	weir_exempt_lists_free(lists);
	weir_policy_free(policy);
	weir_policy_free(other);
	fclose(said);
}

/* ---- long lists ---- */

/* So long that it takes a while to read it. @param last  behind all that is good */
static void write_long(const char *path, const char *last)
{
	char next[600];
	snprintf(next, sizeof next, "%s.next", path);
	FILE *file = fopen(next, "w");
	for (uint32_t i = 0; i < LONG; i++)
		fprintf(file, "word%u\n", i * 3);
	fputs(last, file);
	fclose(file);
	assert_int_equal(rename(next, path), 0);
}

/* A thread that reads what has changed. */
struct renewal {
	struct weir_exempt_lists *lists;
	const struct weir_policy *policy;
	pthread_t thread;
	int64_t took_ms;
	_Atomic bool done;
};

static void *renew(void *context)
{
	struct renewal *renewal = context;
	struct weir_error error;
	int64_t began_ms = weir_monotonic_ms();
	assert_int_equal(weir_exempt_lists_refresh(renewal->lists, renewal->policy, &error), WEIR_OK);
	renewal->took_ms = weir_monotonic_ms() - began_ms;
	renewal->done = true;
	return NULL;
}

/* Opens a list as whoever judges does. @return how long that took */
static int64_t open_ms(struct weir_exempt_lists *lists, const char *path, const char *word, bool has)
{
	struct weir_exempt_list *list;
	struct weir_error error;
	int64_t began_ms = weir_monotonic_ms();
	assert_int_equal(weir_exempt_list_open(lists, path, &list, &error), WEIR_OK);
	int64_t took_ms = weir_monotonic_ms() - began_ms;
	if (word != NULL)
		assert_int_equal(weir_exempt_list_has_word(list, weir_span_of(word)), has);
	weir_exempt_list_close(list);
	return took_ms;
}

/* They have the list of before, and other lists, until the new one is whole. */
static void nobody_waits_while_a_list_is_read_anew(void **state)
{
	char path[512], other[512];
	snprintf(path, sizeof path, "%s", path_in(state, "long"));
	snprintf(other, sizeof other, "%s", path_in(state, "other"));
	struct weir_policy *policy = policy_of("list", path);
	struct renewal renewal = {.lists = weir_exempt_lists_new(NULL, NULL), .policy = policy};
	bool waited = true;
	write_list(path, "ann\n");
	write_list(other, "bob\n");
	(void)open_ms(renewal.lists, path, "ann", true);
	(void)open_ms(renewal.lists, other, "bob", true);
	for (int attempt = 0; waited && attempt < 4; attempt++) { /* the machine may stand still meanwhile */
		int64_t longest_ms = 0;
		write_long(path, "eve\n");
		renewal.done = false;
		assert_int_equal(pthread_create(&renewal.thread, NULL, renew, &renewal), 0);
		while (!renewal.done) {
			int64_t opened_ms = open_ms(renewal.lists, path, NULL, false) + open_ms(renewal.lists, other, "bob", true);
			longest_ms = opened_ms > longest_ms ? opened_ms : longest_ms;
		}
		pthread_join(renewal.thread, NULL);
		waited = longest_ms > renewal.took_ms / 2;
		(void)open_ms(renewal.lists, path, "eve", true);
	}
	assert_false(waited);
	weir_exempt_lists_free(renewal.lists);
	weir_policy_free(policy);
}

/* Who needs a list that nobody has read yet waits for whoever reads it, and has it whole. */
static void a_list_that_is_new_is_read_once(void **state)
{
	const char *path = path_in(state, "long");
	struct renewal renewals[3];
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_policy *policy = policy_of("list", path);
	struct weir_exempt_list *first, *list;
	struct weir_error error;
	write_long(path, "eve\n");
	for (size_t i = 0; i < 3; i++) {
		renewals[i] = (struct renewal){.lists = lists, .policy = policy};
		assert_int_equal(pthread_create(&renewals[i].thread, NULL, renew, &renewals[i]), 0);
	}
	assert_int_equal(weir_exempt_list_open(lists, path, &first, &error), WEIR_OK);
	assert_true(weir_exempt_list_has_word(first, weir_span_of("eve")));
	for (size_t i = 0; i < 3; i++)
		pthread_join(renewals[i].thread, NULL);
	assert_int_equal(weir_exempt_list_open(lists, path, &list, &error), WEIR_OK);
	assert_ptr_equal(first, list);
	weir_exempt_list_close(first);
	weir_exempt_list_close(list);
	weir_exempt_lists_free(lists);
	weir_policy_free(policy);
}

/* Whoever tries again and again is told of the same mistake at once; a file that was mended is read. */
static void a_file_that_is_no_list_is_read_once(void **state)
{
	const char *path = path_in(state, "long");
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_policy *other = policy_of("list", "/nowhere");
	struct weir_exempt_list *list;
	struct weir_error error, again;
	int64_t took_ms[3];
	write_long(path, "10.0.0.1/8\n");
	for (int i = 0; i < 3; i++) {
		int64_t began_ms = weir_monotonic_ms();
		assert_int_equal(weir_exempt_list_open(lists, path, &list, i == 0 ? &error : &again), WEIR_INVALID);
		took_ms[i] = weir_monotonic_ms() - began_ms;
	}
	assert_string_equal(error.text, again.text);
	assert_non_null(strstr(again.text, "\"10.0.0.1/8\" is not a network"));
	assert_true(took_ms[1] < took_ms[0] / 2 || took_ms[2] < took_ms[0] / 2);
	weir_exempt_lists_prune(lists, other);
	write_list(path, "ann\n");
	(void)open_ms(lists, path, "ann", true);
	weir_exempt_lists_free(lists);
	weir_policy_free(other);
}

/* ---- mistakes ---- */

/* What is wrong with a list of this text. */
static void refuse(void **state, const char *text, size_t length, const char *words)
{
	char *path = path_in(state, "list");
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_exempt_list *list;
	struct weir_error error;
	FILE *file = fopen(path, "w");
	fwrite(text, 1, length, file);
	fclose(file);
	assert_int_equal(weir_exempt_list_open(lists, path, &list, &error), WEIR_INVALID);
	if (strstr(error.text, words) == NULL)
		fail_msg("\"%s\" lacks \"%s\"", error.text, words);
	weir_exempt_lists_free(lists);
}

static void what_is_no_entry_is_refused_with_its_line(void **state)
{
	static char longest[WEIR_EXEMPT_LINE_MAX_BYTES + 3];
	char *patterns = malloc((WEIR_EXEMPT_LIST_WILDCARDS_MAX + 1) * (size_t)8), *end = patterns;
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_exempt_list *list;
	struct weir_error error;
	refuse(state, "ok\n\n192.0.2.*\n", 14, "list:3: \"192.0.2.*\" is a wildcard in an address");
	refuse(state, "a\nb\0c\n", 6, "list:2: is not UTF-8 text");
	refuse(state, "a\nb\xff\n", 5, "list:2: is not UTF-8 text");
	memset(longest, 'a', sizeof longest);
	memcpy(longest, "a\n", 2);
	refuse(state, longest, sizeof longest, "list:2: is longer than 65536 bytes");
	for (int i = 0; i <= WEIR_EXEMPT_LIST_WILDCARDS_MAX; i++)
		end += snprintf(end, 8, "%d*\n", i);
	refuse(state, patterns, (size_t)(end - patterns), "1001 entries have a '*'; at most 1000");
	free(patterns);
	assert_int_equal(weir_exempt_list_open(lists, "/dev/zero", &list, &error), WEIR_INVALID);
	assert_string_equal(error.text, "/dev/zero is not a regular file");
	weir_exempt_lists_free(lists);
}

static void a_file_of_many_entries_is_a_list(void **state)
{
	char *path = path_in(state, "file"), words[600];
	for (uint32_t count = MANY - 1; count <= MANY; count++) {
		FILE *file = fopen(path, "w");
		for (uint32_t i = 0; i < count; i++)
			fprintf(file, i % 2 == 0 ? "10.0.%u.%u\n" : "w%u.%u\n", i >> 8, i & 255);
		fclose(file);
		struct weir_policy *policy = policy_of("file", path), *decoded;
		struct weir_error error;
		snprintf(words, sizeof words, "\"exempt\":[{\"list\":\"%s\"}]", path);
		assert_int_equal(strstr(policy->text, words) != NULL, count == MANY);
		assert_int_equal(policy->zones[0].exempt_list_count, count == MANY);
		assert_int_equal(policy->zones[0].exempt_network_count + policy->zones[0].exempt_word_count,
		                 count == MANY ? 0 : count);
		/* who has the record alone reads no file */
		unlink(path);
		assert_int_equal(weir_policy_decode(1, policy->text, strlen(policy->text), &decoded, &error), WEIR_OK);
		assert_string_equal(decoded->text, policy->text);
		weir_policy_free(policy);
		weir_policy_free(decoded);
	}
}

static bool is_matched(struct weir_matcher *matcher, const char *ip)
{
	struct weir_record record = {0};
	struct weir_matched matched;
	record.fields[WEIR_FIELD_IP] = weir_span_of(ip);
	weir_matcher_match(matcher, &record, &matched);
	return matched.event_count > 0;
}

static void who_is_in_a_list_is_in_no_zone(void **state)
{
	char *path = path_in(state, "list");
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	struct weir_error error;
	write_list(path, "192.0.2.0/30\n2001:db8::/32\nhost.example\n");
	struct weir_policy *policy = policy_of("list", path);
	weir_field_table_init(&fields);
	assert_int_equal(weir_matcher_new(policy, lists, &fields, 1, &matcher, &error), WEIR_OK);
	assert_false(is_matched(matcher, "192.0.2.3") || is_matched(matcher, "2001:db8::1") ||
	             is_matched(matcher, "host.example"));
	assert_true(is_matched(matcher, "192.0.2.4") && is_matched(matcher, "2001:db9::1") && is_matched(matcher, "host"));
	write_list(path, "192.0.2.4\n");
	weir_matcher_renew_lists(matcher, lists);
	assert_false(is_matched(matcher, "192.0.2.3"));
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	weir_matcher_renew_lists(matcher, lists);
	assert_true(is_matched(matcher, "192.0.2.3") && !is_matched(matcher, "192.0.2.4"));
	weir_exempt_lists_free(lists);
	weir_matcher_free(matcher);
	weir_field_table_deinit(&fields);
	weir_policy_free(policy);
}

static void a_change_is_told_once_it_has_settled(void **state)
{
	char *path = path_in(state, "list");
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	struct weir_exempt_watch watch = {0};
	struct weir_error error;
	int64_t now_ms = 1000000;
	write_list(path, "ann\n");
	struct weir_policy *policy = policy_of("list", path);
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	write_list(path, "bob\n"); /* between its reading and the watch */
	weir_exempt_watch_set(&watch, policy, lists, now_ms);
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_false(weir_exempt_watch_changed(&watch, now_ms + 999));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	weir_exempt_watch_again(&watch, now_ms);
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 29999));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1001));
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 60000));
	unlink(path);
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	write_list(path, "eve\n");
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	weir_exempt_watch_set(&watch, policy, lists, now_ms);
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 60000));
	/* whoever writes it anew may empty it first */
	write_list(path, "");
	for (int i = 0; i < 9; i++)
		assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	write_list(path, "eve\nann\n");
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	write_list(path, "");
	for (int i = 0; i < 10; i++)
		assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 60000));
	/* one that cannot be read is tried again each half minute, and when it changes */
	write_list(path, "10.0.0.1/8\n");
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
		weir_exempt_watch_set(&watch, policy, lists, now_ms);
		for (int k = 0; k < 29; k++)
			assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
		assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	}
	write_list(path, "10.0.0.0/8\n");
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_true(weir_exempt_watch_changed(&watch, now_ms += 1000));
	assert_int_equal(weir_exempt_lists_refresh(lists, policy, &error), WEIR_OK);
	weir_exempt_watch_set(&watch, policy, lists, now_ms);
	assert_false(weir_exempt_watch_changed(&watch, now_ms += 60000));
	weir_exempt_watch_deinit(&watch);
	weir_exempt_lists_free(lists);
	weir_policy_free(policy);
}

/* The same size, and a time of modification that was set back, as copying tools do: the time of change tells. */
static void a_change_that_hides_is_seen(void **state)
{
	char *path = path_in(state, "list");
	struct weir_exempt_file_state before, after;
	struct stat about;
	write_list(path, "ann\n");
	assert_int_equal(stat(path, &about), 0);
	assert_true(weir_exempt_file_look(path, &before));
	const struct timespec times[2] = {about.st_atim, about.st_mtim};
	do { /* the clock of files goes by ticks */
		FILE *file = fopen(path, "r+");
		assert_non_null(file);
		fputs("bob\n", file);
		fclose(file);
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
		assert_true(weir_exempt_file_look(path, &after));
	} while (after.changed_ns == before.changed_ns);
	assert_int_equal(after.bytes, before.bytes);
	assert_int_equal(after.inode, before.inode);
	assert_int_equal(after.modified_ns, before.modified_ns);
	assert_false(weir_exempt_file_same(&before, &after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_list_holds_its_entries_alone, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_list_is_shared_until_it_is_read_anew, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(nobody_waits_while_a_list_is_read_anew, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_list_that_is_new_is_read_once, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_no_list_is_read_once, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(what_is_no_entry_is_refused_with_its_line, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_file_of_many_entries_is_a_list, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(who_is_in_a_list_is_in_no_zone, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_change_is_told_once_it_has_settled, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(a_change_that_hides_is_seen, scratch_setup, scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
