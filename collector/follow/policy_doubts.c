/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each value is held against what its field can have: an address has one spelling, a path is what was served, a method
 * is one of HTTP's and not nearly one, a status has a hundred's first digit. Words that people can read in place of a
 * value are compared by nobody but here, so all who tell the doubts say the same.
 */
#include "collector/follow/policy_doubts.h"

#include "collector/source/kinds/source_kinds.h"
#include "common/base/suggest.h"
#include "common/base/text.h"
#include "common/bytes/http_address.h"
#include "common/record/served_host.h"
#include "common/record/served_method.h"

#include <stdio.h>
#include <string.h>

/* Whom the doubts about one member are told. */
struct teller {
	policy_doubt *tell;
	void *context;
	const struct weir_policy *policy;
	const struct weir_zone *zone;
	uint32_t number; /* the zone's */
	struct weir_text member;
	uint32_t told; /* of the member */
	struct weir_text words;
};

/* Begins with another member, of which the name is to be written. */
static struct weir_text *enter(struct teller *teller)
{
	weir_text_clear(&teller->member);
	teller->told = 0;
	return &teller->member;
}

/* Tells the words, where some were written. */
static void tell_words(struct teller *teller)
{
	if (teller->words.length == 0)
		return;
	weir_text_append(&teller->words, "", 1);
	weir_text_append(&teller->member, "", 1);
	teller->member.length--;
	if (teller->told++ < DOUBTS_TOLD)
		teller->tell(teller->context, teller->number, teller->member.at, teller->words.at);
	weir_text_clear(&teller->words);
}

/* ---- a word among addresses ---- */

/* Whether a text has the shape of an IPv4 address. */
static bool is_dotted(const char *text)
{
	unsigned dots = 0;
	for (const char *at = text; *at != '\0'; at++)
		dots += *at == '.';
	return dots == 3 && text[strspn(text, "0123456789.")] == '\0';
}

/* Why a word is none of the addresses that are logged. */
static const char *why_no_address(const char *word)
{
	struct weir_address address;
	if (is_dotted(word))
		return "each of its four numbers must be 0 to 255, without zeros before it";
	if (weir_address_read(weir_span_of(word), &address))
		return "addresses are logged without a port";
	return "names are not resolved";
}

static bool is_wildcard(const char *word)
{
	return strchr(word, '*') != NULL;
}

/* @param does  "exempts", "matches" */
static void doubt_word(struct teller *teller, const char *word, const char *does)
{
	if (is_wildcard(word))
		weir_text_printf(
			&teller->words,
			"\"%.80s\" is compared with addresses as text, so it %s all that look like it; give networks instead", word,
			does);
	else
		weir_text_printf(
			&teller->words,
			"\"%.80s\" is no address, and addresses are what it is compared with: %s, so this %s nobody whose "
			"address is logged",
			word, why_no_address(word), does);
}

/* ---- values of a match ---- */

static bool is_grouped(const struct weir_zone *zone, const char *field)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (zone->key[i].grouped && strcmp(zone->key[i].field, field) == 0)
			return true;
	return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names != NULL; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

static void doubt_status(struct teller *teller, const char *text)
{
	bool none =
		strcmp(text, "000") == 0 || strcmp(text, "0xx") == 0; /* what nginx and Squid write where there is none */
	if (!none && (text[0] < '1' || text[0] > '5'))
		weir_text_printf(&teller->words, "%s is no status of HTTP, which has 100 to 599", text);
}

/* A method that no server knows, and that looks like one, is a slip of the keys. Any other may be somebody's own. */
static void doubt_method(struct teller *teller, const char *text)
{
	char upper[32];
	size_t length = strlen(text);
	if (length >= sizeof upper)
		return;
	for (size_t i = 0; i <= length; i++)
		upper[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 'a' + 'A' : text[i]);
	const char *near = is_one_of(upper, weir_served_methods()) ? NULL : weir_nearest_name(upper, weir_served_methods());
	if (near != NULL)
		weir_text_printf(&teller->words, "\"%s\" is no method of HTTP: did you mean \"%s\"?", text, near);
}

/* Whether a pattern has a piece that no path contains, as a server takes it away: "//", "/./", "/../". */
static const char *never_in_path(const char *text)
{
	static const char *const pieces[] = {"//", "/./", "/../"};
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
		if (strstr(text, pieces[i]) != NULL)
			return pieces[i];
	return NULL;
}

static bool has_escape(const char *text)
{
	for (text = strchr(text, '%'); text != NULL; text = strchr(text + 1, '%'))
		if (strspn(text + 1, "0123456789abcdefABCDEF") >= 2)
			return true;
	return false;
}

