/*
 * `weir state`: the buckets of a state directory, as of its checkpoint.
 *
 * It looks at the store from beside the process that may be writing it, as of
 * one moment, and reads each partition through a lane, as a start would: so
 * what it prints is what a start would go on with.
 */
#include "common/alloc.h"
#include "common/arguments.h"
#include "common/json.h"
#include "deploy/standalone/command.h"
#include "deploy/standalone/policy_log.h"
#include "deploy/standalone/state_directory.h"
#include "deploy/standalone/state_keys.h"
#include "deploy/standalone/state_lines.h"
#include "limiter/checkpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LATENESS_DEFAULT_MS INT64_C(600000)
#define LATENESS_MAX_MS (INT64_C(366) * 86400000)

static const char help[] =
	"usage: weir state --state DIR [--zone NAME] [--keys FILE] [--key KEY...]\n"
	"\n"
	"Prints what a limiter keeps, one bucket a line, as of the last checkpoint. The state is only read: a\n"
	"weir that follows with it may run meanwhile.\n"
	"\n"
	"  --zone NAME      only this zone\n"
	"  --keys FILE      names for the buckets: one key a line (- is standard input)\n"
	"  --key KEY        only the buckets of this key; again for more\n"
	"  --lateness TIME  limiter.lateness of the configuration (10m): when idle buckets count as forgotten\n"
	"\n"
	"A limiter keeps a hash of each key, not the key. A bucket whose key is named has \"key\":[...], and comes\n"
	"in the order of the zones and of the keys' bytes; any other has \"key_hash\". A key is a JSON array of\n"
	"values, or the values joined by |; an address is grouped as its zone says, and a value too long\n"
	"for a key is shortened as in decisions.\n"
	"\n"
	"What a limit holds: sliding_window, uniform and queue {\"times\":[[time,count],...]}; fixed_window\n"
	"{\"bucket\":number,\"count\":n,\"previous\":n}; token_bucket {\"level\":units,\"time\":t}, a token being as many\n"
	"units as its window has ms, or {\"tokens\":k,\"time\":t}; gcra {\"tat\":n} in 1/rate ms. Times are Unix ms;\n"
	"null: nothing was recorded.\n"
	"\n"
	"Examples\n"
	"  weir state --state /var/lib/weir --key 203.0.113.9\n"
	"  weir state --state run1 --zone login --key 'alice|203.0.113.9'\n"
	"  cut -d' ' -f1 access.log | sort -u | weir state --state run1 --keys - > buckets.jsonl\n";

enum option { STATE, ZONE, KEYS, KEY, LATENESS };

static const struct weir_argument_option table[] = {
	{"state", true}, {"zone", true}, {"keys", true}, {"key", true}, {"lateness", true}, {NULL, false},
};

struct dump {
	struct weir_arguments arguments;
	const char *path;
	const char *zone; /* NULL: all */
	struct state_keys *keys;
	bool named;      /* some names were given: the lines are sorted over all partitions */
	bool only_named; /* buckets without a name are left out */
	int64_t lateness_ms;
	struct state_directory state;
	uint64_t seed;
	struct rulebook *book;
	struct state_lines *lines;
	uint32_t partition_count;
	uint32_t partition; /* being read */
};

/* ---- the command line ---- */

static int refuse(const struct dump *dump, const char *words, const char *value)
{
	weir_arguments_refuse(&dump->arguments, words, value);
	return EXIT_USAGE;
}

static int take_option(struct dump *dump, int option, const char *value)
{
	struct weir_error error;
	enum weir_status status = WEIR_OK;
	switch (option) {
	case STATE: dump->path = value; return -1;
	case ZONE: dump->zone = value; return -1;
	case KEYS: status = state_keys_read(dump->keys, value, &error); break;
	case KEY:
		status = state_keys_add(dump->keys, weir_span_of(value), &error);
		dump->only_named = true;
		break;
	case LATENESS:
		if (!weir_parse_duration(value, &dump->lateness_ms) || dump->lateness_ms > LATENESS_MAX_MS)
			return refuse(dump, "--lateness must be a duration such as 10m, not \"%s\"", value);
		return -1;
	default: return EXIT_USAGE;
	}
	dump->named = true;
	return status == WEIR_OK ? -1 : refuse(dump, "%s", error.text);
}

/* -1: go on. */
static int parse(struct dump *dump, int argc, char **argv)
{
	dump->arguments = (struct weir_arguments){.command = "weir state", .options = table, .argc = argc, .argv = argv};
	int option, code = -1;
	const char *value;
	while (code == -1 && (option = weir_arguments_next(&dump->arguments, &value)) != WEIR_ARGUMENTS_END) {
		if (option == WEIR_ARGUMENTS_HELP) {
			fputs(help, stdout);
			return EXIT_DONE;
		}
		code = option == WEIR_ARGUMENTS_WORD ? refuse(dump, "\"%s\" is no option; name the directory by --state", value)
		                                     : take_option(dump, option, value);
	}
	if (code == -1 && dump->path == NULL)
		code = refuse(dump, "%s", "name the directory by --state");
	return code;
}

/* ---- the state ---- */

/* Up to the first that nobody ever took. */
static enum weir_status count_partitions(struct dump *dump, struct weir_error *error)
{
	struct weir_partition_state state = {.epoch = 1};
	struct weir_store *store = dump->state.store;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && state.epoch > 0 && dump->partition_count < WEIR_PARTITIONS_MAX) {
		status = store->ops->look(store, WEIR_STORE_ROLE_LIMITER, dump->partition_count, &state, error);
		dump->partition_count += status == WEIR_OK && state.epoch > 0;
	}
	return status;
}

