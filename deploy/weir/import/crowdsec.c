/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CrowdSec: scenarios as zones.
 *
 * A leaky bucket of capacity C that leaks one event each L is weir's token bucket of C tokens, one of which comes back each
 * L. Both let C events pass at once, and the next one is too much: CrowdSec's rate.Limiter has a burst of C and takes one
 * token for each event; its overflow is the event for which there is none.
 */
#include "common/base/alloc.h"
#include "deploy/weir/import/crowdsec_expr.h"
#include "deploy/weir/import/readers.h"
#include "deploy/weir/import/yaml_tree.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What CrowdSec's profiles do with an overflow, unless they are changed. */
enum { BAN_MS = 4 * 3600 * 1000 };

enum source { ACCESS, ERRORS, SSHD, SOURCES };

struct source_kind {
	const char *name, *path, *format;
};

static const struct source_kind source_kinds[] = {
	[ACCESS] = {"access-log", "/var/log/nginx/access.log", "\"combined\""},
	[ERRORS] = {"error-log", "/var/log/nginx/error.log", "{\"type\": \"nginx_error\", \"unmatched\": \"skip\"}"},
	[SSHD] = {"auth-log", "/var/log/auth.log", "{\"type\": \"sshd\", \"unmatched\": \"skip\"}"},
};

struct field_name {
	const char *theirs, *ours;
	bool upper; /* its values are written in upper case */
};

static const struct field_name field_names[] = {
	{"evt.Meta.source_ip", "ip", false},
	{"evt.Parsed.source_ip", "ip", false},
	{"evt.Meta.http_status", "status", false},
	{"evt.Meta.http_path", "path", false},
	{"evt.Parsed.request", "path", false},
	{"evt.Parsed.verb", "method", true},
	{"evt.Meta.http_verb", "method", true},
	{"evt.Parsed.http_user_agent", "agent", false},
	{"evt.Meta.http_user_agent", "agent", false},
	{"evt.Parsed.http_referer", "referer", false},
	{"evt.Parsed.target_fqdn", "host", false},
	{"evt.Meta.target_fqdn", "host", false},
	{"evt.Meta.user", "user", false},
	{"evt.Meta.username", "user", false},
	{"evt.Meta.target_user", "user", false},
	{NULL, NULL, false},
};

/* The endings that CrowdSec's http-logs calls static, in both cases. */
static const char *const static_endings[] = {
	"jpg",   "css", "js",  "jpeg", "png", "svg", "map",    "ico", "otf", "gif", "mp3",  "mp4", "woff",
	"woff2", "ttf", "eot", "webp", "wav", "gz",  "brotli", "bvr", "ts",  "bmp", "avif", "mjs", NULL,
};

struct reader {
	struct plan *plan;
	const struct import_options *options;
	bool used[SOURCES]; /* by any zone */
	struct expr *expr;
	/* of the scenario that is read */
	const char *path;
	struct plan_item *item;
	struct match_set match;
	unsigned from, clause; /* bits of enum source: of the filter so far, and of its newest clause; 0: nothing is said */
	bool refused;          /* something that it asks for cannot be said, so there is no zone */
};

static void refuse(struct reader *reader, const char *words, const char *of)
{
	plan_loss(reader->plan, reader->item, "%s: %.160s", words, of);
	reader->refused = true;
}

/* ---- its filter ---- */

static const char *add(struct reader *reader, const char *field, bool not, bool first, enum match_how how,
                       const char *value)
{
	return match_add(&reader->match, field, not, first, how, value);
}

/* What kind of lines: the sources. */
static void take_log_type(struct reader *reader, const struct expr_node *node, bool not )
{
	static const struct {
		const char *type;
		unsigned from;
	} types[] = {
		{"http_access-log", 1u << ACCESS},
		{"http_error-log", 1u << ERRORS},
		{"http", 1u << ACCESS | 1u << ERRORS},
		{"ssh_failed-auth", 1u << SSHD},
	};
	for (size_t i = 0; i < node->value_count; i++) {
		size_t k = 0;
		while (k < sizeof types / sizeof *types && strcmp(types[k].type, node->values[i]) != 0)
			k++;
		if (not || node->how != MATCH_IS)
			refuse(reader, "what it does not read says not what it reads", node->values[i]);
		else if (k == sizeof types / sizeof *types)
			refuse(reader, "no format of weir's gives this type of lines", node->values[i]);
		else
			reader->clause |= types[k].from;
	}
}

