/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each message becomes one of the joined policy: the same events, with the zones that are tried in place of those that
 * they were matched for. It is judged by the limiter's lanes, so repeats are left out and clocks go on as they did.
 *
 * Operators' commands are not carried out: they were answers to another policy.
 */
#include "deploy/weir/backtest/log_judge.h"

#include "collector/send/framer.h"
#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/backend/run_note.h"
#include "deploy/weir/backtest/log_zones.h"
#include "deploy/weir/inspect/topic_read.h"
#include "deploy/weir/run/rounds.h"
#include "deploy/weir/terminal/when.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_EVENTS = 2048, TOLD_MOST = 10 };

struct log_judge {
	struct log_judge_options options;
	struct backend backend;
	uint32_t partitions;
	int64_t lateness_ms;
	struct policy_registry *logged; /* the policies of the log */
	struct policy_registry *tried;
	uint64_t version; /* of the joined policy */
	struct lane **lanes;
	struct rounds *rounds;
	struct framer *framer;
	struct weir_frame_reader *reader;
	struct output_files files; /* none: what is judged is looked at alone */
	struct once_watch watch;   /* the options' own, behind a look at the memory */
	_Atomic bool full;

	struct log_zones *zones; /* of each version that was met */
	uint32_t zones_count;
	uint64_t unknown; /* the version that was looked for in vain; 0: none */
	struct topic_read *read;
	uint64_t from;  /* the offset that reading begins with, where a partition has it still */
	uint64_t *next; /* by partition: the offset that comes next; 0: none came yet */
	bool *ended;    /* by partition: it has come to the range's end */
	uint32_t open;  /* partitions that have not */
	uint64_t messages, events, events_in_round, commands, told;
	bool damaged;

	struct weir_matched_event *record; /* of the record at hand */
	struct weir_frame_zone *record_zones;
	uint32_t record_room;
};

/* ---- the range ---- */

static bool read_end(const char *text, size_t length, int64_t now_ms, struct log_end *end)
{
	char copy[64];
	if (length >= sizeof copy)
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*end = (struct log_end){.kind = LOG_END_OPEN};
	if (length == 0)
		return true;
	end->kind = strspn(copy, "0123456789") == length && length < 13 ? LOG_END_OFFSET : LOG_END_TIME;
	if (end->kind == LOG_END_TIME)
		return when_read(copy, now_ms, &end->at);
	end->at = strtoll(copy, NULL, 10);
	return true;
}

/* Nothing is between them. */
static bool ends_before_it_begins(const struct log_end range[2])
{
	return range[0].kind != LOG_END_OPEN && range[0].kind == range[1].kind && range[0].at >= range[1].at;
}

const char *log_range_read(const char *text, int64_t now_ms, struct log_end range[2])
{
	const char *dots = strstr(text, "..");
	if (dots == NULL)
		return "FROM..TO is meant, as in 0..1000 or 2026-05-01..";
	if (!read_end(text, (size_t)(dots - text), now_ms, &range[0]))
		return "FROM is neither an offset nor a time";
	if (!read_end(dots + 2, strlen(dots + 2), now_ms, &range[1]))
		return "TO is neither an offset nor a time";
	return ends_before_it_begins(range) ? "FROM must be before TO, as in 0..1000" : NULL;
}

/* The first offset to ask for: of several partitions the least. */
static enum weir_status find_start(const struct log_judge *judge, uint64_t *from, struct weir_error *error)
{
	const struct log_end *end = &judge->options.range[0];
	*from = end->kind == LOG_END_OFFSET ? (uint64_t)end->at : 0;
	if (end->kind != LOG_END_TIME || judge->backend.bus == NULL)
		return WEIR_OK;
	*from = UINT64_MAX;
	for (uint32_t i = 0; i < judge->partitions; i++) {
		uint64_t own;
		enum weir_status status =
			weir_bus_kafka_offset_at(judge->backend.bus, WEIR_TOPIC_EVENTS, i, end->at, &own, error);
		if (status != WEIR_OK && status != WEIR_END)
			return status;
		if (status == WEIR_OK && own < *from)
			*from = own;
	}
	return WEIR_OK;
}

static bool is_before(const struct weir_message *message, const struct log_end *end)
{
	return (end->kind == LOG_END_OFFSET && (int64_t)message->offset < end->at) ||
	       (end->kind == LOG_END_TIME && message->appended_ms < end->at);
}

/* ---- which zones ---- */

