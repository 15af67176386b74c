/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sigma: rules that count, as zones. These are correlations (event_count, value_sum), and what was written before there were
 * any: "selection | count() by FIELD > N". Sigma raises an alert from N events on ("gte"), or above ("gt"); weir blocks
 * what is more than the rate.
 */
#include "deploy/weir/import/sigma.h"

#include "common/base/alloc.h"
#include "common/json/units.h"
#include "deploy/weir/import/readers.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 4 };

struct file {
	char *path;
	struct doc_file document;
};

/* A log that zones read: of one kind of events, and with one cost. */
struct log {
	char *name, *kind;
	const char *cost; /* a field; NULL: each event is one */
	bool web;
};

struct reader {
	struct plan *plan;
	const struct import_options *options;
	struct file *files;
	size_t file_count;
	struct log *logs;
	size_t log_count;
};

/* A rule that counts, in either form. */
struct counting {
	const struct doc_node *rule, *base; /* with the detection */
	const char *keys[KEYS_MAX];
	size_t key_count;
	const char *condition, *timespan, *sum; /* sum: the field whose values are added; NULL: events are counted */
	const char *compare, *number;
	struct sigma_match match;
};

/* ---- the rules that correlations name ---- */

static bool is_named(const struct doc_node *rule, const char *name)
{
	static const char *const by[] = {"name", "id", "title", NULL};
	for (const char *const *member = by; *member != NULL; member++) {
		const char *text = doc_text(rule, *member);
		if (text != NULL && strcmp(text, name) == 0)
			return true;
	}
	return false;
}

static const struct doc_node *rule_named(const struct reader *reader, const char *name)
{
	for (size_t i = 0; i < reader->file_count; i++)
		for (const struct doc_node *rule = reader->files[i].document.root.first; rule != NULL; rule = rule->next)
			if (doc_member(rule, "detection") != NULL && is_named(rule, name))
				return rule;
	return NULL;
}

static const char *one_of(const struct doc_node *names, bool *several)
{
	*several = names != NULL && names->kind == DOC_LIST && names->first != NULL && names->first->next != NULL;
	if (names != NULL && names->kind == DOC_LIST)
		names = names->first;
	return names != NULL ? names->text : NULL;
}

/* ---- reading ---- */

static void add_key(struct counting *count, const char *name)
{
	if (count->key_count == KEYS_MAX)
		sigma_refuse(&count->match, "a key of weir's has at most four fields", name);
	else
		count->keys[count->key_count++] = sigma_field(&count->match, name);
}

static void take_correlation(struct reader *reader, struct counting *count, const struct doc_node *correlation)
{
	struct sigma_match *match = &count->match;
	static const char *const known[] = {"type", "rules", "group-by", "timespan", "condition", "generate", NULL};
	for (const struct doc_node *member = correlation->first; member != NULL; member = member->next) {
		size_t i = 0;
		while (known[i] != NULL && strcmp(known[i], member->key) != 0)
			i++;
		if (known[i] == NULL)
			sigma_refuse(match, "has no counterpart", member->key);
	}
	const char *type = doc_text(correlation, "type");
	const struct doc_node *condition = doc_member(correlation, "condition");
	bool several = false;
	const char *name = one_of(doc_member(correlation, "rules"), &several);
	count->base = name != NULL ? rule_named(reader, name) : NULL;
	if (several)
		sigma_refuse(match, "it counts the events of several rules together", "rules");
	else if (count->base == NULL)
		sigma_refuse(match, "the rule that it counts is not there", name != NULL ? name : "rules");
	if (type != NULL && strcmp(type, "value_sum") == 0)
		count->sum = doc_text(condition, "field");
	else if (type == NULL || strcmp(type, "event_count") != 0)
		sigma_refuse(match,
		             type != NULL && strcmp(type, "value_count") == 0 ? "it counts distinct values; weir counts events"
		                                                              : "correlations of this type have no counterpart",
		             type != NULL ? type : "none");
	count->timespan = doc_text(correlation, "timespan");
	for (const struct doc_node *member = condition != NULL ? condition->first : NULL; member != NULL;
	     member = member->next)
		if (strcmp(member->key, "field") != 0) {
			if (count->compare != NULL)
				sigma_refuse(match, "it compares with two numbers", member->key);
			count->compare = member->key;
			count->number = member->text;
		}
	count->match.web = count->base != NULL && doc_text(doc_member(count->base, "logsource"), "category") != NULL &&
	                   strcmp(doc_text(doc_member(count->base, "logsource"), "category"), "webserver") == 0;
	const struct doc_node *group = doc_member(correlation, "group-by");
	if (group != NULL && group->kind == DOC_TEXT)
		add_key(count, group->text);
	for (const struct doc_node *field = group != NULL && group->kind == DOC_LIST ? group->first : NULL; field != NULL;
	     field = field->next)
		add_key(count, field->text != NULL ? field->text : "");
	count->condition = count->base != NULL ? doc_text(doc_member(count->base, "detection"), "condition") : NULL;
}