/* An exact path is brought into its form by who compares it (record_filter.c, exempt_list.c). */
static void doubt_path(struct teller *teller, const char *text)
{
	const char *never = never_in_path(text), *mark = strpbrk(text, "?#");
	if (mark != NULL)
		weir_text_printf(&teller->words,
		                 "\"%.80s\": a path ends before its \"%c\"; the field \"target\" has what the client wrote",
		                 text, *mark);
	else if (!is_wildcard(text) && text[0] != '/' && strchr(text, ':') == NULL)
		weir_text_printf(&teller->words, "\"%.80s\" does not begin with \"/\", as paths do", text);
	else if (is_wildcard(text) && never != NULL)
		weir_text_printf(&teller->words,
		                 "\"%.80s\" never matches: no path contains \"%s\", which the server takes away", text, never);
	else if (is_wildcard(text) && has_escape(text))
		weir_text_printf(
			&teller->words,
			"\"%.80s\": a path is decoded, so what is escaped in it was escaped twice; write it without \"%%\"", text);
}

/* A port is cut by who compares it, so that a value is about more than it says. */
static void doubt_host(struct teller *teller, const char *text)
{
	char room[WEIR_SERVED_HOST_BYTES];
	const char *colon = strrchr(text, ':'), *slash = strchr(text, '/');
	struct weir_span host = *text != '\0' ? weir_served_host(weir_span_of(text), room) : weir_span_of(text);
	if (slash != NULL)
		weir_text_printf(&teller->words, "\"%.80s\": a host has no \"/\"; write the name alone", text);
	else if (colon != NULL && host.length <= (size_t)(colon - text))
		weir_text_printf(&teller->words, "\"%.80s\": a host has no port here, so this is \"%.*s\" on every port%s",
		                 text, (int)host.length, host.at,
		                 weir_span_equal(host, weir_span_of("*")) ? ", which is every host" : "");
}

static void doubt_value(struct teller *teller, const char *field, const struct weir_match_value *value)
{
	static const char *const texts[] = {"method", "path", "target", "bytes", "agent", "referer", NULL};
	bool single = value->network && strpbrk(value->text, "/-") == NULL;
	if (strcmp(field, "status") == 0)
		doubt_status(teller, value->text);
	else if (value->network && !single && is_one_of(field, texts))
		weir_text_printf(&teller->words, "%s is a network, and the field \"%s\" has no addresses", value->text, field);
	else if (strcmp(field, "method") == 0 && !value->wildcard)
		doubt_method(teller, value->text);
	else if (strcmp(field, "path") == 0 && !value->network)
		doubt_path(teller, value->text);
	else if (strcmp(field, "host") == 0 && !value->network)
		doubt_host(teller, value->text);
	else if (!value->network && (strcmp(field, "ip") == 0 || is_grouped(teller->zone, field)))
		doubt_word(teller, value->text, "matches");
	tell_words(teller);
}

/* ---- values against values ---- */

static bool covers_networks(const struct weir_match_value *wide, const struct weir_match_value *narrow)
{
	struct weir_network outer[WEIR_RANGE_NETWORKS_MAX], inner[WEIR_RANGE_NETWORKS_MAX];
	const char *why;
	uint32_t outer_count = weir_networks_parse(weir_span_of(wide->text), outer, &why);
	uint32_t inner_count = weir_networks_parse(weir_span_of(narrow->text), inner, &why);
	for (uint32_t i = 0; i < inner_count; i++) {
		bool inside = false;
		for (uint32_t k = 0; k < outer_count && !inside; k++)
			inside = outer[k].prefix <= inner[i].prefix && weir_network_contains(&outer[k], &inner[i].base);
		if (!inside)
			return false;
	}
	return true;
}

/* A value as records are compared with it, if it is a method. */
static struct weir_span compared(const char *field, const struct weir_match_value *value)
{
	struct weir_span text = weir_span_of(value->text);
	return strcmp(field, "method") == 0 ? weir_served_method(text) : text;
}

/* Whether all that `narrow` stands for is in `wide`, too. A star within `narrow` is no byte of a pattern but its stars. */
static bool covers(const char *field, const struct weir_match_value *wide, const struct weir_match_value *narrow)
{
	if (weir_span_equal(compared(field, wide), compared(field, narrow)))
		return true;
	if (strcmp(field, "status") == 0)
		return wide->text[1] == 'x' && wide->text[0] == narrow->text[0];
	if (wide->network && narrow->network)
		return covers_networks(wide, narrow);
	if (!wide->wildcard)
		return false;
	struct wildcard pattern;
	wildcard_init(&pattern, weir_span_of(wide->text));
	bool covered =
		wildcard_match(&pattern, weir_span_of(narrow->text)) || wildcard_match(&pattern, compared(field, narrow));
	wildcard_deinit(&pattern);
	return covered;
}

