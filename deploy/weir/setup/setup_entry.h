/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of a configuration's list "gateways", put into its text or taken out: every other byte stays, as people
 * write comments of blanks and order. Comments of the kinds // and slash-star are passed over.
 */
#ifndef DEPLOY_WEIR_SETUP_SETUP_ENTRY_H
#define DEPLOY_WEIR_SETUP_SETUP_ENTRY_H

#include "common/base/span.h"
#include "common/base/text.h"

/**
 * Puts an entry behind the last one of the list, which is made where there is none.
 *
 * @param text   a configuration that parses; changed
 * @param entry  JSON
 * @return false: its text is not as it must be; nothing was changed
 */
bool setup_entry_put(struct weir_text *text, const char *entry);

/** Takes the entry at a place of the list out; with the last one the list goes. @return as setup_entry_put() */
bool setup_entry_take(struct weir_text *text, size_t place);

#endif
