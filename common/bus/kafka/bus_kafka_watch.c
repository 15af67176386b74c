/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks every second whether Kafka works, for as long as the bus is open.
 *
 * librdkafka retries everything by itself and for ever, as it should. So something
 * else must report that nothing gets through, and why. One thread asks for the
 * topics' metadata on the bus's control handle. It sets `problem`, and logs one
 * line when a problem begins and one when it is over, however many producers and
 * consumers have it.
 */
#include "common/bus/kafka/internal.h"

#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/log/stall.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { PERIOD_MS = 1000, WATCH_ASK_MS = 3000, SETTINGS_PERIOD_MS = 10000 };

/* What a problem means, and what helps. */
struct advice {
	enum weir_log_level level; /* WEIR_LOG_ERROR: somebody must do something */
	const char *effect;
	char remedy[WEIR_ERROR_TEXT_BYTES];
};

static const char no_broker[] = "Nothing is read or published meanwhile: lines wait in their logs and messages in the "
								"topics, and no new block begins; what is blocked stays so until its end";

/* How many partitions a topic should have; 0: it is none of weir's. */
static uint32_t partitions_of(const struct bus_kafka *bus, const char *name)
{
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++)
		if (strcmp(name, bus->names[topic]) == 0)
			return weir_bus_kafka_partitions(bus, (enum weir_topic)topic);
	return 0;
}

/* Finds the first fault of a topic's partitions. */
static enum weir_status inspect_topic(const struct bus_kafka *bus, const rd_kafka_metadata_topic_t *topic,
                                      struct advice *advice, struct weir_error *error)
{
	*advice = (struct advice){WEIR_LOG_WARNING, "Nothing is published there meanwhile, and nothing is lost",
	                          "Start the brokers that are missing, and look at their own logs (runbook: broker-away)"};
	if (topic->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
		*advice = (struct advice){
			WEIR_LOG_ERROR, "What was in it is lost, and nothing can be published there: no new block begins", ""};
		snprintf(advice->remedy, sizeof advice->remedy,
		         "Make it again with `weir policy apply %s`, then `weir recover --accept-gap %s --all --yes` (runbook: "
		         "topic-deleted)",
		         weir_config_zones_words(bus->config), weir_config_words(bus->config));
		return weir_fail(error, WEIR_IO, "topic %s does not exist any more", topic->topic);
	}
	if (topic->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
		*advice = (struct advice){WEIR_LOG_ERROR, "Nothing is read or published there meanwhile",
		                          "Give the user of this process its rights again (runbook: credentials)"};
	if (topic->err != RD_KAFKA_RESP_ERR_NO_ERROR)
		return weir_fail(error, WEIR_IO, "topic %s: %s", topic->topic, rd_kafka_err2str(topic->err));
	uint32_t partitions = partitions_of(bus, topic->topic);
	if ((uint32_t)topic->partition_cnt < partitions) {
		*advice = (struct advice){WEIR_LOG_ERROR,
		                          "What belongs into the others is not published: no new block of those keys begins",
		                          "Delete the topic, and make it again with \"bus.partitions\" (runbook: "
		                          "partitions-changed)"};
		return weir_fail(error, WEIR_IO, "topic %s has %d partitions, not %u: it was made anew with fewer",
		                 topic->topic, topic->partition_cnt, partitions);
	}
	for (int i = 0; i < topic->partition_cnt; i++) {
		const rd_kafka_metadata_partition_t *partition = &topic->partitions[i];
		if (partition->leader < 0)
			return weir_fail(error, WEIR_IO, "%s partition %d has no leader: brokers are missing", topic->topic,
			                 partition->id);
		if (partition->isr_cnt < bus->config->bus.min_insync)
			return weir_fail(error, WEIR_IO,
			                 "%s partition %d has %d in-sync replicas; it needs %lld before anything is acknowledged",
			                 topic->topic, partition->id, partition->isr_cnt, (long long)bus->config->bus.min_insync);
	}
	return WEIR_OK;
}

enum weir_status weir_bus_kafka_metadata(struct bus_kafka *bus, int timeout_ms,
                                         const struct rd_kafka_metadata **metadata, struct weir_error *error)
{
	char cause[WEIR_KAFKA_COMPLAINT_BYTES];
	rd_kafka_resp_err_t code = rd_kafka_metadata(bus->control, 0, NULL, metadata, timeout_ms);
	pthread_mutex_lock(&bus->lock);
	bus->answers = code == RD_KAFKA_RESP_ERR_NO_ERROR;
	if (bus->answers)
		bus->answered_ms = weir_monotonic_ms();
	pthread_mutex_unlock(&bus->lock);
	if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
		return weir_fail(error, WEIR_IO, "no broker of %s answers: %s", bus->config->bus.brokers,
		                 weir_kafka_complaint(bus->kafka, cause, sizeof cause, NULL) ? cause : rd_kafka_err2str(code));
	weir_kafka_content(bus->kafka);
	return WEIR_OK;
}

/*
 * Notes whether a topic can be written. @return false: it cannot, and this process needs it. A topic that may be missed
 * is needed all the same while it exists: what was sent to it waits for its brokers.
 */
static bool note_topic(struct bus_kafka *bus, const rd_kafka_metadata_topic_t *metadata, struct advice *advice,
                       struct weir_error *error)
{
	bool good = inspect_topic(bus, metadata, advice, error) == WEIR_OK, needed = false;
	bool gone = metadata->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
	bool denied = metadata->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	pthread_mutex_lock(&bus->lock);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		if (strcmp(metadata->topic, bus->names[topic]) != 0)
			continue;
		bus->down[topic] = !good;
		if (metadata->err == RD_KAFKA_RESP_ERR_NO_ERROR)
			bus->counts[topic] = (uint32_t)metadata->partition_cnt;
		if (atomic_load(&bus->gone[topic]) && !gone && !bus->unused[topic])
			atomic_store(&bus->suspect, true); /* it is another one: who reads it has to find that out, too */
		atomic_store(&bus->gone[topic], gone);
		atomic_store(&bus->denied[topic], denied);
		needed = !bus->unused[topic] && !((gone || denied) && weir_topic_may_be_missed((enum weir_topic)topic));
	}
	pthread_mutex_unlock(&bus->lock);
	return good || !needed;
}

