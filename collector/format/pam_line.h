/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PAM's modules say of a login that failed: "authentication failure; logname= uid=0 euid=0 tty=ssh ruser=NAME
 * rhost=ADDRESS[  user=NAME]".
 */
#ifndef COLLECTOR_PAM_LINE_H
#define COLLECTOR_PAM_LINE_H

#include "collector/format/format_ready.h"

/*
 * The host and what stands behind its word. READY_AMBIGUOUS: a stranger wrote what may be the host.
 * @param named  ruser is a stranger's name; else it has one only where it is not empty
 */
static inline enum ready_outcome pam_host(struct weir_span text, bool named, struct weir_span *host,
                                          struct weir_span *behind)
{
	const char *at = text_find(text, " rhost="), *ruser = text_find(text, " ruser=");
	*host = *behind = (struct weir_span){0};
	if (at == NULL)
		return READY_OK;
	bool sole = !named && (ruser == NULL || at == ruser + 7);
	*behind = text_from(text, at + 7);
	*host = text_word(behind);
	for (struct weir_span more = *behind; !sole;) {
		const char *other = text_find(more, "rhost=");
		if (other == NULL)
			break;
		more = text_from(more, other + 6);
		struct weir_span word = text_word(&more);
		if (!weir_span_equal(word, *host))
			return READY_AMBIGUOUS;
	}
	while (text_take(behind, " "))
		;
	return READY_OK;
}

#endif
