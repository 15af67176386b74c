/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zone that stays in shadow until it would block few: its terms in "mode", and what becomes of them. That it enforces
 * is said by its policy alone, with the words why, so that it is a record of the log like any other change.
 */
#include "common/base/alloc.h"
#include "common/json/json_shape.h"
#include "common/json/units.h"
#include "common/policy/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PARTS = 10000, /* of a percent, in a millionth */
	PART_DIGITS = 4,
	SHARE_MOST = 50 * PARTS,
	DAY_MS = 86400000,
	DAYS_MOST = 366,
	WORDS_MAX_BYTES = 512,
};

static const char *const modes[] = {[WEIR_ENFORCE] = "enforce", [WEIR_SHADOW] = "shadow", NULL};

static json_t *share_shape(void)
{
	return weir_shape_pattern("^[0-9]+(\\.[0-9]{1,4})?%$");
}

static json_t *words_shape(void)
{
	return weir_shape_name(WORDS_MAX_BYTES);
}

static const struct weir_json_rule term_members[] = {
	{.name = "blocked_keys_below",
     .needed = "a share of a day's keys, such as \"0.1%\"",
     .meaning = "a day counts if less than this share of its keys would have been blocked",
     .shape = share_shape},
	{.name = "for",
     .needed = "a number of days, such as \"7d\"",
     .meaning = "on how many days in a row, in whole days",
     .shape = weir_shape_time},
	{.name = "armed",
     .meaning = "weir writes here why the zone enforces; a zone that has it is not in shadow",
     .shape = words_shape},
	{.name = NULL},
};

static json_t *terms_shape(void)
{
	return weir_shape_object(term_members);
}

static const struct weir_json_rule until_members[] = {
	{.name = "shadow_until",
     .needed = "what has to hold, such as {\"blocked_keys_below\": \"0.1%\", \"for\": \"7d\"}",
     .meaning = "in shadow until the archive shows that few keys would be blocked; then weir makes it enforce",
     .shape = terms_shape},
	{.name = NULL},
};

json_t *weir_mode_shape(void)
{
	return weir_shape_either(weir_shape_words(modes), weir_shape_object(until_members));
}

/* ---- a share ---- */

/* "0.1%" in millionths; 0: it is none. */
static int64_t read_share(const char *text)
{
	int64_t share = 0;
	int decimals = -1;
	const char *at = text;
	for (; (*at >= '0' && *at <= '9') || (*at == '.' && decimals < 0 && at > text); at++) {
		if (*at == '.') {
			decimals = 0;
			continue;
		}
		share = share * 10 + (*at - '0');
		decimals += decimals >= 0;
		if (decimals > PART_DIGITS || share > SHARE_MOST)
			return 0;
	}
	if (at == text || decimals == 0 || strcmp(at, "%") != 0)
		return 0;
	for (int i = decimals > 0 ? decimals : 0; i < PART_DIGITS; i++)
		share *= 10;
	return share <= SHARE_MOST ? share : 0;
}

const char *weir_share_text(int64_t share_ppm, char text[WEIR_SHARE_BYTES])
{
	int length = snprintf(text, WEIR_SHARE_BYTES, "%" PRId64 ".%04d", share_ppm / PARTS, (int)(share_ppm % PARTS));
	while (text[length - 1] == '0')
		length--;
	length -= text[length - 1] == '.';
	snprintf(text + length, (size_t)(WEIR_SHARE_BYTES - length), "%%");
	return text;
}

/* ---- reading and writing ---- */

static enum weir_status parse_terms(const struct weir_json *at, struct weir_arming *arming, struct weir_error *error)
{
	struct weir_json share = weir_json_member(at, "blocked_keys_below"), span = weir_json_member(at, "for"),
					 armed = weir_json_member(at, "armed");
	const char *text = "", *words = NULL;
	enum weir_status status = weir_json_known(at, term_members, error);
	if (status == WEIR_OK)
		status = weir_json_require(&share, term_members[0].needed, error);
	if (status == WEIR_OK)
		status = weir_json_string(&share, &text, error);
	if (status == WEIR_OK && (arming->share_ppm = read_share(text)) == 0)
		status =
			weir_json_fail(&share, error,
		                   "must be a share of keys from \"0.0001%%\" to \"50%%\", with at most four decimals, not "
		                   "\"%.40s\"",
		                   text);
	if (status == WEIR_OK)
		status = weir_json_require(&span, term_members[1].needed, error);
	if (status == WEIR_OK)
		status = weir_json_duration(&span, DAY_MS, (int64_t)DAYS_MOST * DAY_MS, &arming->span_ms, error);
	if (status == WEIR_OK && arming->span_ms % DAY_MS != 0)
		status = weir_json_fail(&span, error, "must be whole days, such as \"7d\": the archive counts by the day");
	if (status == WEIR_OK)
		status = weir_json_string(&armed, &words, error);
	if (status == WEIR_OK && words != NULL && (*words == '\0' || strlen(words) > WORDS_MAX_BYTES))
		status = weir_json_fail(&armed, error, "must be the words that weir wrote; leave it out");
	if (status == WEIR_OK && words != NULL)
		arming->armed = weir_copy(words, strlen(words));
	return status;
}

