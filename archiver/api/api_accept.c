/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of the ranges that take a type, the most exact one says how much it is wanted: its weight, 0 for not at all. Two types
 * are compared by their weights.
 */
#include "archiver/api/api_accept.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

enum { WEIGHT_MOST = 1000, /* thousandths, as q has three decimals */ };

enum exactness { NO_RANGE, ANYTHING, SAME_KIND, ITSELF };

struct wish {
	enum exactness exactness;
	int weight;
	size_t at; /* in the field */
};

static const char *skip_spaces(const char *at)
{
	return at + strspn(at, " \t");
}

/* Where a range or a parameter ends: at one of these, or at the end; what is quoted is passed over. */
static const char *find_end(const char *at, const char *ends)
{
	for (bool quoted = false; *at != '\0' && (quoted || strchr(ends, *at) == NULL); at++) {
		if (quoted && *at == '\\' && at[1] != '\0')
			at++;
		else if (*at == '"')
			quoted = !quoted;
	}
	return at;
}

/* "0.25": what is no weight is taken for the most, as if there were none. */
static int read_weight(const char *at)
{
	int weight = 0, unit = WEIGHT_MOST / 10;
	if (*at != '0')
		return WEIGHT_MOST;
	if (*++at != '.')
		return 0;
	for (at++; unit > 0 && *at >= '0' && *at <= '9'; at++, unit /= 10)
		weight += (*at - '0') * unit;
	return weight;
}

/* Of a range whose parameters begin here: that of q. */
static int weight_of(const char *at)
{
	while (*at == ';') {
		at = skip_spaces(at + 1);
		if (strncasecmp(at, "q=", 2) == 0)
			return read_weight(at + 2);
		at = find_end(at, ";,");
	}
	return WEIGHT_MOST;
}

/* How exactly a range of that many bytes names a type. */
static enum exactness exactness_of(const char *range, size_t length, const char *type)
{
	size_t kind = strcspn(type, "/") + 1;
	if (length == strlen(type) && strncasecmp(range, type, length) == 0)
		return ITSELF;
	if (length == kind + 1 && strncasecmp(range, type, kind) == 0 && range[kind] == '*')
		return SAME_KIND;
	return length == 3 && strncmp(range, "*/*", 3) == 0 ? ANYTHING : NO_RANGE;
}

static struct wish find_wish(const char *field, const char *type)
{
	struct wish wish = {.exactness = NO_RANGE};
	for (const char *at = field, *end; *at != '\0'; at = *end == ',' ? end + 1 : end) {
		at = skip_spaces(at);
		end = find_end(at, ",");
		size_t length = strcspn(at, " \t;,");
		enum exactness exactness = exactness_of(at, length, type);
		if (exactness > wish.exactness)
			wish = (struct wish){exactness, weight_of(skip_spaces(at + length)), (size_t)(at - field)};
	}
	return wish;
}

static bool is_rather(const struct wish *wish, const struct wish *other)
{
	if (wish->weight != other->weight)
		return wish->weight > other->weight;
	return wish->exactness != other->exactness ? wish->exactness > other->exactness
	                                           : wish->exactness == ITSELF && wish->at < other->at;
}

enum api_accepted api_accepted(const char *field, bool csv)
{
	if (field == NULL || *skip_spaces(field) == '\0')
		return API_ACCEPTED_JSON;
	struct wish json = find_wish(field, "application/json"), sheet = find_wish(field, "text/csv");
	if (csv && sheet.weight > 0 && is_rather(&sheet, &json))
		return API_ACCEPTED_CSV;
	return json.weight > 0 ? API_ACCEPTED_JSON : API_ACCEPTED_NOTHING;
}
