/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir explain`: why a decision was made. It finds the decision as it was published, judges the log again up to it, and
 * finds the lines that its events came from. It writes nothing, and holds nothing that a running weir needs.
 */
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/config/arguments.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/backend/run_note.h"
#include "deploy/weir/command.h"
#include "deploy/weir/explain/answer.h"
#include "deploy/weir/explain/lines.h"
#include "deploy/weir/explain/published.h"
#include "deploy/weir/explain/replay_log.h"
#include "deploy/weir/explain/replay_once.h"
#include "deploy/weir/overrides/override_key.h"
#include "deploy/weir/policy/policy_apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum option { ZONE, CONFIG, STATE, DECISIONS, COLLECTOR, JSON, OPTION_COUNT };

enum { ASKED_MOST = 10000, MEMORY_MAX_BYTES = 1 << 30 };

static const struct weir_argument_option options[] = {
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "of a key, only its decision in this zone"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration of a cluster, or of one machine whose state is in the usual place"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run`; it may be running"},
	[DECISIONS] = {.name = "decisions",
                   .value = "FILE",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "a file with published decisions, if the run wrote them to standard output"},
	[COLLECTOR] = {.name = "collector",
                   .value = "DIR",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "in a cluster: the state directory of the collector on this machine"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print a JSON line for each decision"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"What it does",
     "The events of the key are judged again from the log by the limiter's own code. The decision that comes out is "
     "compared with the published one, byte for byte. Of each event that the limit counted, the line is read from "
     "its file, which may have been renamed or compressed since: a line is shown only if it gives the event's key "
     "and time again.\n"
     "\n"
     "On one machine the log reaches back as far as bus.explain_size allows. A run with --once has no log: its "
     "sources are read again. What is missing is said: a part of the log, a line, a policy."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "explained: the same decision came out, and every line was found"},
	{WEIR_EXIT_FAILED, "something is missing or differs; the output says what"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir explain",
	.summary = "show why a key was blocked: limit, events, lines",
	.usage = "weir explain ID|KEY... [--zone NAME] [--config FILE] [--json]\n"
			 "weir explain ID|KEY... [--zone NAME] --state DIR [--json]",
	.about = "Shows why a decision was made: the policy and limit, each event that was counted, where its line is, "
			 "and the line.\n"
			 "\n"
			 "An ID is that of a decision, such as 3-1841-0. A KEY stands for its newest decision in every zone; "
			 "several values are joined by |.",
	.operand = {.word = "ID|KEY", .help = "which decisions", .most = ASKED_MOST},
	.options = options,
	.sections = sections,
	.examples = "weir explain 203.0.113.9\n"
				"weir explain 3-1841-0 --state /var/lib/weir --json | jq -r '.events[].line'\n"
				"weir explain '203.0.113.9|/login' --zone login --config weir.json",
	.exits = exits,
};

struct explain {
	const char **asked; /* owned; the words are argv's */
	size_t asked_count;
	const char *zone, *config_path, *state_path, *decisions, *collector;
	bool json, config_given;
	char state_real[WEIR_PATH_BYTES];
	struct backend backend;
	struct run_note note;
	bool noted;
	const struct weir_config *sources; /* borrowed: with the sources; NULL: unknown */
	struct policy_registry *registry;
	const struct weir_policy *policy; /* the newest */
	uint32_t partitions;
	struct source_memory *memory;
	struct question *questions;
	size_t count;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct explain *explain = context;
	switch (option) {
	case ZONE: explain->zone = value->text; break;
	case CONFIG: explain->config_path = value->text; break;
	case STATE: explain->state_path = value->text; break;
	case DECISIONS: explain->decisions = value->text; break;
	case COLLECTOR: explain->collector = value->text; break;
	case JSON: explain->json = true; break;
	default: explain->asked[explain->asked_count++] = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct explain *explain, int argc, char **argv)
{
	explain->asked = weir_alloc((size_t)argc, sizeof(char *));
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, explain);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (explain->asked_count == 0)
		return weir_arguments_refuse(&line, "name a decision's id, or a key");
	explain->config_given = explain->config_path != NULL;
	if (explain->state_path == NULL)
		(void)weir_config_find(&explain->config_path);
	/* Paths of the sources start from the run's own directory, which this process then goes to. */
	if (explain->state_path != NULL && realpath(explain->state_path, explain->state_real) != NULL)
		explain->state_path = explain->state_real;
	return WEIR_EXIT_NOT_YET;
}