/*
 * Whether brokers answer, and every partition of the topics that this process needs can be written.
 *
 * @param answered  whether brokers have answered the watch
 */
static enum weir_status ask(struct bus_kafka *bus, bool *answered, struct advice *advice, struct weir_error *error)
{
	const struct rd_kafka_metadata *metadata;
	struct weir_error words;
	enum weir_status status = weir_bus_kafka_metadata(bus, WATCH_ASK_MS, &metadata, error);
	if (status != WEIR_OK) {
		char ignored[WEIR_KAFKA_COMPLAINT_BYTES];
		const struct weir_kafka_cause *cause;
		(void)weir_kafka_complaint(bus->kafka, ignored, sizeof ignored, &cause);
		*advice = (struct advice){cause->stays ? WEIR_LOG_ERROR : WEIR_LOG_WARNING, no_broker, ""};
		bool after = cause->remedy_after != NULL && *answered;
		snprintf(advice->remedy, sizeof advice->remedy, "%s", after ? cause->remedy_after : cause->remedy);
		return status;
	}
	*answered = true;
	for (int i = 0; i < metadata->topic_cnt; i++) {
		struct advice of_one;
		if (!note_topic(bus, &metadata->topics[i], &of_one, &words) && status == WEIR_OK) {
			status = WEIR_IO;
			*error = words;
			*advice = of_one;
		}
	}
	rd_kafka_metadata_destroy(metadata);
	return status;
}

static const char *content_of(enum weir_topic topic)
{
	return topic == WEIR_TOPIC_SHADOW ? "decisions of zones in shadow mode" : "dead letters";
}

/* Of one in which this process publishes nothing: says that it is not there. What else is wrong with it, its reader says. */
static void tell_unread(const struct bus_kafka *bus, enum weir_topic topic, struct weir_fault *fault)
{
	const char *name = bus->names[topic];
	if (atomic_load(&bus->gone[topic]))
		weir_fault_raise_at(
			fault, bus->log, WEIR_LOG_ERROR, "bus",
			"topic %s does not exist any more. What was in it and not read yet is lost, and there are no "
			"%s to read; everything else goes on. Make it again with `weir policy apply --config FILE` "
			"(runbook: topic-deleted)",
			name, content_of(topic));
	else
		weir_fault_over(fault, bus->log, "bus", "topic %s exists again", name);
}