enum weir_status weir_mode_parse(const struct weir_json *at, struct weir_zone *zone, struct weir_error *error)
{
	int word = WEIR_ENFORCE;
	enum weir_status status;
	if (!json_is_object(at->value)) {
		status = weir_json_word(at, modes, &word, error);
		zone->mode = (enum weir_zone_mode)word;
		return status;
	}
	struct weir_json terms = weir_json_member(at, "shadow_until");
	status = weir_json_known(at, until_members, error);
	if (status == WEIR_OK)
		status = weir_json_require(&terms, until_members[0].needed, error);
	if (status == WEIR_OK && !json_is_object(terms.value))
		status = weir_json_fail(&terms, error, "must be an object: %s", until_members[0].needed);
	if (status == WEIR_OK)
		status = parse_terms(&terms, &zone->arming, error);
	zone->mode = zone->arming.armed != NULL ? WEIR_ENFORCE : WEIR_SHADOW;
	return status;
}

json_t *weir_mode_json(const struct weir_zone *zone)
{
	char share[WEIR_SHARE_BYTES], span[24];
	if (zone->arming.share_ppm == 0)
		return json_string(weir_mode_name(zone->mode));
	json_t *terms = json_object();
	json_object_set_new(terms, "blocked_keys_below", json_string(weir_share_text(zone->arming.share_ppm, share)));
	json_object_set_new(terms, "for", json_string(weir_format_duration(zone->arming.span_ms, span, sizeof span)));
	if (zone->arming.armed != NULL)
		json_object_set_new(terms, "armed", json_string(zone->arming.armed));
	return json_pack("{s:o}", "shadow_until", terms);
}

void weir_mode_describe(struct weir_text *text, const struct weir_zone *zone)
{
	char share[WEIR_SHARE_BYTES];
	const struct weir_arming *arming = &zone->arming;
	if (arming->armed != NULL)
		weir_text_printf(text, "; enforces, as weir armed it: %s", arming->armed);
	else if (arming->share_ppm > 0)
		weir_text_printf(
			text,
			"; in shadow mode until on %" PRId64 " day%s in a row less than %s of the day's keys would have "
			"been blocked, then weir makes it enforce; a day with fewer than %" PRId64 " keys says nothing",
			arming->span_ms / DAY_MS, arming->span_ms > DAY_MS ? "s" : "", weir_share_text(arming->share_ppm, share),
			weir_arming_least_keys(arming));
	else if (zone->mode == WEIR_SHADOW)
		weir_text_puts(text, "; in shadow mode: decisions go only to the shadow stream");
}

/* ---- one policy after another ---- */

void weir_policy_arm(struct weir_policy *policy, uint32_t id, const char *words)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_zone *zone = &policy->zones[i];
		if (zone->id != id || !weir_zone_waits(zone))
			continue;
		zone->arming.armed = weir_copy(words, strlen(words));
		zone->mode = WEIR_ENFORCE;
	}
	free(policy->text);
	policy->text = weir_policy_text(policy);
}

bool weir_policy_is_arming(const struct weir_policy *before, const struct weir_policy *after)
{
	struct weir_policy *copy;
	if (before == NULL ||
	    weir_policy_decode(before->version, before->text, strlen(before->text), &copy, NULL) != WEIR_OK)
		return false;
	bool any = false;
	for (uint32_t i = 0; i < before->zone_count; i++) {
		const struct weir_zone *zone = weir_policy_zone(after, before->zones[i].id);
		if (!weir_zone_waits(&before->zones[i]) || zone == NULL || zone->arming.armed == NULL)
			continue;
		weir_policy_arm(copy, zone->id, zone->arming.armed);
		any = true;
	}
	bool same = any && strcmp(copy->text, after->text) == 0;
	weir_policy_free(copy);
	return same;
}

void weir_policy_stay_armed(struct weir_policy *policy, const struct weir_policy *newest)
{
	for (uint32_t i = 0; i < policy->zone_count; i++) {
		struct weir_zone *zone = &policy->zones[i];
		const struct weir_zone *was = weir_policy_zone_named(newest, weir_span_of(zone->name));
		if (!weir_zone_waits(zone) || was == NULL || was->arming.armed == NULL)
			continue;
		char *one = weir_zone_settings(zone), *other = weir_zone_settings(was);
		if (strcmp(one, other) == 0) {
			zone->arming.armed = weir_copy(was->arming.armed, strlen(was->arming.armed));
			zone->mode = WEIR_ENFORCE;
		}
		free(one);
		free(other);
	}
	free(policy->text);
	policy->text = weir_policy_text(policy);
}
