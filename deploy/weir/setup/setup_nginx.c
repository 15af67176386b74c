/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx: a geo that knows who is blocked, for all servers; in each server one line that includes the answer.
 *
 * The answer is a location of its own, because an add_header in the server would put out of force those that the server
 * inherits. A geo takes addresses and networks, and has no hash that chosen keys could make slow.
 */
#include "common/base/alloc.h"
#include "deploy/gateways/target/exec/program.h"
#include "deploy/weir/setup/nginx_conf.h"
#include "deploy/weir/setup/setup_list.h"
#include "deploy/weir/setup/setup_plan.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK_MS = 10000 };

static const char http_lines[] = "# Who is blocked, and until when, by weir: `weir setup nginx` made this.\n"
								 "geo $weir_until {\n"
								 "    default \"\";\n"
								 "    include %s;\n"
								 "}\n";

static const char server_lines[] =
	"# What a client gets that weir blocks: `weir setup nginx` made this, for each server.\n"
	"if ($weir_until) {\n"
	"    rewrite ^ /.weir-blocked last;\n"
	"}\n"
	"location = /.weir-blocked {\n"
	"    internal;\n"
	"    add_header Retry-After $weir_until always;\n"
	"    return 429;\n"
	"}\n";

/* What the program says of itself: --conf-path=/etc/nginx/nginx.conf. */
static enum weir_status find_file(struct setup_plan *plan, struct weir_error *error)
{
	static const char *const words[] = {"nginx", "-V", NULL};
	static const char option[] = "--conf-path=";
	struct weir_text said = {0};
	const struct program_run run = {.arguments = words, .timeout_ms = ASK_MS, .said = &said};
	enum weir_status status = program_run(&run, error);
	weir_text_append(&said, "", 1);
	const char *found = status == WEIR_OK ? strstr(said.at, option) : NULL;
	if (status == WEIR_OK && found == NULL)
		status = weir_fail(error, WEIR_IO, "nginx -V names no configuration: name it with --file");
	if (status == WEIR_OK) {
		found += sizeof option - 1;
		status = weir_path_format(plan->file, error, "%.*s", (int)strcspn(found, " \n"), found);
	}
	weir_text_deinit(&said);
	return status;
}

static bool unit_watches(const char *path, const char *list)
{
	static const char start[] = "ExecStart=";
	char line[2 * WEIR_PATH_BYTES], wanted[WEIR_PATH_BYTES + 32];
	bool found = false;
	FILE *unit = fopen(path, "re");
	snprintf(wanted, sizeof wanted, " watch %s -- ", list);
	while (unit != NULL && !found && fgets(line, sizeof line, unit) != NULL)
		found = strncmp(line, start, sizeof start - 1) == 0 && strstr(line, wanted) != NULL;
	if (unit != NULL)
		fclose(unit);
	return found;
}

/* A unit that reloads the installed nginx whenever this list changes, so that weir need not be allowed to. */
static void find_unit(struct setup_plan *plan)
{
	static const char pattern[] = "/{etc,run,usr/local/lib,usr/lib,lib}/systemd/system/weir*nginx*.service";
	glob_t found;
	if (plan->file_given || access("/run/systemd/system", F_OK) != 0 || glob(pattern, GLOB_BRACE, NULL, &found) != 0)
		return; /* a unit of a machine without systemd does nothing */
	for (size_t i = 0; i < found.gl_pathc && plan->unit[0] == '\0'; i++)
		if (unit_watches(found.gl_pathv[i], plan->list))
			snprintf(plan->unit, sizeof plan->unit, "%s", strrchr(found.gl_pathv[i], '/') + 1);
	globfree(&found);
}

static enum weir_status commands(struct setup_plan *plan, struct weir_error *error)
{
	const char *named = plan->file_given ? "-c" : NULL; /* NULL ends the words: then the last of them do not count */
	plan->checks[plan->check_count++] = (struct setup_command){{"nginx", "-t", named, plan->file, NULL}};
	plan->reloads[plan->reload_count++] = (struct setup_command){{"nginx", "-s", "reload", named, plan->file, NULL}};
	find_unit(plan);
	if (plan->unit[0] == '\0')
		return weir_path_format(plan->reload, error, "nginx -s reload%s%s", plan->file_given ? " -c " : "",
		                        plan->file_given ? plan->file : "");
	plan->reloads[plan->reload_count++] =
		(struct setup_command){{"systemctl", plan->remove ? "disable" : "enable", "--now", plan->unit, NULL}};
	return WEIR_OK;
}

/* A mark of lines that name a file of setup's own; what names somebody else's is not taken out. */
static enum weir_status add_mark(struct setup_plan *plan, const char *path, const char *lines, const char **strips,
                                 char mark[static WEIR_PATH_BYTES + 16], struct weir_error *error)
{
	struct setup_file *file;
	enum weir_status status = setup_files_read(&plan->files, path, &file, error);
	if (status != WEIR_OK || !setup_file_is_own(file, lines))
		return status;
	snprintf(mark, WEIR_PATH_BYTES + 16, "include %s;", path);
	while (*strips != NULL)
		strips++;
	*strips = mark;
	return WEIR_OK;
}