/* Says of one topic that may be missed what it does not take, and why. @param unfit  "": its settings are good */
static void tell_missed(struct bus_kafka *bus, enum weir_topic topic, const char *unfit, struct weir_fault *fault)
{
	const char *name = bus->names[topic], *what = content_of(topic);
	rd_kafka_resp_err_t refused = (rd_kafka_resp_err_t)atomic_load(&bus->refused[topic]);
	if (atomic_load(&bus->denied[topic]))
		refused = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
	if (atomic_load(&bus->gone[topic]))
		weir_fault_raise_at(fault, bus->log, WEIR_LOG_ERROR, "bus",
		                    "topic %s does not exist any more. What was in it is lost, and %s are dropped and counted "
		                    "(weir_topic_dropped_messages_total); judging and blocking go on. Make it again with "
		                    "`weir policy apply --config FILE` (runbook: topic-deleted)",
		                    name, what);
	else if (refused != RD_KAFKA_RESP_ERR_NO_ERROR)
		weir_fault_raise_at(
			fault, bus->log, WEIR_LOG_ERROR, "bus",
			"topic %s does not take what is published there: %s. Until it does, %s are dropped and counted "
			"(weir_topic_dropped_messages_total); judging and blocking go on. %s",
			name, rd_kafka_err2str(refused), what,
			refused == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED
				? "Give the user of this process its rights again (runbook: credentials)"
				: "Set the topic right; `weir doctor` says how (runbook: retention)");
	else if (unfit[0] != '\0')
		weir_fault_raise_at(
			fault, bus->log, WEIR_LOG_ERROR, "bus",
			"%s. What it does not take is dropped and counted (weir_topic_dropped_messages_total); judging "
			"and blocking go on. Set the topic right; `weir doctor` says how (runbook: retention)",
			unfit);
	else
		weir_fault_over(fault, bus->log, "bus", "topic %s can be written again", name);
}

/* Says of each topic that may be missed whether it is. */
static void tell_all_missed(struct bus_kafka *bus, struct weir_fault faults[WEIR_TOPIC_COUNT])
{
	char unfit[WEIR_ERROR_TEXT_BYTES];
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		if (!weir_topic_may_be_missed((enum weir_topic)topic))
			continue;
		pthread_mutex_lock(&bus->lock);
		bool told = !bus->unused[topic] && bus->answers, only_read = bus->only_read[topic];
		memcpy(unfit, bus->unfit[topic], sizeof unfit);
		pthread_mutex_unlock(&bus->lock);
		if (told && only_read)
			tell_unread(bus, (enum weir_topic)topic, &faults[topic]);
		else if (told)
			tell_missed(bus, (enum weir_topic)topic, unfit, &faults[topic]);
	}
}

/*
 * Says of each topic that somebody has added partitions to it. What goes on does so rightly: it knows which partitions there
 * were. But a key's partition follows from their number, so nothing that starts can tell which number is right.
 */
static void tell_added(struct bus_kafka *bus, struct weir_fault faults[WEIR_TOPIC_COUNT])
{
	uint32_t counts[WEIR_TOPIC_COUNT];
	pthread_mutex_lock(&bus->lock);
	memcpy(counts, bus->counts, sizeof counts);
	pthread_mutex_unlock(&bus->lock);
	for (int topic = 0; topic < WEIR_TOPIC_COUNT; topic++) {
		uint32_t known = weir_bus_kafka_partitions(bus, (enum weir_topic)topic);
		if (counts[topic] > known)
			weir_fault_raise_at(
				&faults[topic], bus->log, WEIR_LOG_ERROR, "bus",
				"topic %s has %u partitions, not %u: partitions were added to it. This process goes on with the "
				"first %u, and no verdict is lost; but a daemon that starts from now on ends at once, as the number is "
				"fixed by the first start. Restart none, and make the topic anew with %u: Kafka cannot take partitions "
				"away (runbook: partitions-changed)",
				bus->names[topic], counts[topic], known, known, known);
		else
			weir_fault_over(&faults[topic], bus->log, "bus", "topic %s has its %u partitions again", bus->names[topic],
			                known);
	}
}

