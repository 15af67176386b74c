/* SPDX-License-Identifier: Apache-2.0 */
/* Each step asks more of the questions than the one before; none of them stops at what is missing. */
#include "deploy/weir/explain/explain_work.h"

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "common/exempt/exempt_list.h"
#include "common/files/file_place.h"
#include "common/json/json.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/backend/policy_apply.h"
#include "deploy/weir/backend/run_note.h"
#include "deploy/weir/explain/kept_fields.h"
#include "deploy/weir/explain/line_files.h"
#include "deploy/weir/explain/line_search.h"
#include "deploy/weir/explain/orders.h"
#include "deploy/weir/explain/published.h"
#include "deploy/weir/explain/replay_log.h"
#include "deploy/weir/explain/replay_once.h"
#include "deploy/weir/inspect/unjudged.h"
#include "deploy/weir/overrides/override_key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MEMORY_MAX_BYTES = 1 << 30,
	SEARCHES_MAX = 16, /* each reads files */
	RENAMED_MAX = 8,   /* likewise */
};

struct explain {
	const struct explain_asked *asked;
	char state_real[WEIR_PATH_BYTES], decisions_real[WEIR_PATH_BYTES];
	const char *decisions; /* the file that was named */
	struct backend backend;
	struct run_note note;
	bool noted;
	const struct weir_config *sources; /* borrowed: with the sources; NULL: unknown */
	struct policy_registry *registry;
	const struct weir_policy *policy; /* the newest */
	uint32_t partitions;
	struct source_memory *memory;
	struct weir_config *renamed; /* the sources under another name; or NULL */
	struct question *questions;
	size_t count;
	size_t asked_count; /* of them; behind these are questions about networks that some of these keys lie in */
	const struct question **answers;
	size_t answer_count;
	struct unjudged unjudged; /* of a cluster, once it was looked at */
	bool looked;
};

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
	if (explain->noted && !explain->asked->config_given) {
		explain->sources = explain->note.config;
		if (!explain->asked->stays && explain->note.directory != NULL && chdir(explain->note.directory) != 0)
			weir_log(&explain->backend.log, WEIR_LOG_WARNING, "explain",
			         "cannot go to %s, which the paths of the sources start from: %s", explain->note.directory,
			         weir_errno_words(errno));
	}
	return status == WEIR_END ? WEIR_OK : status;
}

/* The file of decisions that was named, from wherever this process goes. Of one that was rotated, others may be there. */
static const char *whole_path(const char *path, char real[WEIR_PATH_BYTES])
{
	char directory[WEIR_PATH_BYTES], folder[WEIR_PATH_BYTES];
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;
	if (path == NULL || realpath(path, real) != NULL)
		return path != NULL ? real : NULL;
	if (weir_directory_of(path, directory, NULL) == WEIR_OK && realpath(directory, folder) != NULL &&
	    weir_path_format(real, NULL, "%s/%s", folder, slash != NULL ? slash + 1 : path) == WEIR_OK)
		return real;
	return path;
}