/* ---- what there is ---- */

static enum weir_status read_memory(struct explain *explain, const char *directory, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], *text = NULL;
	size_t length;
	enum weir_status status = weir_path_format(path, error, "%s/sources.json", directory);
	if (status == WEIR_OK)
		status = weir_durable_read(path, MEMORY_MAX_BYTES, &text, &length, error);
	if (status == WEIR_OK && text != NULL)
		status = source_memory_import(path, text, length, &explain->memory, error);
	free(text);
	return status;
}

/* The sources and outputs of the run whose state it is. */
static enum weir_status read_note(struct explain *explain, struct weir_error *error)
{
	enum weir_status status = run_note_get(explain->backend.store, &explain->note, error);
	explain->noted = status == WEIR_OK;
	if (explain->noted && !explain->config_given) {
		explain->sources = explain->note.config;
		if (explain->note.directory != NULL && chdir(explain->note.directory) != 0)
			fprintf(stderr, "weir explain: cannot go to %s, which the paths of the sources start from: %s\n",
			        explain->note.directory, strerror(errno));
	}
	return status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status open_all(struct explain *explain, struct weir_error *error)
{
	struct backend *backend = &explain->backend;
	enum weir_status status =
		backend_open(backend, "weir explain", explain->config_path, explain->state_path, BACKEND_VIEWS, error);
	if (status == WEIR_OK)
		status = backend_partitions(backend, &explain->partitions, error);
	explain->registry = policy_registry_new();
	if (status == WEIR_OK)
		status = policy_log_load(backend->store, explain->registry, error);
	if (status != WEIR_OK)
		return status;
	explain->policy = policy_registry_policy(explain->registry, policy_registry_newest(explain->registry));
	if (explain->policy == NULL)
		return weir_fail(error, WEIR_INVALID, "there is no policy yet, and so no decision");
	explain->sources = backend->config;
	if (explain->collector != NULL)
		status = read_memory(explain, explain->collector, error);
	else if (backend->kind != BACKEND_CLUSTER && !backend->once)
		status = read_memory(explain, backend->state_path, error);
	else if (backend->once)
		explain->memory = source_memory_new(NULL);
	return status == WEIR_OK && backend->kind != BACKEND_CLUSTER ? read_note(explain, error) : status;
}

/* ---- what is asked ---- */

/* The values of a joined key, in a copy. @return how many; 0: more than a key can have */
static uint32_t split(char *joined, const char *values[WEIR_ZONE_KEY_MAX])
{
	uint32_t count = 1;
	char *out = joined;
	values[0] = joined;
	for (const char *at = joined; *at != '\0'; at++) {
		if (*at == '|') {
			*out++ = '\0';
			if (count == WEIR_ZONE_KEY_MAX)
				return 0;
			values[count++] = out;
			continue;
		}
		at += *at == '\\' && at[1] != '\0';
		*out++ = *at;
	}
	*out = '\0';
	return count;
}

static enum weir_status ask_key(struct explain *explain, const char *asked, struct weir_error *error)
{
	struct override_options key = {.kind = OVERRIDE_LIFT};
	char *copy = weir_copy(asked, strlen(asked));
	enum weir_status status = WEIR_OK;
	size_t before = explain->count;
	key.value_count = split(copy, key.values);
	for (uint32_t i = 0; status == WEIR_OK && i < explain->policy->zone_count; i++) {
		const struct weir_zone *zone = &explain->policy->zones[i];
		struct override_command command = {.kind = OVERRIDE_LIFT};
		if ((explain->zone != NULL && strcmp(zone->name, explain->zone) != 0) || zone->key_count != key.value_count)
			continue;
		key.zone = zone->name;
		status = override_key_make(&key, explain->policy, &command, error);
		if (status != WEIR_OK)
			break;
		struct question *question = &explain->questions[explain->count++];
		weir_text_append(&question->key, command.key, command.key_length);
		question->key_known = true;
		question->zone_id = zone->id;
		question->partition = weir_partition(weir_slot(override_key(&command)), explain->partitions);
	}
	if (status == WEIR_OK && explain->count == before)
		status = weir_fail(error, WEIR_INVALID, "no zone's key has %u value%s, as \"%s\" has", key.value_count,
		                   key.value_count == 1 ? "" : "s", asked);
	free(copy);
	return status;
}

static enum weir_status ask(struct explain *explain, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	explain->questions = weir_alloc(explain->asked_count * explain->policy->zone_count + 1, sizeof *explain->questions);
	if (explain->zone != NULL && weir_policy_find_zone(explain->policy, explain->zone, error) == NULL)
		return WEIR_INVALID;
	for (size_t i = 0; status == WEIR_OK && i < explain->asked_count; i++) {
		struct question *question = &explain->questions[explain->count];
		if (!question_parse_id(explain->asked[i], question))
			status = ask_key(explain, explain->asked[i], error);
		else if (question->partition >= explain->partitions)
			status = weir_fail(error, WEIR_INVALID, "%s: there are %u partitions, from 0 on", explain->asked[i],
			                   explain->partitions);
		else
			explain->count++;
	}
	return status;
}

/* ---- the published decision ---- */

static enum weir_status read_topics(struct explain *explain, struct published *published, struct weir_error *error)
{
	static const enum weir_topic topics[] = {WEIR_TOPIC_DECISIONS, WEIR_TOPIC_SHADOW};
	const struct backend *backend = &explain->backend;
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < 2 && !backend->once; i++)
		if (!backend->missing[topics[i]])
			status = published_read_topic(published, backend->bus, backend->state_path, topics[i], error);
	return status;
}

