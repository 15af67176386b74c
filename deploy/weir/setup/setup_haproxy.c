/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HAProxy: a map, three lines in each frontend that looks into requests, and a socket by which the map is kept. A line
 * that was put there ends with a mark, by which it is found again. The lines stand behind what sets the client's address.
 */
#include "common/base/alloc.h"
#include "deploy/weir/setup/haproxy_conf.h"
#include "deploy/weir/setup/setup_plan.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

#define MARK "# weir setup"
#define SOCKET_PATH "/run/haproxy/weir.sock"
#define OWN_SOCKET "\n    stats socket " SOCKET_PATH " "
#define LOOK_UP "\n    http-request set-var(txn.weir_left) src,map_ip_int(%s,0),sub(txn.weir_now) " MARK

static size_t insert(struct setup_plan *plan, struct setup_file *file, const struct haproxy_conf *conf)
{
	char lines[3 * WEIR_PATH_BYTES];
	size_t frontends = 0;
	for (size_t i = conf->count; i-- > 0;) {
		const struct haproxy_section *section = &conf->sections[i];
		if (section->kind == 'g' && conf->socket[0] == '\0') {
			snprintf(lines, sizeof lines, OWN_SOCKET "%smode 660 level admin " MARK,
			         conf->group != NULL ? "group weir " : "");
			setup_file_insert(file, section->end, lines);
		}
		if (section->kind != 'f' || !section->http)
			continue;
		frontends++;
		snprintf(lines, sizeof lines,
		         "\n    http-request set-var(txn.weir_now) date " MARK LOOK_UP
		         "\n    http-request return status 429 content-type text/plain string \"too many requests\\n\" hdr "
		         "Retry-After \"%%[var(txn.weir_left)]\" if { var(txn.weir_left) -m int gt 0 } " MARK,
		         plan->map);
		setup_file_insert(file, section->end, lines);
	}
	return frontends;
}

/* A backend's rules come after all of the frontend's: there is no place behind them. */
static void note_backends(struct setup_plan *plan, const struct haproxy_conf *conf)
{
	for (size_t i = 0; i < conf->count; i++) {
		const struct haproxy_section *section = &conf->sections[i];
		if (section->kind == 'b' && section->sets_src)
			weir_text_printf(&plan->notes,
			                 "The set-src of backend %.*s comes after weir has looked up the client's address: move it "
			                 "to the frontend, or whoever connects is looked up.\n",
			                 (int)section->name.length, section->name.at);
	}
}

static enum weir_status change(struct setup_plan *plan, struct setup_file *file, struct haproxy_conf *conf,
                               struct weir_error *error)
{
	conf->group = !plan->remove && getgrnam("weir") != NULL ? "weir" : NULL;
	haproxy_conf_read(conf, file);
	if (conf->socket[0] != '\0' && (!plan->remove || strstr(file->before, OWN_SOCKET) == NULL))
		memcpy(plan->own, conf->socket, sizeof conf->socket);
	else
		snprintf(plan->own, sizeof plan->own, "%s", SOCKET_PATH);
	if (plan->remove)
		return WEIR_OK;
	bool global = false;
	for (size_t i = 0; i < conf->count; i++)
		global |= conf->sections[i].kind == 'g';
	if (!global && conf->socket[0] == '\0')
		return weir_fail(error, WEIR_INVALID, "%s has no section global, where a stats socket is named", plan->file);
	note_backends(plan, conf); /* before the text that names are borrowed from changes */
	if (insert(plan, file, conf) == 0)
		return weir_fail(error, WEIR_INVALID, "%s has no frontend of mode http", plan->file);
	return WEIR_OK;
}

enum weir_status setup_haproxy(struct setup_plan *plan, struct weir_error *error)
{
	struct setup_file *file, *map;
	char directory[WEIR_PATH_BYTES];
	enum weir_status status = WEIR_OK;
	if (plan->file[0] == '\0')
		snprintf(plan->file, sizeof plan->file, "%s", HAPROXY_CONF_FILE);
	if ((status = weir_directory_of(plan->file, directory, error)) != WEIR_OK ||
	    (status = weir_path_format(plan->map, error, "%s/weir.map", directory)) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->file, &file, error)) != WEIR_OK)
		return status;
	if (file->before == NULL && plan->remove)
		return weir_path_format(plan->to, error, "haproxy:%s", SOCKET_PATH);
	if (file->before == NULL)
		return weir_fail(error, WEIR_IO, "there is no %s: name HAProxy's configuration with --file", plan->file);
	char line[WEIR_PATH_BYTES + sizeof LOOK_UP];
	snprintf(line, sizeof line, LOOK_UP, plan->map);
	bool named = strstr(file->before, line) != NULL;
	setup_file_strip(file, SETUP_LINE_ENDS, MARK);
	struct haproxy_conf *conf = weir_alloc(1, sizeof *conf);
	status = change(plan, file, conf, error);
	free(conf);
	if (status != WEIR_OK || (status = weir_path_format(plan->to, error, "haproxy:%s", plan->own)) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->map, &map, error)) != WEIR_OK)
		return status;
	if (!plan->remove || named)
		map->gone = plan->remove;
	plan->checks[plan->check_count++] = (struct setup_command){{"haproxy", "-c", "-f", plan->file, NULL}};
	plan->reloads[plan->reload_count++] = (struct setup_command){{"systemctl", "reload", "haproxy", NULL}};
	return WEIR_OK;
}
