/* SPDX-License-Identifier: Apache-2.0 */
/* Fail2ban's `datepattern`. */
#include "deploy/weir/import/fail2ban_date.h"

#include <ctype.h>
#include <string.h>

/* The forms that weir's formats know by their shape (collector/formats.md#times). */
#define CLOCK "\\d\\d:\\d\\d:\\d\\d"
#define FRACTION "(?:[.,]\\d+)?"
#define USUAL                                                                            \
	"\\d{4}[-/]\\d\\d[-/]\\d\\d[T ]" CLOCK FRACTION "(?: ?(?:Z|[+-]\\d\\d:?\\d\\d)\\b)?" \
	"|\\d{1,2}/[A-Z][a-z]{2}/\\d{4}:" CLOCK FRACTION "(?: [+-]\\d{4})?"                  \
	"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \\d]\\d " CLOCK FRACTION " \\d{4}"                   \
	"|[A-Z][a-z]{2} [ \\d]?\\d (?:\\d{4} )?" CLOCK FRACTION "|(?:(?<=^)|(?<=[\\[(]))1\\d{9}(?:\\.\\d{1,9})?(?![\\d.])"

struct directive {
	const char *name, *expression, *format;
};

/* As fail2ban writes them, with weir's letter. %Ex… is the same with exactly so many digits. */
static const struct directive directives[] = {
	{"%ExY", "\\d{4}", "%Y"},      {"%Exy", "\\d\\d", "%y"},
	{"%Exm", "\\d\\d", "%m"},      {"%Exd", "\\d\\d", "%d"},
	{"%ExH", "\\d\\d", "%H"},      {"%ExM", "\\d\\d", "%M"},
	{"%ExS", "\\d\\d", "%S"},      {"%Y", "\\d{4}", "%Y"},
	{"%y", "\\d\\d", "%y"},        {"%m", "\\d{1,2}", "%m"},
	{"%b", "[A-Z][a-z]{2}", "%b"}, {"%B", "[A-Z][a-z]+", "%B"},
	{"%d", "[ \\d]?\\d", "%d"},    {"%H", "\\d{1,2}", "%H"},
	{"%I", "\\d{1,2}", "%I"},      {"%p", "[AP]M", "%p"},
	{"%M", "\\d\\d", "%M"},        {"%S", "\\d\\d", "%S"},
	{"%a", "[A-Z][a-z]{2}", "%a"}, {"%z", "[+-]\\d\\d:?\\d\\d", "%z"},
	{"%f", "\\d+", "%f"},          {NULL, NULL, NULL},
};

/* What fail2ban's own filters write for forms that weir knows. */
static const char *const usual_forms[] = {
	"{DATE}",
	"({DATE})",
	"%ExY(?P<_sep>[-/.])%m(?P=_sep)%d[T ]%H:%M:%S(?:[.,]%f)?(?:\\s*%z)?",
	"%Y-%m-%d %H:%M:%S",
	"%Y-%m-%dT%H:%M:%S%z",
	"%d/%b/%Y:%H:%M:%S %z",
	"%b %d %H:%M:%S",
	"Epoch",
	NULL,
};

struct date date_usual(struct plan *plan)
{
	return (struct date){.before = plan_print(plan, "%s", ""),
	                     .time = plan_print(plan, "%s", USUAL),
	                     .after = plan_print(plan, "%s", ""),
	                     .cuts_around = true,
	                     .usual = true};
}

static const struct directive *directive_at(const char *at)
{
	for (const struct directive *directive = directives; directive->name != NULL; directive++)
		if (strncmp(at, directive->name, strlen(directive->name)) == 0)
			return directive;
	return NULL;
}

/* What ends the time: an expression that says nothing of it. */
static const char *read_after(struct plan *plan, const char *after, struct date *date)
{
	if (strpbrk(after, "%{(") != NULL)
		return "it is an expression around the time's parts";
	date->after = plan_print(plan, "%s", after);
	return NULL;
}

