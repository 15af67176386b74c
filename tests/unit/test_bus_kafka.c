/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka bus as far as it goes without a broker: its properties, its topics' names, what it accepts of a topic. */
#include "common/bus/kafka/internal.h"

#include "common/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct weir_config *config_of(const char *bus, const char *more)
{
	struct weir_config *config;
	struct weir_error error;
	char text[4096];
	snprintf(text, sizeof text,
	         "{\"bus\": {\"type\": \"kafka\", \"brokers\": \"127.0.0.1:1\"%s%s},\n \"sources\": []%s}",
	         bus[0] != '\0' ? ",\n  " : "", bus, more);
	if (weir_config_parse("weir.json", text, strlen(text), &config, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return config;
}

static void assert_check(const char *bus, const char *expected)
{
	struct weir_config *config = config_of(bus, "");
	struct weir_error error = {.text = "OK"};
	enum weir_status status = weir_bus_kafka_check(config, &error);
	assert_int_equal(strcmp(expected, "OK") == 0 ? WEIR_OK : WEIR_INVALID, status);
	if (strstr(error.text, expected) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", expected, error.text);
	weir_config_free(config);
}

static void properties_pass_through(void **state)
{
	(void)state;
	assert_check("", "OK");
	assert_check("\"kafka\": {}", "OK");
	assert_check("\"kafka\": {\"linger.ms\": 5, \"socket.keepalive.enable\": true, \"compression.type\": \"lz4\", "
	             "\"session.timeout.ms\": \"30000\", \"client.id\": \"mine\", \"socket.send.buffer.bytes\": 0}",
	             "OK");
}

static void secrets_come_from_files_and_the_environment(void **state)
{
	(void)state;
	char path[] = "/tmp/weir-secret-XXXXXX", bus[512];
	int fd = mkstemp(path);
	assert_int_equal(4, write(fd, "abc\n", 4));
	close(fd);
	setenv("WEIR_TEST_USER", "me", 1);
	snprintf(bus, sizeof bus,
	         "\"kafka\": {\"sasl.mechanism\": \"PLAIN\", \"security.protocol\": \"sasl_plaintext\", "
	         "\"sasl.username\": {\"env\": \"WEIR_TEST_USER\"}, \"sasl.password\": {\"file\": \"%s\"}}",
	         path);
	assert_check(bus, "OK");
	unlink(path);
	assert_check(bus, "weir.json:2: bus.kafka.sasl.password.file: ");
	assert_check("\"kafka\": {\"sasl.password\": {\"env\": \"WEIR_TEST_NONE\"}}",
	             "bus.kafka.sasl.password.env: environment variable WEIR_TEST_NONE is not set");
	assert_check("\"kafka\": {\"sasl.password\": {\"path\": \"x\"}}", "bus.kafka.sasl.password: must be a string, ");
}

static void what_exactness_rests_on_is_refused(void **state)
{
	(void)state;
	static const char *const names[] = {
		"enable.idempotence",
		"enable.gapless.guarantee",
		"acks",
		"request.required.acks",
		"max.in.flight",
		"max.in.flight.requests.per.connection",
		"message.timeout.ms",
		"delivery.timeout.ms",
		"retries",
		"message.send.max.retries",
		"transactional.id",
		"isolation.level",
		"auto.offset.reset",
		"enable.auto.commit",
		"enable.auto.offset.store",
		"group.id",
		"group.instance.id",
		"partition.assignment.strategy",
		"message.max.bytes",
		"receive.message.max.bytes",
		"queue.buffering.max.messages",
		"statistics.interval.ms",
		"log.queue",
		"enabled_events",
		"bootstrap.servers",
		"metadata.broker.list",
		"allow.auto.create.topics",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char bus[256], expected[256];
		snprintf(bus, sizeof bus, "\"kafka\": {\"linger.ms\": 1,\n \"%s\": \"1\"}", names[i]);
		snprintf(expected, sizeof expected, "weir.json:3: bus.kafka.%s: cannot be set here: ", names[i]);
		assert_check(bus, expected);
	}
}

static void librdkafka_says_what_it_does_not_know(void **state)
{
	(void)state;
	assert_check("\"kafka\": {\"lingre.ms\": 5}",
	             "weir.json:2: bus.kafka.lingre.ms: No such configuration property: \"lingre.ms\"");
	assert_check("\"kafka\": {\"linger.ms\": \"soon\"}", "bus.kafka.linger.ms: ");
	assert_check("\"kafka\": {\"linger.ms\": -1}", "bus.kafka.linger.ms: ");
	assert_check("\"kafka\": {\"linger.ms\": [1]}", "bus.kafka.linger.ms: must be a string, a whole number, ");
	assert_check("\"kafka\": {\"linger.ms\": 1.5}", "bus.kafka.linger.ms: must be a string, a whole number, ");
	assert_check("\"kafka\": {\"security.protocol\": \"ssl\", \"ssl.ca.location\": \"/nowhere/ca.pem\"}",
	             "weir.json:2: bus.kafka: ssl.ca.location failed");
}

static void topics_carry_the_prefix(void **state)
{
	(void)state;
	static const char *const names[WEIR_TOPIC_COUNT] = {"a-b.events",           "a-b.judged", "a-b.decisions",
	                                                    "a-b.decisions.shadow", "a-b.policy", "a-b.deadletter"};
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		weir_bus_kafka_topic_name("a-b", (enum weir_topic)topic, name);
		assert_string_equal(names[topic], name);
	}
	weir_bus_kafka_topic_name("weir", WEIR_TOPIC_EVENTS, name);
	assert_string_equal(weir_topic_name(WEIR_TOPIC_EVENTS), name);
	assert_check("\"prefix\": \"a b\"", "weir.json:2: bus.prefix: must be 1 to 200 letters, digits");
	assert_check("\"prefix\": \"a/b\"", "bus.prefix: ");
	char bus[512], prefix[202] = {0};
	memset(prefix, 'p', 201);
	snprintf(bus, sizeof bus, "\"prefix\": \"%s\"", prefix);
	assert_check(bus, "bus.prefix: ");
	snprintf(bus, sizeof bus, "\"prefix\": \"%s\"", prefix + 1);
	assert_check(bus, "OK");
}

/* ---- settings of topics ---- */

struct judged {
	enum weir_status status;
	struct weir_error error;
	char warning[1024];
};

static struct judged judge(const char *more, enum weir_topic topic, struct weir_bus_kafka_settings settings)
{
	struct weir_config *config = config_of("\"replication\": 3, \"retention\": \"1d\"", more);
	struct weir_text warning = {0};
	struct judged judged = {.error.text = ""};
	judged.status = weir_bus_kafka_check_settings(config, topic, "t", &settings, &warning, &judged.error);
	snprintf(judged.warning, sizeof judged.warning, "%.*s", (int)warning.length, warning.length > 0 ? warning.at : "");
	weir_text_deinit(&warning);
	weir_config_free(config);
	return judged;
}

#define GOOD                                                                                            \
	.min_insync = "2", .retention_ms = "86400000", .retention_bytes = "-1", .message_bytes = "4194304", \
	.cleanup = "delete", .unclean = "false"

static void assert_judged(const struct judged *judged, const char *refusal, const char *warning)
{
	if (refusal[0] == '\0' && judged->status != WEIR_OK)
		fail_msg("refused: %s", judged->error.text);
	assert_int_equal(refusal[0] == '\0' ? WEIR_OK : WEIR_INVALID, judged->status);
	if (strstr(judged->error.text, refusal) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", refusal, judged->error.text);
	if (warning[0] == '\0' ? judged->warning[0] != '\0' : strstr(judged->warning, warning) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", warning, judged->warning);
}

#define ASSERT_JUDGED(more, topic, refusal, warning, ...)                                          \
	do {                                                                                           \
		struct judged judged_ = judge(more, topic, (struct weir_bus_kafka_settings){__VA_ARGS__}); \
		assert_judged(&judged_, refusal, warning);                                                 \
	} while (0)

static void a_good_topic_passes(void **state)
{
	(void)state;
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "", GOOD);
	ASSERT_JUDGED("", WEIR_TOPIC_POLICY, "", "", .min_insync = "3", .message_bytes = "4194304", .cleanup = "compact",
	              .retention_ms = "1", .unclean = "false");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "", .retention_ms = "-1");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "", .min_insync = NULL);
}

static void what_loses_records_is_refused(void **state)
{
	(void)state;
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "min.insync.replicas 1, less than \"bus.min_insync\" (2)", "",
	              .min_insync = "1");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "max.message.bytes 1048588, less than weir's largest message (4194304)", "",
	              .message_bytes = "1048588");
	ASSERT_JUDGED("", WEIR_TOPIC_DECISIONS, "", "", .message_bytes = "1048588");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "cleanup.policy compact", "", .cleanup = "compact");
	ASSERT_JUDGED("", WEIR_TOPIC_DECISIONS, "cleanup.policy compact,delete", "", .cleanup = "compact,delete");
	ASSERT_JUDGED("", WEIR_TOPIC_POLICY, "it must be compact", "", .cleanup = "delete");
	ASSERT_JUDGED(",\"limiter\": {\"checkpoint_interval\": \"10s\"}", WEIR_TOPIC_EVENTS, "it needs 20s at least", "",
	              .retention_ms = "19999");
	ASSERT_JUDGED(",\"limiter\": {\"checkpoint_interval\": \"10s\"}", WEIR_TOPIC_JUDGED, "it needs 20s at least", "",
	              .retention_ms = "0");
}

