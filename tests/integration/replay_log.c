/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One partition's log through a real lane: replay_log CONFIG STATE SEED < LOG > OUT.
 *
 * LOG has what `weir decode` prints, a frame a line (events, policy, command; a
 * line {"kind":"command","body":"…"} is a command of any bytes). OUT has, for
 * each frame, what is published, then `verdicts OFFSET DIGITS` or `malformed
 * OFFSET`. At offsets drawn from the seed a checkpoint is stored, or the lane is
 * dropped and goes on from the last one, under a ceiling that makes it evict:
 * what it says again must be what it said before, or the program fails.
 */
#include "common/base/alloc.h"
#include "common/config/config.h"
#include "common/frame/frame.h"
#include "common/store/sqlite/store_sqlite.h"
#include "limiter/checkpoint/checkpoint.h"
#include "limiter/lane/decision.h"
#include "limiter/lane/policy_switch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITION = 3, PARTITIONS = 4, CHECKPOINT_ONE_IN = 7, RESTART_ONE_IN = 19, CEILING_BYTES = 160000 };

struct replay {
	struct weir_store *store;
	struct policy_registry *registry;
	struct lane *lane;
	struct checkpoint_partition stored;
	struct shard_options options;
	struct weir_frame_writer *writer;
	char **messages;
	uint32_t *lengths;
	char **said; /* what came of each, NULL: not yet judged */
	uint32_t count, room;
	uint64_t random;
	struct weir_text text;
};

static void must(bool good, const char *words)
{
	if (good)
		return;
	fprintf(stderr, "replay_log: %s\n", words);
	exit(1);
}

static bool one_in(struct replay *replay, uint64_t number)
{
	replay->random = replay->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (replay->random >> 33) % number == 0;
}

/* ---- reading the log ---- */

static void keep(struct replay *replay, const char *bytes, size_t length)
{
	if (replay->count == replay->room) {
		replay->room = replay->room == 0 ? 64 : replay->room * 2;
		replay->messages = weir_realloc(replay->messages, replay->room, sizeof(char *));
		replay->lengths = weir_realloc(replay->lengths, replay->room, sizeof *replay->lengths);
	}
	replay->messages[replay->count] = weir_copy(bytes, length);
	replay->lengths[replay->count++] = (uint32_t)length;
}

static void keep_events(struct replay *replay, json_t *frame, int64_t sent_ms)
{
	uint8_t source[WEIR_SOURCE_ID_BYTES] = {0};
	const char *name = json_string_value(json_object_get(frame, "source"));
	memcpy(source, name, strlen(name) < sizeof source ? strlen(name) : sizeof source);
	weir_frame_begin(replay->writer, source, 1, sent_ms, 0);
	json_t *event, *zone;
	size_t i, j;
	json_array_foreach(json_object_get(frame, "events"), i, event)
	{
		struct weir_frame_zone zones[WEIR_ZONES_MAX];
		uint32_t count = 0;
		json_array_foreach(json_object_get(event, "zones"), j, zone) zones[count++] = (struct weir_frame_zone){
			(uint32_t)json_integer_value(json_object_get(zone, "id")), json_is_true(json_object_get(zone, "done"))};
		struct weir_span key = weir_span_of(json_string_value(json_object_get(event, "key")));
		must(weir_frame_add(replay->writer, key, weir_hash64(key.at, key.length),
		                    json_integer_value(json_object_get(event, "time")),
		                    (uint64_t)json_integer_value(json_object_get(event, "position")),
		                    json_integer_value(json_object_get(event, "cost")), zones, count) == WEIR_OK,
		     "an event does not fit");
	}
	struct weir_span message = weir_frame_finish(replay->writer, sent_ms);
	keep(replay, message.at, message.length);
}

static void keep_control(struct replay *replay, enum weir_frame_kind kind, int64_t sent_ms, uint64_t version,
                         const char *body)
{
	size_t length;
	char *message = weir_frame_control(kind, sent_ms, version, weir_span_of(body), &length);
	keep(replay, message, length);
	free(message);
}

