/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Kafka bus in a process of its own, moved by its standard input: bus_kafka CONFIG [WAIT_MS]
 *
 * For test_bus_kafka.py. Each line is a command with words between spaces, each
 * answer one line of JSON with its status: what the calls of common/bus/bus.h and
 * common/bus/kafka/bus_kafka.h gave. Producers and consumers have numbers from 0 to 7.
 * The end of the input closes everything in order.
 */
#include "common/bus/kafka/bus_kafka.h"
#include "common/base/clock.h"
#include "common/base/text.h"
#include "common/base/wake.h"
#include "tests/support/driver_watch.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 8, WORDS_MAX = 8, MESSAGES_MAX = 1024, SHOWN_BYTES = 64 };

struct driver {
	struct weir_config *config;
	struct weir_bus *bus;
	const struct weir_bus_ops *ops;
	struct weir_producer *producers[SLOTS];
	struct weir_consumer *consumers[SLOTS];
	struct weir_group *group;
	struct weir_message messages[MESSAGES_MAX];
	struct weir_delivery deliveries[MESSAGES_MAX];
	bool *owned;
	struct weir_text out;
	struct weir_error error;
};

static const char *status_name(enum weir_status status)
{
	static const char *const names[] = {"OK",    "AGAIN", "END",    "FULL",   "INVALID",
	                                    "NEWER", "IO",    "FENCED", "LOCKED", "ANEW"};
	return names[status];
}

static void answer(struct driver *driver, enum weir_status status)
{
	weir_text_printf(&driver->out, "\"status\":\"%s\"", status_name(status));
	if (status != WEIR_OK) {
		weir_text_puts(&driver->out, ",\"words\":");
		weir_text_json(&driver->out, weir_span_of(driver->error.text));
	}
}

static int number(char **words, int at)
{
	return words[at] != NULL ? atoi(words[at]) : 0;
}

static int slot(char **words)
{
	int at = number(words, 1);
	assert(at >= 0 && at < SLOTS);
	return at;
}

static enum weir_topic topic_of(const char *word)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (strcmp(weir_topic_name((enum weir_topic)topic) + strlen("weir."), word) == 0)
			return (enum weir_topic)topic;
	fprintf(stderr, "no topic %s\n", word);
	exit(2);
}

/* ---- commands ---- */

static void new_producer(struct driver *driver, char **words)
{
	answer(driver, driver->ops->producer_new(driver->bus, &driver->producers[slot(words)], &driver->error));
}

static void free_producer(struct driver *driver, char **words)
{
	driver->ops->producer_free(driver->producers[slot(words)]);
	driver->producers[slot(words)] = NULL;
	answer(driver, WEIR_OK);
}

/* send PRODUCER TOPIC PARTITION KEY|- PAYLOAD|-|@BYTES TAG */
static void send_one(struct driver *driver, char **words)
{
	struct weir_span key = {0}, payload = {0};
	char *made = NULL;
	if (strcmp(words[4], "-") != 0)
		key = weir_span_of(strcmp(words[4], "\"\"") == 0 ? "" : words[4]);
	if (words[5][0] == '@') {
		payload.length = (uint32_t)atoi(words[5] + 1);
		payload.at = made = calloc(payload.length + 1u, 1);
		memset(made, 'x', payload.length);
	} else if (strcmp(words[5], "-") != 0) {
		payload = weir_span_of(words[5]);
	}
	answer(driver, driver->ops->send(driver->producers[slot(words)], topic_of(words[2]), (uint32_t)number(words, 3),
	                                 key, payload, strtoull(words[6], NULL, 10), &driver->error));
	free(made);
}

