/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: defaults, every setting, refusals; and the options that stand for a file. */
#include "common/base/machine.h"
#include "common/base/suggest.h"
#include "common/cluster/connect.h"
#include "common/config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ZONES                                                                                                             \
	"\"zones\": [{\"name\": \"site\", \"key\": [\"ip\"], \"limits\": [{\"algorithm\": \"sliding_window\", \"rate\": 10, " \
	"\"window\": \"1m\"}]}]"

static struct weir_config *accept(const char *text)
{
	struct weir_config *config = NULL;
	struct weir_error error;
	if (weir_config_parse("weir.json", text, strlen(text), &config, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return config;
}

static void refuse(const char *text, const char *words)
{
	struct weir_config *config = NULL;
	struct weir_error error = {.text = "accepted"};
	enum weir_status status = weir_config_parse("weir.json", text, strlen(text), &config, &error);
	assert_string_equal(error.text, words);
	assert_int_equal(status, WEIR_INVALID);
}

static void everything_but_zones_has_a_default(void **state)
{
	(void)state;
	struct weir_config *config = accept("{" ZONES "}");
	assert_int_equal(config->policy->zone_count, 1);
	assert_int_equal(config->source_count, 0);
	assert_int_equal(config->bus.partitions, 16);
	assert_int_equal(config->bus.linger_ms, 2);
	assert_int_equal(config->bus.max_linger_ms, 10);
	assert_int_equal(config->bus.sync_delay_ms, 5);
	assert_int_equal(config->bus.segment_bytes, 64 << 20);
	assert_int_equal(config->bus.retention_bytes, 1 << 30);
	assert_false(weir_json_exists(&config->bus.kafka));
	assert_int_equal(config->store.type, WEIR_STORE_SQLITE);
	assert_int_equal(config->collector.max_skew_ms, 5000);
	assert_int_equal(config->collector.line_max_bytes, 262144);
	uint32_t processors = weir_machine_processors();
	assert_int_equal(config->limiter.threads, processors < 16 ? processors : 16);
	assert_true(config->limiter.memory_bytes >= 64 << 20);
	assert_true(config->limiter.memory_bytes <= weir_machine_memory_bytes());
	assert_int_equal(config->limiter.checkpoint_interval_ms, 10000);
	assert_int_equal(config->limiter.lateness_ms, 600000);
	assert_false(config->archiver.enabled);
	assert_in_range(config->archiver.threads, 1, 4);
	assert_null(config->archiver.api);
	assert_null(config->archiver.api_host);
	assert_int_equal(config->archiver.tokens.count, 0);
	assert_int_equal(config->archiver.api_rate, 50);
	assert_int_equal(config->archiver.api_workers, 4);
	assert_null(config->listen.http);
	assert_null(config->listen.http_host);
	assert_int_equal(config->log.level, WEIR_LOG_INFO);
	assert_int_equal(config->log.json, 0);
	assert_string_equal(config->decisions.path, "-");
	assert_null(config->decisions.shadow_path);
	assert_int_equal(config->decisions.rotate_bytes, 0);
	assert_int_equal(config->decisions.keep, 10);
	assert_null(config->deadletter.path);
	assert_int_equal(config->deadletter.max_bytes, 64 << 20);
	assert_int_equal(config->deadletter.rotate_bytes, 0);
	assert_int_equal(config->deadletter.rate_per_second, 100);
	assert_int_equal(config->deadletter.keep, 1);
	weir_config_free(config);
}

static void every_setting_can_be_set(void **state)
{
	(void)state;
	setenv("HOME", "/home/of/somebody", 1);
	struct weir_config *config = accept(
		"{" ZONES ", \"sources\": [{\"type\": \"file\", \"path\": \"x\"}, {}],"
		"\"bus\": {\"partitions\": 8, \"linger\": \"1ms\", \"max_linger\": \"20ms\", \"sync_delay\": \"3ms\","
		"\"segment_size\": \"1MiB\", \"retention_size\": \"2GiB\", \"kafka\": {\"bootstrap.servers\": \"k:9092\"}},"
		"\"store\": {\"type\": \"sqlite\"},"
		"\"collector\": {\"max_skew\": \"0s\", \"line_max\": 4096},"
		"\"limiter\": {\"threads\": 3, \"memory\": \"2GiB\", \"checkpoint_interval\": \"1m\", \"lateness\": \"1h\"},"
		"\"archiver\": {\"enabled\": true, \"api\": \"*:8642\", \"tokens\": [\"0123456789abcdef\", {\"env\": \"HOME\"}],"
		"\"api_rate\": 0, \"api_workers\": 2, \"threads\": 12, \"keep_decisions\": \"30d\"}, \"listen\": {\"http\": \"127.0.0.1:9464\"},"
		"\"log\": {\"level\": \"warning\", \"format\": \"json\"},"
		"\"decisions\": {\"path\": \"d\", \"shadow_path\": \"s\", \"rotate_size\": \"1GiB\", \"keep\": 3},"
		"\"deadletter\": {\"path\": \"l\", \"max_size\": \"1MiB\", \"rotate_size\": \"2MiB\", \"rate\": 0, \"keep\": 2}}");
	assert_int_equal(config->source_count, 2);
	struct weir_json source = weir_json_element(&config->sources, 0);
	assert_string_equal(source.path, "sources[0]");
	assert_true(json_is_object(source.value));
	assert_int_equal(config->bus.partitions, 8);
	assert_int_equal(config->bus.linger_ms, 1);
	assert_int_equal(config->bus.max_linger_ms, 20);
	assert_int_equal(config->bus.sync_delay_ms, 3);
	assert_int_equal(config->bus.segment_bytes, 1 << 20);
	assert_true(config->bus.retention_bytes == INT64_C(2) << 30);
	assert_string_equal(config->bus.kafka.path, "bus.kafka");
	assert_true(weir_json_exists(&config->bus.kafka));
	assert_int_equal(config->collector.max_skew_ms, 0);
	assert_int_equal(config->collector.line_max_bytes, 4096);
	assert_int_equal(config->limiter.threads, 3);
	assert_true(config->limiter.memory_bytes == INT64_C(2) << 30);
	assert_int_equal(config->limiter.checkpoint_interval_ms, 60000);
	assert_int_equal(config->limiter.lateness_ms, 3600000);
	assert_true(config->archiver.enabled);
	assert_string_equal(config->archiver.api_host, "*");
	assert_int_equal(config->archiver.api_port, 8642);
	assert_int_equal(config->archiver.tokens.count, 2);
	struct weir_secrets tokens;
	struct weir_error error;
	assert_int_equal(weir_config_open_tokens(config, &tokens, &error), WEIR_OK);
	assert_int_equal(tokens.count, 2);
	assert_string_equal(tokens.at[0], "0123456789abcdef");
	assert_string_equal(tokens.at[1], "/home/of/somebody");
	weir_secrets_deinit(&tokens);
	assert_int_equal(config->archiver.api_rate, 0);
	assert_int_equal(config->archiver.api_workers, 2);
	assert_int_equal(config->archiver.threads, 8);              /* a partition has one */
	for (int table = 0; table < WEIR_ARCHIVE_TABLES; table++) { /* of either mode */
		bool decided = table == WEIR_ARCHIVE_DECISIONS || table == WEIR_ARCHIVE_SHADOW;
		assert_int_equal(config->archiver.keep_ms[table], decided ? 30 * (int64_t)WEIR_DAY_MS : 0);
	}
	assert_string_equal(config->listen.http_host, "127.0.0.1");
	assert_int_equal(config->listen.http_port, 9464);
	assert_int_equal(config->log.level, WEIR_LOG_WARNING);
	assert_int_equal(config->log.json, 1);
	assert_string_equal(config->decisions.path, "d");
	assert_string_equal(config->decisions.shadow_path, "s");
	assert_int_equal(config->decisions.rotate_bytes, 1 << 30);
	assert_int_equal(config->decisions.keep, 3);
	assert_string_equal(config->deadletter.path, "l");
	assert_int_equal(config->deadletter.max_bytes, 1 << 20);
	assert_int_equal(config->deadletter.rotate_bytes, 2 << 20);
	assert_int_equal(config->deadletter.rate_per_second, 0);
	assert_int_equal(config->deadletter.keep, 2);
	weir_config_free(config);
}

static void threads_are_no_more_than_partitions(void **state)
{
	(void)state;
	struct weir_config *config = accept("{" ZONES ", \"bus\": {\"partitions\": 2}, \"limiter\": {\"threads\": 9}}");
	assert_int_equal(config->limiter.threads, 2);
	weir_config_free(config);
}

static void refuses_in_words(void **state)
{
	(void)state;
	refuse("{}",
	       "weir.json:1: zones: is missing; for example [{\"name\": \"site\", \"key\": [\"ip\"], \"limits\": [...]}]");
	refuse("[]", "weir.json:1: must be an object, not an array");
	refuse("{\"bus\": {\"type\": \"kafka\", \"brokers\": \"a:1\"}, \"exempt\": [\"10.0.0.0/8\"]}",
	       "weir.json:1: exempt: is about the zones beside it, and there are none: in a cluster, give it to the "
	       "configuration of `weir policy apply`");
	refuse(
		"{" ZONES ",\n\"zone\": 1}",
		"weir.json:2: unknown key \"zone\"; did you mean \"zones\"? (known: $schema, zones, sources, exempt, gateways, bus, store, redis, collector, "
		"limiter, archiver, listen, checks, log, decisions, deadletter)");
	refuse(
		"{" ZONES ",\n\"bus\": {\n\"partition\": 1}}",
		"weir.json:3: bus: unknown key \"partition\"; did you mean \"partitions\"? (known: type, partitions, "
		"linger, max_linger, sync_delay, segment_size, retention_size, explain_size, brokers, prefix, replication, min_insync, "
		"retention, kafka)");
	refuse("{" ZONES ",\n\"bus\": {\"partitions\": 1025}}",
	       "weir.json:2: bus.partitions: must be a whole number from 1 to 1024, not 1025");
	refuse("{" ZONES ", \"bus\": []}", "weir.json:1: bus: must be an object, not an array");
	refuse("{" ZONES ", \"bus\": {\"kafka\": 1}}", "weir.json:1: bus.kafka: must be an object");
	refuse("{" ZONES ", \"listen\": {\"resp\": \"127.0.0.1:6390\", \"grpc\": \"127.0.0.1:6390\"}}",
	       "weir.json:1: listen.grpc: has the port of listen.resp: give each one of its own");
	refuse("{" ZONES ", \"listen\": {\"http\": \"*:6390\", \"check_http\": \"127.0.0.1:6390\"}}",
	       "weir.json:1: listen.check_http: has the port of listen.http: give each one of its own");
	refuse("{\"bus\": {\"type\": \"kafka\", \"brokers\": \"a:1\"}, \"listen\": {\"grpc\": \"127.0.0.1:1\"}}",
	       "weir.json:1: listen.resp: is missing; in a cluster limiters ask each other there: HOST:PORT");
	refuse(
		"{\"bus\": {\"type\": \"kafka\", \"brokers\": \"a:1\"}, \"listen\": {\"resp\": \"127.0.0.1:0\"}}",
		"weir.json:1: listen.resp: needs a port, or \"checks.advertise\": in a cluster limiters ask each other there");
	refuse("{" ZONES ", \"bus\": {\"linger\": \"20ms\"}}", "weir.json:1: bus.max_linger: must not be below \"linger\"");
	refuse("{" ZONES ", \"bus\": {\"type\": \"kafka\"}}",
	       "weir.json:1: bus.brokers: is missing; give HOST:PORT of one or more brokers, such as "
	       "\"127.0.0.1:9092\"");
	refuse("{" ZONES ", \"bus\": {\"replication\": 1, \"min_insync\": 2}}",
	       "weir.json:1: bus.min_insync: must not be above \"replication\" (1)");
	refuse("{" ZONES ", \"store\": {\"type\": \"sqlit\"}}",
	       "weir.json:1: store.type: must be one of \"sqlite\", \"mysql\", not \"sqlit\"; did you mean \"sqlite\"?");
	refuse("{" ZONES ", \"decisions\": {\"path\": \"\"}}", "weir.json:1: decisions.path: must not be empty; remove it");
	refuse("{" ZONES ", \"sources\": [1]}",
	       "weir.json:1: sources[0]: must be an object, such as {\"type\": \"file\", \"path\": "
	       "\"/var/log/nginx/access.log\", \"format\": \"combined\"}");
	refuse(
		"{" ZONES ", \"limiter\": {\"memory\": \"1MiB\"}}",
		"weir.json:1: limiter.memory: must be a size from \"16MiB\" to \"1024TiB\", a number of bytes or of KiB, MiB, GiB "
		"or TiB such as \"64MiB\", not \"1MiB\"");
	refuse("{" ZONES ", \"archiver\": {\"enabled\": \"yes\"}}",
	       "weir.json:1: archiver.enabled: must be true or false, not \"yes\"");
}

static void the_api_is_open_to_others_by_tokens_alone(void **state)
{
	(void)state;
	static const char *const own[] = {"127.0.0.1:1", "127.9.9.9:1", "localhost:1", "[::1]:1"};
	static const char *const others[] = {"*:1", ":1", "0.0.0.0:1", "[::]:1", "192.0.2.1:1", "127.0.0.1.example:1"};
	char text[512];
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		snprintf(text, sizeof text, "{" ZONES ", \"archiver\": {\"api\": \"%s\"}}", own[i]);
		weir_config_free(accept(text));
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		snprintf(text, sizeof text, "{" ZONES ", \"archiver\": {\"api\": \"%s\", \"tokens\": []}}", others[i]);
		refuse(text, "weir.json:1: archiver.api: must be a loopback address such as \"127.0.0.1:8642\" unless "
		             "\"tokens\" is set: anyone who can reach the API can read everything");
		snprintf(text, sizeof text, "{" ZONES ", \"archiver\": {\"api\": \"%s\", \"tokens\": [\"0123456789abcdef\"]}}",
		         others[i]);
		weir_config_free(accept(text));
	}
	refuse("{" ZONES ", \"archiver\": {\"tokens\": [\"0123456789abcdef\", \"0123456789 abcdef\"]}}",
	       "weir.json:1: archiver.tokens[1]: a token must be 16 to 1024 printable ASCII characters without spaces");
	refuse("{" ZONES ", \"archiver\": {\"tokens\": [1]}}",
	       "weir.json:1: archiver.tokens[0]: must be a string, {\"file\": PATH} or {\"env\": NAME}");
}

/* Of a secret that another role uses, nothing need be here. */
static void a_secret_is_opened_by_who_uses_it(void **state)
{
	(void)state;
	unsetenv("WEIR_TEST_ABSENT");
	struct weir_config *config =
		accept("{" ZONES ",\n\"bus\": {\"type\": \"kafka\", \"brokers\": \"127.0.0.1:1\"},\n"
	           "\"store\": {\"type\": \"mysql\", \"password\": {\"file\": \"/nonexistent/p\"}},\n"
	           "\"redis\": {\"url\": {\"env\": \"WEIR_TEST_ABSENT\"}},\n"
	           "\"archiver\": {\"api\": \"0.0.0.0:1\", \"tokens\": [\"0123456789abcdef\",\n"
	           "{\"env\": \"WEIR_TEST_ABSENT\"}]}}");
	struct weir_secrets tokens;
	struct weir_error error;
	char *url = NULL;
	assert_int_equal(weir_config_open_tokens(config, &tokens, &error), WEIR_INVALID);
	assert_string_equal(error.text,
	                    "weir.json:6: archiver.tokens[1].env: environment variable WEIR_TEST_ABSENT is not set");
	weir_secrets_deinit(&tokens);
	assert_int_equal(weir_json_secret(&config->redis.url, &url, &error), WEIR_INVALID);
	assert_string_equal(error.text, "weir.json:4: redis.url.env: environment variable WEIR_TEST_ABSENT is not set");
	assert_int_equal(weir_connect_check_bus(config, "weir-collector", &error), WEIR_OK);
	assert_int_equal(weir_connect_check(config, "weir-limiter", &error), WEIR_INVALID);
	assert_string_equal(error.text, "weir.json:3: store.password.file: cannot open /nonexistent/p: No such file or "
	                                "directory; weir-limiter needs it to log in to the store");
	setenv("WEIR_TEST_ABSENT", "short", 1);
	assert_int_equal(weir_config_open_tokens(config, &tokens, &error), WEIR_INVALID);
	assert_string_equal(
		error.text,
		"weir.json:6: archiver.tokens[1]: a token must be 16 to 1024 printable ASCII characters without spaces");
	weir_secrets_deinit(&tokens);
	unsetenv("WEIR_TEST_ABSENT");
	weir_config_free(config);
	refuse("{" ZONES ", \"store\": {\"password\": {\"fil\": \"x\"}}}",
	       "weir.json:1: store.password: must be a string, {\"file\": PATH} or {\"env\": NAME}");
}

static void listen_addresses_are_split(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host;
		uint16_t port;
	} good[] = {{"127.0.0.1:9464", "127.0.0.1", 9464},
	            {"[::1]:1", "::1", 1},
	            {"*:65535", "*", 65535},
	            {":80", "*", 80},
	            {"[fe80::1%eth0]:7", "fe80::1%eth0", 7},
	            {"limiter_1.example.com:8", "limiter_1.example.com", 8},
	            {"1.2.3.4.example.com:8", "1.2.3.4.example.com", 8},
	            {"localhost:0", "localhost", 0}};
	char text[512], words[256];
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		snprintf(text, sizeof text, "{" ZONES ", \"listen\": {\"http\": \"%s\"}}", good[i].text);
		struct weir_config *config = accept(text);
		assert_string_equal(config->listen.http_host, good[i].host);
		assert_int_equal(config->listen.http_port, good[i].port);
		weir_config_free(config);
	}
	static const char *const bad[] = {"9464",        "::1:9464", "localhost",     "localhost:",   "localhost:65536",
	                                  "localhost:x", "h:1x",     "[[::1]]:1",     "[]:1",         "[localhost]:1",
	                                  "a b:1",       " b:1",     "http://b:1",    "[fe80::1%]:1", "[::1%a]b]:1",
	                                  "b*:1",        "[::1:1",   "127.0.0.256:1", "1.2.3.4.5:1",  "...:1"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(text, sizeof text, "{" ZONES ", \"listen\": {\"http\": \"%s\"}}", bad[i]);
		snprintf(
			words, sizeof words,
			"weir.json:1: listen.http: must be HOST:PORT, such as \"127.0.0.1:9464\", \"[::1]:9464\" or \"*:9464\", not "
			"\"%s\"",
			bad[i]);
		refuse(text, words);
	}
}

