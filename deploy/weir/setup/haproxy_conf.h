/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of a configuration of HAProxy where weir's lines go: its sections, and the socket by which a map is kept.
 *
 * HAProxy carries out the http-request rules of a frontend in their order, behind those of its defaults. What looks up a
 * client's address before a set-src of the section looks up whoever connects: behind a CDN, the CDN.
 */
#ifndef DEPLOY_WEIR_SETUP_HAPROXY_CONF_H
#define DEPLOY_WEIR_SETUP_HAPROXY_CONF_H

#include "common/base/span.h"
#include "deploy/weir/setup/setup_files.h"

#define HAPROXY_CONF_FILE "/etc/haproxy/haproxy.cfg"

enum { HAPROXY_CONF_SECTIONS_MAX = 1024 };

struct haproxy_section {
	char kind;             /* 'g'lobal, 'd'efaults, 'f'rontend (or listen), 'b'ackend, 'o'ther */
	bool http;             /* of mode http */
	bool looks_up;         /* an http-request rule of weir's asks for src */
	bool looks_up_early;   /* and is followed by one that sets it */
	bool sets_src;         /* an http-request rule does */
	unsigned depth;        /* of .if blocks, at its first line */
	bool open;             /* its place is the end of the .if block that it is in */
	size_t end;            /* the end of a line behind which its lines are put */
	struct weir_span name; /* borrowed from the text; empty: it has none */
};

struct haproxy_conf {
	struct haproxy_section sections[HAPROXY_CONF_SECTIONS_MAX];
	size_t count;
	unsigned depth;               /* of .if blocks */
	const char *group;            /* that weir runs as, by its units; NULL: there is none here */
	char socket[WEIR_PATH_BYTES]; /* of level admin, which weir may open; "": none */
};

/** Reads what is to stand in a file. @param conf  zero-initialised but for its group; its names last as long as the text */
void haproxy_conf_read(struct haproxy_conf *conf, const struct setup_file *file);

/** The first section that sets a client's address after weir's lines have looked it up; NULL: none does. */
const struct haproxy_section *haproxy_conf_find_late(const struct haproxy_conf *conf);

#endif