/* poll PRODUCER MOST TIMEOUT_MS */
static void poll_some(struct driver *driver, char **words)
{
	size_t count = driver->ops->poll(driver->producers[slot(words)], driver->deliveries, (size_t)number(words, 2),
	                                 number(words, 3));
	weir_text_puts(&driver->out, "\"deliveries\":[");
	for (size_t i = 0; i < count; i++) {
		const struct weir_delivery *delivery = &driver->deliveries[i];
		weir_text_printf(&driver->out,
		                 "%s{\"topic\":\"%s\",\"partition\":%u,\"offset\":%" PRIu64 ",\"tag\":%" PRIu64
		                 ",\"status\":\"%s\",\"why\":",
		                 i > 0 ? "," : "", weir_topic_name(delivery->topic) + strlen("weir."), delivery->partition,
		                 delivery->offset, delivery->tag, status_name(delivery->status));
		weir_text_json(&driver->out, weir_span_of(delivery->status != WEIR_OK ? delivery->why : ""));
		weir_text_puts(&driver->out, "}");
	}
	weir_text_puts(&driver->out, "],");
	answer(driver, WEIR_OK);
}

/* new_consumer CONSUMER TOPIC */
static void new_consumer(struct driver *driver, char **words)
{
	answer(driver, driver->ops->consumer_new(driver->bus, topic_of(words[2]), "test", &driver->consumers[slot(words)],
	                                         &driver->error));
}

static void free_consumer(struct driver *driver, char **words)
{
	driver->ops->consumer_free(driver->consumers[slot(words)]);
	driver->consumers[slot(words)] = NULL;
	answer(driver, WEIR_OK);
}

static void assign(struct driver *driver, char **words)
{
	answer(driver, driver->ops->assign(driver->consumers[slot(words)], (uint32_t)number(words, 2),
	                                   strtoull(words[3], NULL, 10), &driver->error));
}

static void unassign(struct driver *driver, char **words)
{
	driver->ops->unassign(driver->consumers[slot(words)], (uint32_t)number(words, 2));
	answer(driver, WEIR_OK);
}

static void pause_one(struct driver *driver, char **words)
{
	driver->ops->pause(driver->consumers[slot(words)], (uint32_t)number(words, 2), number(words, 3) != 0);
	answer(driver, WEIR_OK);
}

static void tell_span(struct weir_text *out, struct weir_span span)
{
	if (span.at == NULL)
		weir_text_puts(out, "null");
	else
		weir_text_json(out, (struct weir_span){span.at, span.length < SHOWN_BYTES ? span.length : SHOWN_BYTES});
}

/* receive CONSUMER MOST TIMEOUT_MS: of an invalid one, where it is */
static void receive(struct driver *driver, char **words)
{
	size_t count;
	int64_t start_ms = weir_monotonic_ms();
	enum weir_status status = driver->ops->receive(driver->consumers[slot(words)], driver->messages,
	                                               (size_t)number(words, 2), number(words, 3), &count, &driver->error);
	weir_text_printf(&driver->out, "\"ms\":%" PRId64 ",\"messages\":[", weir_monotonic_ms() - start_ms);
	for (size_t i = 0; i < count; i++) {
		const struct weir_message *message = &driver->messages[i];
		weir_text_printf(&driver->out,
		                 "%s{\"partition\":%u,\"offset\":%" PRIu64 ",\"bytes\":%u,\"key\":", i > 0 ? "," : "",
		                 message->partition, message->offset, message->payload.length);
		tell_span(&driver->out, message->key);
		weir_text_puts(&driver->out, ",\"payload\":");
		tell_span(&driver->out, message->payload);
		weir_text_puts(&driver->out, "}");
	}
	weir_text_puts(&driver->out, "],");
	if (status == WEIR_INVALID)
		weir_text_printf(&driver->out, "\"partition\":%u,\"offset\":%" PRIu64 ",", driver->messages[0].partition,
		                 driver->messages[0].offset);
	answer(driver, status);
}

/* What is known of messages on their way, when only descriptors are waited for. */
struct woken {
	int wake;
	size_t acknowledged, received;
};

