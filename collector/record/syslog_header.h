/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heads of syslog messages: RFC 5424, and what is written in the manner of RFC 3164.
 *
 *     <34>1 2003-10-11T22:14:15.003Z host su 1234 ID47 [id name="value"] message
 *     <34>Oct 11 22:14:15 host su[1234]: message
 *     <34>2003-10-11T22:14:15.003+02:00 host su[1234]: message      as rsyslog forwards
 *     Oct 11 22:14:15 host <auth.info> su[1234]: message            as BSD's syslogd writes, also before the host
 *     Fri Oct 11 22:14:15 2024 auth.info su[1234]: message          as OpenWrt's logread prints
 *     2003-10-11 22:14:15 host [su]: message
 *     <166>Oct 11 2024 22:14:15 host : %ASA-6-302013: message       as Cisco's ASA sends, also without the host
 *     <189>000123: host: *Oct 11 22:14:15.123 UTC: %SYS-5-CONFIG_I: message                as its IOS does
 *
 * In files the priority is missing; senders leave out hosts, tags and times. Whatever is there is found.
 */
#ifndef COLLECTOR_SYSLOG_HEADER_H
#define COLLECTOR_SYSLOG_HEADER_H

#include "common/base/span.h"

enum { SYSLOG_PRIORITY_MAX = 191 };

/* Each span points into the line; at is NULL where the head has no such part, or "-" for it. */
struct syslog_header {
	int priority;          /* facility * 8 + severity, also where they are words; -1: none was given */
	bool modern;           /* RFC 5424 */
	struct weir_span time; /* as it is written: "Oct 11 22:14:15" has no year */
	bool unset;            /* who sent it says that his clock is not set: when it came is better than that time */
	struct weir_span host, app, procid, msgid;
	struct weir_span data; /* structured data, with its brackets */
	struct weir_span message;
};

/**
 * Reads a message's head.
 *
 * @param line    borrowed; no byte outside it is read
 * @param header  filled also on failure, but means nothing then
 * @return false: it has neither a priority nor a time, or begins as RFC 5424 says and does not continue so
 */
bool syslog_header_parse(struct weir_span line, struct syslog_header *header);

/** "auth", "local7"; "err", "info": as syslog.conf writes them. @param priority  0..SYSLOG_PRIORITY_MAX */
const char *syslog_facility(int priority);
const char *syslog_severity(int priority);

/* One parameter of structured data. */
struct syslog_param {
	struct weir_span id, name;
	struct weir_span value; /* still with its backslashes */
	bool escaped;           /* there are some */
};

/**
 * The next parameter.
 *
 * @param data   what syslog_header_parse() gave, then what this left of it
 * @param id     of the element that data lies in: an empty span at first
 * @return false: there are no more
 */
bool syslog_data_next(struct weir_span *data, struct weir_span *id, struct syslog_param *param);

/** Takes the backslashes off a value: `\"`, `\\` and `\]`. Gives the length; out has room for value.length bytes. */
uint32_t syslog_unescape(struct weir_span value, char *out);

#endif