static bool is_covered(const char *field, const struct weir_match_field *wide, const struct weir_match_value *narrow)
{
	for (uint32_t i = 0; i < wide->value_count; i++)
		if (covers(field, &wide->values[i], narrow))
			return true;
	return false;
}

/* Whether some value may stand for something that one of the others stands for. */
static bool may_meet(const struct weir_match_field *a, const struct weir_match_field *b)
{
	if (a->any_case || b->any_case)
		return true;
	for (uint32_t i = 0; i < a->value_count; i++)
		for (uint32_t k = 0; k < b->value_count; k++) {
			const struct weir_match_value *x = &a->values[i], *y = &b->values[k];
			bool patterns = x->wildcard && y->wildcard, ranges = x->network || y->network;
			if (patterns || ranges || covers(a->field, x, y) || covers(a->field, y, x))
				return true;
		}
	return false;
}

/* "is" and "not" of one field, which stand side by side. */
static void doubt_opposites(struct teller *teller, const struct weir_match_field *wanted,
                            const struct weir_match_field *unwanted)
{
	uint32_t covered = 0;
	for (uint32_t i = 0; i < wanted->value_count; i++)
		covered += is_covered(wanted->field, unwanted, &wanted->values[i]);
	if (covered == wanted->value_count)
		weir_text_puts(&teller->words, "never matches: \"not\" takes away all that \"is\" names");
	tell_words(teller);
	for (uint32_t i = 0; covered < wanted->value_count && i < wanted->value_count; i++) {
		if (is_covered(wanted->field, unwanted, &wanted->values[i]))
			weir_text_printf(&teller->words, "\"%.80s\" never matches: \"not\" names it, too", wanted->values[i].text);
		tell_words(teller);
	}
}

/* @param prefix  before the field: "match", "exempt", "limits[0].done" */
static void doubt_match(struct teller *teller, const char *prefix, const struct weir_match *match)
{
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *field = &match->fields[i], *next = field + 1;
		weir_text_printf(enter(teller), "%s.%s", prefix, field->field);
		for (uint32_t k = 0; k < field->value_count; k++)
			doubt_value(teller, field->field, &field->values[k]);
		if (!field->negated && !field->any_case && i + 1 < match->field_count && strcmp(next->field, field->field) == 0)
			doubt_opposites(teller, field, next);
	}
}

/* ---- a zone ---- */

static bool has_object(const struct weir_zone *zone, json_t *object)
{
	bool has = false;
	for (uint32_t i = 0; i < zone->exempt_match_count && !has; i++) {
		json_t *own = weir_match_json(&zone->exempt_matches[i]);
		has = json_equal(own, object);
		json_decref(own);
	}
	return has;
}

/* Whether all zones have it, as if it stood in the configuration's own "exempt": it need not be about each of them. */
static bool is_of_all(const struct weir_policy *policy, const struct weir_match *object)
{
	json_t *sought = weir_match_json(object);
	uint32_t zones = 0;
	while (zones < policy->zone_count && has_object(&policy->zones[zones], sought))
		zones++;
	json_decref(sought);
	return policy->zone_count > 1 && zones == policy->zone_count;
}

/* An object of "exempt" whose field the zone's "match" asks to be another. */
static void doubt_object(struct teller *teller, const struct weir_match *object)
{
	const struct weir_match *match = &teller->zone->match;
	doubt_match(teller, "exempt", object);
	for (uint32_t i = 0; i < object->field_count; i++)
		for (uint32_t k = 0; k < match->field_count; k++) {
			const struct weir_match_field *a = &object->fields[i], *b = &match->fields[k];
			if (a->negated || b->negated || strcmp(a->field, b->field) != 0 || may_meet(a, b) ||
			    is_of_all(teller->policy, object))
				continue;
			weir_text_printf(enter(teller), "exempt.%s", a->field);
			weir_text_printf(&teller->words, "exempts nobody: the zone's \"match\" asks for other values of \"%s\"",
			                 a->field);
			tell_words(teller);
		}
}