static void take_woken(struct driver *driver, char **words, struct woken *woken)
{
	size_t count;
	do
		woken->acknowledged += count = driver->ops->poll(driver->producers[slot(words)], driver->deliveries, 4, 0);
	while (count == 4);
	do {
		if (driver->ops->receive(driver->consumers[number(words, 2)], driver->messages, 4, 0, &count, &driver->error) !=
		    WEIR_OK)
			return;
		woken->received += count;
	} while (count > 0);
}

/* wakes PRODUCER CONSUMER PARTITION BURSTS LIMIT_MS: sends bursts of 1 to 9 messages; the answer names a lost wake-up */
static void wakes(struct driver *driver, char **words)
{
	struct woken woken = {.wake = weir_wake_new()};
	size_t sent = 0, waits = 0;
	bool lost = false;
	driver->ops->wake_producer(driver->producers[slot(words)], woken.wake);
	driver->ops->wake_consumer(driver->consumers[number(words, 2)], woken.wake);
	for (int burst = 0; burst < number(words, 4) && !lost; burst++) {
		for (int i = 0; i < 1 + burst % 9; i++)
			sent += driver->ops->send(driver->producers[slot(words)], WEIR_TOPIC_EVENTS, (uint32_t)number(words, 3),
			                          (struct weir_span){0}, weir_span_of("woken"), sent, &driver->error) == WEIR_OK;
		take_woken(driver, words, &woken);
		while (!lost && (woken.acknowledged < sent || woken.received < sent)) {
			struct pollfd at = {.fd = woken.wake, .events = POLLIN};
			lost = poll(&at, 1, number(words, 5)) != 1;
			weir_wake_clear(woken.wake);
			waits++;
			take_woken(driver, words, &woken);
		}
	}
	weir_text_printf(&driver->out, "\"sent\":%zu,\"waits\":%zu,\"lost\":%s,", sent, waits, lost ? "true" : "false");
	driver->ops->wake_producer(driver->producers[slot(words)], -1);
	driver->ops->wake_consumer(driver->consumers[number(words, 2)], -1);
	close(woken.wake);
	answer(driver, WEIR_OK);
}

static void extent(struct driver *driver, char **words)
{
	uint64_t first = 0, next = 0;
	enum weir_status status =
		driver->ops->extent(driver->bus, topic_of(words[1]), (uint32_t)number(words, 2), &first, &next, &driver->error);
	weir_text_printf(&driver->out, "\"first\":%" PRIu64 ",\"next\":%" PRIu64 ",", first, next);
	answer(driver, status);
}

/* waiting CONSUMER PARTITION */
static void waiting(struct driver *driver, char **words)
{
	uint64_t messages = driver->ops->waiting(driver->consumers[slot(words)], (uint32_t)number(words, 2));
	weir_text_printf(&driver->out, "\"messages\":%" PRIu64 ",", messages);
	answer(driver, WEIR_OK);
}

static void problem(struct driver *driver, char **words)
{
	char text[WEIR_ERROR_TEXT_BYTES] = "";
	(void)words;
	bool some = driver->ops->problem(driver->bus, text, sizeof text);
	weir_text_printf(&driver->out, "\"problem\":%s,\"text\":", some ? "true" : "false");
	weir_text_json(&driver->out, weir_span_of(text));
	weir_text_puts(&driver->out, ",");
	answer(driver, WEIR_OK);
}

static void join(struct driver *driver, char **words)
{
	answer(driver, weir_group_join(driver->bus, words[1], &driver->group, &driver->error));
}

/* group TIMEOUT_MS */
static void poll_group(struct driver *driver, char **words)
{
	uint64_t generation;
	const char *comma = "";
	enum weir_status status =
		weir_group_poll(driver->group, number(words, 1), driver->owned, &generation, &driver->error);
	weir_text_printf(&driver->out, "\"generation\":%" PRIu64 ",\"owned\":[", generation);
	for (uint32_t i = 0; i < driver->bus->partitions; i++)
		if (driver->owned[i]) {
			weir_text_printf(&driver->out, "%s%u", comma, i);
			comma = ",";
		}
	weir_text_puts(&driver->out, "],");
	answer(driver, status);
}