/* A form that a time_format can say: directives, and bytes that stand for themselves in an expression too. */
static const char *read_format(struct plan *plan, const char *at, struct date *date)
{
	struct weir_text expression = {0}, format = {0};
	for (;;) {
		const struct directive *directive = *at == '%' ? directive_at(at) : NULL;
		if (directive != NULL) {
			weir_text_puts(&expression, directive->expression);
			weir_text_puts(&format, directive->format);
			at += strlen(directive->name);
		} else if (*at != '\0' && (isalnum((unsigned char)*at) || strchr(" -/:,", *at) != NULL)) {
			weir_text_append(&expression, at, 1);
			weir_text_append(&format, at++, 1);
		} else {
			break;
		}
	}
	const char *refused = read_after(plan, at, date);
	if (refused == NULL) {
		date->time = plan_keep(plan, expression.at != NULL ? expression.at : "", expression.length);
		date->time_format = plan_keep(plan, format.at != NULL ? format.at : "", format.length);
		date->usual = false;
	}
	weir_text_deinit(&expression);
	weir_text_deinit(&format);
	return refused;
}

static bool is_usual_form(const char *form)
{
	for (const char *const *usual = usual_forms; *usual != NULL; usual++)
		if (strcmp(form, *usual) == 0)
			return true;
	return false;
}

/* The part before the time: as it stands, where its bytes mean the same in both, and it encloses nothing. */
static const char *read_before(struct plan *plan, const char *pattern, size_t length, struct date *date)
{
	unsigned open = 0;
	for (size_t i = 0; i < length; i++) {
		if (pattern[i] == '\\')
			i++;
		else if (pattern[i] == '(')
			open++;
		else if (pattern[i] == ')')
			open--;
	}
	if (open != 0)
		return "it encloses more than the time";
	date->before = plan_keep(plan, pattern, length);
	return NULL;
}

static const char *read_one(struct plan *plan, const char *pattern, struct date *date)
{
	*date = date_usual(plan);
	if (strncmp(pattern, "{^LN-BEG}", 9) == 0) {
		pattern += 9;
		date->before = plan_print(plan, "%s", "^\\W{0,2}");
		if (*pattern == '\0' || is_usual_form(pattern))
			return NULL;
		return strcmp(pattern, "TAI64N") == 0 ? "weir reads no times in TAI64N" : read_format(plan, pattern, date);
	}
	if (is_usual_form(pattern))
		return NULL;
	if (strcmp(pattern, "EPOCH") == 0)
		return "the time is cut out of the line's middle";
	const char *time = strpbrk(pattern, "%{"), *group = strstr(pattern, "({DATE})");
	if (time == NULL)
		return "it has no time that weir knows";
	if (group != NULL && group + 1 == time) {
		date->cuts_around = false;
		const char *refused = read_before(plan, pattern, (size_t)(group - pattern), date);
		return refused == NULL ? read_after(plan, group + 8, date) : refused;
	}
	const char *refused = read_before(plan, pattern, (size_t)(time - pattern), date);
	if (refused != NULL || is_usual_form(time))
		return refused;
	return strncmp(time, "{DATE}", 6) == 0 ? read_after(plan, time + 6, date) : read_format(plan, time, date);
}

const char *date_read(struct plan *plan, const char *pattern, struct date *date)
{
	if (strchr(pattern, '\n') == NULL)
		return read_one(plan, pattern, date);
	/* Alternatives that are known by their shape are one. */
	char *copy = plan_keep(plan, pattern, strlen(pattern)), *rest = NULL;
	for (char *one = strtok_r(copy, "\n", &rest); one != NULL; one = strtok_r(NULL, "\n", &rest)) {
		const char *refused = read_one(plan, one, date);
		if (refused != NULL)
			return refused;
		if (!date->usual)
			return "it is a list of forms";
	}
	*date = date_usual(plan);
	return NULL;
}
