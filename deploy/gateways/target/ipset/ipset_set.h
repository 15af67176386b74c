/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ipset -t list` says of a set, and keys as its elements. The kernel counts timeouts in seconds, up to 2147483 of
 * them: what ends later stays until it is removed.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_IPSET_IPSET_SET_H
#define DEPLOY_GATEWAYS_TARGET_IPSET_IPSET_SET_H

#include "common/base/status.h"
#include "common/base/text.h"
#include "common/bytes/address.h"

enum {
	IPSET_NAME_BYTES = 32,
	IPSET_ELEMENT_BYTES = WEIR_ADDRESS_TEXT_BYTES + 4,
};

#define IPSET_TIMEOUT_MOST_MS INT64_C(2147483000)

struct ipset_set {
	bool v6;
	bool networks; /* hash:net, else hash:ip */
	uint32_t most; /* elements */
};

/** Whether it is a name that commands take as one. */
bool ipset_is_name(struct weir_span name);

/** Reads a listing. @return WEIR_OK; WEIR_INVALID: the words say what the set must be */
WEIR_MUST_USE enum weir_status ipset_set_read(const char *name, struct weir_span listing, struct ipset_set *set,
                                              struct weir_error *error);

/** A key as an element's text; false: it cannot be one of this set. @param any_size  as network_key() */
bool ipset_set_element(const struct ipset_set *set, struct weir_span key, bool any_size,
                       char text[IPSET_ELEMENT_BYTES]);

/** Seconds until a block ends, rounded up; 0: the kernel is not to end it. */
uint32_t ipset_timeout_s(int64_t until_ms, int64_t now_ms);

#endif
