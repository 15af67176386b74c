/* SPDX-License-Identifier: Apache-2.0 */
/* Which role opens which secret. */
#include "archiver/api/api.h"
#include "common/cluster/key_hash.h"
#include "common/daemon/daemon.h"
#include "deploy/weir/validate/validate_report.h"
#include "limiter/daemon/limiter_checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void note_users(struct validate_report *report, const char *name, const char *users)
{
	weir_text_printf(&report->secrets, "  %-17s%s: %s\n", report->secrets.length == 0 ? "secrets" : "", name, users);
}

/* @return whether it is here */
static bool warn_secret(struct validate_report *report, const struct weir_json *at, const char *users)
{
	char *secret = NULL;
	struct weir_error error;
	if (!weir_json_exists(at))
		return true;
	note_users(report, at->path, users);
	bool here = weir_json_secret(at, &secret, &error) == WEIR_OK;
	if (!here) {
		const char *where = strstr(error.text, at->path), *why = where != NULL ? strstr(where, ": ") : NULL;
		struct weir_text words = {0};
		weir_text_printf(&words, "%s: %s would not start here; no other role needs it",
		                 why != NULL ? why + 2 : error.text, users);
		validate_warn(report, at->path, &words);
	}
	free(secret);
	return here;
}

/* Of properties of librdkafka; one that is said wrongly stays, and is a mistake. */
static void set_aside(struct validate_report *report, const struct weir_json *properties, const char *users)
{
	const char *name;
	json_t *value;
	void *next;
	struct weir_error ignored;
	if (!weir_json_exists(properties) || !json_is_object(properties->value))
		return;
	json_object_foreach_safe(properties->value, next, name, value)
	{
		const struct weir_json at = weir_json_member(properties, name);
		if (json_is_object(value) && weir_json_check_secret(&at, &ignored) == WEIR_OK &&
		    !warn_secret(report, &at, users))
			json_object_del(properties->value, name);
	}
}

void validate_set_secrets_aside(struct validate_report *report)
{
	const struct weir_config *config = report->config;
	if (config->bus.type == WEIR_BUS_LOCAL)
		return;
	set_aside(report, &config->bus.kafka, "whatever connects to the brokers");
	for (size_t i = 0; i < config->source_count; i++) {
		const struct weir_json source = weir_json_element(&config->sources, i);
		const struct weir_json properties = weir_json_member(&source, "kafka");
		set_aside(report, &properties, "weir-collector");
	}
}

static void warn_file(struct validate_report *report, const char *name, const char *path, const char *users)
{
	if (path == NULL)
		return;
	note_users(report, name, users);
	if (access(path, R_OK) == 0)
		return;
	struct weir_text words = {0};
	weir_text_printf(&words, "this user cannot read %s: %s would not start here; no other role needs it", path, users);
	validate_warn(report, name, &words);
}

static void take_doubts(struct validate_report *report, const char *path, struct weir_text *doubts)
{
	while (doubts->length > 0 && doubts->at[doubts->length - 1] == ' ')
		doubts->length--;
	if (doubts->length > 0)
		validate_warn(report, path, doubts);
	else
		weir_text_deinit(doubts);
}

/* What a start would refuse: here it is a mistake, in a cluster that of a role that may be elsewhere. */
static enum weir_status settle(struct validate_report *report, const char *path, const char *users,
                               enum weir_status status, const struct weir_error *words, struct weir_error *error)
{
	if (status == WEIR_OK)
		return WEIR_OK;
	if (report->config->bus.type == WEIR_BUS_LOCAL)
		return weir_fail(error, status, "%s", words->text);
	struct weir_text text = {0};
	weir_text_printf(&text, "%s; %s would not start here", words->text, users);
	validate_warn(report, path, &text);
	return WEIR_OK;
}

static enum weir_status check_certificates(struct validate_report *report, struct weir_error *error)
{
	const struct weir_config *config = report->config;
	const struct weir_http_tls tls = weir_daemon_tls(config);
	struct weir_text pages = {0}, api = {0};
	struct weir_error words;
	enum weir_status status = WEIR_OK;
	if (config->listen.http_host != NULL || (weir_config_takes_checks(config) && config->checks.tls))
		status =
			settle(report, "listen", "who has these pages", weir_http_tls_check(&tls, &pages, &words), &words, error);
	if (status == WEIR_OK && config->archiver.enabled)
		status = settle(report, "archiver", "weir-archiver", api_check(config, &api, &words), &words, error);
	take_doubts(report, "listen.certificate", &pages);
	take_doubts(report, "archiver.api_certificate", &api);
	return status;
}

/* `weir run` opens it where checks are asked. */
static enum weir_status check_password(const struct weir_config *config, struct weir_error *error)
{
	char *password = NULL;
	if (!weir_config_takes_checks(config) || config->checks.password.value == NULL)
		return WEIR_OK;
	enum weir_status status = weir_json_password(&config->checks.password, &password, error);
	free(password);
	return status;
}

/* Limiters are clients of one another. */
static void warn_peers(struct validate_report *report)
{
	const struct weir_config_tls *tls = &report->config->listen.tls;
	const char *doubt = limiter_checks_doubt(report->config);
	struct weir_text words = {0};
	if (doubt == NULL)
		return;
	weir_text_printf(&words, LIMITER_CHECKS_DOUBT, tls->certificate, tls->client_ca, doubt);
	validate_warn(report, "listen.client_ca", &words);
}

enum weir_status validate_secrets(struct validate_report *report, struct weir_error *error)
{
	const struct weir_config *config = report->config;
	struct weir_key_hash *hash = NULL;
	enum weir_status status = check_certificates(report, error);
	if (status == WEIR_OK && config->bus.type == WEIR_BUS_LOCAL && config->archiver.enabled)
		status = weir_key_hash_open(config->archiver.hash_keys, &hash, error);
	weir_key_hash_free(hash);
	if (status == WEIR_OK && config->bus.type == WEIR_BUS_LOCAL)
		status = check_password(config, error);
	if (status != WEIR_OK || config->bus.type == WEIR_BUS_LOCAL)
		return status;
	if (config->store.type == WEIR_STORE_MYSQL)
		(void)warn_secret(report, &config->store.password,
		                  "weir-limiter, weir-archiver and the commands that ask the store");
	if (weir_config_takes_checks(config)) {
		warn_peers(report);
		(void)warn_secret(report, &config->checks.password, "weir-limiter");
		warn_file(report, "checks.ca", config->checks.tls ? config->checks.ca : NULL, "weir-limiter");
	}
	(void)warn_secret(report, &config->redis.url, "weir subscribe without --to");
	if (config->archiver.api_host != NULL && config->archiver.tokens.count > 0)
		note_users(report, "archiver.tokens", "weir-archiver");
	warn_file(report, "archiver.hash_keys", config->archiver.hash_keys, "weir-archiver");
	return WEIR_OK;
}
