/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jails as sources and zones. A file belongs to one source of weir's, while several jails may read it: then the source's
 * expression is of all of them, and a field of a jail's name says whose lines these are.
 */
#include "deploy/weir/import/fail2ban.h"

#include "common/base/alloc.h"
#include "deploy/weir/import/fail2ban_regex.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXPRESSION_MAX_BYTES = 16 << 10, MARK_BYTES = 32, JOURNAL_FIELDS_MAX = 64 };

/* A file, or a glob, and who reads it. */
struct place {
	char *path;
	size_t *jails;
	size_t count;
	char *source; /* the name of the source that has it; NULL: none yet */
};

struct writer {
	struct plan *plan;
	const struct import_options *options;
	struct jail *jails;
	size_t count;
	struct place *places;
	size_t place_count;
};

static struct plan_item *item_of(struct writer *writer, const struct jail *jail)
{
	return &writer->plan->items[jail->item];
}

static bool is_read(const struct jail *jail)
{
	return !jail->recidive && (jail->native != NULL || jail->filter.expression != NULL);
}

/* ---- who reads what ---- */

static void add_reader(struct place *place, size_t jail)
{
	for (size_t i = 0; i < place->count; i++)
		if (place->jails[i] == jail)
			return;
	place->jails = weir_realloc(place->jails, place->count + 1, sizeof *place->jails);
	place->jails[place->count++] = jail;
}

static struct place *place_of(struct writer *writer, char *path)
{
	for (size_t i = 0; i < writer->place_count; i++)
		if (strcmp(writer->places[i].path, path) == 0)
			return &writer->places[i];
	writer->places = weir_realloc(writer->places, writer->place_count + 1, sizeof *writer->places);
	struct place *place = &writer->places[writer->place_count++];
	*place = (struct place){.path = path};
	return place;
}

static bool names(const struct place *glob, const struct place *file)
{
	return glob != file && strpbrk(glob->path, "*?[") != NULL && strpbrk(file->path, "*?[") == NULL &&
	       fnmatch(glob->path, file->path, FNM_PATHNAME) == 0;
}

/* A file that a glob names too is read by the glob's jails as well, but once. */
static void settle_globs(struct writer *writer)
{
	for (size_t g = 0; g < writer->place_count; g++)
		for (size_t i = 0; i < writer->place_count; i++)
			for (size_t k = 0; names(&writer->places[g], &writer->places[i]) && k < writer->places[g].count; k++)
				add_reader(&writer->places[i], writer->places[g].jails[k]);
}

static void find_places(struct writer *writer)
{
	for (size_t i = 0; i < writer->count; i++)
		for (size_t k = 0; k < writer->jails[i].path_count && is_read(&writer->jails[i]); k++)
			add_reader(place_of(writer, writer->jails[i].paths[k]), i);
	settle_globs(writer);
}

static bool same_format(const struct native *a, const struct native *b)
{
	return a != NULL && b != NULL && strcmp(a->format, b->format) == 0;
}

/* A format of weir's own serves where it serves all who read a file; else none of them, until nothing changes. */
static void settle_natives(struct writer *writer)
{
	for (bool changed = true; changed;) {
		changed = false;
		for (size_t i = 0; i < writer->place_count; i++)
			for (size_t k = 0; k < writer->places[i].count; k++) {
				struct jail *jail = &writer->jails[writer->places[i].jails[k]];
				for (size_t o = 0; o < writer->places[i].count && jail->native != NULL; o++)
					if (!same_format(jail->native, writer->jails[writer->places[i].jails[o]].native)) {
						jail->native = NULL;
						changed = true;
					}
			}
	}
}

/* Who shares an expression anywhere is known by its field everywhere. */
static void settle_shares(struct writer *writer)
{
	for (size_t i = 0; i < writer->place_count; i++)
		for (size_t k = 0; writer->places[i].count > 1 && k < writer->places[i].count; k++) {
			struct jail *jail = &writer->jails[writer->places[i].jails[k]];
			jail->shares |= jail->native == NULL;
		}
}

/* ---- formats ---- */

/* The field with the address that a jail finds in a line which other jails may read in another way. */
static void mark_of(const struct writer *writer, size_t jail, char mark[MARK_BYTES])
{
	snprintf(mark, MARK_BYTES, "jail_%zu_%.18s", jail, writer->jails[jail].name);
	for (char *at = mark; *at != '\0'; at++)
		*at = isalnum((unsigned char)*at) ? *at : '_';
}