#define ZONE(limits) \
	",\"zones\": [{\"name\": \"z\", \"key\": [\"ip\"], \"limits\": [" limits "], \"block_for\": \"2h\"}]"

static void retention_outlasts_the_longest_block(void **state)
{
	(void)state;
	const char *minute = ZONE("{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1m\"}");
	const char *day = ZONE("{\"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"1d\"}");
	ASSERT_JUDGED(minute, WEIR_TOPIC_DECISIONS, "a block can last 2h", "", .retention_ms = "7200000");
	ASSERT_JUDGED(minute, WEIR_TOPIC_DECISIONS, "", "less than \"bus.retention\" (1d)", .retention_ms = "7200001");
	ASSERT_JUDGED(day, WEIR_TOPIC_SHADOW, "a block can last 1d", "", GOOD);
	ASSERT_JUDGED(day, WEIR_TOPIC_EVENTS, "", "", GOOD);
}

static void what_costs_safety_is_a_warning(void **state)
{
	(void)state;
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "keeps 1000 bytes per partition (retention.bytes)",
	              .retention_bytes = "1000");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "unclean.leader.election.enable", .unclean = "true");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "keeps its messages for 1h, less than", .retention_ms = "3600000");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "has message.timestamp.type CreateTime", .timestamp = "CreateTime");
	ASSERT_JUDGED("", WEIR_TOPIC_EVENTS, "", "", .timestamp = "LogAppendTime");
	ASSERT_JUDGED("", WEIR_TOPIC_DECISIONS, "", "", .timestamp = "CreateTime");
}

