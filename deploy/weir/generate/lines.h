/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as lines of a log: one function a format, each line such that weir
 * reads the event back from it.
 */
#ifndef DEPLOY_WEIR_GENERATE_LINES_H
#define DEPLOY_WEIR_GENERATE_LINES_H

#include "deploy/weir/generate/traffic.h"

enum { GENERATE_LINE_MAX_BYTES = 2048 };

struct generate_lines;

/** The names of the formats, NULL after the last. */
extern const char *const generate_format_names[];

/**
 * @param format  its place among the names
 * @param site    borrowed
 * @param seed    changes the users' addresses
 * @param ipv6    share of the users with IPv6 addresses, in 2^-32
 */
struct generate_lines *generate_lines_new(int format, const struct generate_site *site, uint64_t seed, uint64_t ipv6);
void generate_lines_free(struct generate_lines *lines);

/** What a file of this format begins with: a line with its newline, or "". */
const char *generate_lines_header(const struct generate_lines *lines);

/** Writes a line with its newline; gives its end. @param at  room for
 * GENERATE_LINE_MAX_BYTES */
char *generate_lines_put(struct generate_lines *lines, const struct generate_event *event, char *at);

#endif