/* Each clause of an "and" leaves what it says, too. */
static void end_clause(struct reader *reader, const char *of)
{
	unsigned from = reader->from != 0 ? reader->from & reader->clause : reader->clause;
	if (reader->clause != 0 && from == 0)
		refuse(reader, "it asks for two kinds of lines at once, so it reads none", of);
	else if (reader->clause != 0)
		reader->from = from;
	reader->clause = 0;
}

/* What of sshd's lines are failures is asked of the field "event", which no other lines have. */
static void take_failures(struct reader *reader, const char *filter)
{
	static const char *const events[] = {"Failed", "Invalid", "Maximum"};
	if ((reader->from & 1u << SSHD) == 0)
		return;
	if (reader->from != 1u << SSHD) {
		refuse(reader, "lines of sshd and of HTTP are not of one zone", filter);
		return;
	}
	for (size_t i = 0; i < sizeof events / sizeof *events; i++)
		(void)add(reader, "event", false, i == 0, MATCH_IS, events[i]);
	plan_explain(reader->plan, reader->item,
	             "ssh_failed-auth is, by what it means, event Failed, Invalid and Maximum of weir's format sshd");
}

static void take_static(struct reader *reader, const struct expr_node *node, bool not )
{
	if (node->value_count != 1 || node->how != MATCH_IS) {
		refuse(reader, "weir's match cannot ask that of static resources", node->field);
		return;
	}
	bool is_static = (strcmp(node->values[0], "true") == 0) != not ;
	bool first = true;
	for (const char *const *ending = static_endings; *ending != NULL && !reader->refused; ending++) {
		char *lower = plan_print(reader->plan, ".%s", *ending), *upper = plan_print(reader->plan, ".%s", *ending);
		for (char *at = upper; *at != '\0'; at++)
			*at = (char)toupper((unsigned char)*at);
		const char *why = add(reader, "path", !is_static, first, MATCH_ENDS, lower);
		if (why == NULL)
			why = add(reader, "path", !is_static, false, MATCH_ENDS, upper);
		if (why != NULL)
			refuse(reader, why, node->field);
		first = false;
	}
	plan_explain(reader->plan, reader->item, "a static resource is a path that ends as CrowdSec's http-logs has it");
}

static const struct field_name *name_of(const char *theirs)
{
	for (const struct field_name *name = field_names; name->theirs != NULL; name++)
		if (strcmp(name->theirs, theirs) == 0)
			return name;
	return NULL;
}

static bool has_letters(const char *value)
{
	for (; *value != '\0'; value++)
		if (isalpha((unsigned char)*value))
			return true;
	return false;
}

static void take_comparison(struct reader *reader, const struct expr_node *node, bool not, bool first)
{
	not = not != node->not ;
	if (strcmp(node->field, "evt.Meta.log_type") == 0 || strcmp(node->field, "evt.Meta.service") == 0) {
		take_log_type(reader, node, not );
		return;
	}
	if (strcmp(node->field, "evt.Parsed.static_ressource") == 0) {
		take_static(reader, node, not );
		return;
	}
	const struct field_name *name = name_of(node->field);
	if (name == NULL) {
		refuse(reader, "no field of weir's formats is this one", node->field);
		return;
	}
	for (size_t i = 0; i < node->value_count && !reader->refused; i++) {
		const char *value = node->values[i];
		if (node->folded && has_letters(value)) {
			if (!name->upper) {
				refuse(reader, "weir's match tells upper from lower case", node->field);
				return;
			}
			char *upper = plan_keep(reader->plan, value, strlen(value));
			for (char *at = upper; *at != '\0'; at++)
				*at = (char)toupper((unsigned char)*at);
			value = upper;
		}
		const char *why = add(reader, name->ours, not, first && i == 0, node->how, value);
		if (why != NULL)
			refuse(reader, why, node->field);
	}
}

/* An or of comparisons of one field is a list of its values. */
static const char *only_field(const struct expr_node *node)
{
	if (node->kind == EXPR_COMPARE)
		return node->not ? NULL : node->field;
	if (node->kind != EXPR_OR)
		return NULL;
	const char *left = only_field(node->left), *right = only_field(node->right);
	return left != NULL && right != NULL && strcmp(left, right) == 0 ? left : NULL;
}

