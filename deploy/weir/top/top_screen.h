/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal's alternate screen: its previous contents are restored, and keys are read one by one. */
#ifndef DEPLOY_WEIR_TOP_TOP_SCREEN_H
#define DEPLOY_WEIR_TOP_TOP_SCREEN_H

#include "common/base/text.h"

#include <stdbool.h>
#include <termios.h>

struct top_screen {
	bool keys; /* standard input is a terminal, too */
	struct termios before;
	unsigned rows, columns;
};

/** Whether there is one: standard output is a terminal that can place its cursor. */
bool top_screen_there(void);
void top_screen_enter(struct top_screen *screen);
/** As it was before. */
void top_screen_leave(struct top_screen *screen);
/** Looks how large it is; true where that has changed. */
bool top_screen_resized(struct top_screen *screen);
/** Shows the lines from the top on, as many as there is room for. */
void top_screen_show(const struct top_screen *screen, const struct weir_text *lines);
/** A key, or 0 where none was pressed for so long; waits no longer when a signal comes. */
char top_screen_key(const struct top_screen *screen, int wait_ms);

#endif