/* Beyond this machine, whoever reaches the port could use up everyone's limits. */
static void checks_need_a_password_beyond_this_machine(void **state)
{
	(void)state;
	refuse(
		"{" ZONES ", \"listen\": {\"resp\": \"*:6390\"}}",
		"weir.json:1: listen.resp: must be a loopback address such as \"127.0.0.1:6390\" unless checks.password is set: "
		"anyone who can reach it can use up everyone's limits");
	refuse("{" ZONES ", \"listen\": {\"resp\": \"6390\"}}",
	       "weir.json:1: listen.resp: must be HOST:PORT, such as \"127.0.0.1:6390\", \"[::1]:6390\" or \"*:6390\", not "
	       "\"6390\"");
	refuse("{" ZONES ", \"listen\": {\"resp\": \":6390\"}, \"checks\": {\"password\": \"p\", \"tls\": true}}",
	       "weir.json:1: checks.tls: needs listen.certificate and listen.key");
	struct weir_config *config =
		accept("{" ZONES ", \"listen\": {\"resp\": \"*:6390\"}, \"checks\": {\"password\": \"p\"}}");
	assert_string_equal(config->listen.resp_host, "*");
	assert_int_equal(config->listen.resp_port, 6390);
	assert_int_equal(config->checks.on_unavailable, WEIR_ON_UNAVAILABLE_ERROR);
	assert_false(config->checks.durable);
	weir_config_free(config);
}