static void take_either(struct reader *reader, const struct expr_node *node, bool not, bool *first)
{
	if (node->kind == EXPR_OR) {
		take_either(reader, node->left, not, first);
		take_either(reader, node->right, not, first);
		return;
	}
	take_comparison(reader, node, not, *first);
	*first = false;
}

static void take_clause(struct reader *reader, const struct expr_node *node, bool not )
{
	bool first = true;
	switch (node->kind) {
	case EXPR_AND:
		if (not ) {
			refuse(reader, "weir's match has no \"not\" of several things", "and");
			return;
		}
		take_clause(reader, node->left, false);
		take_clause(reader, node->right, false);
		return;
	case EXPR_OR:
		if (only_field(node) == NULL)
			refuse(reader, "weir's match has no \"or\" of several fields", "or");
		else
			take_either(reader, node, not, &first);
		end_clause(reader, "evt.Meta.log_type");
		return;
	case EXPR_NOT: take_clause(reader, node->left, !not ); return;
	case EXPR_COMPARE:
		take_comparison(reader, node, not, true);
		end_clause(reader, node->field);
		return;
	case EXPR_OTHER: refuse(reader, "weir's match cannot ask this", node->words); return;
	}
}

static void take_filter(struct reader *reader, const struct doc_node *scenario)
{
	const char *filter = doc_text(scenario, "filter");
	if (filter == NULL) {
		refuse(reader, "it has no filter", "filter");
		return;
	}
	struct expr_node *root;
	const char *wrong = expr_parse(reader->plan, filter, reader->expr, &root);
	if (wrong != NULL) {
		refuse(reader, wrong, filter);
		return;
	}
	take_clause(reader, root, false);
	if (reader->from == 0 && !reader->refused)
		refuse(reader, "its filter does not say which lines it reads", filter);
	take_failures(reader, filter);
}

/* ---- its bucket ---- */