static const struct log_zones *zones_of(struct log_judge *judge, uint64_t version)
{
	for (uint32_t i = 0; i < judge->zones_count; i++)
		if (judge->zones[i].version == version)
			return &judge->zones[i];
	const struct weir_policy *policy = policy_registry_policy(judge->logged, version);
	if (policy == NULL)
		return NULL;
	judge->zones = weir_realloc(judge->zones, judge->zones_count + (size_t)1, sizeof *judge->zones);
	struct log_zones *zones = &judge->zones[judge->zones_count++];
	log_zones_init(zones, policy, judge->options.policies);
	return zones;
}

static void put_zone(struct weir_text *text, const struct backtest_policies *policies, uint32_t place)
{
	weir_text_printf(text, "%s, zone \"%s\"", policies->at[policies->owners[place]].name,
	                 policies_zone(policies, place)->name);
}

/* What the newest policy of the log does not carry. */
static enum weir_status check_zones(struct log_judge *judge, struct weir_error *error)
{
	const struct backtest_policies *policies = judge->options.policies;
	const struct log_zones *zones = zones_of(judge, policy_registry_newest(judge->logged));
	struct weir_text lacking = {0};
	if (zones == NULL)
		return weir_fail(error, WEIR_INVALID, "the log has no policy yet, and so no events");
	for (uint32_t i = 0; i < policies->zone_count; i++)
		if (zones->lacks[i]) {
			weir_text_puts(&lacking, lacking.length > 0 ? "; " : "");
			put_zone(&lacking, policies, i);
		}
	if (lacking.length == 0)
		return WEIR_OK;
	weir_fail(error, WEIR_INVALID,
	          "the log's events do not carry these zones: %.*s. Its policy has no zone with their key, match, exempt, "
	          "sources and done; limits alone may differ. Name the raw logs instead",
	          (int)lacking.length, lacking.at);
	weir_text_deinit(&lacking);
	return WEIR_INVALID;
}

/* Said once for each earlier policy: from where on a zone's numbers are whole. */
static void tell_lacking(const struct log_judge *judge, const struct log_zones *zones)
{
	const struct backtest_policies *policies = judge->options.policies;
	for (uint32_t i = 0; i < policies->zone_count; i++) {
		if (!zones->lacks[i])
			continue;
		struct weir_text text = {0};
		put_zone(&text, policies, i);
		weir_log(judge->options.log, WEIR_LOG_WARNING, "backtest",
		         "policy %" PRIu64 " of the log has no zone that carries %.*s: events that were matched under it are "
		         "not judged there",
		         zones->version, (int)text.length, text.at);
		weir_text_deinit(&text);
	}
}

/* ---- opening ---- */

static void look_at_memory(void *context, unsigned place, uint32_t worker, const struct lane *lane,
                           const struct lane_result *result)
{
	struct log_judge *judge = context;
	const struct once_watch *own = judge->options.watch;
	struct shard_stats stats;
	own->judged(own->context, place, worker, lane, result);
	shard_stats(lane_shard(judge->lanes[lane_partition(lane)]), &stats);
	if (stats.bytes > (uint64_t)judge->options.memory_bytes / judge->partitions)
		atomic_store_explicit(&judge->full, true, memory_order_relaxed);
}

static enum weir_status pass_on(void *context, unsigned place, struct weir_error *error)
{
	const struct once_watch *own = ((const struct log_judge *)context)->options.watch;
	return own->written(own->context, place, error);
}

static enum weir_status open_lanes(struct log_judge *judge, struct weir_error *error)
{
	judge->tried = policy_registry_new();
	enum weir_status status =
		policy_log_apply(NULL, judge->tried, NULL, judge->options.joined, NULL, 0, &judge->version, error);
	if (status != WEIR_OK)
		return status;
	judge->lanes = weir_alloc(judge->partitions, sizeof(struct lane *));
	for (uint32_t i = 0; i < judge->partitions; i++) {
		struct shard_options options = {
			.partition = i, .partitions = judge->partitions, .lateness_ms = judge->lateness_ms, .count_events = true};
		judge->lanes[i] = lane_new(&options, judge->tried, judge->version);
	}
	judge->watch = (struct once_watch){.context = judge, .judged = look_at_memory, .written = pass_on};
	struct rounds_options rounds = {.lanes = judge->lanes,
	                                .partition_count = judge->partitions,
	                                .threads = judge->options.threads,
	                                .files = &judge->files,
	                                .watch = &judge->watch};
	status = rounds_new(&rounds, &judge->rounds, error);
	if (status == WEIR_OK)
		judge->framer = framer_new(judge->partitions, rounds_emit, judge->rounds);
	return status;
}