/* The list must be there before nginx looks. It goes only where setup's lines named it. */
static enum weir_status own_files(struct setup_plan *plan, const char *http, struct weir_error *error)
{
	struct setup_file *file;
	struct weir_text lines = {0};
	char named[WEIR_PATH_BYTES + 16];
	bool own;
	snprintf(named, sizeof named, "include %s;\n", plan->list);
	weir_text_printf(&lines, http_lines, plan->list);
	weir_text_append(&lines, "", 1);
	enum weir_status status = setup_files_own(&plan->files, http, lines.at, plan->remove, &own, error);
	if (status == WEIR_OK)
		status = setup_files_read(&plan->files, http, &file, error);
	bool there = setup_list_is_there(plan->list);
	if (status == WEIR_OK && !plan->remove && !there)
		plan->list_change = SETUP_LIST_IS_MADE;
	if (status == WEIR_OK && plan->remove && there && own && file->before != NULL &&
	    strstr(file->before, named) != NULL)
		plan->list_change = SETUP_LIST_GOES;
	weir_text_deinit(&lines);
	return status == WEIR_OK ? setup_files_own(&plan->files, plan->own, server_lines, plan->remove, &own, error)
	                         : status;
}

/* Behind a {, on a line of its own, one step further in than the block. */
static void insert_line(const struct nginx_place *place, const char *line)
{
	const char *text = place->file->after.at;
	struct weir_text whole = {0};
	size_t start = place->at, indent;
	while (start > 0 && text[start - 1] != '\n')
		start--;
	for (indent = start; text[indent] == ' ' || text[indent] == '\t';)
		indent++;
	weir_text_printf(&whole, "\n%.*s%s%s", (int)(indent - start), text + start, text[start] == '\t' ? "\t" : "    ",
	                 line);
	weir_text_append(&whole, "", 1);
	setup_file_insert(place->file, place->at, whole.at);
	weir_text_deinit(&whole);
}

/* The last place of a file first, so that those before it stay where they are. */
static int last_first(const void *a, const void *b)
{
	const struct nginx_place *x = a, *y = b;
	return (x->at < y->at) - (x->at > y->at);
}

static enum weir_status place_lines(struct setup_plan *plan, struct nginx_conf *conf, const char *http,
                                    struct weir_error *error)
{
	char line[WEIR_PATH_BYTES + 16];
	enum weir_status status = own_files(plan, http, error);
	if (status != WEIR_OK || plan->remove)
		return status;
	if (conf->included[0] == '\0')
		conf->servers[conf->server_count++] = conf->http; /* a place like them */
	qsort(conf->servers, conf->server_count, sizeof *conf->servers, last_first);
	for (size_t i = 0; i < conf->server_count; i++) {
		bool is_http = conf->servers[i].file == conf->http.file && conf->servers[i].at == conf->http.at;
		snprintf(line, sizeof line, "include %s;", is_http ? http : plan->own);
		insert_line(&conf->servers[i], line);
	}
	return WEIR_OK;
}

/* How long a site's connections may live only its operator knows, so setup writes no time for it. */
static void note_workers(struct setup_plan *plan, const struct nginx_conf *conf)
{
	if (!plan->remove && !conf->ends_workers)
		weir_text_printf(
			&plan->notes,
			"%s has no worker_shutdown_timeout: at each change of the list the old workers stay as long as "
			"their connections, and WebSockets or slow downloads pile them up until memory ends. Put this "
			"at its top, before http, with the longest time that a connection may live on:\n"
			"  worker_shutdown_timeout 1m;\n",
			plan->file);
}

static enum weir_status make(struct setup_plan *plan, struct nginx_conf *conf, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES], http[WEIR_PATH_BYTES], marks[2][WEIR_PATH_BYTES + 16];
	const char *strips[] = {NULL, NULL, NULL};
	enum weir_status status;
	if ((status = weir_directory_of(plan->file, directory, error)) != WEIR_OK ||
	    (status = weir_path_format(plan->own, error, "%s/weir-server.conf", directory)) != WEIR_OK ||
	    (status = weir_path_format(http, error, "%s/weir-http.conf", directory)) != WEIR_OK ||
	    (status = weir_path_format(plan->to, error, "nginx-geo:%s", plan->list)) != WEIR_OK ||
	    (status = add_mark(plan, plan->own, server_lines, strips, marks[0], error)) != WEIR_OK ||
	    (status = add_mark(plan, http, http_lines, strips, marks[1], error)) != WEIR_OK ||
	    (status = nginx_conf_read(&plan->files, plan->file, strips, conf, error)) != WEIR_OK)
		return status;
	if (conf->server_count == 0 && !plan->remove)
		return weir_fail(error, WEIR_INVALID, "%s and what it includes has no server in its http block", plan->file);
	if (conf->included[0] != '\0')
		status = weir_path_format(http, error, "%s/weir.conf", conf->included);
	if (status == WEIR_OK)
		status = place_lines(plan, conf, http, error);
	if (status == WEIR_OK)
		note_workers(plan, conf);
	return status == WEIR_OK ? commands(plan, error) : status;
}

enum weir_status setup_nginx(struct setup_plan *plan, struct weir_error *error)
{
	struct nginx_conf *conf = weir_alloc(1, sizeof *conf);
	enum weir_status status = plan->file[0] != '\0' ? WEIR_OK : find_file(plan, error);
	if (status == WEIR_OK)
		status = make(plan, conf, error);
	free(conf);
	return status;
}
