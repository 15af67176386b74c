/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the gateways that the configuration names can be reached, and their lists are there. Nothing is written. */
#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/weir/doctor/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Targets that keep a file: what follows is its path. */
static const char *const file_kinds[] = {"file:", "nginx-map:", "nginx-geo:"};

static void add_away(const struct weir_check *check, const char *name, const char *why)
{
	weir_findings_add(
		check->findings, WEIR_SEVERITY_PAGE, "gateways",
		"gateway %s cannot be reached: %s\nIts list does not change: new blocks do not take effect there\nstart "
		"it; the list is rebuilt by itself within seconds (runbook: gateway-not-blocking)",
		name, why);
}

struct reaching {
	const struct weir_check *check;
	const char *name;
};

static void reach(void *context, const char *host, unsigned port)
{
	const struct reaching *reaching = context;
	const char *reason = doctor_reach(host, port);
	if (reason != NULL)
		add_away(reaching->check, reaching->name, reason);
	else
		weir_findings_good(reaching->check->findings, "gateways: %s answers", reaching->name);
}

static void reach_socket(const struct weir_check *check, const char *name, const char *path)
{
	const char *reason = doctor_reach_socket(path);
	if (reason != NULL)
		add_away(check, name, reason);
	else
		weir_findings_good(check->findings, "gateways: %s answers", name);
}

static void check_file(const struct weir_check *check, const char *name, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "gateways",
			"the list of gateway %s is not there: %s\nIt blocks nobody\nls -ld \"$(dirname %s)\" shows whose the "
			"directory is; weir's user must be able to write there (runbook: gateway-not-blocking)",
			name, strerror(errno), path);
	else
		weir_findings_good(check->findings, "gateways: the list %s is there", path);
}

static void check_redis(const struct weir_check *check, const char *name, const char *url)
{
	struct reaching reaching = {check, name};
	char place[300];
	const char *at = strstr(url, "://") + 3, *account = strrchr(at, '@');
	snprintf(place, sizeof place, "%s", account != NULL ? account + 1 : at);
	place[strcspn(place, "/?")] = '\0';
	if (strrchr(place, ':') == NULL || place[strlen(place) - 1] == ']')
		snprintf(place + strlen(place), sizeof place - strlen(place), ":6379");
	doctor_each_address(place, reach, &reaching);
}

static void check_one(const struct weir_check *check, const char *to)
{
	char *name = gateway_name(to);
	for (size_t i = 0; i < sizeof file_kinds / sizeof *file_kinds; i++)
		if (strncmp(to, file_kinds[i], strlen(file_kinds[i])) == 0)
			check_file(check, name, to + strlen(file_kinds[i]));
	if (strncmp(to, "redis://", 8) == 0 || strncmp(to, "rediss://", 9) == 0)
		check_redis(check, name, to);
	if (strncmp(to, "haproxy:/", 9) == 0)
		reach_socket(check, name, to + 8);
	free(name);
}

void doctor_check_gateways(struct doctor *doctor, const struct weir_check *check)
{
	struct gateway_list list = {0};
	struct weir_error error;
	char *url = NULL;
	if (gateway_list_read(doctor->config, &list, &error) == WEIR_OK)
		for (size_t i = 0; i < list.count; i++)
			check_one(check, list.at[i].to);
	gateway_list_deinit(&list);
	if (doctor->config->redis.url.value != NULL &&
	    weir_json_secret(&doctor->config->redis.url, &url, &error) == WEIR_OK && url != NULL)
		check_one(check, url);
	free(url);
}