/* How long the run whose log it is remembered buckets. */
static enum weir_status read_lateness(struct log_judge *judge, struct weir_error *error)
{
	struct run_note note;
	judge->lateness_ms = judge->backend.lateness_ms;
	if (judge->backend.kind == BACKEND_CLUSTER)
		return WEIR_OK;
	enum weir_status status = run_note_get(judge->backend.store, &note, error);
	if (status == WEIR_OK)
		judge->lateness_ms = note.config->limiter.lateness_ms;
	run_note_deinit(&note);
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status log_judge_new(const struct log_judge_options *options, struct log_judge **out,
                               struct weir_error *error)
{
	struct log_judge *judge = *out = weir_alloc(1, sizeof *judge);
	judge->options = *options;
	judge->reader = weir_frame_reader_new();
	judge->logged = policy_registry_new();
	enum weir_status status =
		backend_open(&judge->backend, "weir backtest", options->config_path, options->state_path, BACKEND_VIEWS, error);
	if (status == WEIR_OK && judge->backend.once)
		status = weir_fail(error, WEIR_INVALID,
		                   "%s is the state of a run with --once, which keeps no log of events: name the raw logs",
		                   options->state_path);
	if (status == WEIR_OK)
		status = backend_partitions(&judge->backend, &judge->partitions, error);
	if (status == WEIR_OK)
		status = policy_log_load(judge->backend.store, judge->logged, error);
	if (status == WEIR_OK)
		status = check_zones(judge, error);
	if (status == WEIR_OK)
		status = read_lateness(judge, error);
	if (status != WEIR_OK)
		return status;
	judge->next = weir_alloc(judge->partitions, sizeof *judge->next);
	judge->ended = weir_alloc(judge->partitions, sizeof *judge->ended);
	judge->open = judge->partitions;
	if (judge->options.threads > judge->partitions)
		judge->options.threads = judge->partitions;
	return open_lanes(judge, error);
}

void log_judge_free(struct log_judge *judge)
{
	if (judge == NULL)
		return;
	topic_read_free(judge->read);
	rounds_free(judge->rounds);
	framer_free(judge->framer);
	for (uint32_t i = 0; judge->lanes != NULL && i < judge->partitions; i++)
		lane_free(judge->lanes[i]);
	free(judge->lanes);
	for (uint32_t i = 0; i < judge->zones_count; i++)
		log_zones_deinit(&judge->zones[i]);
	free(judge->zones);
	free(judge->next);
	free(judge->ended);
	free(judge->record);
	free(judge->record_zones);
	policy_registry_free(judge->tried);
	policy_registry_free(judge->logged);
	weir_frame_reader_free(judge->reader);
	backend_close(&judge->backend);
	free(judge);
}

uint32_t log_judge_partitions(const struct log_judge *judge)
{
	return judge->partitions;
}

/* ---- judging ---- */

/* Room for the events of a record: as many as the frame has events, each of all zones. */
static void make_room(struct log_judge *judge, uint32_t events)
{
	if (events <= judge->record_room)
		return;
	judge->record_room = 2 * events;
	judge->record = weir_realloc(judge->record, judge->record_room, sizeof *judge->record);
	judge->record_zones =
		weir_realloc(judge->record_zones, (size_t)judge->record_room * judge->options.policies->zone_count,
	                 sizeof *judge->record_zones);
}

/* Takes the events [first, end), which are of one record: all of it goes into one frame. */
static void take_record(struct log_judge *judge, const struct weir_frame *frame, const struct log_zones *zones,
                        uint32_t partition, uint32_t first, uint32_t end)
{
	uint32_t count = 0, zone_count = judge->options.policies->zone_count;
	make_room(judge, end - first);
	for (uint32_t i = first; i < end; i++) {
		struct weir_frame_zone *carried = judge->record_zones + (size_t)count * zone_count;
		uint32_t own = log_zones_carried(zones, &frame->zone_sets[frame->events[i].zone_set], carried);
		struct weir_span key = frame->keys[frame->events[i].key];
		if (own == 0)
			continue;
		judge->record[count++] = (struct weir_matched_event){.key = key,
		                                                     .key_hash = weir_hash64(key.at, key.length),
		                                                     .cost = frame->events[i].cost,
		                                                     .partition = partition,
		                                                     .zone_count = own,
		                                                     .zones = carried};
	}
	struct weir_record record = {.time_ms = frame->events[first].time_ms};
	struct weir_matched matched = {.events = judge->record, .event_count = count};
	if (count > 0)
		framer_add(judge->framer, frame->source, frame->is_common, judge->version, &matched, &record,
		           frame->events[first].position, frame->sending_time_ms);
	judge->events += end - first;
	judge->events_in_round += end - first;
}

static void tell(struct log_judge *judge, const char *words)
{
	judge->damaged = true;
	if (judge->told++ < TOLD_MOST)
		weir_log(judge->options.log, WEIR_LOG_WARNING, "backtest",
		         "%s: what was there is not judged, and counts that reach over it are too low%s", words,
		         judge->told == TOLD_MOST ? " (more of this is not said)" : "");
}

/* The store is opened anew: that of a state which nobody used is read as if it never changed. */
static enum weir_status load_again(struct log_judge *judge, struct weir_error *error)
{
	const struct log_judge_options *options = &judge->options;
	struct backend now = {0};
	enum weir_status status =
		backend_open(&now, "weir backtest", options->config_path, options->state_path, BACKEND_READS, error);
	if (status == WEIR_OK)
		status = policy_log_load(now.store, judge->logged, error);
	backend_close(&now);
	return status;
}

/*
 * The zones of the policy that a message's events were matched under. One that came into force since the start is loaded
 * when it is met. @param zones  returned; NULL: nobody has such a policy
 */
static enum weir_status find_zones(struct log_judge *judge, uint64_t version, const struct log_zones **zones,
                                   struct weir_error *error)
{
	uint32_t known = judge->zones_count;
	*zones = zones_of(judge, version);
	if (*zones == NULL && version != judge->unknown) {
		enum weir_status status = load_again(judge, error);
		if (status != WEIR_OK)
			return status;
		*zones = zones_of(judge, version);
		judge->unknown = *zones == NULL ? version : judge->unknown;
	}
	if (*zones != NULL && judge->zones_count > known)
		tell_lacking(judge, *zones);
	return WEIR_OK;
}

static enum weir_status take_events(struct log_judge *judge, const struct weir_message *message,
                                    struct weir_frame *frame, struct weir_error *error)
{
	char words[160];
	const struct log_zones *zones;
	enum weir_status status = find_zones(judge, frame->policy_version, &zones, error);
	if (status != WEIR_OK)
		return status;
	if (zones == NULL) {
		snprintf(words, sizeof words,
		         "partition %u of the log, offset %" PRIu64 ": there is no policy %" PRIu64
		         ", by which its events were matched",
		         message->partition, message->offset, frame->policy_version);
		tell(judge, words);
		return WEIR_OK;
	}
	(void)weir_frame_bound_times(judge->reader, frame, message->appended_ms); /* as a lane does */
	for (uint32_t first = 0, end; first < frame->event_count; first = end) {
		end = first + 1;
		while (end < frame->event_count && frame->events[end].position == frame->events[first].position)
			end++;
		take_record(judge, frame, zones, message->partition, first, end);
	}
	framer_flush(judge->framer, frame->sending_time_ms);
	return WEIR_OK;
}

/* Where a part of the range is gone. */
static void look_for_gap(struct log_judge *judge, const struct weir_message *message)
{
	char words[160];
	const struct log_end *end = &judge->options.range[1];
	uint64_t next = judge->next[message->partition];
	if (next == 0 || message->offset <= next || (end->kind == LOG_END_OFFSET && next >= (uint64_t)end->at))
		return;
	snprintf(words, sizeof words, "partition %u of the log has no messages from offset %" PRIu64 " to %" PRIu64,
	         message->partition, next, message->offset - 1);
	tell(judge, words);
}

static void tell_partition_begins(const struct log_judge *judge, uint32_t partition, uint64_t first)
{
	weir_log(judge->options.log, WEIR_LOG_WARNING, "backtest",
	         "partition %u of the log begins at offset %" PRIu64
	         ": what was before is gone, and counts that reach back to it are too low",
	         partition, first);
}

/* Where the log begins later than was asked for: it is kept for a time alone. Of a time, its first message tells. */
static void tell_beginning(const struct log_judge *judge)
{
	const struct log_end *end = &judge->options.range[0];
	uint64_t from = end->kind == LOG_END_OFFSET ? (uint64_t)end->at : 0;
	for (uint32_t i = 0; end->kind != LOG_END_TIME && i < judge->partitions; i++)
		if (topic_read_first(judge->read, i) > from)
			tell_partition_begins(judge, i, topic_read_first(judge->read, i));
}

/* The first message of a partition that was read: with a time, whether there were others behind it. */
static void look_at_first(const struct log_judge *judge, const struct weir_message *message)
{
	const struct log_end *end = &judge->options.range[0];
	uint64_t first = topic_read_first(judge->read, message->partition);
	if (end->kind == LOG_END_TIME && first > 0 && judge->from <= first && message->appended_ms > end->at)
		tell_partition_begins(judge, message->partition, first);
}

static enum weir_status check_time(const struct log_judge *judge, const struct weir_message *message,
                                   struct weir_error *error)
{
	const struct log_end *range = judge->options.range;
	if (message->appended_ms > 0 || (range[0].kind != LOG_END_TIME && range[1].kind != LOG_END_TIME))
		return WEIR_OK;
	return weir_fail(
		error, WEIR_INVALID,
		"the log does not store when it took a message, as a state directory's never does: give offsets in "
		"--topic");
}

/* Whether a message is in the range. What is missing before it is told. */
static bool is_in_range(struct log_judge *judge, const struct weir_message *message)
{
	const struct log_end *range = judge->options.range;
	uint32_t partition = message->partition;
	bool within = !is_before(message, &range[0]) && !judge->ended[partition];
	if (judge->next[partition] == 0)
		look_at_first(judge, message);
	if (within)
		look_for_gap(judge, message);
	judge->next[partition] = message->offset + 1;
	if (!within || range[1].kind == LOG_END_OPEN || is_before(message, &range[1]))
		return within;
	judge->ended[partition] = true;
	judge->open--;
	return false;
}

static enum weir_status take_message(struct log_judge *judge, const struct weir_message *message,
                                     struct weir_error *error)
{
	struct weir_frame frame;
	struct weir_error why;
	enum weir_status status = check_time(judge, message, error);
	judge->messages++;
	if (status != WEIR_OK || !is_in_range(judge, message))
		return status;
	if (weir_frame_decode(judge->reader, message->payload, &frame, &why) != WEIR_OK)
		tell(judge, why.text);
	else if (weir_frame_is_of_events(&frame))
		return take_events(judge, message, &frame, error);
	else
		judge->commands += frame.kind == WEIR_FRAME_COMMAND;
	return WEIR_OK;
}

static enum weir_status fail_full(const struct log_judge *judge, struct weir_error *error)
{
	struct weir_text share = {0};
	weir_text_size(&share, (uint64_t)judge->options.memory_bytes / judge->partitions);
	weir_fail(error, WEIR_FULL,
	          "the buckets of one partition need more than a partition's share of limiter.memory, %.*s, after %" PRIu64
	          " events: give more by --memory, a shorter stretch, or the raw logs, whose buckets move to disk",
	          (int)share.length, share.at, judge->events);
	weir_text_deinit(&share);
	return WEIR_FULL;
}

static enum weir_status end_round(struct log_judge *judge, struct weir_error *error)
{
	judge->events_in_round = 0;
	if (progress_due(judge->options.progress))
		progress_draw(judge->options.progress, judge->events, 0, 0);
	if (!atomic_load_explicit(&judge->full, memory_order_relaxed))
		return rounds_submit(judge->rounds, error);
	return fail_full(judge, error);
}

static enum weir_status read_all(struct log_judge *judge, struct weir_error *error)
{
	const _Atomic bool *stop = weir_stop_flag();
	struct weir_message message;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && judge->open > 0 && !atomic_load_explicit(stop, memory_order_relaxed)) {
		status = topic_read_next(judge->read, &message, error);
		if (status == WEIR_INVALID || status == WEIR_NEWER) {
			tell(judge, error->text);
			status = WEIR_OK;
			continue;
		}
		if (status != WEIR_OK)
			break;
		status = take_message(judge, &message, error);
		if (status == WEIR_OK && judge->events_in_round >= ROUND_EVENTS)
			status = end_round(judge, error);
	}
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status log_judge_run(struct log_judge *judge, struct log_judged *judged, struct weir_error *error)
{
	enum weir_status status = find_start(judge, &judge->from, error);
	if (status == WEIR_OK)
		status = topic_read_open(judge->backend.bus, judge->backend.state_path, WEIR_TOPIC_EVENTS,
		                         WEIR_BUS_EVERY_PARTITION, judge->from, &judge->read, error);
	if (status == WEIR_OK) {
		tell_beginning(judge);
		status = read_all(judge, error);
	}
	if (status == WEIR_OK)
		status = end_round(judge, error);
	if (status == WEIR_OK)
		status = rounds_drain(judge->rounds, error);
	if (judge->commands > 0)
		weir_log(judge->options.log, WEIR_LOG_INFO, "backtest",
		         "operators' commands in the log: %" PRIu64 ", which are not carried out in a backtest",
		         judge->commands);
	*judged = (struct log_judged){
		.events = judge->events, .damaged = judge->damaged, .finished = !atomic_load(weir_stop_flag())};
	return status;
}
