/* SPDX-License-Identifier: Apache-2.0 */
/* What services send by syslog, as a source. */
#ifndef COLLECTOR_SOURCE_SYSLOG_H
#define COLLECTOR_SOURCE_SYSLOG_H

#include "collector/source/source.h"

/*
 * { "type": "syslog", "listen": "udp://127.0.0.1:514" }: each datagram, or each message of each TCP connection, is a
 * line; its head is completed (syslog_line.h), so the format needs no clock.
 *
 * A message cannot be asked for again (source_unreplayable.h). In `once` nothing is opened: there is no end to read to.
 */
extern const struct source_ops source_syslog_ops;

/* What its status counts by itself, in messages. */
enum {
	SYSLOG_RECEIVED,  /* taken off the network */
	SYSLOG_DROPPED,   /* that the kernel had no room for */
	SYSLOG_MALFORMED, /* of those received: without a head that can be read, or badly framed */
	SYSLOG_REFUSED,   /* datagrams and connections of senders that "from" does not name */
};

#endif
