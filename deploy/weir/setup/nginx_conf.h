/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of an nginx configuration where weir's lines go, through its includes: the http block, the folder of files
 * that it includes, and each of its servers.
 */
#ifndef DEPLOY_WEIR_SETUP_NGINX_CONF_H
#define DEPLOY_WEIR_SETUP_NGINX_CONF_H

#include "deploy/weir/setup/setup_files.h"

enum { NGINX_CONF_SERVERS_MAX = 4096 };

struct nginx_place {
	struct setup_file *file;
	size_t at; /* right behind the block's { */
};

struct nginx_conf {
	char directory[WEIR_PATH_BYTES]; /* of the main file: relative names begin there */
	struct nginx_place http;
	char included[WEIR_PATH_BYTES];                         /* a folder of which http includes each *.conf; "": none */
	struct nginx_place servers[NGINX_CONF_SERVERS_MAX + 1]; /* and room for one more */
	size_t server_count;
	bool ends_workers; /* worker_shutdown_timeout: old workers do not stay as long as their connections */
};

/**
 * Reads it.
 *
 * @param strips  marks, ended by NULL: what begins a line with one is taken out of each file first (setup_file_strip())
 * @return WEIR_OK; WEIR_INVALID: it cannot be read as one, "FILE:LINE: words"; WEIR_IO
 */
WEIR_MUST_USE enum weir_status nginx_conf_read(struct setup_files *files, const char *path, const char *const *strips,
                                               struct nginx_conf *conf, struct weir_error *error);

#endif