/* ---- no broker ---- */

static void without_a_broker_opening_ends_in_time(void **state)
{
	(void)state;
	struct weir_config *config = config_of("", "");
	struct weir_log silent = {.fd = -1, .level = WEIR_LOG_ERROR};
	struct weir_bus *bus;
	struct weir_error error;
	const _Atomic bool stop = true;
	int64_t start_ms = weir_monotonic_ms();
	assert_int_equal(WEIR_IO, weir_bus_kafka_open(config, "test", NULL, 300, NULL, &silent, &bus, &error));
	if (strstr(error.text, "no broker of 127.0.0.1:1 answers: ") == NULL ||
	    strstr(error.text, "Connection refused") == NULL)
		fail_msg("%s", error.text);
	assert_int_equal(WEIR_IO, weir_bus_kafka_open(config, "test", NULL, 3600000, &stop, &silent, &bus, &error));
	assert_true(weir_monotonic_ms() - start_ms < 30000);
	weir_config_free(config);
}

/* ---- a bus whose brokers never answer ---- */

static struct bus_kafka *bus_of(const struct weir_config *config)
{
	struct bus_kafka *bus = calloc(1, sizeof *bus);
	struct weir_error error;
	static const struct weir_log silent = {.level = WEIR_LOG_ERROR};
	assert_non_null(bus);
	bus->bus.partitions = 4;
	bus->config = config;
	bus->log = &silent;
	if (weir_bus_kafka_properties(config, "test", &silent, &bus->kafka, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	pthread_mutex_init(&bus->lock, NULL);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		weir_bus_kafka_topic_name("x", (enum weir_topic)topic, bus->names[topic]);
	return bus;
}

static void free_bus(struct bus_kafka *bus)
{
	weir_kafka_free(bus->kafka);
	pthread_mutex_destroy(&bus->lock);
	free(bus);
}

static void what_has_no_topic_that_it_may_write_and_may_be_missed_is_dropped(void **state)
{
	(void)state;
	struct weir_config *config = config_of("", "");
	struct bus_kafka *bus = bus_of(config);
	struct weir_producer *producer;
	struct weir_error error;
	struct weir_delivery some[400];
	struct weir_span none = {0}, payload = weir_span_of("payload");
	assert_int_equal(WEIR_OK, weir_kafka_producer_new(&bus->bus, &producer, &error));
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		atomic_store(&bus->gone[topic], topic != WEIR_TOPIC_DEADLETTER);
		atomic_store(&bus->denied[topic], topic == WEIR_TOPIC_DEADLETTER);
	}
	/* What weir cannot do without waits. */
	assert_int_equal(WEIR_OK, weir_kafka_producer_send(producer, WEIR_TOPIC_EVENTS, 3, none, payload, 1, &error));
	assert_int_equal(WEIR_OK, weir_kafka_producer_send(producer, WEIR_TOPIC_DECISIONS, 3, none, payload, 2, &error));
	assert_int_equal(0, weir_kafka_producer_poll(producer, some, 400, 0));
	assert_int_equal(WEIR_OK, weir_kafka_producer_send(producer, WEIR_TOPIC_SHADOW, 3, none, payload, 77, &error));
	assert_int_equal(1, weir_kafka_producer_poll(producer, some, 400, 0));
	assert_true(some[0].status == WEIR_OK && some[0].topic == WEIR_TOPIC_SHADOW && some[0].partition == 3 &&
	            some[0].tag == 77 && some[0].offset == 0);
	uint64_t sent = 0, told = 0;
	while (weir_kafka_producer_send(producer, WEIR_TOPIC_DEADLETTER, 0, none, payload, sent, &error) == WEIR_OK)
		assert_true(++sent < 100000);
	assert_int_equal(WEIR_FULL, error.status);
	for (size_t count; (count = weir_kafka_producer_poll(producer, some, 100, 0)) > 0;)
		for (size_t i = 0; i < count; i++)
			assert_int_equal(told++, some[i].tag);
	assert_int_equal(sent, told);
	assert_int_equal(sent, atomic_load(&bus->dropped[WEIR_TOPIC_DEADLETTER]));
	assert_int_equal(1, atomic_load(&bus->dropped[WEIR_TOPIC_SHADOW]));
	assert_int_equal(0, atomic_load(&bus->dropped[WEIR_TOPIC_EVENTS]));
	weir_kafka_producer_free(producer);
	free_bus(bus);
	weir_config_free(config);
}

static void assert_page(struct bus_kafka *bus, const char *words, bool there)
{
	struct weir_text page = {0};
	weir_bus_kafka_metrics(&bus->bus, 4, &page);
	weir_text_append(&page, "", 1);
	if ((strstr(page.at, words) != NULL) != there)
		fail_msg("\"%s\" is %s\n%s", words, there ? "not on" : "on", page.at);
	weir_text_deinit(&page);
}

/* What the brokers do not say, nobody knows; and a topic that is away says nothing of the brokers. */
static void brokers_and_topics_are_told_apart(void **state)
{
	(void)state;
	struct weir_config *config = config_of("", "");
	struct bus_kafka *bus = bus_of(config);
	bus->topics[WEIR_TOPIC_EVENTS] = (void *)bus; /* only compared with NULL */
	bus->topics[WEIR_TOPIC_DECISIONS] = (void *)bus;
	bus->answers = true;
	bus->down[WEIR_TOPIC_DECISIONS] = true;
	snprintf(bus->problem, sizeof bus->problem, "topic x.decisions is away");
	assert_page(bus, "weir_bus_up 1\n", true);
	assert_page(bus, "weir_topic_up{topic=\"x.decisions\"} 0\n", true);
	assert_page(bus, "weir_topic_up{topic=\"x.events\"} 1\n", true);
	assert_true(weir_bus_kafka_serves(&bus->bus, WEIR_TOPIC_EVENTS));
	assert_false(weir_bus_kafka_serves(&bus->bus, WEIR_TOPIC_DECISIONS));
	bus->answers = false;
	assert_page(bus, "weir_bus_up 0\n", true);
	assert_page(bus, "weir_topic_up{", false);
	assert_false(weir_bus_kafka_serves(&bus->bus, WEIR_TOPIC_EVENTS));
	free_bus(bus);
	weir_config_free(config);
}

static void a_dead_letter_is_cut_to_what_fits(void **state)
{
	(void)state;
	static const char letter[] = "{\"host\":\"h\",\"source\":\"/a\",\"position\":7,\"reason\":\"not json\",\"text\":"
								 "\"\\u0001\\u0001\xc3\xa9\xc3\xa9zz\"}";
	static const char bare[] =
		"{\"host\":\"h\",\"source\":\"/a\",\"position\":7,\"reason\":\"not json\",\"text\":\"\",\"cut\":true}";
	struct weir_text cut = {0};
	for (size_t most = sizeof bare - 1; most < sizeof letter + 20; most++) {
		assert_true(weir_kafka_letter_cut(weir_span_of(letter), most, &cut));
		assert_true(cut.length <= most);
		json_t *tree = json_loadb(cut.at, cut.length, 0, NULL);
		assert_true(json_is_true(json_object_get(tree, "cut")));
		assert_int_equal(json_integer_value(json_object_get(tree, "position")), 7);
		json_decref(tree);
	}
	assert_true(weir_kafka_letter_cut(weir_span_of(letter), sizeof bare - 1, &cut));
	assert_true(weir_span_equal(weir_text_span(&cut), weir_span_of(bare)));
	assert_false(weir_kafka_letter_cut(weir_span_of(letter), sizeof bare - 2, &cut));
	assert_false(weir_kafka_letter_cut(weir_span_of("[1]"), 100, &cut));
	assert_false(weir_kafka_letter_cut(weir_span_of("x"), 100, &cut));
	weir_text_deinit(&cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(properties_pass_through),
		cmocka_unit_test(secrets_come_from_files_and_the_environment),
		cmocka_unit_test(what_exactness_rests_on_is_refused),
		cmocka_unit_test(librdkafka_says_what_it_does_not_know),
		cmocka_unit_test(topics_carry_the_prefix),
		cmocka_unit_test(a_good_topic_passes),
		cmocka_unit_test(what_loses_records_is_refused),
		cmocka_unit_test(retention_outlasts_the_longest_block),
		cmocka_unit_test(what_costs_safety_is_a_warning),
		cmocka_unit_test(what_has_no_topic_that_it_may_write_and_may_be_missed_is_dropped),
		cmocka_unit_test(brokers_and_topics_are_told_apart),
		cmocka_unit_test(without_a_broker_opening_ends_in_time),
		cmocka_unit_test(a_dead_letter_is_cut_to_what_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