/* A filter's expression whose address goes to a field of another name. */
static void put_marked(const char *expression, const char *mark, struct weir_text *out)
{
	static const char group[] = "(?<ip>";
	bool in_class = false;
	for (const char *at = expression; *at != '\0';) {
		size_t length = *at == '\\' && at[1] != '\0' ? 2 : 1;
		if (!in_class && strncmp(at, group, sizeof group - 1) == 0) {
			weir_text_printf(out, "(?<%s>", mark);
			at += sizeof group - 1;
			continue;
		}
		if (length == 1)
			in_class = in_class ? *at != ']' : *at == '[';
		weir_text_append(out, at, length);
		at += length;
	}
}

static bool same_date(const struct date *a, const struct date *b)
{
	return strcmp(a->time, b->time) == 0 && strcmp(a->before, b->before) == 0 && strcmp(a->after, b->after) == 0;
}

static void put_time(const struct date *date, bool alone, struct weir_text *out)
{
	const char *before = date->before[0] == '^' ? date->before + 1 : date->before;
	bool anywhere = !alone || date->before[0] != '^';
	weir_text_printf(out, "(?=%s%s(?<time>%s)%s)", anywhere ? ".*?" : "", alone ? before : "", date->time,
	                 alone ? date->after : "");
}

static void put_jail(const struct writer *writer, size_t jail, struct weir_text *out)
{
	char mark[MARK_BYTES];
	mark_of(writer, jail, mark);
	weir_text_puts(out, "(?:(?=");
	put_marked(writer->jails[jail].filter.expression, mark, out);
	weir_text_puts(out, "))?+");
}

/* PCRE2 bounds what an expression becomes, which its length does not tell. */
static bool is_taken(const struct weir_text *before, const struct weir_text *one, const struct weir_text *either)
{
	struct weir_text whole = {0};
	struct weir_error error;
	weir_text_append(&whole, before->at, before->length);
	weir_text_append(&whole, one->at, one->length);
	if (either->length > 0)
		weir_text_append(&whole, either->at, either->length);
	weir_text_puts(&whole, "(?:(?!)|(?!)|(?!))");
	bool taken = regex_refused(weir_text_span(&whole), &error) == NULL;
	weir_text_deinit(&whole);
	return taken;
}

/* The expression of all who read a place; whoever does not fit is taken out of it. */
static void put_shared(struct writer *writer, struct place *place, struct weir_text *out)
{
	const struct date *date = &writer->jails[place->jails[0]].filter.date;
	bool alike = true;
	for (size_t i = 1; i < place->count; i++)
		alike &= same_date(&writer->jails[place->jails[i]].filter.date, date);
	put_time(date, alike, out);
	struct weir_text either = {0};
	size_t kept = 0;
	for (size_t i = 0; i < place->count; i++) {
		struct jail *jail = &writer->jails[place->jails[i]];
		struct weir_text one = {0};
		put_jail(writer, place->jails[i], &one);
		bool fits =
			out->length + either.length + one.length + 256 < EXPRESSION_MAX_BYTES && is_taken(out, &one, &either);
		bool timely = alike || (date->usual && jail->filter.date.usual) || i == 0;
		if (!fits || !timely) {
			plan_loss(writer->plan, item_of(writer, jail), "%s is left out: other jails read it, and %s", place->path,
			          fits ? "their times have another form" : "one expression for all of them would be too long");
			weir_text_deinit(&one);
			continue;
		}
		weir_text_append(out, one.at, one.length);
		weir_text_deinit(&one);
		char mark[MARK_BYTES];
		mark_of(writer, place->jails[i], mark);
		weir_text_printf(&either, "%s(?(<%s>)|(?!))", kept > 0 ? "|" : "", mark);
		place->jails[kept++] = place->jails[i];
	}
	place->count = kept;
	weir_text_puts(out, "(?:");
	weir_text_append(out, either.at, either.length);
	weir_text_puts(out, ")");
	weir_text_deinit(&either);
}

static void put_pattern(struct writer *writer, const struct weir_text *expression, const struct date *date,
                        struct weir_text *json)
{
	weir_text_puts(json, "{\"type\": \"pattern\", \"unmatched\": \"skip\"");
	if (date != NULL && date->time_format != NULL) {
		weir_text_puts(json, ", \"time_format\": ");
		put_string(json, date->time_format);
	}
	if (date != NULL && writer->options->time_zone != NULL) {
		weir_text_puts(json, ", \"time_zone\": ");
		put_string(json, writer->options->time_zone);
	}
	weir_text_puts(json, ",\n                \"pattern\": ");
	weir_text_json(json, weir_text_span(expression));
	weir_text_puts(json, "}");
}

