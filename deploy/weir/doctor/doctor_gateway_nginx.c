/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx reads its lists when it starts or is reloaded. Which nginx that is, and by which configuration, is known where it
 * runs on this machine and by the usual file; else nothing is said.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/weir/doctor/gateways.h"
#include "deploy/weir/setup/nginx_conf.h"
#include "deploy/weir/terminal/readable.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RELOAD_MS = 10000, LINE_BYTES = 4096, STAT_BYTES = 1024, START_FIELD = 22 };

#define CONFIGURATION "/etc/nginx/nginx.conf"

/* ---- which processes ---- */

static bool read_some(const char *directory, const char *name, char *text, size_t bytes)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%.20s/%s", directory, name);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return false;
	size_t length = fread(text, 1, bytes - 1, file);
	fclose(file);
	text[length] = '\0';
	return length > 0;
}

/* When a process began, in Unix ms; 0: not known. */
static int64_t started_ms(const char *directory)
{
	char text[STAT_BYTES], *at, *rest;
	struct timespec up;
	if (!read_some(directory, "stat", text, sizeof text) || (at = strrchr(text, ')')) == NULL)
		return 0;
	rest = at + 1;
	for (int field = 3; field < START_FIELD && rest != NULL; field++)
		rest = strchr(rest + 1, ' ');
	if (rest == NULL)
		return 0;
	int64_t after_ms = strtoll(rest, NULL, 10) * 1000 / sysconf(_SC_CLK_TCK);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return weir_wall_ms() - ((int64_t)up.tv_sec * 1000 + up.tv_nsec / 1000000 - after_ms);
}

struct workers {
	int64_t newest_ms; /* when the newest began, as each reload begins others; 0: none runs here */
	size_t leaving;    /* those that a reload has replaced, and that still have connections */
};

static struct workers find_workers(void)
{
	static const char worker[] = "nginx: worker process";
	char text[LINE_BYTES];
	struct workers found = {0};
	DIR *processes = opendir("/proc");
	for (struct dirent *entry; processes != NULL && (entry = readdir(processes)) != NULL;) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !read_some(entry->d_name, "cmdline", text, sizeof text) ||
		    strncmp(text, worker, sizeof worker - 1) != 0)
			continue;
		int64_t began_ms = started_ms(entry->d_name);
		found.newest_ms = began_ms > found.newest_ms ? began_ms : found.newest_ms;
		found.leaving += strstr(text, "is shutting down") != NULL;
	}
	if (processes != NULL)
		closedir(processes);
	return found;
}

static void check_reload(const struct weir_check *check, const struct doctor_gateway *gateway, int64_t began_ms)
{
	int64_t written_ms = gateway->reading.written_ms;
	if (began_ms == 0 || written_ms == 0 || written_ms - began_ms <= RELOAD_MS ||
	    weir_wall_ms() - written_ms <= RELOAD_MS)
		return;
	struct weir_text text = {0};
	words_time(&text, written_ms);
	weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, "gateways",
	                  "nginx has not read the list of gateway %s, which was written at %.*s\nIt blocks by an older "
	                  "list\nnginx -t && nginx -s reload; then give the gateway a \"reload\", or weir watch (runbook: "
	                  "gateway-not-blocking)",
	                  gateway->name, (int)text.length, text.at);
	weir_text_deinit(&text);
}

/* ---- the configuration ---- */

/* Whether some line of a file includes it: by its whole path, or relative, by what ends like that. */
static bool includes(const struct setup_file *file, const char *path)
{
	const char *name = strrchr(path, '/'), *at = file->before;
	name = name != NULL ? name + 1 : path;
	for (; at != NULL && (at = strstr(at, name)) != NULL; at++) {
		const char *line = at;
		while (line > file->before && line[-1] != '\n' && line[-1] != ';' && line[-1] != '{')
			line--;
		line += strspn(line, " \t");
		if (strncmp(line, "include", strlen("include")) == 0 && line < at)
			return true;
	}
	return false;
}

static void tell_workers(const struct weir_check *check, size_t leaving)
{
	weir_findings_add(
		check->findings, WEIR_SEVERITY_NOTE, "gateways",
		"%s has no worker_shutdown_timeout: after a reload old workers stay as long as their connections (%zu %s now)\n"
		"A list that changes often reloads often: WebSockets and slow downloads pile up workers until memory ends\n"
		"put `worker_shutdown_timeout 1m;` at its top, before http, and reload nginx (runbook: gateway-not-blocking)",
		CONFIGURATION, leaving, leaving == 1 ? "does" : "do");
}

static void check_configuration(const struct weir_check *check, const struct doctor_gateway *gateway, const char *path,
                                size_t leaving)
{
	struct setup_files files = {0};
	static const char *const none[] = {NULL};
	struct weir_error error;
	bool found = false;
	if (access(CONFIGURATION, R_OK) != 0)
		return;
	struct nginx_conf *conf = weir_alloc(1, sizeof *conf);
	enum weir_status status = nginx_conf_read(&files, CONFIGURATION, none, conf, &error);
	for (size_t i = 0; i < files.count; i++)
		found |= includes(files.at[i], path);
	if (status == WEIR_OK && !found)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_NOTE, "gateways",
			"nothing that %s reads includes the list of gateway %s\nThe nginx of this configuration blocks nobody by it; "
			"another may\nweir setup nginx adds the lines; or put them in from deploy/gateways/nginx.conf (runbook: "
			"gateway-not-blocking)",
			CONFIGURATION, gateway->name);
	else if (status == WEIR_OK && !conf->ends_workers)
		tell_workers(check, leaving);
	setup_files_deinit(&files);
	free(conf);
}

void doctor_check_nginx(const struct weir_check *check, const struct doctor_gateway *gateway, const char *path)
{
	const struct workers workers = find_workers();
	if (workers.newest_ms == 0)
		return; /* it runs elsewhere, or not at all, which its users see */
	check_configuration(check, gateway, path, workers.leaving);
	check_reload(check, gateway, workers.newest_ms);
}