static void doubt_list(struct teller *teller, struct weir_exempt_lists *lists, const char *path)
{
	struct weir_exempt_list_facts facts = weir_exempt_lists_facts(lists, path);
	struct weir_text shown = {0};
	weir_http_address_show(path, &shown);
	if (facts.words > 0 && weir_zone_counts_addresses(teller->zone))
		weir_text_printf(
			&teller->words,
			"%u entries of %.*s are no addresses, such as \"%.80s\", and addresses are what they are compared with: "
			"%s, so these exempt nobody whose address is logged",
			facts.words, (int)shown.length, shown.at, facts.first_word, why_no_address(facts.first_word));
	else if (facts.read && facts.networks + facts.words == 0)
		weir_text_printf(&teller->words, "%.*s has no entries: it exempts nobody", (int)shown.length, shown.at);
	weir_text_deinit(&shown);
	tell_words(teller);
}

/* Whether a word of a list may be a word and a remark: " #probe", " ; probe". A number, as in "user #1", is none. */
static bool may_have_remark(const char *word)
{
	for (const char *mark = word; (mark = strpbrk(mark, "#;")) != NULL; mark++) {
		const char *behind = mark + 1 + strspn(mark + 1, " \t");
		bool letter = (*behind >= 'a' && *behind <= 'z') || (*behind >= 'A' && *behind <= 'Z');
		if (mark > word && (mark[-1] == ' ' || mark[-1] == '\t') && letter)
			return true;
	}
	return false;
}

static void doubt_exempt(struct teller *teller, struct weir_exempt_lists *lists)
{
	const struct weir_zone *zone = teller->zone;
	bool addresses = weir_zone_counts_addresses(zone);
	weir_text_printf(enter(teller), "exempt");
	for (uint32_t i = 0; i < zone->exempt_word_count; i++) {
		if (zone->key_count == 0)
			weir_text_printf(&teller->words,
			                 "\"%.80s\" is compared with the values of the key, and there are none: it exempts nobody",
			                 zone->exempt_words[i]);
		else if (addresses)
			doubt_word(teller, zone->exempt_words[i], "exempts");
		else if (may_have_remark(zone->exempt_words[i]))
			weir_text_printf(&teller->words,
			                 "\"%.80s\" is compared as a whole: a remark behind a word in a file begins with \" # \"",
			                 zone->exempt_words[i]);
		tell_words(teller);
	}
	for (uint32_t i = 0; lists != NULL && i < zone->exempt_list_count; i++)
		doubt_list(teller, lists, zone->exempt_lists[i]);
	for (uint32_t i = 0; i < zone->exempt_match_count; i++)
		doubt_object(teller, &zone->exempt_matches[i]);
}

static bool has_source(const struct weir_config *config, const char *sought)
{
	for (size_t i = 0; i < config->source_count; i++) {
		struct weir_json source = weir_json_element(&config->sources, i);
		const char *known = source_zones_name(&source);
		if (known != NULL && strcmp(known, sought) == 0)
			return true;
	}
	return false;
}

static void doubt_sources(struct teller *teller, const struct weir_config *config)
{
	const struct weir_zone *zone = teller->zone;
	for (uint32_t i = 0; i < zone->source_count; i++) {
		weir_text_printf(enter(teller), "sources[%u]", i);
		if (!has_source(config, zone->sources[i]))
			weir_text_printf(&teller->words, "no source here has the \"name\" \"%.80s\"", zone->sources[i]);
		tell_words(teller);
	}
}

/* ---- zones that count decisions ---- */

/* Whether a decision has such a field: one of its own, or of the key of some zone. */
static bool is_of_decisions(const struct weir_policy *policy, const char *field)
{
	static const char *const own[] = {"zone", "key", "ip", "action", "mode", "by", NULL};
	return is_one_of(field, own) || weir_policy_counts_by(policy, field);
}

static void doubt_decision_value(struct teller *teller, const struct weir_policy *policy, const char *field,
                                 const struct weir_match_value *value)
{
	static const char *const actions[] = {"block", "lift", NULL}, *const modes[] = {"enforce", "shadow", NULL};
	if (value->wildcard || value->network)
		return;
	if (strcmp(field, "zone") == 0 && weir_policy_zone_named(policy, weir_span_of(value->text)) == NULL)
		weir_text_printf(&teller->words, "there is no zone \"%.80s\", so none of its decisions comes", value->text);
	else if (strcmp(field, "action") == 0 && !is_one_of(value->text, actions))
		weir_text_printf(&teller->words, "\"%.80s\" is no action: there are block and lift", value->text);
	else if (strcmp(field, "mode") == 0 && !is_one_of(value->text, modes))
		weir_text_printf(&teller->words, "\"%.80s\" is no mode: there are enforce and shadow", value->text);
	tell_words(teller);
}