static void put_native(const struct writer *writer, const struct native *native, struct weir_text *json)
{
	weir_text_puts(json, "{\"type\": ");
	put_string(json, native->format);
	weir_text_puts(json, ", \"unmatched\": \"skip\"");
	if (writer->options->time_zone != NULL) {
		weir_text_puts(json, ", \"time_zone\": ");
		put_string(json, writer->options->time_zone);
	}
	weir_text_puts(json, "}");
}

static void put_place_format(struct writer *writer, struct place *place, struct weir_text *json)
{
	const struct jail *first = &writer->jails[place->jails[0]];
	if (first->native != NULL) {
		put_native(writer, first->native, json);
		return;
	}
	struct weir_text expression = {0};
	weir_text_puts(&expression, "(?J)^");
	if (place->count == 1 && !first->shares) {
		put_time(&first->filter.date, true, &expression);
		weir_text_puts(&expression, first->filter.expression);
	} else {
		put_shared(writer, place, &expression);
	}
	put_pattern(writer, &expression, &first->filter.date, json);
	weir_text_deinit(&expression);
}

/* ---- sources ---- */

static void add_source(struct jail *jail, char *name)
{
	for (size_t i = 0; i < jail->source_count; i++)
		if (strcmp(jail->sources[i], name) == 0)
			return;
	if (jail->source_count < JAIL_PATHS_MAX)
		jail->sources[jail->source_count++] = name;
}

static bool same_readers(const struct place *a, const struct place *b)
{
	return a->count == b->count && memcmp(a->jails, b->jails, a->count * sizeof *a->jails) == 0;
}

/* Files that a glob names, and that belong to other sources. */
static void put_excluded(struct writer *writer, const struct place *glob, struct weir_text *list)
{
	for (size_t i = 0; i < writer->place_count; i++)
		if (names(glob, &writer->places[i]) && !same_readers(glob, &writer->places[i])) {
			weir_text_puts(list, list->length > 0 ? ", " : "");
			put_string(list, writer->places[i].path);
		}
}

static void put_paths(struct writer *writer, struct place *place, struct weir_text *json)
{
	struct weir_text excluded = {0};
	weir_text_puts(json, "\"path\": [");
	const char *between = "";
	for (size_t i = 0; i < writer->place_count; i++) {
		struct place *other = &writer->places[i];
		if (other->source != NULL || !same_readers(place, other))
			continue;
		weir_text_puts(json, between);
		put_string(json, other->path);
		put_excluded(writer, other, &excluded);
		between = ", ";
		if (other != place)
			other->source = place->path; /* its readers have this source already */
	}
	weir_text_puts(json, "]");
	if (excluded.length > 0) {
		weir_text_puts(json, ", \"exclude\": [");
		weir_text_append(json, excluded.at, excluded.length);
		weir_text_puts(json, "]");
	}
	weir_text_deinit(&excluded);
}

static void write_place(struct writer *writer, struct place *place)
{
	struct weir_text readers = {0};
	for (size_t i = 0; i < place->count; i++)
		weir_text_printf(&readers, "%s%s", i > 0 ? ", " : "read by ", writer->jails[place->jails[i]].name);
	weir_text_append(&readers, "", 1);
	const char *base = strrchr(place->path, '/');
	char *name = plan_zone_name(writer->plan, base != NULL ? base + 1 : place->path);
	struct weir_text *json = plan_source(writer->plan, readers.at);
	weir_text_deinit(&readers);
	weir_text_puts(json, "{ \"name\": ");
	put_string(json, name);
	weir_text_puts(json, ", \"type\": \"file\", ");
	put_paths(writer, place, json);
	weir_text_puts(json, ", \"follow\": true");
	if (writer->jails[place->jails[0]].tail)
		weir_text_puts(json, ", \"start\": \"end\"");
	weir_text_puts(json, ",\n      \"format\": ");
	put_place_format(writer, place, json);
	weir_text_puts(json, " }");
	place->source = name;
	for (size_t i = 0; i < place->count; i++)
		add_source(&writer->jails[place->jails[i]], name);
}

struct assignment {
	const char *name, *value;
};

/* {"NAME": [VALUE, …], …}: the values of one name are alternatives, wherever they stand, as in the journal. */
static void put_assignments(const struct assignment *list, size_t count, struct weir_text *json)
{
	const char *between = "";
	weir_text_puts(json, ", \"match\": {");
	for (size_t i = 0; i < count; i++) {
		size_t before = 0;
		while (before < i && strcmp(list[before].name, list[i].name) != 0)
			before++;
		if (before < i)
			continue;
		weir_text_puts(json, between);
		put_string(json, list[i].name);
		weir_text_puts(json, ": [");
		for (size_t k = i; k < count; k++)
			if (strcmp(list[k].name, list[i].name) == 0) {
				weir_text_puts(json, k > i ? ", " : "");
				put_string(json, list[k].value);
			}
		weir_text_puts(json, "]");
		between = ", ";
	}
	weir_text_puts(json, "}");
}