void weir_bus_kafka_note_problem(struct bus_kafka *bus, const char *problem)
{
	pthread_mutex_lock(&bus->lock);
	if (bus->problem[0] == '\0')
		bus->problem_ms = weir_wall_ms();
	snprintf(bus->problem, sizeof bus->problem, "%s", problem);
	pthread_mutex_unlock(&bus->lock);
}

static bool wait_for_next(struct bus_kafka *bus)
{
	struct weir_deadline deadline = weir_deadline_in_ms(PERIOD_MS);
	pthread_mutex_lock(&bus->lock);
	while (!bus->closing && weir_condition_wait(&bus->wake, &bus->lock, &deadline))
		;
	bool more = !bus->closing;
	pthread_mutex_unlock(&bus->lock);
	return more;
}

static void *watch(void *context)
{
	struct bus_kafka *bus = context;
	struct weir_fault fault = {0}, skew = {0}, missed[WEIR_TOPIC_COUNT] = {0}, added[WEIR_TOPIC_COUNT] = {0};
	struct weir_error error, told = {0};
	struct advice advice, given = {0};
	struct weir_stall stall = {0};
	bool answered = false;
	int64_t settings_ms = weir_monotonic_ms() + SETTINGS_PERIOD_MS;
	while (wait_for_next(bus)) {
		enum weir_status status = ask(bus, &answered, &advice, &error);
		tell_all_missed(bus, missed);
		tell_added(bus, added);
		if (status == WEIR_OK) {
			if (atomic_exchange(&bus->suspect, false) || fault.on)
				atomic_fetch_add(&bus->found, 1);
			weir_fault_over(&fault, bus->log, "bus", "%s answers again, with every topic", bus->config->bus.brokers);
			weir_bus_kafka_note_problem(bus, "");
			weir_bus_kafka_tell_skew(bus, &skew);
			if (atomic_exchange(&bus->settings_suspect, false) || weir_monotonic_ms() >= settings_ms) {
				weir_bus_kafka_check_again(bus, WATCH_ASK_MS);
				settings_ms = weir_monotonic_ms() + SETTINGS_PERIOD_MS;
			}
			weir_stall_turn(&stall, weir_clock_ms(CLOCK_BOOTTIME), PERIOD_MS + WATCH_ASK_MS);
			continue;
		}
		weir_bus_kafka_note_problem(bus, error.text);
		/* An answer that nobody could take is no fault of the broker's: it is asked once more. */
		if (weir_stall_turn(&stall, weir_clock_ms(CLOCK_BOOTTIME), PERIOD_MS + WATCH_ASK_MS) > 0)
			continue;
		/*
		 * While brokers go and come, their words change from one attempt to the next: the first are told. But those of
		 * one that goes, such as that a topic has no leader, give way to there being none.
		 */
		if (!fault.on || advice.level > given.level || (advice.effect == no_broker && given.effect != no_broker)) {
			told = error;
			given = advice;
		}
		weir_fault_raise_at(&fault, bus->log, given.level, "bus", "%s. %s. Retrying every second. %s", told.text,
		                    given.effect, given.remedy);
	}
	return NULL;
}

enum weir_status weir_bus_kafka_watch_start(struct bus_kafka *bus, struct weir_error *error)
{
	int failed = pthread_create(&bus->watch, NULL, watch, bus);
	bus->watching = failed == 0;
	return failed == 0 ? WEIR_OK
	                   : weir_fail(error, WEIR_IO, "cannot start the thread that watches the bus: %s",
	                               weir_errno_words(failed));
}

void weir_bus_kafka_watch_stop(struct bus_kafka *bus)
{
	if (!bus->watching)
		return;
	pthread_mutex_lock(&bus->lock);
	bus->closing = true;
	pthread_cond_signal(&bus->wake);
	pthread_mutex_unlock(&bus->lock);
	pthread_join(bus->watch, NULL);
	bus->watching = false;
}

bool weir_bus_kafka_problem(struct weir_bus *base, char *text, size_t bytes)
{
	struct bus_kafka *bus = weir_bus_kafka_of(base);
	pthread_mutex_lock(&bus->lock);
	bool some = bus->problem[0] != '\0';
	if (some)
		snprintf(text, bytes, "%s", bus->problem);
	pthread_mutex_unlock(&bus->lock);
	return some;
}