static void keep_policy(struct replay *replay, json_t *zones, int64_t sent_ms, uint64_t version)
{
	char *text = json_dumps(zones, JSON_COMPACT);
	struct weir_json_document *document;
	struct weir_policy *policy;
	struct weir_error error;
	must(weir_json_parse("log", text, strlen(text), &document, &error) == WEIR_OK, "a policy is no JSON");
	struct weir_json root = weir_json_root(document);
	must(weir_policy_parse(&root, NULL, &policy, &error) == WEIR_OK, error.text);
	keep_control(replay, WEIR_FRAME_POLICY, sent_ms, version, policy->text);
	weir_policy_free(policy);
	weir_json_document_free(document);
	free(text);
}

static void read_log(struct replay *replay)
{
	char *line = NULL;
	size_t room = 0;
	uint64_t version = 1;
	while (getline(&line, &room, stdin) > 0) {
		json_t *frame = json_loads(line, 0, NULL);
		const char *kind = json_string_value(json_object_get(frame, "kind"));
		int64_t sent_ms = json_integer_value(json_object_get(frame, "sent"));
		must(kind != NULL, "a line is no frame");
		if (strcmp(kind, "events") == 0) {
			keep_events(replay, frame, sent_ms);
		} else if (strcmp(kind, "policy") == 0) {
			keep_policy(replay, json_object_get(frame, "zones"), sent_ms, ++version);
		} else {
			json_t *command = json_object_get(frame, "command");
			char *body = json_dumps(command, JSON_COMPACT | JSON_ENCODE_ANY);
			const char *raw = json_string_value(json_object_get(frame, "body"));
			keep_control(replay, WEIR_FRAME_COMMAND, sent_ms, version, raw != NULL ? raw : body);
			free(body);
		}
		json_decref(frame);
	}
	free(line);
	replay->said = weir_alloc(replay->count, sizeof(char *));
}

/* ---- judging ---- */

static void start_lane(struct replay *replay)
{
	struct weir_partition_state state;
	struct weir_text extra = {0};
	struct weir_error error;
	lane_free(replay->lane);
	replay->lane = lane_new(&replay->options, replay->registry, 1);
	must(checkpoint_take(&replay->stored, replay->store, replay->options.partition, &state, &extra, &error) == WEIR_OK,
	     error.text);
	must(checkpoint_restore(&replay->stored, &state, replay->lane, &error) == WEIR_OK, error.text);
	weir_text_deinit(&extra);
}

static void store_checkpoint(struct replay *replay)
{
	struct checkpoint_cut cut;
	struct weir_error error;
	checkpoint_cut(&cut, replay->lane, &replay->stored);
	must(checkpoint_store(replay->store, &cut, 1, NULL, NULL, NULL, 0, &error) == WEIR_OK, error.text);
	checkpoint_finish(&cut, replay->lane, true);
}

static void load(struct replay *replay)
{
	uint32_t count;
	const uint32_t *missing = lane_missing(replay->lane, &count);
	struct checkpoint_blobs blobs;
	struct weir_error error;
	must(checkpoint_read(replay->store, replay->options.partition, replay->stored.epoch, replay->stored.current,
	                     missing, count, &blobs, &error) == WEIR_OK,
	     error.text);
	must(checkpoint_load(replay->lane, missing, count, &blobs, &error) == WEIR_OK, error.text);
	checkpoint_blobs_deinit(&blobs);
}

/* A policy of the log that the registry does not have yet. */
static void add_policy(struct replay *replay, struct weir_span message)
{
	struct weir_frame_reader *reader = weir_frame_reader_new();
	struct weir_frame frame;
	struct weir_error error;
	must(weir_frame_decode(reader, message, &frame, &error) == WEIR_OK, error.text);
	must(policy_registry_add(replay->registry, frame.policy_version, frame.body, &error) == WEIR_OK, error.text);
	weir_frame_reader_free(reader);
}

