/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that are refused: a wrong password, a gateway that does not say what it asks about, a zone that is not there.
 *
 * Whoever asks is told why, but a gateway keeps that to itself, and its clients get an error. So each is counted, by surface
 * and reason, and the log says what is wrong. A reason of a surface is one trouble: it is told as such (common/log/log.h), and
 * is over when none was refused for it in REFUSALS_OVER_MS. So nobody can fill the log, however much he asks.
 *
 * @thread any
 */
#ifndef LIMITER_CHECK_REFUSALS_H
#define LIMITER_CHECK_REFUSALS_H

#include "common/log/log.h"
#include "limiter/check/link.h"

enum { REFUSALS_OVER_MS = 10 * 60 * 1000 };

enum refusal_surface { REFUSAL_RESP, REFUSAL_HTTP, REFUSAL_GRPC, REFUSAL_SURFACES };

enum refusal_reason {
	REFUSAL_LOGIN,    /* the password is wrong or missing */
	REFUSAL_RIGHTS,   /* the user may not ask in the zone */
	REFUSAL_PROTOCOL, /* what came is not of the protocol, or too large */
	REFUSAL_SUBJECT,  /* a gateway does not say what its client asked for */
	REFUSAL_CLIENT,   /* nor who that is */
	REFUSAL_UNKNOWN,  /* there is no such path, method or command */
	REFUSAL_ASKED, /* what is asked cannot be: a zone that is not there, a key that is none of it, a text that cannot be read */
	REFUSAL_REASONS
};

struct refusals;

/** @param log  borrowed @return refusals_free() */
struct refusals *refusals_new(const struct weir_log *log);
/** When the surfaces are freed. NULL is fine. */
void refusals_free(struct refusals *refusals);

/**
 * Counts one and tells of it.
 *
 * @param refusals  NULL: nobody is told
 * @param link      of whoever asked
 * @param by        what it asked by, a constant: a path, a method; NULL: the surface has no such
 * @param what      what is wrong; its first letter is written small
 * @param detail    where, or what to do; NULL: `what` says it
 */
void refusals_tell(struct refusals *refusals, enum refusal_surface surface, enum refusal_reason reason,
                   const struct link *link, const char *by, const char *what, const char *detail);
/** The same of a connection that spoke no TLS where it must, if it is one that has just ended so. */
void refusals_tell_no_tls(struct refusals *refusals, enum refusal_surface surface, const struct link *link);
/** Once a second or so: says what is over. */
void refusals_look(struct refusals *refusals);

/** The word of a metric's label. */
const char *refusal_surface_name(enum refusal_surface surface);
const char *refusal_reason_name(enum refusal_reason reason);
/** @param refusals  NULL: 0 */
uint64_t refusals_count(const struct refusals *refusals, enum refusal_surface surface, enum refusal_reason reason);

#endif
