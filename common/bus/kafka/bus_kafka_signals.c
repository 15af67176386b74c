/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What metrics and pages say of the bus: whether it works for this process, how long
 * the topics keep their messages, and whether this machine's clock is the brokers'.
 * All of it was found out by others: nobody waits for a broker here.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/clock.h"
#include "common/json/units.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { SKEW_SAID_MS = 5000 }; /* a sender's clock may be ahead by as much before limiters correct its times */

enum {
	UP,
	ANSWER_AGE,
	PARTITIONS,
	CLOCK_SKEW,
	TOPIC_UP,
	TOPIC_RETENTION,
	TOPIC_ADDED,
	TOPIC_DROPPED,
	CERTIFICATE,
	METRIC_COUNT
};

#define TOPIC_LABEL WEIR_LABELS({"topic", "its name on the brokers, with bus.prefix"})

static const struct weir_metric metrics[METRIC_COUNT] = {
	[UP] =
		{"weir_bus_up", WEIR_GAUGE, "1 or 0", WEIR_NO_LABELS,
         "1 while the brokers answer, whatever becomes of the topics, which have weir_topic_up. Otherwise 0: /readyz and "
         "the log say why."},
	[ANSWER_AGE] = {"weir_bus_answer_age_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
                    "Time since a broker last answered. They are asked every second. Absent before the first answer."},
	[PARTITIONS] = {"weir_bus_partitions", WEIR_GAUGE, "partitions", WEIR_NO_LABELS,
                    "Partitions of the events topic: bus.partitions."},
	[CLOCK_SKEW] = {"weir_bus_clock_skew_seconds", WEIR_GAUGE, "seconds", WEIR_NO_LABELS,
                    "This machine's clock minus the brokers' clock. Only messages on the events topic show it, so that "
                    "programs that neither write nor read them do not have it. Absent while unknown."},
	[TOPIC_UP] =
		{"weir_topic_up", WEIR_GAUGE, "1 or 0", TOPIC_LABEL,
         "1 while the topic exists, and each of its partitions has a leader and enough in-sync replicas; of dead "
         "letters and decisions in shadow mode also: while it takes what is published, and its settings are "
         "right. Only topics that this process reads or writes have it. Absent while the brokers do not answer."},
	[TOPIC_RETENTION] =
		{"weir_topic_retention_seconds", WEIR_GAUGE, "seconds", TOPIC_LABEL,
         "How long the topic keeps its messages (retention.ms), as read less than a minute ago; +Inf: for ever. "
         "What is not read in that time is lost. Absent where the brokers do not say it."},
	[TOPIC_ADDED] =
		{"weir_topic_added_partitions", WEIR_GAUGE, "partitions", TOPIC_LABEL,
         "Partitions that the topic has beyond those of bus.partitions. Above 0, somebody has added them: "
         "daemons that run go on, and one that starts ends at once. Absent before the brokers have answered."},
	[TOPIC_DROPPED] = {"weir_topic_dropped_messages_total", WEIR_COUNTER, "messages", TOPIC_LABEL,
                       "Dead letters, and decisions of zones in shadow mode, that were dropped because their topic did "
                       "not exist, or refused them: the log says why. Nothing else is ever dropped."},
	[CERTIFICATE] = {"weir_bus_certificate_expires_timestamp_seconds", WEIR_GAUGE, "Unix time",
                     WEIR_LABELS({"broker", "HOST:PORT, as it says where it is reached"}),
                     "When the certificate expires that a broker showed when this process connected to it last. Only "
                     "brokers that speak TLS, and whose certificates are verified, have it."},
};

const struct weir_metric_table weir_bus_kafka_metric_table = {metrics, METRIC_COUNT};

/* ---- what others find out ---- */

void weir_bus_kafka_use(struct weir_bus *base, const bool topics[WEIR_TOPIC_COUNT])
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	pthread_mutex_lock(&bus->lock);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		bus->unused[topic] = !topics[topic];
	pthread_mutex_unlock(&bus->lock);
}

void weir_bus_kafka_only_read(struct weir_bus *base, enum weir_topic topic)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	pthread_mutex_lock(&bus->lock);
	bus->only_read[topic] = true;
	pthread_mutex_unlock(&bus->lock);
}

void weir_bus_kafka_note_append(struct bus_kafka *bus, int64_t appended_ms)
{
	if (appended_ms <= 0)
		return;
	pthread_mutex_lock(&bus->lock);
	weir_clock_skew_note(&bus->skew, weir_monotonic_ms(), weir_wall_ms() - appended_ms);
	pthread_mutex_unlock(&bus->lock);
}

static bool read_skew(struct bus_kafka *bus, int64_t *ahead_ms)
{
	pthread_mutex_lock(&bus->lock);
	bool known = weir_clock_skew_read(&bus->skew, weir_monotonic_ms(), ahead_ms);
	pthread_mutex_unlock(&bus->lock);
	return known;
}

void weir_bus_kafka_tell_skew(struct bus_kafka *bus, struct weir_fault *fault)
{
	int64_t ahead_ms;
	char off[24];
	if (!read_skew(bus, &ahead_ms))
		return;
	if (ahead_ms > -SKEW_SAID_MS && ahead_ms < SKEW_SAID_MS)
		weir_fault_clear(fault, bus->log, "clock");
	else if (!fault->on)
		weir_fault_raise(
			fault, bus->log, "clock",
			"this machine's clock is %s %s the brokers' clock. Verdicts follow the times in the lines, but "
			"times that this process writes, and delays that it shows, are wrong by as much. Correct the "
			"clock that is wrong (runbook: clock)",
			weir_format_duration(ahead_ms < 0 ? -ahead_ms : ahead_ms, off, sizeof off),
			ahead_ms < 0 ? "behind" : "ahead of");
}

