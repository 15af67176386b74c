/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault for each name that ever had a problem. They are few, so they are
 * searched linearly. A name that is no longer among the statuses (such as a
 * pattern that meanwhile matches a file) no longer has a problem.
 */
#include "collector/source/source_reports.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

struct report {
	size_t place; /* index of the source: names are unique within one */
	char *name;
	struct weir_fault fault;
	bool seen; /* it has a problem in the present statuses */
	bool told; /* it was logged that it is not read exactly once */
};

struct source_reports {
	const struct weir_log *log;
	struct report *reports;
	size_t count;
	struct source_status *statuses; /* `room` of them */
	size_t room;
	uint32_t looks; /* how many there were */
};

/* Of sources with very many streams all are looked at now and then. */
enum { LOOKS_FOR_ALL = 16 };

struct source_reports *source_reports_new(const struct weir_log *log)
{
	struct source_reports *reports = weir_alloc(1, sizeof *reports);
	reports->log = log;
	reports->statuses = weir_alloc(SOURCE_REPORTS_MAX, sizeof *reports->statuses);
	reports->room = SOURCE_REPORTS_MAX;
	return reports;
}

void source_reports_free(struct source_reports *reports)
{
	if (reports == NULL)
		return;
	for (size_t i = 0; i < reports->count; i++)
		free(reports->reports[i].name);
	free(reports->reports);
	free(reports->statuses);
	free(reports);
}

static struct report *report_of(struct source_reports *reports, size_t place, const char *name)
{
	for (size_t i = 0; i < reports->count; i++)
		if (reports->reports[i].place == place && strcmp(reports->reports[i].name, name) == 0)
			return &reports->reports[i];
	reports->reports = weir_realloc(reports->reports, reports->count + 1, sizeof *reports->reports);
	struct report *made = &reports->reports[reports->count++];
	*made = (struct report){.place = place, .name = weir_copy(name, strlen(name))};
	return made;
}

/* Logs once that a stream does not read each of its lines exactly once. */
static void log_guarantee(struct source_reports *reports, struct report *report, enum source_guarantee guarantee)
{
	if (!report->told)
		weir_log(reports->log, WEIR_LOG_INFO, "collector", "%s: %s: %s", report->name, source_guarantee_text(guarantee),
		         guarantee == SOURCE_AT_MOST_ONCE ? "lines cannot be read again after a crash"
		                                          : "lines that are read or sent again count again");
	report->told = true;
}

/* What is unread costs verdicts; what is not there costs none. */
static void raise(const struct source_reports *reports, struct report *report, const struct source_status *status)
{
	struct weir_text words = {0};
	source_words_problem(&words, status);
	weir_fault_raise_at(
		&report->fault, reports->log, status->absent ? WEIR_LOG_WARNING : WEIR_LOG_ERROR, "collector",
		status->reads_on ? "%.*s. Those lines were not judged; reading goes on (runbook: lines-lost)"
		: status->absent
			? "%.*s. Looking for it again; there is nothing to judge until it is there (runbook: source-unreadable)"
			: "%.*s. Trying again; until then its new lines are not judged, and are lost if they are deleted before "
			  "(runbook: source-unreadable)",
		(int)words.length, words.at);
	weir_text_deinit(&words);
}

static void tell(struct source_reports *reports, size_t place, struct source *source)
{
	bool all = reports->looks % LOOKS_FOR_ALL == 1;
	size_t room = all ? source->ops->status(source, NULL, 0) : SOURCE_REPORTS_MAX;
	if (room > reports->room) {
		reports->statuses = weir_realloc(reports->statuses, room, sizeof *reports->statuses);
		reports->room = room;
	}
	size_t count = source->ops->status(source, reports->statuses, room);
	for (size_t i = 0; i < reports->count; i++)
		reports->reports[i].seen = false;
	for (size_t i = 0; i < count && i < room; i++) {
		const struct source_status *status = &reports->statuses[i];
		enum source_guarantee guarantee = status->guarantee != 0 ? status->guarantee : source->ops->guarantee;
		if (guarantee != SOURCE_EXACTLY_ONCE && !status->whole)
			log_guarantee(reports, report_of(reports, place, status->name), guarantee);
		if (status->problem[0] == '\0')
			continue;
		struct report *report = report_of(reports, place, status->name);
		report->seen = true;
		raise(reports, report, status);
	}
	for (size_t i = 0; i < reports->count; i++)
		if (reports->reports[i].place == place && !reports->reports[i].seen && count <= room)
			weir_fault_clear(&reports->reports[i].fault, reports->log, "collector");
}

void source_reports_tell(struct source_reports *reports, struct source *const *sources, size_t count)
{
	reports->looks++;
	for (size_t place = 0; place < count; place++)
		if (sources[place] != NULL)
			tell(reports, place, sources[place]);
}