static enum weir_status open_all(struct explain *explain, struct weir_error *error)
{
	struct backend *backend = &explain->backend;
	const char *state_path = explain->asked->state_path;
	/* Paths of the sources start from the run's own directory, which this process then goes to. */
	if (state_path != NULL && realpath(state_path, explain->state_real) != NULL)
		state_path = explain->state_real;
	explain->decisions = whole_path(explain->asked->decisions, explain->decisions_real);
	enum weir_status status =
		backend_open(backend, "weir explain", explain->asked->config_path, state_path, BACKEND_VIEWS, error);
	backend_tell_ended(backend, "weir explain");
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
	if (backend->config != NULL && backend->config->source_count > 0)
		explain->sources = backend->config;
	if (explain->asked->collector != NULL)
		status = read_memory(explain, explain->asked->collector, error);
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

/* @param asked  NULL: no value, which is the key of a zone's only bucket */
static enum weir_status ask_key(struct explain *explain, const char *asked, struct weir_error *error)
{
	struct override_options key = {.kind = OVERRIDE_LIFT};
	char *copy = asked != NULL ? weir_copy(asked, strlen(asked)) : NULL;
	enum weir_status status = WEIR_OK;
	size_t before = explain->count;
	key.value_count = copy != NULL ? split(copy, key.values) : 0;
	for (uint32_t i = 0; status == WEIR_OK && i < explain->policy->zone_count; i++) {
		const struct weir_zone *zone = &explain->policy->zones[i];
		struct override_command command = {.kind = OVERRIDE_LIFT};
		if ((explain->asked->zone != NULL && strcmp(zone->name, explain->asked->zone) != 0) ||
		    (asked != NULL && zone->key_count != key.value_count))
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
	explain->questions =
		weir_alloc(2 * (explain->asked->count + 1) * explain->policy->zone_count + 1, sizeof *explain->questions);
	if (explain->asked->zone != NULL &&
	    weir_policy_find_zone(explain->policy, weir_span_of(explain->asked->zone), error) == NULL)
		return WEIR_INVALID;
	if (explain->asked->count == 0)
		return ask_key(explain, NULL, error);
	for (size_t i = 0; status == WEIR_OK && i < explain->asked->count; i++) {
		struct question *question = &explain->questions[explain->count];
		if (!question_parse_id(explain->asked->words[i], question))
			status = ask_key(explain, explain->asked->words[i], error);
		else if (question->partition >= explain->partitions)
			status = weir_fail(error, WEIR_INVALID, "%s: there are %u partitions, from 0 on", explain->asked->words[i],
			                   explain->partitions);
		else
			explain->count++;
	}
	return status;
}

/* A run with --once takes no commands. */
static void find_orders(struct explain *explain)
{
	const struct backend *backend = &explain->backend;
	const struct patience *patience = explain->asked->patience;
	struct orders orders = {.read = {.store = backend->store,
	                                 .bus = backend->bus,
	                                 .directory = backend->state_path,
	                                 .registry = explain->registry,
	                                 .partitions = explain->partitions,
	                                 .lateness_ms = backend->lateness_ms,
	                                 .until_ms = patience != NULL ? patience->until_ms : INT64_MAX},
	                        .policy = explain->policy,
	                        .questions = explain->questions,
	                        .count = explain->count,
	                        .now_ms = weir_wall_ms()};
	explain->asked_count = explain->count;
	if (!backend->once)
		orders_find(&orders);
	explain->count = orders.count;
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
	for (size_t i = 0; status == WEIR_OK && i < sizeof paths / sizeof paths[0]; i++) {
		bool found = true;
		if (paths[i] != NULL && weir_file_descriptor_of(paths[i]) < 0)
			status = published_read_file(published, paths[i], &found, error);
		if (status == WEIR_OK && !found &&
		    paths[i] == explain->decisions) /* no decision can be said to be missing there */
			status =
				weir_fail(error, WEIR_IO, "cannot open %s: %s", explain->asked->decisions, weir_errno_words(ENOENT));
	}
	return status;
}

static enum weir_status find_published(struct explain *explain, struct weir_error *error)
{
	struct published *published =
		published_new(explain->questions, explain->count, explain->policy, explain->asked->patience);
	enum weir_status status = read_topics(explain, published, error);
	if (status == WEIR_OK)
		status = read_files(explain, published, error);
	published_end(published);
	return status;
}

/* What decisions are of may still wait in the log: that is asked once, and not where an answer has to come soon. */
static void tell_not_in_topics(struct explain *explain, struct question *question)
{
	if (!explain->looked && explain->asked->patience == NULL)
		unjudged_look(&explain->backend, &explain->unjudged);
	explain->looked = true;
	if (explain->unjudged.nobody || explain->unjudged.waits)
		question_lacks(question, "The topics of decisions do not have it: %s.", explain->unjudged.words);
	else
		question_lacks(question, "The topics of decisions no longer have it.");
}

static void tell_unpublished(struct explain *explain, struct question *question)
{
	bool to_file = explain->decisions != NULL || (explain->noted && explain->note.decisions != NULL);
	if (question->published.length > 0)
		return;
	if (question->again.length == 0 && question->order.length > 0) {
		weir_text_clear(&question->missing); /* no decision is to be expected */
		return;
	}
	if (explain->backend.kind == BACKEND_CLUSTER)
		tell_not_in_topics(explain, question);
	else if (to_file)
		question_lacks(question, "The decision is not among those that were published.");
	else
		question_lacks(question, "What was published is not known here: name the file of decisions with --decisions.");
}

/* ---- its events ---- */

/* Reads the sources again; that they cannot be is missing from the answers. */
static enum weir_status read_again(struct explain *explain, const struct weir_config *config, struct weir_error *error)
{
	char folder[WEIR_PATH_BYTES] = "";
	if (explain->backend.state_path != NULL &&
	    weir_path_format(folder, error, "%s/" WEIR_EXEMPT_LISTS_FOLDER, explain->backend.state_path) != WEIR_OK)
		return WEIR_IO;
	struct weir_exempt_lists *lists = weir_exempt_lists_new(folder[0] != '\0' ? folder : NULL, NULL);
	struct replay_once once = {.config = config,
	                           .registry = explain->registry,
	                           .lists = lists,
	                           .partitions = explain->partitions,
	                           .memory = explain->memory,
	                           .patience = explain->asked->patience};
	enum weir_status status = replay_once(&once, explain->questions, explain->count, error);
	weir_exempt_lists_free(lists);
	if (status != WEIR_INVALID)
		return status;
	for (size_t i = 0; i < explain->count; i++)
		question_lacks(&explain->questions[i], "The sources cannot be read again: %s.", error->text);
	return WEIR_OK;
}

static bool some_came_out(const struct explain *explain)
{
	for (size_t i = 0; i < explain->count; i++) {
		const struct question *question = &explain->questions[i];
		if (question->again.length > 0 && (question->published.length == 0 || question_is_equal(question)))
			return true;
	}
	return false;
}

/* The configuration with another path of its only source; NULL: it has several, or a pattern. */
static struct weir_config *with_path(const struct weir_config *config, const char *path)
{
	json_t *root = json_deep_copy(weir_json_root(config->document).value);
	json_t *source = json_array_get(json_object_get(root, "sources"), 0);
	struct weir_config *other = NULL;
	struct weir_error error;
	json_object_set_new(source, "path", json_string(path));
	char *text = json_dumps(root, JSON_COMPACT);
	if (text == NULL || weir_config_parse(WEIR_JSON_COMMAND_LINE, text, strlen(text), &other, &error) != WEIR_OK)
		other = NULL;
	free(text);
	json_decref(root);
	return other;
}

/* The path of the only source, where that is one file; else NULL. */
static const char *only_path(const struct weir_config *config)
{
	struct weir_json source = weir_json_element(&config->sources, 0), path = weir_json_member(&source, "path");
	const char *text = config->source_count == 1 ? json_string_value(path.value) : NULL;
	return text != NULL && strpbrk(text, "*?[") == NULL ? text : NULL;
}

/* What the file may be called now: it is the one that the decision comes out of. */
static enum weir_status read_renamed(struct explain *explain, struct weir_error *error)
{
	const struct weir_config *named = explain->sources;
	struct line_files files;
	enum weir_status status = WEIR_OK;
	if (only_path(named) == NULL)
		return WEIR_OK;
	line_files_find(&files, NULL, NULL, only_path(named), 0);
	for (size_t i = 0; status == WEIR_OK && !some_came_out(explain) && i < files.count && i < RENAMED_MAX; i++) {
		struct weir_config *config =
			strcmp(files.paths[i], only_path(named)) != 0 ? with_path(named, files.paths[i]) : NULL;
		if (config == NULL)
			continue;
		for (size_t j = 0; j < explain->count; j++)
			question_reset(&explain->questions[j]);
		source_memory_free(explain->memory);
		explain->memory = source_memory_new(NULL);
		weir_config_free(explain->renamed);
		explain->sources = explain->renamed = config;
		status = read_again(explain, config, error);
	}
	line_files_deinit(&files);
	return status;
}

static enum weir_status judge_once(struct explain *explain, struct weir_error *error)
{
	if (explain->sources == NULL)
		return weir_fail(error, WEIR_INVALID,
		                 "the state does not say which sources were read: name the configuration with --config");
	enum weir_status status = read_again(explain, explain->sources, error);
	return status == WEIR_OK && !some_came_out(explain) ? read_renamed(explain, error) : status;
}

static enum weir_status judge(struct explain *explain, struct weir_error *error)
{
	struct backend *backend = &explain->backend;
	struct replay_log log = {.bus = backend->bus,
	                         .directory = backend->state_path,
	                         .store = backend->store,
	                         .registry = explain->registry,
	                         .patience = explain->asked->patience,
	                         .partitions = explain->partitions,
	                         .lateness_ms =
	                             explain->noted ? explain->note.config->limiter.lateness_ms : backend->lateness_ms};
	if (backend->once)
		return judge_once(explain, error);
	return replay_log(&log, explain->questions, explain->count, error);
}

/* ---- their lines ---- */

/* How many events have a line that was found in some way. */
static size_t count_found(const struct question *question, enum explained_line found)
{
	size_t count = 0;
	for (size_t i = 0; i < question->event_count; i++)
		count += question->events[i].found == found;
	return count;
}

static bool has_costs(const struct question *question)
{
	for (size_t i = 0; i < question->event_count; i++)
		if (question->events[i].cost != 1)
			return true;
	return false;
}

/* Of a source whose lines are gone once they are read; NULL: it is another. */
static const char *fileless_type(const struct weir_config *config, size_t place)
{
	struct weir_json source = weir_json_element(&config->sources, place), type = weir_json_member(&source, "type");
	const struct source_ops *kind = source_kind(&source);
	const char *name = json_string_value(type.value);
	return kind != NULL && !kind->names_files && name != NULL && strcmp(name, "journal") != 0 ? name : NULL;
}

/* The kinds of such sources, each once: "syslog, kafka". Empty: there are none. */
static void put_fileless(struct weir_text *text, const struct weir_config *config)
{
	for (size_t i = 0; i < config->source_count; i++) {
		const char *type = fileless_type(config, i), *earlier;
		bool known = type == NULL;
		for (size_t j = 0; j < i && !known; j++)
			known = (earlier = fileless_type(config, j)) != NULL && strcmp(earlier, type) == 0;
		if (!known)
			weir_text_printf(text, "%s%s", text->length > 0 ? ", " : "", type);
	}
}

/* How many events without a line are of no file or journal that the collector knows. */
static size_t count_fileless(const struct question *question)
{
	size_t count = 0;
	for (size_t i = 0; i < question->event_count; i++) {
		count += question->events[i].found == LINE_SOUGHT && question->events[i].stream == NULL;
	}
	return count;
}

/* @return how many lines it told of */
static size_t tell_fileless(const struct weir_config *config, struct question *question)
{
	struct weir_text kinds = {0};
	size_t count = count_fileless(question);
	if (count > 0)
		put_fileless(&kinds, config);
	if (kinds.length == 0)
		count = 0;
	if (count > 0)
		question_lacks(question,
		               "%zu of %zu lines came from a source that is no file (%.*s) and are not read again: of these, "
		               "what the zone's \"history\" names is all that is known.",
		               count, question->event_count, (int)kinds.length, kinds.at);
	weir_text_deinit(&kinds);
	return count;
}

static void tell_lines(const struct explain *explain, struct question *question, bool judged, bool searched)
{
	size_t lost = count_found(question, LINE_SOUGHT), by_time = count_found(question, LINE_BY_TIME);
	if (by_time > 0 && judged)
		question_lacks(question, "%zu of %zu lines are not at their positions: these were found by key and time.",
		               by_time, question->event_count);
	else if (by_time > 0)
		question_lacks(question, "The lines were found by key and time alone, and were not judged again.");
	if (lost > 0 && explain->sources == NULL)
		question_lacks(question, "%zu of %zu lines: the sources are not known, name the configuration with --config.",
		               lost, question->event_count);
	size_t fileless = explain->sources != NULL ? tell_fileless(explain->sources, question) : 0;
	if (explain->sources != NULL && lost > fileless)
		question_lacks(question, "%zu of %zu lines: no file of the sources has them any more.", lost - fileless,
		               question->event_count);
	if (question->left_out > 0)
		question_lacks(question, "%s%lld earlier counted events are left out: the newest %d are shown.",
		               has_costs(question) ? "Up to " : "", (long long)question->left_out, QUESTION_EVENTS_MAX);
	if (question->fields_left_out > 0)
		question_lacks(question, "The fields of %zu of %zu events are left out: at most %d MiB of them are kept.",
		               question->fields_left_out, question->event_count, KEPT_FIELDS_MAX_BYTES >> 20);
	if (question->skips_files && (lost > 0 || !judged))
		question_lacks(question, "More files than %d may have the lines: only the newest were read.", LINE_FILES_MAX);
	if (!searched)
		question_lacks(question, "The files of the sources were searched by time up to %lld MiB alone.",
		               (long long)(LINE_SEARCH_BYTES >> 20));
}

static void find_lines(struct explain *explain)
{
	struct lines_options lines = {.config = explain->sources,
	                              .memory = explain->memory,
	                              .registry = explain->registry,
	                              .patience = explain->asked->patience};
	int searches = 0;
	lines_find_all(&lines, explain->questions, explain->count);
	for (size_t i = 0; i < explain->count; i++) {
		struct question *question = &explain->questions[i];
		bool judged = question->again.length > 0, searched = true;
		bool lacks = explain->sources != NULL &&
		             (count_found(question, LINE_SOUGHT) > 0 || (!judged && question->published.length > 0));
		if (lacks && searches == SEARCHES_MAX)
			question_lacks(question, "The files were not searched for its lines: ask for at most %d decisions at once.",
			               SEARCHES_MAX);
		else if (lacks && ++searches > 0)
			searched = line_search(&lines, question);
		tell_lines(explain, question, judged, searched);
	}
}

/* ---- all ---- */

/* Whether a block of the key's own is in force. */
static bool is_blocked(const struct question *question)
{
	const struct weir_text *published = &question->published;
	json_t *json = published->length > 0 ? json_loadb(published->at, published->length, JSON_ALLOW_NUL, NULL) : NULL;
	const char *action = json_string_value(json_object_get(json, "action"));
	bool blocked = action != NULL && strcmp(action, "block") == 0 &&
	               json_integer_value(json_object_get(json, "until")) > weir_wall_ms();
	json_decref(json);
	return blocked;
}

/* A zone in which a key has no decision is no answer, nor is what a key had where a network blocks it. */
static bool is_answer(const struct question *question)
{
	if (question->network > 0)
		return is_blocked(question);
	return question->by_id || question->published.length > 0 || question->again.length > 0 ||
	       question->order.length > 0;
}

static void gather_one(struct explain *explain, struct question *question)
{
	if (!is_answer(question))
		return;
	tell_unpublished(explain, question);
	if (question->unknown.length > 0)
		question_lacks(question, "%.*s", (int)question->unknown.length, question->unknown.at);
	explain->answers[explain->answer_count++] = question;
}

static void gather(struct explain *explain)
{
	explain->answers = weir_alloc(explain->count + 1, sizeof(const struct question *));
	for (size_t i = 0; i < explain->asked_count; i++) {
		struct question *question = &explain->questions[i];
		gather_one(explain, question);
		if (question->network > 0)
			gather_one(explain, &explain->questions[question->network]);
	}
}

enum weir_status explain_work(const struct explain_asked *asked, struct explain **out, struct weir_error *error)
{
	struct explain *explain = *out = weir_alloc(1, sizeof *explain);
	explain->asked = asked;
	enum weir_status status = open_all(explain, error);
	if (status == WEIR_OK)
		status = ask(explain, error);
	if (status == WEIR_OK) {
		find_orders(explain);
		status = find_published(explain, error);
	}
	if (status == WEIR_OK)
		status = judge(explain, error);
	if (status == WEIR_OK) {
		find_lines(explain);
		gather(explain);
		status = patience_check(asked->patience, error);
	}
	return status;
}

size_t explain_answers(struct explain *explain, const struct question ***questions)
{
	*questions = explain->answers;
	return explain->answer_count;
}

void explain_free(struct explain *explain)
{
	for (size_t i = 0; i < explain->count; i++)
		question_deinit(&explain->questions[i]);
	free(explain->questions);
	free(explain->answers);
	source_memory_free(explain->memory);
	weir_config_free(explain->renamed);
	policy_registry_free(explain->registry);
	run_note_deinit(&explain->note);
	backend_close(&explain->backend);
	free(explain);
}