/* The field of a zone's key, or NULL. */
static const struct weir_key_field *key_field(const struct weir_zone *zone, const char *field)
{
	for (uint32_t i = 0; i < zone->key_count; i++)
		if (strcmp(zone->key[i].field, field) == 0)
			return &zone->key[i];
	return NULL;
}

/*
 * The values of a decision's key are those that the zone which made it counts by. A network among them is a word to who
 * groups addresses, so it stays as it is.
 */
static void doubt_decision_key(struct teller *teller, const struct weir_policy *policy,
                               const struct weir_key_field *field)
{
	static const char *const own[] = {"zone", "key", "action", "mode", "by", NULL};
	bool found = is_one_of(field->field, own);
	const struct weir_zone *networks = NULL;
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		const struct weir_zone *other = &policy->zones[i];
		const struct weir_key_field *theirs = key_field(other, field->field);
		if (theirs == NULL || !weir_zone_counts_those_of(teller->zone, other))
			continue;
		found = true;
		bool wider4 = theirs->prefix4 < 32 && field->prefix4 < theirs->prefix4;
		bool wider6 = theirs->prefix6 < 128 && field->prefix6 < theirs->prefix6;
		if (field->grouped && theirs->grouped && (wider4 || wider6))
			networks = other;
	}
	if (!found)
		weir_text_printf(&teller->words,
		                 "no zone that it counts the decisions of has \"%.80s\" in its key, so it counts nothing",
		                 field->field);
	else if (networks != NULL)
		weir_text_printf(&teller->words,
		                 "decisions of the zone \"%.80s\" have networks there, which are not grouped further: each "
		                 "counts by itself",
		                 networks->name);
	tell_words(teller);
}

static void doubt_decisions(struct teller *teller, const struct weir_policy *policy)
{
	const struct weir_match *match = &teller->zone->match;
	bool by_action = false, decisions_alone = teller->zone->source_count == 1;
	for (uint32_t i = 0; i < match->field_count; i++) {
		const struct weir_match_field *field = &match->fields[i];
		weir_text_printf(enter(teller), "match.%s", field->field);
		by_action |= strcmp(field->field, "action") == 0;
		if (!is_of_decisions(policy, field->field))
			weir_text_printf(&teller->words, "decisions have no field \"%.80s\"", field->field);
		tell_words(teller);
		for (uint32_t k = 0; k < field->value_count; k++)
			doubt_decision_value(teller, policy, field->field, &field->values[k]);
	}
	weir_text_puts(enter(teller), "key");
	for (uint32_t i = 0; decisions_alone && i < teller->zone->key_count; i++)
		doubt_decision_key(teller, policy, &teller->zone->key[i]);
	for (uint32_t i = 0; i < teller->zone->history_field_count; i++) {
		const char *field = teller->zone->history_fields[i];
		weir_text_puts(enter(teller), "history.fields");
		if (!is_of_decisions(policy, field))
			weir_text_printf(&teller->words, "decisions have no field \"%.80s\"", field);
		tell_words(teller);
	}
	weir_text_puts(enter(teller), "match");
	if (!by_action)
		weir_text_puts(&teller->words, "counts lifts, too, so an operator who lets somebody in adds to the count: "
		                               "\"action\": [\"block\"] counts blocks alone");
	tell_words(teller);
}

void policy_doubts(const struct weir_policy *policy, const struct weir_config *config, struct weir_exempt_lists *lists,
                   policy_doubt *tell, void *context)
{
	for (uint32_t z = 0; z < policy->zone_count; z++) {
		struct teller teller = {
			.tell = tell, .context = context, .policy = policy, .zone = &policy->zones[z], .number = z};
		char done[32];
		doubt_match(&teller, "match", &teller.zone->match);
		doubt_exempt(&teller, lists);
		for (uint32_t i = 0; i < teller.zone->limit_count; i++) {
			snprintf(done, sizeof done, "limits[%u].done", i);
			doubt_match(&teller, done, &teller.zone->limits[i].done);
		}
		if (weir_zone_counts_decisions(teller.zone))
			doubt_decisions(&teller, policy);
		if (config != NULL)
			doubt_sources(&teller, config);
		weir_text_deinit(&teller.member);
		weir_text_deinit(&teller.words);
	}
}

void policy_doubt_log(void *context, uint32_t zone, const char *member, const char *words)
{
	const struct policy_doubts_log *to = context;
	weir_log(to->log, WEIR_LOG_WARNING, "policy", "%s%szone \"%s\"%s%s%s %s", to->file != NULL ? to->file : "",
	         to->file != NULL ? ": " : "", to->policy->zones[zone].name, member != NULL ? ", " : "",
	         member != NULL ? member : "", member != NULL ? ":" : "", words);
}
