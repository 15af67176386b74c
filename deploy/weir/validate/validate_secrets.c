/* SPDX-License-Identifier: Apache-2.0 */
/* Which role opens which secret. */
#include "archiver/api/api.h"
#include "deploy/weir/validate/validate_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void warn_secret(struct validate_report *report, const struct weir_json *at, const char *users)
{
	char *secret = NULL;
	struct weir_error error;
	if (weir_json_secret(at, &secret, &error) != WEIR_OK) {
		const char *where = strstr(error.text, at->path), *why = where != NULL ? strstr(where, ": ") : NULL;
		struct weir_text words = {0};
		weir_text_printf(&words, "%s: %s would not start here; no other role needs it",
		                 why != NULL ? why + 2 : error.text, users);
		validate_warn(report, at->path, &words);
	}
	free(secret);
}

static void warn_file(struct validate_report *report, const char *name, const char *path, const char *users)
{
	if (path == NULL || access(path, R_OK) == 0)
		return;
	struct weir_text words = {0};
	weir_text_printf(&words, "this user cannot read %s: %s would not start here; no other role needs it", path, users);
	validate_warn(report, name, &words);
}

enum weir_status validate_secrets(struct validate_report *report, struct weir_error *error)
{
	const struct weir_config *config = report->config;
	if (config->bus.type == WEIR_BUS_LOCAL)
		return config->archiver.enabled ? api_check(config, error) : WEIR_OK;
	if (config->store.type == WEIR_STORE_MYSQL)
		warn_secret(report, &config->store.password, "weir-limiter, weir-archiver and the commands that ask the store");
	warn_secret(report, &config->redis.url, "weir subscribe without --to");
	for (size_t i = 0; config->archiver.api_host != NULL && i < config->archiver.tokens.count; i++) {
		struct weir_json token = weir_json_element(&config->archiver.tokens.at, i);
		warn_secret(report, &token, "weir-archiver");
	}
	warn_file(report, "archiver.hash_keys", config->archiver.hash_keys, "weir-archiver");
	return WEIR_OK;
}
