/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "message repeated 3 times: [ MESSAGE]": what rsyslog writes for messages that are equal to the one before, where it is
 * told to reduce them ($RepeatedMsgReduction, as on Ubuntu).
 *
 * rsyslog writes it as the program's whole message. So the words count only at the very beginning of a message, and with
 * the bracket at its very end: who writes a part of a message, such as a user's name, cannot forge them.
 */
#ifndef COLLECTOR_REPEATED_LINE_H
#define COLLECTOR_REPEATED_LINE_H

#include "collector/format/line_text.h"
#include "common/record/record.h"

enum {
	REPEATED_CUT_BYTES = 800, /* rsyslog cuts what it repeats */
};

/* Takes a number from 1 on; more than WEIR_RECORD_TIMES_MAX count as many. False: there is none of up to nine digits. */
static inline bool repeated_times(struct weir_span *text, uint32_t *times)
{
	struct weir_span number;
	if (text_digits(text, &number) == 0 || number.length > 9)
		return false;
	*times = 0;
	for (uint32_t i = 0; i < number.length; i++)
		*times = *times * 10 + (uint32_t)(number.at[i] - '0');
	*times = *times < WEIR_RECORD_TIMES_MAX ? *times : WEIR_RECORD_TIMES_MAX;
	return *times > 0;
}

/*
 * Leaves the message within, and gives how often it came. Any other message is left as it is, and came once.
 * @param cut  rsyslog cut it: what stands at its end may be a stranger's
 */
static inline uint32_t repeated_take(struct weir_span *message, bool *cut)
{
	struct weir_span text = *message;
	uint32_t times;
	*cut = false;
	if (!text_take(&text, "message repeated ") || !repeated_times(&text, &times) || !text_take(&text, " times: [") ||
	    !text_cut(&text, "]"))
		return 1;
	*cut = text.length >= REPEATED_CUT_BYTES;
	while (text_take(&text, " "))
		;
	*message = text;
	return times;
}

#endif