static enum weir_status open_state(struct dump *dump, struct weir_error *error)
{
	bool once;
	enum weir_status status = state_directory_look(&dump->state, dump->path, &once, &dump->seed, error);
	if (status != WEIR_OK)
		return status;
	if (once)
		dump->lateness_ms = -1;
	dump->book = rulebook_new();
	status = policy_log_load(dump->state.store, dump->book, error);
	uint64_t newest = rulebook_newest(dump->book);
	if (status != WEIR_OK || newest == 0)
		return status;
	const struct weir_policy *policy = rulebook_policy(dump->book, newest);
	bool found = dump->zone == NULL;
	for (uint32_t i = 0; i < policy->zone_count; i++)
		found |= dump->zone != NULL && strcmp(policy->zones[i].name, dump->zone) == 0;
	if (!found)
		return weir_fail(error, WEIR_INVALID, "the state has no zone \"%s\"", dump->zone);
	status = count_partitions(dump, error);
	if (status == WEIR_OK && dump->partition_count > 0)
		state_keys_index(dump->keys, policy, dump->seed, dump->partition_count);
	return status;
}

static void add_bucket(void *context, const struct shard_bucket *bucket)
{
	struct dump *dump = context;
	struct weir_fingerprint fingerprint = {.low = bucket->fingerprint_low, .high = bucket->fingerprint_high};
	char room[WEIR_KEY_MAX_BYTES];
	struct weir_span key = {0};
	if (dump->zone != NULL && strcmp(bucket->zone->zone->name, dump->zone) != 0)
		return;
	if (!state_keys_find(dump->keys, fingerprint, room, &key) && dump->only_named)
		return;
	state_lines_add(dump->lines, bucket, key, dump->partition);
}

struct segment_list {
	uint32_t numbers[SHARD_SEGMENTS];
	size_t count;
};

static void list_segment(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	struct segment_list *list = context;
	(void)deltas;
	(void)base_bytes;
	(void)delta_bytes;
	if (segment < SHARD_SEGMENTS && list->count < SHARD_SEGMENTS)
		list->numbers[list->count++] = segment;
}

/* Reads every bucket of a partition into the lines. */
static enum weir_status read_partition(struct dump *dump, const struct weir_partition_state *state,
                                       struct weir_error *error)
{
	struct weir_store *store = dump->state.store;
	struct shard_options options = {
		.partition = state->partition, .seed = dump->seed, .lateness_ms = dump->lateness_ms};
	if (rulebook_rules(dump->book, state->policy_version) == NULL)
		return weir_fail(error, WEIR_INVALID, "partition %u was saved under policy %llu, which the store does not hold",
		                 state->partition, (unsigned long long)state->policy_version);
	struct lane *lane = lane_new(&options, dump->book, state->policy_version);
	struct checkpoint_blobs blobs = {0};
	struct segment_list list = {.count = 0};
	enum weir_status status = lane_restore(lane, state, error);
	if (status == WEIR_OK)
		status = store->ops->list_segments(store, state->partition, state->checkpoint, list_segment, &list, error);
	/* One at a time: what is read stays in memory twice only for a moment. */
	for (size_t i = 0; status == WEIR_OK && i < list.count; i++) {
		if (dump->only_named && !state_keys_in_segment(dump->keys, state->partition, list.numbers[i]))
			continue;
		status = checkpoint_read(store, state->partition, state->epoch, &list.numbers[i], 1, &blobs, error);
		if (status == WEIR_OK)
			status = checkpoint_load(lane, &list.numbers[i], 1, &blobs, error);
		checkpoint_blobs_deinit(&blobs);
	}
	if (status == WEIR_OK)
		shard_each(lane_shard(lane), add_bucket, dump);
	lane_free(lane);
	return status;
}

/* False: standard output takes no more. */
static bool write_lines(struct dump *dump)
{
	state_lines_sort(dump->lines);
	if (state_lines_write(dump->lines, STDOUT_FILENO) == 0)
		return true;
	fprintf(stderr, "weir state: cannot write: %s\n", strerror(errno));
	return false;
}

/* Partition by partition; without names each is written as it is read. */
static int print_all(struct dump *dump)
{
	struct weir_partition_state state;
	struct weir_error error;
	struct weir_store *store = dump->state.store;
	for (; dump->partition < dump->partition_count; dump->partition++) {
		enum weir_status status = store->ops->look(store, WEIR_STORE_ROLE_LIMITER, dump->partition, &state, &error);
		if (status == WEIR_OK && state.checkpoint > 0)
			status = read_partition(dump, &state, &error);
		if (status != WEIR_OK) {
			fprintf(stderr, "weir state: %s\n", error.text);
			return EXIT_FAILED;
		}
		if (!dump->named && !write_lines(dump))
			return EXIT_FAILED;
	}
	return write_lines(dump) ? EXIT_DONE : EXIT_FAILED;
}

int command_state(int argc, char **argv)
{
	struct dump dump = {.keys = state_keys_new(), .lines = state_lines_new(), .lateness_ms = LATENESS_DEFAULT_MS};
	struct weir_error error;
	int code = parse(&dump, argc, argv);
	if (code == -1) {
		enum weir_status status = open_state(&dump, &error);
		if (status == WEIR_OK)
			code = print_all(&dump);
		else
			code = status == WEIR_INVALID ? EXIT_USAGE : EXIT_FAILED;
		if (status != WEIR_OK)
			fprintf(stderr, "weir state: %s\n", error.text);
		rulebook_free(dump.book);
		state_directory_close(&dump.state);
	}
	state_keys_free(dump.keys);
	state_lines_free(dump.lines);
	return code;
}