/* "10s", "0.5s", "1m30s", "500ms" as Go has them; 0: it is none. */
static int64_t go_duration_ms(const char *text)
{
	static const struct {
		const char *name;
		double ms;
	} units[] = {{"ms", 1},    {"us", 0.001},  {"ns", 0.000001}, {"s", 1000},
	             {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
	double sum = 0;
	while (text != NULL && *text != '\0') {
		if (!isdigit((unsigned char)*text))
			return 0;
		char *end;
		double number = strtod(text, &end);
		size_t unit = 0;
		while (unit < sizeof units / sizeof *units && strncmp(end, units[unit].name, strlen(units[unit].name)) != 0)
			unit++;
		if (unit == sizeof units / sizeof *units)
			return 0;
		sum += number * units[unit].ms;
		text = end + strlen(units[unit].name);
	}
	return sum >= 1 && sum <= 366.0 * 86400000 && sum == (double)(int64_t)sum ? (int64_t)sum : 0;
}

struct bucket {
	uint64_t burst;
	int64_t leak_ms;
	bool trigger;
};

static void take_bucket(struct reader *reader, const struct doc_node *scenario, struct bucket *bucket)
{
	const char *type = doc_text(scenario, "type"), *capacity = doc_text(scenario, "capacity");
	bucket->trigger = strcmp(type, "trigger") == 0;
	if (bucket->trigger) {
		plan_loss(
			reader->plan, reader->item,
			"a trigger blocks with the first event; a limit of weir's lets one pass, so the second within 4h blocks");
		return;
	}
	if (strcmp(type, "leaky") != 0) {
		refuse(reader, "buckets of this type have no counterpart", type);
		return;
	}
	char *end = NULL;
	long burst = capacity != NULL ? strtol(capacity, &end, 10) : -2;
	bucket->leak_ms = go_duration_ms(doc_text(scenario, "leakspeed"));
	if (capacity == NULL || *end != '\0' || burst < 0 || burst > 1000000000)
		refuse(reader, "a bucket without a bound has no counterpart: capacity", capacity != NULL ? capacity : "none");
	else if (burst == 0)
		refuse(reader, "a bucket that holds nothing has no counterpart: capacity", capacity);
	else if (bucket->leak_ms == 0)
		refuse(reader, "leakspeed is no time of whole milliseconds such as 10s",
		       doc_text(scenario, "leakspeed") != NULL ? doc_text(scenario, "leakspeed") : "none");
	bucket->burst = burst > 0 ? (uint64_t)burst : 1;
	if (bucket->leak_ms > 0 && bucket->burst > (uint64_t)(BAN_MS / bucket->leak_ms))
		plan_loss(
			reader->plan, reader->item,
			"the bucket takes longer than a block of 4h to empty: CrowdSec begins a new one, weir goes on with it");
}

static void take_key(struct reader *reader, const struct doc_node *scenario, struct weir_text *key)
{
	const char *group = doc_text(scenario, "groupby");
	bool address = false;
	if (group == NULL)
		group = "";
	char *copy = plan_keep(reader->plan, group, strlen(group)), *rest = NULL;
	for (char *part = strtok_r(copy, "+", &rest); part != NULL; part = strtok_r(NULL, "+", &rest)) {
		part += strspn(part, " ");
		part[strcspn(part, " ")] = '\0';
		if (part[0] == '\'' || part[0] == '"')
			continue; /* what stands between two */
		const struct field_name *name = name_of(part);
		if (name == NULL) {
			refuse(reader, "it groups by what no field of weir's formats is", group);
			return;
		}
		if (strcmp(name->ours, "host") == 0) {
			plan_explain(
				reader->plan, reader->item,
				"groups by host, too, which an access log has with virtual hosts alone: add \"host\" to the key then");
			continue;
		}
		weir_text_puts(key, key->length > 0 ? ", " : "");
		put_string(key, name->ours);
		address |= strcmp(name->ours, "ip") == 0;
	}
	/* A zone blocks its key: without the address that would be everyone, not the one whose event was too much. */
	if (!address)
		refuse(reader, "its bucket is of many clients, and a zone blocks all whom it counts together: groupby", group);
}

static void take_scope(struct reader *reader, const struct doc_node *scenario)
{
	const struct doc_node *scope = doc_member(scenario, "scope");
	const char *type = doc_text(scope, "type");
	if (scope != NULL && (type == NULL || strcasecmp(type, "ip") != 0))
		refuse(reader, "it blocks something else than an address: scope", type != NULL ? type : "without a type");
}

static void take_rest(struct reader *reader, const struct doc_node *scenario)
{
	static const char *const known[] = {"type",       "name",       "description", "filter", "groupby",   "capacity",
	                                    "leakspeed",  "blackhole",  "labels",      "format", "reprocess", "debug",
	                                    "references", "cache_size", "data",        "scope",  "duration",  NULL};
	for (const struct doc_node *member = scenario->first; member != NULL; member = member->next) {
		size_t i = 0;
		while (known[i] != NULL && strcmp(known[i], member->key) != 0)
			i++;
		if (known[i] != NULL)
			continue;
		if (strcmp(member->key, "distinct") == 0)
			refuse(reader, "it counts distinct values; weir counts events", member->text != NULL ? member->text : "");
		else
			refuse(reader, "has no counterpart", member->key);
	}
	if (doc_member(scenario, "blackhole") != NULL)
		plan_remark(reader->plan, "blackhole: a zone decides once for a block, however many events follow");
}

static bool blocks(const struct doc_node *scenario)
{
	const char *remediation = doc_text(doc_member(scenario, "labels"), "remediation");
	return remediation != NULL && strcmp(remediation, "true") == 0;
}

static void write_zone(struct reader *reader, const struct doc_node *scenario, const struct bucket *bucket,
                       const struct weir_text *key)
{
	struct weir_text *zone = plan_zone(reader->plan, reader->item);
	const char *description = doc_text(scenario, "description");
	weir_text_puts(zone, "{ \"name\": ");
	put_string(zone, plan_zone_name(reader->plan, reader->item->name));
	if (description != NULL) {
		weir_text_puts(zone, ", \"description\": ");
		put_string(zone, description);
	}
	weir_text_puts(zone, ",\n      \"key\": [");
	weir_text_append(zone, key->at, key->length);
	weir_text_puts(zone, "], \"mode\": ");
	put_string(zone, blocks(scenario) ? reader->options->mode : "shadow");
	weir_text_puts(zone, ", \"match\": ");
	match_write(&reader->match, zone);
	weir_text_puts(zone, ", \"sources\": [");
	const char *between = "";
	for (int source = 0; source < SOURCES; source++)
		if ((reader->from & 1u << source) != 0) {
			weir_text_printf(zone, "%s\"%s\"", between, source_kinds[source].name);
			reader->used[source] = true;
			between = ", ";
		}
	weir_text_puts(zone, "], \"block_for\": \"4h\",\n      \"limits\": [ ");
	if (bucket->trigger) {
		weir_text_puts(zone, "{ \"algorithm\": \"sliding_window\", \"rate\": 1, \"window\": \"4h\" }");
	} else {
		weir_text_puts(zone, "{ \"algorithm\": \"token_bucket\", \"rate\": 1, \"window\": ");
		put_duration(zone, bucket->leak_ms);
		weir_text_printf(zone, ", \"burst\": %llu }", (unsigned long long)bucket->burst);
	}
	weir_text_puts(zone, " ] }");
	plan_zone_end(reader->plan, reader->item);
	if (!blocks(scenario))
		plan_explain(reader->plan, reader->item, "labels.remediation is not true: its zone stays in shadow mode");
}

static void take_scenario(struct reader *reader, const struct doc_node *scenario)
{
	const char *name = doc_text(scenario, "name"), *type = doc_text(scenario, "type");
	if (scenario->kind != DOC_MAP ||
	    (type == NULL && doc_member(scenario, "onsuccess") == NULL && doc_member(scenario, "nodes") == NULL &&
	     doc_member(scenario, "filter") == NULL)) {
		reader->plan->not_enabled++;
		return;
	}
	reader->item = plan_item(reader->plan, name != NULL ? name : "without a name", reader->path, scenario->line);
	reader->match.count = 0;
	reader->refused = false;
	reader->from = reader->clause = 0;
	if (type == NULL) {
		refuse(reader, "it is a parser: weir's formats read lines", reader->path);
		return;
	}
	struct bucket bucket = {0};
	struct weir_text key = {0};
	take_bucket(reader, scenario, &bucket);
	take_filter(reader, scenario);
	take_key(reader, scenario, &key);
	take_scope(reader, scenario);
	take_rest(reader, scenario);
	if (!reader->refused)
		write_zone(reader, scenario, &bucket, &key);
	weir_text_deinit(&key);
	match_deinit(&reader->match);
}

static enum weir_status take_file(void *context, const char *path, struct weir_error *error)
{
	struct reader *reader = context;
	struct doc_file file;
	enum weir_status status = doc_read(reader->plan, path, &file, error);
	if (status != WEIR_OK)
		return status;
	reader->path = path;
	for (const struct doc_node *document = file.root.first; document != NULL; document = document->next) {
		if (plan_is_full(reader->plan)) {
			status = weir_fail(error, WEIR_INVALID, "%s:%u: there is more than an import takes", path, document->line);
			break;
		}
		take_scenario(reader, document);
	}
	doc_free(&file);
	return status;
}

static void write_sources(struct reader *reader)
{
	for (int source = 0; source < SOURCES; source++) {
		if (!reader->used[source])
			continue;
		const struct source_kind *kind = &source_kinds[source];
		struct weir_text *json = plan_source(reader->plan, "a usual place: name the log that there is");
		weir_text_printf(
			json, "{ \"name\": \"%s\", \"type\": \"file\", \"path\": [\"%s\"], \"follow\": true, \"format\": %s }",
			kind->name, kind->path, kind->format);
	}
}

enum weir_status import_crowdsec(struct plan *plan, const struct import_options *options, struct weir_error *error)
{
	struct reader reader = {.plan = plan, .options = options, .expr = weir_alloc(1, sizeof *reader.expr)};
	plan->aside = "documents that are no scenarios";
	enum weir_status status = doc_each_file(plan, options->path, take_file, &reader, error);
	if (status == WEIR_OK && plan->item_count == 0)
		status = weir_fail(error, WEIR_INVALID, "%s: has no scenario: a document with \"type: leaky\"", options->path);
	if (status == WEIR_OK) {
		plan_remark(plan, "Blocks last 4h, as CrowdSec's default profile has it");
		write_sources(&reader);
	}
	free(reader.expr);
	return status;
}
