/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server gives as a list of addresses, as the lines that a file of "exempt" has.
 *
 * It is text with an address, a network or a range on each line, where '#' and ';' begin remarks; or JSON as publishers
 * of their crawlers' or services' networks write it: networks under "ipv4Prefix", "ipv6Prefix", "ip_prefix" and
 * "ipv6_prefix" at any depth, or a list of texts.
 *
 * A stranger's list exempts addresses and nothing else: a word is a mistake in it, and so is a network wider than
 * WEIR_EXEMPT_BODY_PREFIX4 or WEIR_EXEMPT_BODY_PREFIX6. All its networks together may be as wide as WEIR_EXEMPT_BODY_ALL4 and
 * WEIR_EXEMPT_BODY_ALL6 say: with more, few would be counted any more.
 */
#ifndef WEIR_EXEMPT_BODY_H
#define WEIR_EXEMPT_BODY_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/bytes/address.h"

enum {
	WEIR_EXEMPT_BODY_MAX_BYTES = 16 << 20,
	WEIR_EXEMPT_BODY_NETWORKS_MAX = 1000000,
	WEIR_EXEMPT_BODY_PREFIX4 = 8,
	WEIR_EXEMPT_BODY_PREFIX6 = 16,
	WEIR_EXEMPT_BODY_ALL4 = 4,  /* a sixteenth of IPv4 */
	WEIR_EXEMPT_BODY_ALL6 = 14, /* four of the widest networks */
	WEIR_EXEMPT_BODY_MISTAKES_TOLD = 3,
};

/* Zero-initialised; deinitialised by weir_exempt_body_deinit(), after a failure, too. */
struct weir_exempt_body {
	struct weir_text lines; /* a network each, ended by '\n' */
	uint32_t networks;
	struct weir_network *spaces; /* the same, for what they come to */
	uint32_t space_count, space_room;
	uint32_t entries, bad;     /* entries: good ones */
	struct weir_text mistakes; /* the first bad ones: "line 3: words; line 7: words" */
};

/**
 * Reads one.
 *
 * @return WEIR_OK: there is an entry, there are not more bad ones than good ones, and these are not too wide together;
 *         WEIR_INVALID: it is no list, in words that continue "the answer "
 */
WEIR_MUST_USE enum weir_status weir_exempt_body_read(struct weir_span bytes, struct weir_exempt_body *body,
                                                     struct weir_error *error);
void weir_exempt_body_deinit(struct weir_exempt_body *body);

#endif
