/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one kind of gateway needs: its files as they are to be, the entry of "gateways", and the commands that check
 * and reload it. A plan touches nothing.
 */
#ifndef DEPLOY_WEIR_SETUP_SETUP_PLAN_H
#define DEPLOY_WEIR_SETUP_SETUP_PLAN_H

#include "deploy/weir/setup/setup_files.h"

#include <stdint.h>

enum { SETUP_COMMANDS_MAX = 3, SETUP_WORDS_MAX = 8, SETUP_PORTS_MAX = 32, SETUP_ZONES_MAX = 256 };

/* A program and its arguments, ended by NULL; the texts last as long as the plan. */
struct setup_command {
	const char *words[SETUP_WORDS_MAX];
};

enum setup_list_change { SETUP_LIST_STAYS, SETUP_LIST_IS_MADE, SETUP_LIST_GOES };

struct setup_plan {
	/* what is asked for */
	const char *kind; /* "nginx", "nft", "haproxy" */
	bool cluster;     /* a subscriber keeps the list, else weir.service does */
	bool remove;
	bool file_given;
	char file[WEIR_PATH_BYTES]; /* the gateway's main configuration; "" until it is found */
	const char *list;           /* nginx: the file that weir writes (setup_list.h) */
	uint16_t ports[SETUP_PORTS_MAX];
	size_t port_count; /* nft: 0 is all of them */

	/* what it comes to */
	struct setup_files files;
	enum setup_list_change list_change;
	char own[WEIR_PATH_BYTES];      /* a file of the gateway's that holds weir's lines */
	char to[WEIR_PATH_BYTES];       /* of the entry */
	char map[WEIR_PATH_BYTES];      /* of the entry; "": none */
	char reload[WEIR_PATH_BYTES];   /* of the entry; "": none */
	const struct setup_file *right; /* a drop-in of the service that keeps the list; NULL: none */
	char unit[WEIR_PATH_BYTES];     /* of systemd, that reloads the gateway whenever the list changes; "": none */
	struct setup_command checks[SETUP_COMMANDS_MAX], reloads[SETUP_COMMANDS_MAX];
	size_t check_count, reload_count;
	struct weir_text notes; /* sentences for people, each a line */
};

/** @return WEIR_OK; WEIR_INVALID: the configuration is not as it must be; WEIR_IO: it, or the program, is not there */
typedef enum weir_status setup_make(struct setup_plan *plan, struct weir_error *error);
setup_make setup_nginx, setup_haproxy, setup_nft;

#endif