static void leave(struct driver *driver, char **words)
{
	(void)words;
	weir_group_leave(driver->group);
	driver->group = NULL;
	answer(driver, WEIR_OK);
}

static const struct command {
	const char *name;
	int words;
	void (*run)(struct driver *driver, char **words);
} commands[] = {
	{"new_producer", 2, new_producer},
	{"free_producer", 2, free_producer},
	{"send", 7, send_one},
	{"poll", 4, poll_some},
	{"new_consumer", 3, new_consumer},
	{"free_consumer", 2, free_consumer},
	{"assign", 4, assign},
	{"unassign", 3, unassign},
	{"pause", 4, pause_one},
	{"receive", 4, receive},
	{"wakes", 6, wakes},
	{"extent", 3, extent},
	{"waiting", 3, waiting},
	{"problem", 1, problem},
	{"join", 2, join},
	{"group", 2, poll_group},
	{"leave", 1, leave},
};

static void run(struct driver *driver, char *line)
{
	char *words[WORDS_MAX] = {0}, *rest = NULL;
	int count = 0;
	for (char *word = strtok_r(line, " \n", &rest); word != NULL && count < WORDS_MAX;
	     word = strtok_r(NULL, " \n", &rest))
		words[count++] = word;
	if (count == 0)
		return;
	weir_text_clear(&driver->out);
	weir_text_puts(&driver->out, "{");
	size_t i = 0;
	while (i < sizeof commands / sizeof *commands && strcmp(commands[i].name, words[0]) != 0)
		i++;
	if (i == sizeof commands / sizeof *commands || count != commands[i].words) {
		fprintf(stderr, "bus_kafka: no such command: %s with %d words\n", words[0], count);
		exit(2);
	}
	driver_watch(commands[i].name);
	commands[i].run(driver, words);
	driver_watch_over();
	weir_text_puts(&driver->out, "}");
	printf("%.*s\n", (int)driver->out.length, driver->out.at);
	fflush(stdout);
}

static void close_all(struct driver *driver)
{
	driver_watch("closing");
	for (int i = 0; i < SLOTS; i++) {
		driver->ops->producer_free(driver->producers[i]);
		driver->ops->consumer_free(driver->consumers[i]);
	}
	weir_group_leave(driver->group);
	driver->ops->close(driver->bus);
}

int main(int argc, char **argv)
{
	static struct driver driver;
	struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_INFO};
	char *line = NULL;
	size_t room = 0;
	if (argc < 2) {
		fputs("usage: bus_kafka CONFIG [WAIT_MS]\n", stderr);
		return 2;
	}
	enum weir_status status = weir_config_load(argv[1], &driver.config, &driver.error);
	driver_watch("opening");
	if (status == WEIR_OK)
		status = weir_bus_kafka_open(driver.config, "bus_kafka", NULL, argc > 2 ? atoi(argv[2]) : 60000, NULL, &log,
		                             &driver.bus, &driver.error);
	weir_text_puts(&driver.out, "{");
	answer(&driver, status);
	printf("%.*s}\n", (int)driver.out.length, driver.out.at);
	fflush(stdout);
	driver_watch_over();
	if (status == WEIR_OK) {
		driver.ops = driver.bus->ops;
		driver.owned = calloc(driver.bus->partitions, sizeof *driver.owned);
		while (getline(&line, &room, stdin) > 0)
			run(&driver, line);
		close_all(&driver);
	}
	free(line);
	free(driver.owned);
	weir_text_deinit(&driver.out);
	weir_config_free(driver.config);
	return status == WEIR_OK ? 0 : 1;
}
