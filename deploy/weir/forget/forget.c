/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir forget`: removes a key from live state, counts and histories, and reports
 * where it may remain. After a failure, running the command again completes it.
 */
#include "deploy/weir/forget/forget.h"

#include "common/files/durable_file.h"
#include "deploy/weir/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_DEFAULT_MS = 60000, TIMEOUT_MOST_MS = 86400000, LOOKS_MOST = 3 };

enum option { ZONE, KEY_HEX, CONFIG, STATE, TIMEOUT, BY, JSON, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[ZONE] =
		{.name = "zone",
         .value = "NAME",
         .type = WEIR_ARGUMENT_TEXT,
         .help =
             "only in this zone (default: in all zones that ever had a key of these values, alone or beside others)"},
	[KEY_HEX] = {.name = "key-hex",
                 .value = "HEX",
                 .type = WEIR_ARGUMENT_TEXT,
                 .help = "instead of the values: the joined key, if it is not UTF-8"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help =
                    "the configuration of a cluster, or of one machine whose state is in the usual place; required if "
                    "archiver.hash_keys is set"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run`; it may be running"},
	[TIMEOUT] = {.name = "timeout",
                 .value = "TIME",
                 .type = WEIR_ARGUMENT_DURATION,
                 .help = "how long to wait for limiters and archivers (default 60s)",
                 .most = TIMEOUT_MOST_MS},
	[BY] = {.name = "by",
            .value = "NAME",
            .type = WEIR_ARGUMENT_TEXT,
            .help = "who orders it (default: your login name)",
            .expected = "at most 64 bytes"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print what was done as a JSON line"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"How it works",
     "It gives the commands of `weir allow --for 0s`, `weir override --rate 1` and `weir lift`. It then "
     "waits until a limiter's checkpoint covers them and the archiver has stored everything before "
     "them, and removes the rows. So it takes about limiter.checkpoint_interval and archiver.interval. "
     "An override of a --prefix covers many keys, and stays. In the state of a --once run, only the "
     "rows are removed."},
	{"Which keys",
     "A zone whose key has the same fields and more has many keys with these values (203.0.113.9 and /login): those "
     "that the archive has are removed, up to 1,500 of a zone in a run. Where keys are hashed, or there is no archive, such zones are "
     "named, and their keys have to be given whole. One with just these fields in another order has one such key, which is "
     "removed, too, where an address among the values says which is which.\n"
     "\n"
     "A zone that counts a network as one (prefix4, prefix6) has one key for all its members: it is shared, so with one "
     "address the counts and the block of its neighbours go. The command says so where it was. To spare them, name other "
     "zones with --zone."},
	{"What it cannot remove",
     "The command lists what it cannot remove. Topics keep their messages until their retention ends. "
     "The local log of one machine keeps them until every reader has read past them, and events until "
     "bus.explain_size (256 MiB) of newer ones came: on a quiet machine that may be months. To drop them, set it to 0 and "
     "restart the run: each file of the log goes when all of it was read and a newer one has begun. The files of "
     "decisions and dead letters are yours to edit.\n"
     "\n"
     "Free space in the store's files may hold rows that were deleted or changed, until it is used again. In weir.db, "
     "what this command removes is overwritten with zeros.\n"
     "\n"
     "A --reason that names the key stays in the rows of other keys. Totals of a zone stay: they have "
     "no keys. Buckets in the store stay: they have hashes of keys."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "every key that has the values was found and removed"},
	{WEIR_EXIT_FAILED,
     "something was not found or not removed, and the command says what: run it again (running it twice does no harm)"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir forget",
	.summary = "remove a key everywhere: counts, histories, live state and lists",
	.usage = "weir forget VALUE... [--config FILE] [--zone NAME] [OPTION...]\n"
			 "weir forget VALUE... --state DIR [--zone NAME] [OPTION...]\n"
			 "weir forget --zone NAME [--config FILE] [--state DIR] [OPTION...]",
	.about = "Removes a key everywhere, for example at its owner's request.\n"
			 "\n"
			 "Its bucket is emptied and its block lifted, so that gateways let it in. An allow and an override "
			 "of it end. Then its rows are deleted from count_hourly, count_daily, decision_history, "
			 "shadow_history and zone_txn, and from zone_bucket_lock if check_velocity is used. A later request "
			 "counts from one again.",
	.operand = {.word = "VALUE",
                .help = "the values of the key, in its order, as the log has them (see weir lift --help)",
                .most = WEIR_ZONE_KEY_MAX,
                .hint = "a key has at most four values"},
	.options = options_table,
	.sections = sections,
	.examples = "weir forget 203.0.113.9 --config /etc/weir.json\n"
				"weir forget ann 2001:db8::7 --zone login --state /var/lib/weir --json\n"
				"weir forget --zone all    # whose key is empty: it has one bucket",
	.exits = exits,
};