/* ---- metrics ---- */

/* Everything at one moment. */
struct looked {
	bool up, shown[WEIR_TOPIC_COUNT], down[WEIR_TOPIC_COUNT];
	int64_t answered_ms;
	struct weir_bus_kafka_retention retention[WEIR_TOPIC_COUNT];
	uint32_t counts[WEIR_TOPIC_COUNT];
};

static void look_at(struct bus_kafka *bus, struct looked *look)
{
	pthread_mutex_lock(&bus->lock);
	look->up = bus->answers;
	look->answered_ms = bus->answered_ms;
	memcpy(look->down, bus->down, sizeof look->down);
	memcpy(look->retention, bus->retention, sizeof look->retention);
	memcpy(look->counts, bus->counts, sizeof look->counts);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		look->shown[topic] = bus->topics[topic] != NULL && !bus->unused[topic];
		look->down[topic] |= atomic_load(&bus->refused[topic]) != 0 || bus->unfit[topic][0] != '\0';
	}
	pthread_mutex_unlock(&bus->lock);
}

static void put_topics(const struct bus_kafka *bus, const struct looked *look, struct weir_text *page)
{
	weir_metrics_family(page, &metrics[TOPIC_UP]);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		struct weir_span name = weir_span_of(bus->names[topic]);
		if (look->shown[topic] && look->up)
			weir_metrics_uint(page, &metrics[TOPIC_UP], &name, !look->down[topic]);
	}
	weir_metrics_family(page, &metrics[TOPIC_RETENTION]);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		struct weir_span name = weir_span_of(bus->names[topic]);
		const struct weir_bus_kafka_retention *kept = &look->retention[topic];
		if (look->shown[topic] && kept->known && topic != WEIR_TOPIC_POLICY) /* which is compacted */
			weir_metrics_double(page, &metrics[TOPIC_RETENTION], &name,
			                    kept->ms < 0 ? INFINITY : (double)kept->ms / 1000.0);
	}
	weir_metrics_family(page, &metrics[TOPIC_ADDED]);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		struct weir_span name = weir_span_of(bus->names[topic]);
		uint32_t wanted = weir_topic_partitions((enum weir_topic)topic, (uint32_t)bus->config->bus.partitions);
		if (bus->topics[topic] != NULL && look->counts[topic] > 0)
			weir_metrics_uint(page, &metrics[TOPIC_ADDED], &name,
			                  look->counts[topic] > wanted ? look->counts[topic] - wanted : 0);
	}
	weir_metrics_family(page, &metrics[TOPIC_DROPPED]);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		struct weir_span name = weir_span_of(bus->names[topic]);
		if (look->shown[topic] && weir_topic_may_be_missed((enum weir_topic)topic))
			weir_metrics_uint(page, &metrics[TOPIC_DROPPED], &name, atomic_load(&bus->dropped[topic]));
	}
}

bool weir_bus_kafka_serves(struct weir_bus *base, enum weir_topic topic)
{
	struct looked look;
	look_at(weir_bus_kafka_of(base), &look);
	return look.up && !look.down[topic];
}

static void put_certificate(void *context, const char *broker, int64_t ends_s)
{
	struct weir_span name = weir_span_of(broker);
	weir_metrics_double(context, &metrics[CERTIFICATE], &name, (double)ends_s);
}

void weir_bus_kafka_metrics(struct weir_bus *base, uint32_t partitions, struct weir_text *page)
{
	struct looked look = {0};
	int64_t ahead_ms;
	if (base != NULL)
		look_at(weir_bus_kafka_of(base), &look);
	weir_metrics_gauge(page, &metrics[UP], look.up);
	weir_metrics_gauge(page, &metrics[PARTITIONS], partitions);
	weir_metrics_family(page, &metrics[ANSWER_AGE]);
	if (look.answered_ms > 0)
		weir_metrics_double(page, &metrics[ANSWER_AGE], NULL,
		                    (double)(weir_monotonic_ms() - look.answered_ms) / 1000.0);
	weir_metrics_family(page, &metrics[CLOCK_SKEW]);
	if (base == NULL)
		return;
	if (read_skew(weir_bus_kafka_of(base), &ahead_ms))
		weir_metrics_double(page, &metrics[CLOCK_SKEW], NULL, (double)ahead_ms / 1000.0);
	put_topics(weir_bus_kafka_of(base), &look, page);
	weir_metrics_family(page, &metrics[CERTIFICATE]);
	weir_kafka_each_certificate(weir_bus_kafka_of(base)->kafka, put_certificate, page);
}

/* ---- readiness ---- */

bool weir_bus_kafka_ready(struct weir_bus *base, struct weir_text *why)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	pthread_mutex_lock(&bus->lock);
	bool good = bus->problem[0] == '\0' && bus->settings[0] == '\0';
	if (bus->problem[0] != '\0') {
		time_t at = (time_t)(bus->problem_ms / 1000);
		struct tm parts;
		char clock[16];
		strftime(clock, sizeof clock, "%H:%M:%S", gmtime_r(&at, &parts));
		weir_text_printf(why, "%s, since %s UTC\n", bus->problem, clock);
	} else if (!good) {
		weir_text_printf(why, "%s; a restart would refuse that\n", bus->settings);
	}
	pthread_mutex_unlock(&bus->lock);
	return good;
}

void weir_bus_kafka_awaits(struct weir_bus *awaited, struct weir_text *why)
{
	if (awaited == NULL || weir_bus_kafka_ready(awaited, why))
		weir_text_puts(why, "the brokers have not answered yet\n");
}
