/* SPDX-License-Identifier: Apache-2.0 */
/* What was found out, as JSON for programs and as text for people. */
#ifndef DEPLOY_WEIR_EXPLAIN_ANSWER_H
#define DEPLOY_WEIR_EXPLAIN_ANSWER_H

#include "deploy/weir/explain/question.h"

/** Appends one line: common/specification/output.md describes it. */
void answer_json(struct weir_text *text, const struct question *question);

/** Appends the decision in words, then its events. @param columns  of the terminal; 0: lines are not cut */
void answer_words(struct weir_text *text, const struct question *question, unsigned columns);

#endif