static enum weir_status read_files(struct explain *explain, struct published *published, struct weir_error *error)
{
	const struct weir_config *config = explain->backend.config;
	bool alone = explain->backend.kind != BACKEND_CLUSTER;
	const char *paths[] = {
		explain->decisions,
		explain->noted            ? explain->note.decisions
		: alone && config != NULL ? config->decisions.path
								  : NULL,
		explain->noted            ? explain->note.shadow
		: alone && config != NULL ? config->decisions.shadow_path
								  : NULL,
	};
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; status == WEIR_OK && i < sizeof paths / sizeof paths[0]; i++)
		if (paths[i] != NULL && strcmp(paths[i], "-") != 0)
			status = published_read_file(published, paths[i], error);
	return status;
}

static enum weir_status find_published(struct explain *explain, struct weir_error *error)
{
	struct published *published = published_new(explain->questions, explain->count, explain->policy);
	enum weir_status status = read_topics(explain, published, error);
	if (status == WEIR_OK)
		status = read_files(explain, published, error);
	published_end(published);
	return status;
}

static void tell_unpublished(const struct explain *explain, struct question *question)
{
	bool to_file = explain->decisions != NULL || (explain->noted && explain->note.decisions != NULL);
	if (question->published.length > 0)
		return;
	if (explain->backend.kind == BACKEND_CLUSTER)
		question_lacks(question, "The topics of decisions no longer have it.");
	else if (to_file)
		question_lacks(question, "The decision is not among those that were published.");
	else
		question_lacks(question, "What was published is not known here: name the file of decisions with --decisions.");
}

/* ---- its events and lines ---- */

