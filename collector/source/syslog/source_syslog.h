/* SPDX-License-Identifier: Apache-2.0 */
/* Syslog messages from services, as a source. */
#ifndef COLLECTOR_SOURCE_SYSLOG_H
#define COLLECTOR_SOURCE_SYSLOG_H

#include "collector/source/source.h"

/*
 * { "type": "syslog", "listen": "udp://127.0.0.1:514" }: each datagram, or each message of each TCP connection, is a
 * line. Its header is completed (syslog_line.h), so the format needs no clock.
 *
 * A message cannot be read again (source_unreplayable.h). With `once` it does not listen, as there is no end to read
 * to.
 */
extern const struct source_ops source_syslog_ops;

/* The indexes of a status's `own` counters, which count messages. */
enum {
	SYSLOG_RECEIVED,  /* received from the network */
	SYSLOG_DROPPED,   /* dropped by the kernel, which had no room */
	SYSLOG_MALFORMED, /* received, but with an unreadable header, truncated or too long */
	SYSLOG_REFUSED, /* datagrams and connections of senders that "from" does not name, and connections that had no room */

};

#endif