/* "SELECTIONS | count(FIELD) by FIELD > N" */
static void take_aggregation(struct reader *reader, struct counting *count, const char *condition)
{
	struct sigma_match *match = &count->match;
	const struct doc_node *detection = doc_member(count->base, "detection");
	char *copy = plan_keep(reader->plan, condition, strlen(condition)), *bar = strchr(copy, '|');
	*bar = '\0';
	count->condition = copy;
	count->timespan = doc_text(detection, "timeframe");
	const char *category = doc_text(doc_member(count->base, "logsource"), "category");
	match->web = category != NULL && strcmp(category, "webserver") == 0;
	char *rest = NULL, *what = strtok_r(bar + 1, " \n\t", &rest);
	char *word = strtok_r(NULL, " \n\t", &rest);
	if (word != NULL && strcmp(word, "by") == 0) {
		char *field = strtok_r(NULL, " \n\t", &rest);
		if (field != NULL)
			add_key(count, field);
		word = strtok_r(NULL, " \n\t", &rest);
	}
	count->compare = word == NULL ? NULL : strcmp(word, ">") == 0 ? "gt" : strcmp(word, ">=") == 0 ? "gte" : word;
	count->number = strtok_r(NULL, " \n\t", &rest);
	size_t length = what != NULL ? strlen(what) : 0;
	if (length > 5 && strncmp(what, "sum(", 4) == 0 && what[length - 1] == ')')
		count->sum = plan_keep(reader->plan, what + 4, length - 5);
	else if (what == NULL || strncmp(what, "count(", 6) != 0)
		sigma_refuse(match, "it relates events to one another", condition);
	else if (strcmp(what, "count()") != 0)
		sigma_refuse(match, "it counts distinct values; weir counts events", what);
}

/* ---- writing ---- */

