/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of keys that are asked about, what operators' commands hold for them now: the key's own block or allow, else that of
 * the narrowest network that it lies in. A network's block has a decision of its own, which is then asked about, too.
 */
#ifndef DEPLOY_WEIR_EXPLAIN_ORDERS_H
#define DEPLOY_WEIR_EXPLAIN_ORDERS_H

#include "deploy/weir/explain/patience.h"
#include "deploy/weir/explain/question.h"
#include "deploy/weir/inspect/overrides_read.h"

struct orders {
	struct overrides_read read;       /* without what it gives to */
	const struct weir_policy *policy; /* the newest; borrowed */
	struct question *questions;       /* by keys get their order; with room for as many more, about networks */
	size_t count;                     /* of them; those about networks are added */
	int64_t now_ms;                   /* what ends later is in force */
	size_t asked, partition;          /* internal */
};

/** What cannot be known is said in the questions. @param read->until_ms  is set */
void orders_find(struct orders *orders);

#endif