static void describe(struct replay *replay, const struct lane_result *result)
{
	struct weir_text *text = &replay->text;
	uint32_t partition = replay->options.partition;
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		decision_json(text, partition, &result->judged.decisions[i]);
		weir_text_puts(text, "\n");
	}
	const struct policy_switch *change = result->change;
	for (uint32_t i = 0; change != NULL && i < change->lifted_count; i++) {
		decision_lift_json(text, partition, result->offset, i, change->lifted[i], result->at_ms);
		weir_text_puts(text, "\n");
	}
	for (uint32_t i = 0; change != NULL && i < change->block_count; i++) {
		decision_override_json(text, partition, result->offset, change->lifted_count + i, &change->blocks[i]);
		weir_text_puts(text, "\n");
	}
	if (result->override != NULL) {
		decision_override_json(text, partition, result->offset, 0, result->override);
		weir_text_puts(text, "\n");
	}
	weir_text_printf(text, "verdicts %llu ", (unsigned long long)result->offset);
	for (uint32_t i = 0; i < result->judged.pair_count; i++)
		weir_text_printf(text, "%x", (result->judged.verdicts[i / 2] >> (i % 2 * 4)) & 15u);
	weir_text_puts(text, "\n");
}

static void judge(struct replay *replay, uint32_t number)
{
	struct weir_span message = {.at = replay->messages[number], .length = replay->lengths[number]};
	struct lane_result result;
	struct weir_error error;
	enum weir_status status = lane_offer(replay->lane, message, number, 0, &result, &error);
	while (status == WEIR_AGAIN) {
		uint32_t missing;
		lane_missing(replay->lane, &missing);
		if (missing > 0)
			load(replay);
		else
			add_policy(replay, message);
		status = lane_go_on(replay->lane, &result, &error);
	}
	weir_text_clear(&replay->text);
	if (status == WEIR_INVALID)
		weir_text_printf(&replay->text, "malformed %u\n", number);
	else
		describe(replay, &result);
	char *said = weir_copy(replay->text.at, replay->text.length);
	if (replay->said[number] == NULL)
		replay->said[number] = said;
	else
		must(strcmp(said, replay->said[number]) == 0, "judged again it says something else");
	if (said != replay->said[number])
		free(said);
	shard_sweep(lane_shard(replay->lane), 64);
}

int main(int argc, char **argv)
{
	struct weir_error error;
	struct weir_config *config;
	if (argc != 4) {
		fprintf(stderr, "usage: replay_log CONFIG STATE SEED\n");
		return 2;
	}
	must(weir_config_load(argv[1], &config, &error) == WEIR_OK, error.text);
	struct replay replay = {
		.registry = policy_registry_new(), .writer = weir_frame_writer_new(), .random = strtoull(argv[3], NULL, 10)};
	replay.options = (struct shard_options){.partition = PARTITION,
	                                        .partitions = PARTITIONS,
	                                        .seed = replay.random,
	                                        .ceiling_bytes = CEILING_BYTES,
	                                        .lateness_ms = config->limiter.lateness_ms};
	replay.stored.lateness_ms = config->limiter.lateness_ms;
	must(policy_registry_add(replay.registry, 1, weir_span_of(config->policy->text), &error) == WEIR_OK, error.text);
	must(weir_store_sqlite_open(argv[2], &replay.store, &error) == WEIR_OK, error.text);
	read_log(&replay);
	start_lane(&replay);
	while (lane_next_offset(replay.lane) < replay.count) {
		judge(&replay, (uint32_t)lane_next_offset(replay.lane));
		if (one_in(&replay, CHECKPOINT_ONE_IN))
			store_checkpoint(&replay);
		if (one_in(&replay, RESTART_ONE_IN))
			start_lane(&replay);
	}
	for (uint32_t i = 0; i < replay.count; i++) {
		fputs(replay.said[i], stdout);
		free(replay.said[i]);
		free(replay.messages[i]);
	}
	lane_free(replay.lane);
	replay.store->ops->close(replay.store);
	policy_registry_free(replay.registry);
	weir_frame_writer_free(replay.writer);
	weir_text_deinit(&replay.text);
	weir_config_free(config);
	free(replay.said);
	free(replay.messages);
	free(replay.lengths);
	return 0;
}
