/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finding is written as one text of three lines, so that a check has the words of a fault in one place; it is cut into
 * its parts here. The runbook's heading stands in the remedy, as it does in a line of the log.
 */
#include "common/diagnosis/findings.h"

#include "common/base/alloc.h"
#include "common/files/file_damage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNBOOK " (runbook: "

static const char *const names[] = {"page", "ticket", "note"};
/* Bold red, yellow, none. */
static const char *const colours[] = {"\033[1;31m", "\033[33m", ""};

const char *weir_severity_name(enum weir_severity severity)
{
	return names[severity];
}

void weir_findings_deinit(struct weir_findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		free(findings->at[i].words);
	free(findings->at);
	weir_text_deinit(&findings->good);
	*findings = (struct weir_findings){0};
}

/* Ends the line that begins here. @return where the next one begins; the end of the text where there is none */
static char *cut_line(char *line)
{
	char *end = strchr(line, '\n');
	if (end == NULL)
		return line + strlen(line);
	*end = '\0';
	return end + 1;
}

/* A server's words may end in an anchor as well, which the finding has already. */
static void take_out_anchor(char *words)
{
	char *anchor = strstr(words, RUNBOOK), *end = anchor != NULL ? strchr(anchor, ')') : NULL;
	if (end != NULL)
		memmove(anchor, end + 1, strlen(end + 1) + 1);
}

static void cut(struct weir_finding *finding)
{
	char *means = cut_line(finding->words), *remedy = cut_line(means), *runbook = strstr(remedy, RUNBOOK);
	take_out_anchor(finding->words);
	finding->what = finding->words;
	finding->means = means;
	finding->remedy = remedy;
	finding->runbook = "";
	if (runbook == NULL)
		return;
	*runbook = '\0';
	runbook += strlen(RUNBOOK);
	char *end = strchr(runbook, ')');
	if (end != NULL)
		*end = '\0';
	finding->runbook = runbook;
}

/* Allocated. */
static char *print(const char *words, va_list args)
{
	char *text = NULL;
	if (vasprintf(&text, words, args) < 0)
		abort(); /* there is no memory: as weir_alloc() */
	return text;
}

/* How long the words are up to here. */
static size_t printed_length(const char *words, size_t length, va_list *args)
{
	char *part = strndup(words, length);
	va_list copy;
	if (part == NULL)
		abort();
	va_copy(copy, *args);
	int printed = vsnprintf(NULL, 0, part, copy);
	va_end(copy);
	free(part);
	return printed > 0 ? (size_t)printed : 0;
}

/*
 * Allocated. The line breaks are those of `words` alone: what a parameter brings, such as a server's words, may have
 * several lines, and would be taken for the next part.
 */
static char *print_lines(const char *words, va_list *args)
{
	struct weir_text lines = {0};
	va_list copy;
	va_copy(copy, *args);
	char *text = print(words, copy);
	va_end(copy);
	size_t at = 0;
	for (const char *end = words; *end != '\0'; end += *end == '\n') {
		end += strcspn(end, "\n");
		for (size_t line_end = printed_length(words, (size_t)(end - words), args); at < line_end; at++)
			if (text[at] == '\n')
				weir_text_puts(&lines, "; ");
			else if (text[at] != '\r')
				weir_text_append(&lines, &text[at], 1);
		if (*end == '\n')
			weir_text_append(&lines, &text[at++], 1);
	}
	weir_text_append(&lines, "", 1);
	free(text);
	return lines.at;
}

void weir_findings_add(struct weir_findings *findings, enum weir_severity severity, const char *check,
                       const char *words, ...)
{
	va_list args;
	va_start(args, words);
	char *text = print_lines(words, &args);
	va_end(args);
	findings->at = weir_realloc(findings->at, findings->count + 1, sizeof *findings->at);
	struct weir_finding *finding = &findings->at[findings->count++];
	*finding = (struct weir_finding){.severity = severity, .check = check, .words = text};
	cut(finding);
}

void weir_findings_damaged(struct weir_findings *findings, const char *check, const struct weir_error *error,
                           const char *means)
{
	size_t what = strlen(error->text);
	const char *remedy = weir_damage_find_remedy(error->text, &what);
	if (remedy != NULL) {
		weir_findings_add(findings, WEIR_SEVERITY_PAGE, check, "%.*s\n%s\n%s", (int)what, error->text, means, remedy);
		return;
	}
	const char *anchor = strstr(error->text, RUNBOOK);
	weir_findings_add(findings, WEIR_SEVERITY_PAGE, check, "%s\n%s\ndo what it says, then start again%s", error->text,
	                  means, anchor != NULL ? anchor : " (runbook: process-down)");
}

void weir_findings_good(struct weir_findings *findings, const char *words, ...)
{
	va_list args;
	va_start(args, words);
	char *text = print_lines(words, &args);
	va_end(args);
	weir_text_printf(&findings->good, "%s\n", text);
	free(text);
}

void weir_findings_take(struct weir_findings *findings, struct weir_findings *from)
{
	findings->at = weir_realloc(findings->at, findings->count + from->count + 1, sizeof *findings->at);
	for (size_t i = 0; i < from->count; i++)
		findings->at[findings->count++] = from->at[i];
	weir_text_append(&findings->good, from->good.at, from->good.length);
	findings->unasked |= from->unasked;
	from->count = 0;
	weir_findings_deinit(from);
}

void weir_findings_sort(struct weir_findings *findings)
{
	for (size_t i = 1; i < findings->count; i++) {
		struct weir_finding finding = findings->at[i];
		size_t place = i;
		for (; place > 0 && findings->at[place - 1].severity > finding.severity; place--)
			findings->at[place] = findings->at[place - 1];
		findings->at[place] = finding;
	}
}

size_t weir_findings_count(const struct weir_findings *findings, enum weir_severity severity)
{
	size_t count = 0;
	for (size_t i = 0; i < findings->count; i++)
		count += findings->at[i].severity <= severity;
	return count;
}

void weir_finding_write(struct weir_text *text, const struct weir_finding *finding, bool coloured)
{
	const char *colour = coloured ? colours[finding->severity] : "";
	weir_text_printf(text, "%s%-6s%s  %s\n", colour, names[finding->severity], colour[0] != '\0' ? "\033[0m" : "",
	                 finding->what);
	if (finding->means[0] != '\0')
		weir_text_printf(text, "        %s\n", finding->means);
	if (finding->remedy[0] != '\0')
		weir_text_printf(text, "        do: %s\n", finding->remedy);
	if (finding->runbook[0] != '\0')
		weir_text_printf(text, "        (runbook: %s)\n", finding->runbook);
}