/* ---- the command line ---- */

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct forget *forget = context;
	struct override_options *options = &forget->options;
	switch (option) {
	case ZONE: options->zone = value->text; break;
	case KEY_HEX: options->key_hex = value->text; break;
	case CONFIG: options->config_path = value->text; break;
	case STATE: options->state_path = value->text; break;
	case JSON: options->json = true; break;
	case TIMEOUT: forget->timeout_ms = (int64_t)value->number; break;
	case BY:
		if (strlen(value->text) > OVERRIDE_BY_MAX_BYTES)
			return weir_arguments_refuse_value(&line, BY, value->text);
		options->by = value->text;
		break;
	default:
		if (value->text[0] == '\0')
			return weir_arguments_refuse(&line, OVERRIDE_EMPTY_VALUE OVERRIDE_EMPTY_HINT);
		options->values[options->value_count++] = value->text;
		break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct forget *forget, int argc, char **argv)
{
	struct override_options *options = &forget->options;
	*options = (struct override_options){
		.line = &line, .kind = OVERRIDE_LIFT, .for_ms = -1, .until_ms = OVERRIDE_NO_END, .reason = ""};
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, forget);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (options->key_hex != NULL && options->value_count > 0)
		return weir_arguments_refuse(&line, "either values or --key-hex, not both");
	if (options->key_hex == NULL && options->value_count == 0 && options->zone == NULL)
		return weir_arguments_refuse(
			&line, "missing VALUE: give the key's values, or --key-hex; or with --zone alone a zone of one bucket");
	if (options->state_path == NULL && !weir_config_find(&options->config_path))
		return weir_arguments_refuse(&line, WEIR_CONFIG_MISSING ", or name a directory with --state");
	return WEIR_EXIT_NOT_YET;
}

/* ---- the steps ---- */

static enum weir_status open_all(struct forget *forget, struct weir_error *error)
{
	struct backend *backend = &forget->backend;
	enum weir_status status = backend_open(backend, "weir forget", forget->options.config_path,
	                                       forget->options.state_path, BACKEND_ALL, error);
	if (status == WEIR_OK && backend->config != NULL)
		status = weir_key_hash_open(backend->config->archiver.hash_keys, &forget->hash, error);
	if (status == WEIR_OK)
		status = weir_key_hash_check(forget->hash, backend->store, error);
	return status == WEIR_OK ? weir_policy_history_load(backend->store, &forget->history, error) : status;
}

static enum weir_status remove_rows(struct forget *forget, struct weir_error *error)
{
	struct weir_store *store = forget->backend.store;
	char digits[WEIR_KEY_HASH_BYTES];
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < forget->zone_count; i++) {
		const struct forget_zone *zone = &forget->zones[i];
		const struct weir_archive_bucket bucket = {
			zone->id, zone->name, weir_key_hash(zone->velocity ? NULL : forget->hash, forget_key(zone), digits)};
		for (bool more = true; status == WEIR_OK && more;)
			status = store->ops->forget(store, &bucket, &forget->removed, &more, error);
	}
	return status;
}

static enum weir_status run(struct forget *forget, struct weir_error *error)
{
	enum weir_status status = open_all(forget, error);
	uint32_t done = 0;
	if (status == WEIR_OK)
		status = forget_find_zones(forget, error);
	/* What was on its way to the archive is in it now: keys of more fields may have come. */
	for (int look = 0; status == WEIR_OK && done < forget->zone_count && look < LOOKS_MOST; look++) {
		status = forget_command(forget, done, error);
		if (status == WEIR_OK)
			status = forget_await(forget, done, error);
		done = forget->zone_count;
		if (status == WEIR_OK)
			status = forget_find_wider(forget, error);
	}
	if (status == WEIR_OK && done < forget->zone_count)
		weir_text_puts(&forget->unfound,
		               "more keys have these values, or come all the time: run it again for the rest\n");
	if (status == WEIR_OK)
		forget->zone_count = done; /* the rows of others are how the next run finds them */
	return status == WEIR_OK ? remove_rows(forget, error) : status;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct forget forget = {.timeout_ms = TIMEOUT_DEFAULT_MS};
	struct weir_text text = {0};
	struct weir_error error;
	size_t written;
	enum weir_exit code = parse(&forget, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	enum weir_status status = run(&forget, &error);
	if (status == WEIR_OK) {
		code = forget_is_done(&forget) ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
		(forget.options.json ? forget_report_json : forget_report)(&forget, &text);
	} else {
		code = status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
		fprintf(stderr, "weir forget: %s%s\n", error.text,
		        code == WEIR_EXIT_FAILED ? "; not finished: run it again (running it twice does no harm)" : "");
	}
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0) {
		fprintf(stderr, "weir forget: cannot write to standard output: %s\n", weir_errno_words(errno));
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
	weir_text_deinit(&forget.left);
	weir_text_deinit(&forget.unfound);
	weir_policy_history_deinit(&forget.history);
	weir_key_hash_free(forget.hash);
	free(forget.zones);
	backend_close(&forget.backend);
	return code;
}

const struct command command_forget = {&line, command_main};
