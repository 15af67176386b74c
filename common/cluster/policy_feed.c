/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer without a name on one partition. The list of policies is short, and
 * ordered by version: one that comes after a newer one is dropped.
 */
#include "common/cluster/policy_feed.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/frame/frame.h"
#include "common/log/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MESSAGES_AT_ONCE = 64,
	BAD_TOLD_MAX = 10, /* how many are logged; later ones are only counted */
	RETRY_NAP_MS = 100,
	READ_POLL_MS = 50,
};

struct weir_policy_feed {
	struct weir_policy_feed_options options;
	struct weir_consumer *consumer;
	struct weir_frame_reader *reader;
	bool assigned, caught_up;
	uint64_t end; /* the topic's next offset when reading began */
	struct weir_policy **policies;
	size_t count, capacity;
	uint64_t beyond; /* at least the version of the last policy of a newer weir */
	struct weir_counter skipped[WEIR_POLICY_SKIPS];
};

enum weir_status weir_policy_feed_new(const struct weir_policy_feed_options *options, struct weir_policy_feed **out,
                                      struct weir_error *error)
{
	struct weir_policy_feed *feed = weir_alloc(1, sizeof *feed);
	feed->options = *options;
	enum weir_status status =
		options->bus->ops->consumer_new(options->bus, WEIR_TOPIC_POLICY, NULL, &feed->consumer, error);
	if (status != WEIR_OK) {
		free(feed);
		return status;
	}
	feed->reader = weir_frame_reader_new();
	*out = feed;
	return WEIR_OK;
}

void weir_policy_feed_free(struct weir_policy_feed *feed)
{
	if (feed == NULL)
		return;
	feed->options.bus->ops->consumer_free(feed->consumer);
	weir_frame_reader_free(feed->reader);
	for (size_t i = 0; i < feed->count; i++)
		weir_policy_free(feed->policies[i]);
	free(feed->policies);
	free(feed);
}

const struct weir_policy *weir_policy_feed_newest(const struct weir_policy_feed *feed)
{
	return feed->count > 0 ? feed->policies[feed->count - 1] : NULL;
}

const struct weir_policy *weir_policy_feed_above(const struct weir_policy_feed *feed, uint64_t version)
{
	for (size_t i = 0; i < feed->count; i++)
		if (feed->policies[i]->version > version)
			return feed->policies[i];
	return NULL;
}

void weir_policy_feed_forget(struct weir_policy_feed *feed, uint64_t version)
{
	size_t gone = 0;
	while (gone < feed->count && feed->policies[gone]->version < version)
		weir_policy_free(feed->policies[gone++]);
	feed->count -= gone;
	if (gone > 0)
		memmove(feed->policies, feed->policies + gone, feed->count * sizeof *feed->policies);
}

bool weir_policy_feed_caught_up(const struct weir_policy_feed *feed)
{
	return feed->caught_up;
}

const char *weir_policy_skip_word(enum weir_policy_skip why)
{
	return why == WEIR_POLICY_SKIP_NEWER ? "newer" : "foreign";
}

uint64_t weir_policy_feed_skipped(const struct weir_policy_feed *feed, enum weir_policy_skip why)
{
	return weir_counter_read(&feed->skipped[why]);
}

uint64_t weir_policy_feed_beyond(const struct weir_policy_feed *feed)
{
	return feed->beyond;
}

/* Appends a policy to the list. @param policy  taken */
static void keep(struct weir_policy_feed *feed, struct weir_policy *policy)
{
	if (feed->count == feed->capacity) {
		feed->capacity = feed->capacity > 0 ? feed->capacity * 2 : 8;
		feed->policies = weir_realloc(feed->policies, feed->capacity, sizeof *feed->policies);
	}
	feed->policies[feed->count++] = policy;
}

static enum weir_status take(struct weir_policy_feed *feed, struct weir_span message, struct weir_error *error)
{
	struct weir_frame frame;
	enum weir_status status = weir_frame_decode(feed->reader, message, &frame, error);
	if (status != WEIR_OK)
		return status;
	if (frame.kind != WEIR_FRAME_POLICY || frame.policy_version == 0)
		return weir_fail(error, WEIR_INVALID, "a frame that is not a numbered policy");
	const struct weir_policy *newest = weir_policy_feed_newest(feed);
	if (newest != NULL && newest->version >= frame.policy_version)
		return WEIR_OK;
	struct weir_policy *policy;
	status = weir_policy_decode(frame.policy_version, frame.body.at, frame.body.length, &policy, error);
	if (status == WEIR_OK)
		keep(feed, policy);
	return status;
}