/* One group of journalmatch's alternatives: weir asks for values of fields that all must hold. */
static void put_journal_match(struct writer *writer, struct jail *jail, struct weir_text *json)
{
	const char *match = jail->filter.journalmatch;
	if (strchr(match, '=') == NULL) {
		plan_explain(writer->plan, item_of(writer, jail), "has no journalmatch: it reads all of the journal");
		return;
	}
	/* A field of several alternatives goes before others: _COMM names the program, whatever its unit is called. */
	const char *comm = strstr(match, "_COMM=");
	bool several = strchr(match, '+') != NULL;
	const char *from = comm != NULL ? comm : match, *field = plan_keep(writer->plan, from, strcspn(from, "="));
	char *copy = plan_keep(writer->plan, match, strlen(match)), *rest = NULL;
	struct assignment list[JOURNAL_FIELDS_MAX];
	size_t count = 0;
	for (char *word = strtok_r(copy, " +\n\t", &rest); word != NULL; word = strtok_r(NULL, " +\n\t", &rest)) {
		char *equals = strchr(word, '=');
		if (equals == NULL)
			continue;
		*equals = '\0';
		if (count == JOURNAL_FIELDS_MAX || (several && strcmp(word, field) != 0))
			plan_loss(writer->plan, item_of(writer, jail),
			          "journalmatch: entries that have only %.60s=%.60s are not read", word, equals + 1);
		else
			list[count++] = (struct assignment){word, equals + 1};
	}
	put_assignments(list, count, json);
}

static void write_journal(struct writer *writer, struct jail *jail)
{
	char *name = plan_print(writer->plan, "journal-%s", jail->name);
	struct weir_text *json = plan_source(writer->plan, plan_print(writer->plan, "the journal, for %s", jail->name));
	weir_text_puts(json, "{ \"name\": ");
	put_string(json, name);
	weir_text_puts(json, ", \"type\": \"journal\"");
	put_journal_match(writer, jail, json);
	weir_text_puts(json, ",\n      \"format\": ");
	if (jail->native != NULL) {
		weir_text_puts(json, "{\"type\": ");
		put_string(json, jail->native->format);
		weir_text_puts(json, ", \"unmatched\": \"skip\"}");
	} else {
		struct weir_text expression = {0};
		weir_text_printf(&expression, "(?J)^%s", jail->filter.expression);
		put_pattern(writer, &expression, NULL, json);
		weir_text_deinit(&expression);
	}
	weir_text_puts(json, " }");
	add_source(jail, name);
}

static void write_sources(struct writer *writer)
{
	for (size_t i = 0; i < writer->place_count; i++) {
		if (writer->places[i].source == NULL)
			write_place(writer, &writer->places[i]);
	}
	for (size_t i = 0; i < writer->count; i++)
		if (writer->jails[i].journal && is_read(&writer->jails[i]))
			write_journal(writer, &writer->jails[i]);
}

/* ---- zones ---- */

/*
 * A field is taken for an address where it is named ip, or where its networks are said: here those of one address each. A
 * decision has its key's fields under their own names, and the whole key as "key".
 */
static void put_key(const struct writer *writer, size_t index, struct weir_text *zone)
{
	char field[MARK_BYTES] = "ip";
	if (writer->jails[index].recidive)
		snprintf(field, sizeof field, "key");
	else if (writer->jails[index].shares)
		mark_of(writer, index, field);
	weir_text_printf(zone, ", \"key\": [");
	if (strcmp(field, "ip") == 0)
		weir_text_puts(zone, "\"ip\"]");
	else
		weir_text_printf(zone, "{\"field\": \"%s\", \"prefix4\": 32, \"prefix6\": 128}]", field);
}

static void put_match(const struct writer *writer, size_t index, struct weir_text *zone)
{
	const struct jail *jail = &writer->jails[index];
	if (jail->native != NULL) {
		weir_text_printf(zone, ", \"match\": %s", jail->native->match);
	} else if (jail->recidive) {
		weir_text_puts(zone, ", \"match\": {\"zone\": [");
		const char *between = "";
		for (size_t i = 0; i < writer->count; i++)
			if (!writer->jails[i].recidive && writer->plan->items[writer->jails[i].item].zone_count > 0) {
				weir_text_puts(zone, between);
				put_string(zone, writer->jails[i].name);
				between = ", ";
			}
		weir_text_puts(zone, "], \"action\": [\"block\"]}");
	}
}