static void files_are_read(void **state)
{
	(void)state;
	char path[] = "/tmp/weir-config-XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	fputs("{" ZONES "}", file);
	fclose(file);
	struct weir_config *config;
	struct weir_error error;
	assert_int_equal(weir_config_load(path, &config, &error), WEIR_OK);
	weir_config_free(config);
	unlink(path);
	assert_int_equal(weir_config_load(path, &config, &error), WEIR_IO);
}

static void the_settings_are_documented(void **state)
{
	(void)state;
	struct weir_text text = {0};
	weir_config_describe(&text);
	weir_text_append(&text, "", 1);
	assert_non_null(strstr(text.at,
	                       "| `bus.partitions` | number, 1 to 1024 | `16` | partitions that keys are divided into; "
	                       "cannot change once there is state |\n"));
	assert_non_null(strstr(text.at, "| `log.level` | `\"debug\"`, `\"info\"`, `\"warning\"`, `\"error\"` | `info` |"));
	assert_non_null(strstr(
		text.at,
		"| `limiter.memory` | size, 16MiB to 1024TiB | half of the machine's memory, or of the least limit of its systemd unit or container |"));
	weir_text_deinit(&text);
}

/* ---- options in place of a file ---- */

#define COUNT(list) (sizeof(list) / sizeof *(list))

