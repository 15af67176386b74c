/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The imaginary site that synthetic logs tell of: its pages with what they
 * weigh and how often they are asked for, the browsers of its visitors, the
 * pages that sent them. The same in every run: a seed changes who comes when,
 * not what is there.
 */
#ifndef DEPLOY_WEIR_GENERATE_SITE_H
#define DEPLOY_WEIR_GENERATE_SITE_H

#include "common/base/span.h"
#include "deploy/weir/generate/zipf.h"

enum {
	GENERATE_PAGES = 4096,
	GENERATE_ACTIONS = 1024,
	GENERATE_TARGET_MAX_BYTES = 120,
};

#define GENERATE_HOST "www.example.com"

/* What a request line names. */
struct generate_page {
	char target[GENERATE_TARGET_MAX_BYTES];
	uint8_t length;      /* of the target */
	uint8_t path_length; /* up to its '?' */
	bool asset;          /* a picture, a script: a browser asks for it on behalf of a page,
                 and keeps it */
	bool login;
	uint32_t bytes; /* of a full answer, about */
};

struct generate_site {
	struct generate_page pages[GENERATE_PAGES];     /* what is read, by popularity */
	struct generate_page actions[GENERATE_ACTIONS]; /* what is written to: POST and the like */
	struct generate_zipf page_draw, action_draw;
	struct generate_zipf agent_draw;
};

/** Returned; generate_site_free(). */
struct generate_site *generate_site_new(void);
void generate_site_free(struct generate_site *site);

/**
 * A browser of a visitor, or a program that comes by itself; empty where it
 * does not say.
 *
 * @param visitor  64 random bits, the same for all of a visitor's requests
 */
struct weir_span generate_site_agent(const struct generate_site *site, uint64_t visitor);

/** What an abuser's program calls itself. */
struct weir_span generate_site_robot(uint64_t visitor);

/** A page of another site that links here. */
struct weir_span generate_site_link(uint32_t bits);

/** What a user is called, without a number: "anna". */
struct weir_span generate_site_name(uint32_t bits);

#endif