static enum weir_status judge(struct explain *explain, struct weir_error *error)
{
	struct backend *backend = &explain->backend;
	if (backend->once) {
		if (explain->sources == NULL)
			return weir_fail(error, WEIR_INVALID,
			                 "the state does not say which sources were read: name the configuration with --config");
		struct replay_once once = {.config = explain->sources,
		                           .registry = explain->registry,
		                           .partitions = explain->partitions,
		                           .memory = explain->memory};
		return replay_once(&once, explain->questions, explain->count, error);
	}
	struct replay_log log = {.bus = backend->bus,
	                         .directory = backend->state_path,
	                         .store = backend->store,
	                         .registry = explain->registry,
	                         .lateness_ms =
	                             explain->noted ? explain->note.config->limiter.lateness_ms : backend->lateness_ms};
	return replay_log(&log, explain->questions, explain->count, error);
}

static void tell_lines(const struct explain *explain, struct question *question)
{
	size_t lost = 0;
	for (size_t i = 0; i < question->event_count; i++)
		lost += question->events[i].found == LINE_SOUGHT;
	if (lost == 0)
		return;
	if (explain->sources == NULL)
		question_lacks(question, "%zu of %zu lines: the sources are not known, name the configuration with --config.",
		               lost, question->event_count);
	else
		question_lacks(question,
		               "%zu of %zu lines: no file of the sources has them any more, or their source keeps no lines.",
		               lost, question->event_count);
}

static void find_lines(struct explain *explain)
{
	struct lines_options lines = {.config = explain->sources, .memory = explain->memory, .registry = explain->registry};
	lines_find_all(&lines, explain->questions, explain->count);
	for (size_t i = 0; i < explain->count; i++)
		tell_lines(explain, &explain->questions[i]);
}

/* ---- output ---- */

static unsigned columns(void)
{
	struct winsize size;
	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* A zone in which a key has no decision is no answer. */
static bool is_answer(const struct question *question)
{
	return question->by_id || question->published.length > 0 || question->again.length > 0;
}

static enum weir_exit print(struct explain *explain)
{
	struct weir_text text = {0};
	enum weir_exit code = WEIR_EXIT_DONE;
	size_t shown = 0, written;
	for (size_t i = 0; i < explain->count; i++) {
		struct question *question = &explain->questions[i];
		if (!is_answer(question))
			continue;
		tell_unpublished(explain, question);
		if (!explain->json && shown > 0)
			weir_text_puts(&text, "\n");
		if (explain->json)
			answer_json(&text, question);
		else
			answer_words(&text, question, columns());
		shown++;
		if (!question_is_equal(question) || question->missing.length > 0)
			code = WEIR_EXIT_FAILED;
	}
	if (shown == 0) {
		fputs("weir explain: no decision of this key is known\n", stderr);
		code = WEIR_EXIT_FAILED;
	}
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0 && errno != EPIPE) {
		perror("weir explain: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
	return code;
}

static void clean(struct explain *explain)
{
	for (size_t i = 0; i < explain->count; i++)
		question_deinit(&explain->questions[i]);
	free(explain->questions);
	source_memory_free(explain->memory);
	policy_registry_free(explain->registry);
	run_note_deinit(&explain->note);
	backend_close(&explain->backend);
	free(explain->asked);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct explain explain = {0};
	struct weir_error error;
	enum weir_exit code = parse(&explain, argc, argv);
	if (code == WEIR_EXIT_NOT_YET) {
		enum weir_status status = open_all(&explain, &error);
		if (status == WEIR_OK)
			status = ask(&explain, &error);
		if (status == WEIR_OK)
			status = find_published(&explain, &error);
		if (status == WEIR_OK)
			status = judge(&explain, &error);
		if (status == WEIR_OK)
			find_lines(&explain);
		else
			fprintf(stderr, "weir explain: %s\n", error.text);
		code = status == WEIR_OK ? print(&explain) : weir_exit_of(status);
	}
	clean(&explain);
	return code;
}

const struct command command_explain = {&line, command_main};
