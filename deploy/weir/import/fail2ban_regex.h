/* SPDX-License-Identifier: Apache-2.0 */
/* One of fail2ban's expressions, in Python's words and with fail2ban's tags, as PCRE2 has it. */
#ifndef DEPLOY_WEIR_IMPORT_FAIL2BAN_REGEX_H
#define DEPLOY_WEIR_IMPORT_FAIL2BAN_REGEX_H

#include "common/base/text.h"

#include <stdbool.h>

/* Where the content of a prefregex begins and ends in its translation. */
#define REGEX_CONTENT_BEGIN '\2'
#define REGEX_CONTENT_END '\3'

struct regex {
	struct weir_text text; /* without its first ^ */
	bool anchored;         /* it had one */
	bool has_address, has_nofail;
	bool has_time_place; /* it needs the "[]" that is left where the time was cut out */
};

/**
 * @param nofail  the name of the group that says that a line is no failure; NULL: such tags say nothing, as in filters
 *                that put no lines together by <F-MLFID>
 * @param timed   the line still has its time, in the group "time"
 * @return NULL: done; else why it cannot be translated, in words that go behind "it"
 */
const char *regex_translate(const char *python, const char *nofail, bool timed, struct regex *regex);
void regex_deinit(struct regex *regex);

/** Whether an expression can be read by weir; NULL: yes, else why not. It needs no time. */
const char *regex_refused(struct weir_span expression, struct weir_error *error);

#endif