/* Every later version that this program reads is above the newest one that it has read. */
static void note_newer(struct weir_policy_feed *feed)
{
	const struct weir_policy *newest = weir_policy_feed_newest(feed);
	feed->beyond = newest != NULL ? newest->version + 1 : 1;
}

static void pass_over(struct weir_policy_feed *feed, uint64_t offset, enum weir_policy_skip why,
                      const struct weir_error *error)
{
	struct weir_counter *skipped = &feed->skipped[why];
	weir_counter_add(skipped, 1);
	if (why == WEIR_POLICY_SKIP_NEWER)
		note_newer(feed);
	uint64_t count = weir_counter_read(skipped);
	if (count > BAD_TOLD_MAX)
		return;
	weir_log(feed->options.log, WEIR_LOG_WARNING, feed->options.part, "skipped %s offset %llu: %s%s%s",
	         weir_topic_name(WEIR_TOPIC_POLICY), (unsigned long long)offset, error->text,
	         why == WEIR_POLICY_SKIP_NEWER ? ". A newer weir applied this policy: it is not in force here until this "
	                                         "program is upgraded, or a later policy comes (runbook: policy-rollback)"
	                                       : ". It is no policy; who else writes there? (runbook: foreign-messages)",
	         count == BAD_TOLD_MAX ? "; further ones are only counted" : "");
}

static enum weir_status begin(struct weir_policy_feed *feed, struct weir_error *error)
{
	const struct weir_bus_ops *bus = feed->options.bus->ops;
	uint64_t first;
	enum weir_status status = bus->extent(feed->options.bus, WEIR_TOPIC_POLICY, 0, &first, &feed->end, error);
	if (status == WEIR_OK)
		status = bus->assign(feed->consumer, 0, first, error);
	if (status != WEIR_OK)
		return status;
	feed->assigned = true;
	feed->caught_up |= first >= feed->end;
	return WEIR_OK;
}

/* Waits a moment after a failure, so that one that comes at once does not make the caller spin. @return status */
static enum weir_status stumble(int timeout_ms, enum weir_status status)
{
	int nap_ms = timeout_ms < RETRY_NAP_MS ? timeout_ms : RETRY_NAP_MS;
	nanosleep(&(struct timespec){.tv_nsec = nap_ms * 1000000L}, NULL);
	return status;
}

enum weir_status weir_policy_feed_poll(struct weir_policy_feed *feed, int timeout_ms, struct weir_error *error)
{
	const struct weir_bus_ops *bus = feed->options.bus->ops;
	struct weir_message messages[MESSAGES_AT_ONCE];
	size_t count;
	enum weir_status status = feed->assigned ? WEIR_OK : begin(feed, error);
	if (status == WEIR_OK)
		status = bus->receive(feed->consumer, messages, MESSAGES_AT_ONCE, timeout_ms, &count, error);
	if ((status == WEIR_INVALID || status == WEIR_ANEW) && feed->assigned) {
		bus->unassign(feed->consumer, 0);
		feed->assigned = false;
	}
	if (status != WEIR_OK)
		return stumble(timeout_ms, status);
	for (size_t i = 0; i < count; i++) {
		struct weir_error why;
		status = take(feed, messages[i].payload, &why);
		if (status != WEIR_OK)
			pass_over(feed, messages[i].offset,
			          status == WEIR_NEWER ? WEIR_POLICY_SKIP_NEWER : WEIR_POLICY_SKIP_FOREIGN, &why);
	}
	feed->caught_up |= bus->position(feed->consumer, 0) >= feed->end;
	return WEIR_OK;
}

enum weir_status weir_policy_feed_read(struct weir_bus *bus, int64_t wait_ms, struct weir_policy_feed **out,
                                       struct weir_error *error)
{
	static const struct weir_log quiet = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	const struct weir_policy_feed_options options = {.bus = bus, .log = &quiet, .part = "policy"};
	int64_t end_ms = weir_monotonic_ms() + wait_ms;
	struct weir_policy_feed *feed;
	enum weir_status status = weir_policy_feed_new(&options, &feed, error);
	if (status != WEIR_OK)
		return status;
	while (status == WEIR_OK && !feed->caught_up)
		status = weir_monotonic_ms() < end_ms
		             ? weir_policy_feed_poll(feed, READ_POLL_MS, error)
		             : weir_fail(error, WEIR_IO, "%s: no answer", weir_topic_name(WEIR_TOPIC_POLICY));
	if (status != WEIR_OK) {
		weir_policy_feed_free(feed);
		return status;
	}
	*out = feed;
	return WEIR_OK;
}
