/* SPDX-License-Identifier: Apache-2.0 */
/* Who sits at the terminal: the author of what a command writes. */
#ifndef DEPLOY_WEIR_TERMINAL_AUTHOR_H
#define DEPLOY_WEIR_TERMINAL_AUTHOR_H

#include <stddef.h>

/**
 * Names who gives a command: who has logged in, else whose process it is.
 *
 * @param by  a name that was given instead; NULL: none
 */
void author_name(const char *by, char *name, size_t bytes);

#endif
