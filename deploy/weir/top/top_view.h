/* SPDX-License-Identifier: Apache-2.0 */
/* A sample of `weir top` as lines for people. */
#ifndef DEPLOY_WEIR_TOP_TOP_VIEW_H
#define DEPLOY_WEIR_TOP_TOP_VIEW_H

#include "common/base/text.h"
#include "common/json/json.h"

/* How the lines are written: for a screen they are cut at its edge, erased behind, and their ends are \r\n. */
struct top_form {
	bool screen, colours;
	unsigned columns; /* of the screen */
};

/**
 * Appends the table.
 *
 * @param source  its name
 * @param note    a line below the head: what is wrong just now; NULL: nothing
 */
void top_view_put(struct weir_text *text, const struct top_form *form, const char *source, const json_t *sample,
                  const char *note);

/** The lines that are always there: what a screen has beside its rows of keys and blocks, and of zones. */
enum { TOP_VIEW_LINES = 11 };

#endif