static bool same_cost(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The log of a rule's logsource: "windows-security". */
static const struct log *log_of(struct reader *reader, const struct counting *count)
{
	const struct doc_node *source = doc_member(count->base, "logsource");
	static const char *const parts[] = {"product", "service", "category", NULL};
	struct weir_text kind = {0};
	for (const char *const *part = parts; *part != NULL; part++)
		if (doc_text(source, *part) != NULL)
			weir_text_printf(&kind, "%s%.40s", kind.length > 0 ? "-" : "", doc_text(source, *part));
	char *name = plan_keep(reader->plan, kind.length > 0 ? kind.at : "events", kind.length > 0 ? kind.length : 6);
	weir_text_deinit(&kind);
	for (size_t i = 0; i < reader->log_count; i++)
		if (strcmp(reader->logs[i].kind, name) == 0 && same_cost(reader->logs[i].cost, count->sum))
			return &reader->logs[i];
	reader->logs = weir_realloc(reader->logs, reader->log_count + 1, sizeof *reader->logs);
	struct log *log = &reader->logs[reader->log_count++];
	*log = (struct log){.kind = name, .cost = count->sum, .web = count->match.web};
	log->name = plan_zone_name(reader->plan,
	                           count->sum != NULL ? plan_print(reader->plan, "%s by %.30s", name, count->sum) : name);
	return log;
}

static void write_zone(struct reader *reader, struct counting *count, uint64_t rate, int64_t window_ms)
{
	const struct log *log = log_of(reader, count);
	struct weir_text *zone = plan_zone(reader->plan, count->match.item);
	weir_text_puts(zone, "{ \"name\": ");
	put_string(zone, plan_zone_name(reader->plan, count->match.item->name));
	if (doc_text(count->rule, "description") != NULL) {
		weir_text_puts(zone, ", \"description\": ");
		put_string(zone, doc_text(count->rule, "description"));
	}
	weir_text_puts(zone, ",\n      \"key\": [");
	for (size_t i = 0; i < count->key_count; i++) {
		weir_text_puts(zone, i > 0 ? ", " : "");
		put_string(zone, count->keys[i]);
	}
	weir_text_puts(zone, count->sum != NULL ? "], \"count\": \"all\", \"mode\": " : "], \"mode\": ");
	put_string(zone, reader->options->mode);
	weir_text_puts(zone, ", \"match\": ");
	match_write(&count->match.set, zone);
	weir_text_printf(zone, ", \"sources\": [\"%s\"],\n", log->name);
	weir_text_printf(zone, "      \"limits\": [ { \"algorithm\": \"sliding_window\", \"rate\": %llu, \"window\": ",
	                 (unsigned long long)rate);
	put_duration(zone, window_ms);
	weir_text_puts(zone, " } ] }");
	plan_zone_end(reader->plan, count->match.item);
}

static void take_limit(struct reader *reader, struct counting *count)
{
	struct sigma_match *match = &count->match;
	char *end = NULL;
	long long number = count->number != NULL ? strtoll(count->number, &end, 10) : -1;
	bool above = count->compare != NULL && strcmp(count->compare, "gt") == 0;
	int64_t window_ms = 0;
	if (count->compare == NULL || (!above && strcmp(count->compare, "gte") != 0))
		sigma_refuse(match, "weir's limits say what is too much: gt and gte",
		             count->compare != NULL ? count->compare : "none");
	else if (number < 0 || *end != '\0' || number > 1000000000)
		sigma_refuse(match, "expected a whole number up to 1000000000", count->number != NULL ? count->number : "none");
	if (count->timespan == NULL || !weir_parse_duration(count->timespan, &window_ms) || window_ms < 1000 ||
	    window_ms > INT64_C(366) * 86400000)
		sigma_refuse(match, "expected a time such as 10m in timespan or timeframe",
		             count->timespan != NULL ? count->timespan : "none");
	if (count->key_count == 0)
		sigma_refuse(match, "it counts the events of all together, so a block would be everyone's: name fields in",
		             "group-by, or behind by");
	if (match->lost)
		return;
	if (count->sum != NULL) {
		/* A decision is made where nothing more would pass, so it takes one more event to see that the sum was too much. */
		plan_loss(reader->plan, match->item, "the event that makes the sum too much passes; the next one is blocked");
		write_zone(reader, count, (uint64_t)(above ? number + 1 : number > 0 ? number : 1), window_ms);
		return;
	}
	long long rate = above ? number : number - 1;
	if (rate < 1) {
		plan_loss(reader->plan, match->item,
		          "alerts with the first event; a limit of weir's lets one pass, so the second is too much");
		rate = 1;
	}
	write_zone(reader, count, (uint64_t)rate, window_ms);
}

static void take_rule(struct reader *reader, const char *path, const struct doc_node *rule)
{
	const struct doc_node *correlation = doc_member(rule, "correlation"), *detection = doc_member(rule, "detection");
	const char *condition = doc_text(detection, "condition");
	const struct doc_node *conditions = doc_member(detection, "condition");
	bool aggregates = condition != NULL && strchr(condition, '|') != NULL;
	for (const struct doc_node *one = conditions != NULL ? conditions->first : NULL; one != NULL; one = one->next)
		aggregates |= one->kind == DOC_TEXT && strchr(one->text, '|') != NULL;
	if (correlation == NULL && !aggregates) {
		reader->plan->not_enabled++;
		return;
	}
	const char *title = doc_text(rule, "title");
	struct counting count = {.rule = rule, .base = rule};
	count.match.plan = reader->plan;
	count.match.item = plan_item(reader->plan, title != NULL ? title : "without a title", path, rule->line);
	if (correlation != NULL)
		take_correlation(reader, &count, correlation);
	else if (condition == NULL)
		count.base = rule; /* it has several conditions, which is said below */
	else
		take_aggregation(reader, &count, condition);
	if (count.base != NULL && count.condition == NULL)
		sigma_refuse(&count.match, "it has no single condition", "detection");
	else if (count.base != NULL && strchr(count.condition, '|') != NULL)
		sigma_refuse(&count.match, "the rule that it counts counts itself", count.condition);
	else if (count.base != NULL)
		sigma_take_condition(&count.match, doc_member(count.base, "detection"), count.condition);
	take_limit(reader, &count);
	match_deinit(&count.match.set);
}

static void write_sources(struct reader *reader)
{
	for (size_t i = 0; i < reader->log_count; i++) {
		const struct log *log = &reader->logs[i];
		struct weir_text *json = plan_source(
			reader->plan,
			plan_print(reader->plan, "%s: name the log that there is, and its member with the time", log->kind));
		weir_text_printf(json,
		                 "{ \"name\": \"%s\", \"type\": \"file\", \"path\": [\"/var/log/%s.log\"], \"follow\": true,\n",
		                 log->name, log->name);
		weir_text_printf(json, "      \"format\": {\"type\": \"%s\"", log->web ? "combined" : "json");
		if (log->cost != NULL) {
			weir_text_puts(json, ", \"cost\": ");
			put_string(json, log->cost);
			plan_remark(reader->plan,
			            "value_sum: a source's cost is of all its zones, so a log that is also counted needs a weir "
			            "of its own for its sums");
		}
		weir_text_puts(json, "} }");
	}
}

static enum weir_status take_file(void *context, const char *path, struct weir_error *error)
{
	struct reader *reader = context;
	struct doc_file document;
	enum weir_status status = doc_read(reader->plan, path, &document, error);
	if (status != WEIR_OK)
		return status;
	if ((reader->file_count & (reader->file_count - 1)) == 0)
		reader->files = weir_realloc(reader->files, 2 * reader->file_count + 1, sizeof *reader->files);
	reader->files[reader->file_count++] =
		(struct file){.path = plan_keep(reader->plan, path, strlen(path)), .document = document};
	return WEIR_OK;
}

enum weir_status import_sigma(struct plan *plan, const struct import_options *options, struct weir_error *error)
{
	struct reader reader = {.plan = plan, .options = options};
	plan->aside = "rules that count nothing";
	enum weir_status status = doc_each_file(plan, options->path, take_file, &reader, error);
	for (size_t i = 0; i < reader.file_count && status == WEIR_OK; i++)
		for (const struct doc_node *rule = reader.files[i].document.root.first; rule != NULL; rule = rule->next) {
			if (plan_is_full(plan)) {
				status = weir_fail(error, WEIR_INVALID, "%s: there is more than an import takes", reader.files[i].path);
				break;
			}
			take_rule(&reader, reader.files[i].path, rule);
		}
	if (status == WEIR_OK && plan->item_count == 0)
		status = weir_fail(error, WEIR_INVALID,
		                   "%s: has no rule that counts: a \"correlation\", or a condition with \"| count()\"",
		                   options->path);
	if (status == WEIR_OK)
		write_sources(&reader);
	for (size_t i = 0; i < reader.file_count; i++)
		doc_free(&reader.files[i].document);
	free(reader.files);
	free(reader.logs);
	return status;
}