static void put_blocks(const struct jail *jail, struct weir_text *zone)
{
	weir_text_puts(zone, jail->block_count > 1 ? ", \"block_for\": [" : ", \"block_for\": ");
	for (size_t i = 0; i < jail->block_count; i++) {
		weir_text_puts(zone, i > 0 ? ", " : "");
		put_duration(zone, jail->blocks_ms[i]);
	}
	weir_text_puts(zone, jail->block_count > 1 ? "]" : "");
	if (jail->block_count > 1 && jail->forgive_ms > 0) {
		weir_text_puts(zone, ", \"forgive_after\": ");
		put_duration(zone, jail->forgive_ms);
	}
}

static void write_zone(struct writer *writer, size_t index)
{
	struct jail *jail = &writer->jails[index];
	struct weir_text *zone = plan_zone(writer->plan, item_of(writer, jail));
	weir_text_puts(zone, "{ \"name\": ");
	put_string(zone, jail->name);
	put_key(writer, index, zone);
	weir_text_puts(zone, ", \"mode\": ");
	put_string(zone, writer->options->mode);
	put_match(writer, index, zone);
	weir_text_puts(zone, ", \"sources\": [");
	for (size_t i = 0; i < jail->source_count; i++) {
		weir_text_puts(zone, i > 0 ? ", " : "");
		put_string(zone, jail->sources[i]);
	}
	weir_text_puts(zone, jail->recidive ? "\"decisions\"]" : "]");
	put_blocks(jail, zone);
	if (jail->exempt.length > 0) {
		weir_text_puts(zone, ",\n      \"exempt\": [");
		weir_text_append(zone, jail->exempt.at, jail->exempt.length);
		weir_text_puts(zone, "]");
	}
	weir_text_printf(zone, ",\n      \"limits\": [ { \"algorithm\": \"sliding_window\", \"rate\": %llu, \"window\": ",
	                 (unsigned long long)jail->rate);
	put_duration(zone, jail->window_ms);
	weir_text_puts(zone, " } ] }");
	plan_zone_end(writer->plan, item_of(writer, jail));
	if (jail->native != NULL) {
		plan_forget(item_of(writer, jail), jail->filter.notes_from, jail->filter.notes_to);
		plan_explain(writer->plan, item_of(writer, jail),
		             "its filter is weir's format \"%s\", by what filter.d/%s.conf means as fail2ban ships it",
		             jail->native->format, jail->native->filter);
		if (jail->native->differs != NULL)
			plan_loss(writer->plan, item_of(writer, jail), "%s", jail->native->differs);
	}
}

static void write_zones(struct writer *writer)
{
	bool any = false;
	for (size_t i = 0; i < writer->count; i++) {
		struct jail *jail = &writer->jails[i];
		if (jail->source_count > 0) {
			write_zone(writer, i);
			any |= item_of(writer, jail)->zone_count > 0;
		} else if (is_read(jail)) {
			plan_loss(writer->plan, item_of(writer, jail), "it has no log: its logpath is empty");
		}
	}
	bool decisions = false;
	for (size_t i = 0; i < writer->count; i++) {
		if (!writer->jails[i].recidive)
			continue;
		if (!any) {
			plan_loss(writer->plan, item_of(writer, &writer->jails[i]), "there is no zone whose blocks it could count");
			continue;
		}
		plan_explain(writer->plan, item_of(writer, &writer->jails[i]),
		             "counts the blocks of the zones above, not lines of fail2ban's own log");
		write_zone(writer, i);
		decisions = true;
	}
	if (decisions)
		weir_text_puts(plan_source(writer->plan, "what the zones decide, for zones that count blocks"),
		               "{ \"type\": \"decisions\" }");
}

void fail2ban_write(struct plan *plan, const struct import_options *options, struct jail *jails, size_t count)
{
	struct writer writer = {.plan = plan, .options = options, .jails = jails, .count = count};
	if (options->time_zone == NULL) {
		plan->warning = "Times without a zone are UTC here; fail2ban takes the machine's own zone: --time-zone NAME";
		plan_remark(plan, "%s", plan->warning);
	}
	plan_remark(plan,
	            "A log's times must have a form that weir knows by its shape, or a datepattern: others are not read");
	find_places(&writer);
	settle_natives(&writer);
	settle_shares(&writer);
	write_sources(&writer);
	write_zones(&writer);
	for (size_t i = 0; i < writer.place_count; i++)
		free(writer.places[i].jails);
	free(writer.places);
}
