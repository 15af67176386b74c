/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cluster's log has and no limiter has judged: of that, the topics of decisions say nothing yet. A limiter's last
 * seconds are not in a checkpoint, so these never count as long as one is running.
 */
#ifndef DEPLOY_WEIR_INSPECT_UNJUDGED_H
#define DEPLOY_WEIR_INSPECT_UNJUDGED_H

#include "deploy/weir/backend/backend.h"

enum { UNJUDGED_WORDS_BYTES = 512 };

struct unjudged {
	bool nobody; /* no limiter is running: nothing is judged from now on either */
	bool waits;  /* something is not judged, or that is not known: who is blocked is not known either */
	char words[UNJUDGED_WORDS_BYTES]; /* of both, as a clause */
};

/**
 * Asks broker and store, for some seconds at most. Of one machine's state nothing is said.
 *
 * @param backend  of a cluster with its store and a topic
 */
void unjudged_look(const struct backend *backend, struct unjudged *unjudged);

#endif
