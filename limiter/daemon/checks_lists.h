/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is exempt from checks in a limiter that has no other part that knows: lists that other servers have, of
 * which copies are kept, and robots that DNS confirms, by `collector.list_interval` and `collector.resolver`.
 */
#ifndef LIMITER_CHECKS_LISTS_H
#define LIMITER_CHECKS_LISTS_H

#include "common/config/config.h"
#include "common/exempt/exempt_list.h"

struct checks_lists;

/** @param state  the folder in which a folder of copies is made; NULL: no list is fetched. @param config, log  borrowed */
struct checks_lists *checks_lists_new(const struct weir_config *config, const char *state, const struct weir_log *log);
/** NULL is fine. */
void checks_lists_free(struct checks_lists *lists);

/** To be matched by; borrowed. */
struct weir_exempt_lists *checks_lists_get(const struct checks_lists *lists);

/**
 * Has the lists fetched that a policy names, and waits for none; reads those files anew that have changed a second ago, which
 * takes seconds where they are long. NULLs are fine.
 *
 * @thread always the same; no worker
 */
void checks_lists_look(struct checks_lists *lists, const struct weir_policy *newest);

/** Appends the metrics of what is fetched and asked. @param lists  NULL: nothing is @thread any */
void checks_lists_metrics(const struct checks_lists *lists, struct weir_text *page);

#endif
