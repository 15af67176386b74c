/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a check found: each thing that is wrong with what it means and what to do,
 * and in a line each what is good. `weir doctor` and the daemons' --check collect
 * these from the same checks.
 */
#ifndef WEIR_COMMON_FINDINGS_H
#define WEIR_COMMON_FINDINGS_H

#include "common/base/text.h"

#include <stdbool.h>

/* As alerts have it. A note is worth knowing, and nothing is wrong because of it. */
enum weir_severity {
	WEIR_SEVERITY_PAGE,   /* verdicts or data are being lost, or are about to be */
	WEIR_SEVERITY_TICKET, /* it can wait for the morning */
	WEIR_SEVERITY_NOTE,
};

struct weir_finding {
	enum weir_severity severity;
	const char *check;   /* its subject: "topics"; borrowed */
	char *words;         /* owned: the next four point into it */
	const char *what;    /* what is wrong, with the name of the thing */
	const char *means;   /* for verdicts and data */
	const char *remedy;  /* a command as it runs, or a sentence */
	const char *runbook; /* the heading of deploy/RUNBOOK.md; "": none */
};

/* Zero-initialised is empty. Owned by one thread. */
struct weir_findings {
	struct weir_finding *at;
	size_t count;
	struct weir_text good; /* lines */
	bool unasked; /* something was not asked for lack of time, which a note says: nothing is proved to be well */
};

void weir_findings_deinit(struct weir_findings *findings);

/**
 * Adds what is wrong.
 *
 * @param check  borrowed for as long as the findings are used
 * @param words  three lines: what is wrong; what it means; what to do, which ends with "(runbook: HEADING)" where there is
 *               one. A line break in a parameter becomes "; "
 */
void weir_findings_add(struct weir_findings *findings, enum weir_severity severity, const char *check,
                       const char *words, ...) WEIR_PRINTF(4, 5);

/**
 * Adds a file that cannot be read, at which a start ends.
 *
 * @param error  as the start says it: its remedy (file_damage.h), where it has one, becomes that of the finding
 * @param means  what it costs: "Nothing is judged when it starts"
 */
void weir_findings_damaged(struct weir_findings *findings, const char *check, const struct weir_error *error,
                           const char *means);

/** Adds a line about what is good. */
void weir_findings_good(struct weir_findings *findings, const char *words, ...) WEIR_PRINTF(2, 3);

/** Moves what `from` has behind what is there. */
void weir_findings_take(struct weir_findings *findings, struct weir_findings *from);

/** Puts the worst first; what is equally bad stays in its order. */
void weir_findings_sort(struct weir_findings *findings);

/** How many are at least so bad. */
size_t weir_findings_count(const struct weir_findings *findings, enum weir_severity severity);

/** Appends one for people: four lines at most. @param coloured  whether the severity may have a colour */
void weir_finding_write(struct weir_text *text, const struct weir_finding *finding, bool coloured);

/** "page", "ticket", "note". */
const char *weir_severity_name(enum weir_severity severity);

#endif