static char *shorthand_text(const struct weir_shorthand *shorthand)
{
	char *text;
	struct weir_error error;
	if (weir_config_shorthand(shorthand, &text, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return text;
}

static void options_stand_for_a_configuration(void **state)
{
	(void)state;
	static const char *const keys[] = {"ip", "ip,/request/user", ""}, *const limits[] = {"10/1m", "100/1h", "1000/1d"},
							 *const logs[] = {"access.log", "-"};
	struct weir_shorthand shorthand = {.format = "combined",
	                                   .keys = keys,
	                                   .key_count = COUNT(keys),
	                                   .limits = limits,
	                                   .limit_count = COUNT(limits),
	                                   .logs = logs,
	                                   .log_count = COUNT(logs),
	                                   .follow = true};
	char *text = shorthand_text(&shorthand);
	struct weir_config *config = accept(text);
	assert_int_equal(config->policy->zone_count, 3);
	assert_string_equal(config->policy->zones[0].name, "ip");
	assert_string_equal(config->policy->zones[1].name, "ip-_request_user");
	assert_string_equal(config->policy->zones[1].key[1].field, "/request/user");
	assert_string_equal(config->policy->zones[2].name, "all");
	assert_int_equal(config->policy->zones[2].key_count, 0);
	const struct weir_limit *made = config->policy->zones[0].limits;
	assert_int_equal(config->policy->zones[0].limit_count, 3);
	assert_ptr_equal(made[0].algorithm, weir_algorithm_named("sliding_window"));
	assert_int_equal(made[0].rate, 10);
	assert_int_equal(made[0].window_ms, 60000);
	assert_ptr_equal(made[1].algorithm, weir_algorithm_named("fixed_window"));
	assert_ptr_equal(made[2].algorithm, weir_algorithm_named("fixed_window"));
	struct weir_json source = weir_json_element(&config->sources, 0);
	char *dumped = json_dumps(source.value, JSON_COMPACT);
	assert_string_equal(dumped, "{\"type\":\"file\",\"path\":\"access.log\",\"format\":\"combined\",\"follow\":true}");
	free(dumped);
	source = weir_json_element(&config->sources, 1);
	dumped = json_dumps(source.value, JSON_COMPACT);
	assert_string_equal(dumped, "{\"type\":\"stdin\",\"format\":\"combined\"}");
	free(dumped);
	weir_config_free(config);
	free(text);
}

static void every_algorithm_can_be_named(void **state)
{
	(void)state;
	static const char *const limits[] = {"10/2h:sliding_window", "10/1m:fixed_window", "1/500ms:uniform",
	                                     "5/1s:token_bucket",    "5/1s:gcra",          "3/30s:queue"};
	struct weir_shorthand shorthand = {.limits = limits, .limit_count = COUNT(limits)};
	char *text = shorthand_text(&shorthand);
	struct weir_config *config = accept(text);
	assert_string_equal(config->policy->zones[0].name, "ip");
	const struct weir_limit *made = config->policy->zones[0].limits;
	assert_ptr_equal(made[0].algorithm, weir_algorithm_named("sliding_window"));
	assert_ptr_equal(made[1].algorithm, weir_algorithm_named("fixed_window"));
	assert_int_equal(made[2].window_ms, 500);
	assert_int_equal(made[3].burst, 5);
	assert_int_equal(made[4].burst, 4);
	assert_int_equal(made[5].rate, 3);
	assert_int_equal(made[5].window_ms, 30000);
	weir_config_free(config);
	free(text);
}

static void a_format_may_be_an_object(void **state)
{
	(void)state;
	static const char *const limits[] = {"1/1s"}, *const logs[] = {"x"};
	struct weir_shorthand shorthand = {.format = "{\"type\": \"json\", \"time\": \"ts\"}",
	                                   .limits = limits,
	                                   .limit_count = 1,
	                                   .logs = logs,
	                                   .log_count = 1};
	char *text = shorthand_text(&shorthand);
	struct weir_config *config;
	struct weir_error error;
	assert_int_equal(weir_config_parse(WEIR_JSON_COMMAND_LINE, text, strlen(text), &config, &error), WEIR_OK);
	struct weir_json source = weir_json_element(&config->sources, 0), format = weir_json_member(&source, "format");
	struct weir_json time = weir_json_member(&format, "time");
	assert_int_equal(weir_json_fail(&time, &error, "is wrong"), WEIR_INVALID);
	assert_string_equal(error.text, "command line: sources[0].format.time: is wrong");
	weir_config_free(config);
	free(text);
}

static void an_unknown_algorithm_is_told_the_known_ones(void **state)
{
	(void)state;
	static const char *const limits[] = {"1/1m:", "1/1m:gcrs"}, *const suggestions[] = {"", "; did you mean \"gcra\"?"};
	char known[256], words[512];
	weir_list_names(weir_algorithm_names(), "", known, sizeof known);
	for (size_t i = 0; i < COUNT(limits); i++) {
		struct weir_shorthand shorthand = {.limits = &limits[i], .limit_count = 1};
		struct weir_error error = {.text = "accepted"};
		char *text;
		assert_int_equal(weir_config_shorthand(&shorthand, &text, &error), WEIR_INVALID);
		snprintf(words, sizeof words, "--limit %s: unknown algorithm \"%s\"%s (known: %s)", limits[i], limits[i] + 5,
		         suggestions[i], known);
		assert_string_equal(error.text, words);
	}
}

static void wrong_options_are_named(void **state)
{
	(void)state;
#define LIMIT_FORM "; a limit is N/WINDOW or N/WINDOW:ALGORITHM, such as 10/1m or 100/1h:fixed_window"
	static const struct {
		const char *format, *key, *limit, *words;
	} cases[] = {
		{NULL, NULL, NULL, "--limit: give 1 to 8 limits, such as --limit 10/1m --limit 100/1h"},
		{NULL, NULL, "10", "--limit 10: the \"/\" is missing" LIMIT_FORM},
		{NULL, NULL, "ten/1m",
	     "--limit ten/1m: the part before the \"/\" must be a whole number from 1 to 1000000000" LIMIT_FORM},
		{NULL, NULL, "0/1m",
	     "--limit 0/1m: the part before the \"/\" must be a whole number from 1 to 1000000000" LIMIT_FORM},
		{NULL, NULL, "1/m",
	     "--limit 1/m: the window must be a time from 1ms to 366d, such as 500ms, 10s, 1m, 1h or "
	     "1d" LIMIT_FORM},
		{NULL, NULL, "1/0s",
	     "--limit 1/0s: the window must be a time from 1ms to 366d, such as 500ms, 10s, 1m, 1h or "
	     "1d" LIMIT_FORM},
		{NULL, NULL, "2/1m:uniform",
	     "--limit 2/1m:uniform: uniform lets 1 pass in each interval: write 1/INTERVAL:uniform" LIMIT_FORM},
		{NULL, "ip,", "1/1m", "--key ip,: must be 1 to 4 field names separated by commas, such as ip or ip,path"},
		{NULL, "a,b,c,d,e", "1/1m",
	     "--key a,b,c,d,e: must be 1 to 4 field names separated by commas, such as ip or ip,path"},
		{"{\"type\"", NULL, "1/1m", "--format:1:7: not valid JSON: ':' expected near end of file"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct weir_shorthand shorthand = {.format = cases[i].format,
		                                   .keys = &cases[i].key,
		                                   .key_count = cases[i].key != NULL,
		                                   .limits = &cases[i].limit,
		                                   .limit_count = cases[i].limit != NULL};
		char *text;
		struct weir_error error = {.text = "accepted"};
		enum weir_status status = weir_config_shorthand(&shorthand, &text, &error);
		assert_string_equal(error.text, cases[i].words);
		assert_int_equal(status, WEIR_INVALID);
	}
	static const char *const empty[] = {""}, *const one[] = {"1/1s"};
	struct weir_shorthand no_log = {.limits = one, .limit_count = 1, .logs = empty, .log_count = 1};
	char *unmade;
	struct weir_error no_log_error;
	assert_int_equal(weir_config_shorthand(&no_log, &unmade, &no_log_error), WEIR_INVALID);
	assert_string_equal(no_log_error.text,
	                    "the path of log 1 is empty or not UTF-8 text: use a glob in a --config file");
	static const char *const twice[] = {"ip", "ip"}, *const limits[] = {"1/1m"};
	struct weir_shorthand shorthand = {.keys = twice, .key_count = 2, .limits = limits, .limit_count = 1};
	char *text;
	struct weir_error error;
	assert_int_equal(weir_config_shorthand(&shorthand, &text, &error), WEIR_INVALID);
	assert_string_equal(error.text, "--key ip: is given twice, or makes the same zone name as another");
}

static void expect_words(const char *path, const char *expected)
{
	char *words = weir_command_words("--config", path);
	assert_string_equal(words, expected);
	free(words);
}

static void a_path_is_one_word_of_a_shell(void **state)
{
	(void)state;
	char before[4096];
	assert_non_null(getcwd(before, sizeof before));
	expect_words("/no such/weir.json", "--config '/no such/weir.json'");
	expect_words("/no/it's.json", "--config '/no/it'\\''s.json'");
	expect_words("/no/weir-1.json", "--config /no/weir-1.json");
	assert_int_equal(chdir("/"), 0);
	expect_words("./dev", "--config /dev"); /* from any directory */
	assert_int_equal(chdir("/usr"), 0);
	expect_words("no.json", "--config /usr/no.json");
	assert_int_equal(chdir(before), 0);
}

/* A command that is printed runs as printed: with the file that was read. */
static void commands_name_the_file(void **state)
{
	(void)state;
	static const char cluster[] = "{\"bus\": {\"type\": \"kafka\", \"brokers\": \"127.0.0.1:9\"}}";
	static const char zones[] = "{" ZONES "}";
	char path[] = "/tmp/weir-words-XXXXXX", expected[64];
	int fd = mkstemp(path);
	snprintf(expected, sizeof expected, "--config %s", path);
	for (int i = 0; i < 2; i++) {
		const char *text = i == 0 ? cluster : zones;
		struct weir_config *config;
		struct weir_error error;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
		if (weir_config_load(path, &config, &error) != WEIR_OK)
			fail_msg("%s", error.text);
		assert_string_equal(weir_config_words(config), expected);
		/* a file without zones cannot be applied */
		assert_string_equal(weir_config_zones_words(config), i == 0 ? "--config FILE" : expected);
		weir_config_free(config);
	}
	close(fd);
	unlink(path);
	struct weir_config *config = accept(zones);
	assert_string_equal(weir_config_words(config), "--config FILE");
	weir_config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_but_zones_has_a_default),
		cmocka_unit_test(every_setting_can_be_set),
		cmocka_unit_test(threads_are_no_more_than_partitions),
		cmocka_unit_test(refuses_in_words),
		cmocka_unit_test(the_api_is_open_to_others_by_tokens_alone),
		cmocka_unit_test(a_secret_is_opened_by_who_uses_it),
		cmocka_unit_test(listen_addresses_are_split),
		cmocka_unit_test(checks_need_a_password_beyond_this_machine),
		cmocka_unit_test(files_are_read),
		cmocka_unit_test(the_settings_are_documented),
		cmocka_unit_test(options_stand_for_a_configuration),
		cmocka_unit_test(every_algorithm_can_be_named),
		cmocka_unit_test(a_format_may_be_an_object),
		cmocka_unit_test(an_unknown_algorithm_is_told_the_known_ones),
		cmocka_unit_test(wrong_options_are_named),
		cmocka_unit_test(a_path_is_one_word_of_a_shell),
		cmocka_unit_test(commands_name_the_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
