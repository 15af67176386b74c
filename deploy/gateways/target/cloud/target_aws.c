/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws-waf-ipset: an IP set of AWS WAF, of one family. It is replaced whole, with the token that its last reading gave:
 * where somebody else changed it in between, AWS refuses, and all of it is done again.
 */
#include "common/base/alloc.h"
#include "deploy/gateways/target/cloud/cloud.h"

#include <stdio.h>
#include <stdlib.h>

enum { INTERVAL_MS = 5000, CHECK_MS = 60000 };

struct aws {
	struct cloud_target cloud;
	const char *region, *scope, *name, *id;
	char *account; /* owned: "KEY:SECRET" */
	char *session; /* owned: a header; NULL: none */
	char signing[128];
	bool v6; /* of the set, as it was read */
};

static bool fits(const void *context, const struct weir_network *network)
{
	bool v4 = weir_address_is_v4(&network->base) && network->prefix >= 96;
	return v4 != ((const struct aws *)context)->v6;
}

/* An error names its kind in "__type". */
static enum weir_status ask(struct aws *aws, const char *action, const struct weir_text *body, json_t **answer,
                            struct weir_error *error)
{
	char header[128];
	snprintf(header, sizeof header, "X-Amz-Target: AWSWAF_20190729.%s", action);
	/* libcurl signs each header that is named here, so none may be one that it does not send. */
	const struct weir_http_call call = {.method = "POST",
	                                    .address = aws->cloud.url,
	                                    .headers = {"Content-Type: application/x-amz-json-1.1", header, aws->session},
	                                    .body = {body->at, (uint32_t)body->length},
	                                    .aws_scope = aws->signing,
	                                    .aws_account = aws->account};
	enum weir_status status = cloud_ask(&aws->cloud, &call, answer, error);
	const char *type = json_string_value(json_object_get(*answer, "__type"));
	if (status != WEIR_OK && type != NULL && strstr(type, "WAFOptimisticLockException") != NULL)
		return weir_fail(error, WEIR_IO, "%s: somebody else changed the set meanwhile", aws->cloud.name);
	return status;
}

static void begin(const struct aws *aws, struct weir_text *body)
{
	weir_text_printf(body, "{\"Name\":\"%s\",\"Scope\":\"%s\",\"Id\":\"%s\"", aws->name, aws->scope, aws->id);
}

/* Reads the set for its family and its token. @param token  appended as JSON */
static enum weir_status read_set(struct aws *aws, struct weir_text *token, struct weir_error *error)
{
	struct weir_text body = {0};
	json_t *answer;
	begin(aws, &body);
	weir_text_puts(&body, "}");
	enum weir_status status = ask(aws, "GetIPSet", &body, &answer, error);
	const json_t *set = json_object_get(answer, "IPSet"), *lock = json_object_get(answer, "LockToken");
	const char *family = json_string_value(json_object_get(set, "IPAddressVersion"));
	if (status == WEIR_OK && (family == NULL || !json_is_string(lock)))
		status = weir_fail(error, WEIR_IO, "%s gave no IP set and token", aws->cloud.name);
	if (status == WEIR_OK) {
		aws->v6 = strcmp(family, "IPV6") == 0;
		weir_text_json(token, (struct weir_span){json_string_value(lock), (uint32_t)json_string_length(lock)});
	}
	json_decref(answer);
	weir_text_deinit(&body);
	return status;
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct aws *aws = (struct aws *)target;
	struct weir_text token = {0}, body = {0};
	json_t *answer = NULL;
	enum weir_status status = cloud_wait(&aws->cloud, error);
	if (status == WEIR_OK)
		status = read_set(aws, &token, error);
	if (status == WEIR_OK) {
		begin(aws, &body);
		weir_text_puts(&body, ",\"Addresses\":[");
		cloud_put_addresses(&aws->cloud, table, fits, aws, true, "\"", "\"", &body);
		weir_text_puts(&body, "],\"LockToken\":");
		weir_text_append(&body, token.at, token.length);
		weir_text_puts(&body, "}");
		status = ask(aws, "UpdateIPSet", &body, &answer, error);
	}
	json_decref(answer);
	weir_text_deinit(&token);
	weir_text_deinit(&body);
	return status;
}

static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	(void)target, (void)table, (void)now_ms, (void)error;
	return WEIR_OK;
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct aws *aws = (struct aws *)target;
	cloud_deinit(&aws->cloud);
	free(aws->account);
	free(aws->session);
	free(aws);
	return WEIR_OK;
}

static void lists(const struct target *target, struct weir_text *lines)
{
	const struct aws *aws = (const struct aws *)target;
	weir_text_printf(lines, "aws %s %s %s\n", aws->region, aws->scope, aws->id);
}

static const struct target_ops ops = {
	.lists = lists,
	.kind = "aws-waf-ipset",
	.interval_ms = INTERVAL_MS,
	.copies_only = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.check = check,
	.close = close_target,
};

static char *joined(const char *before, const char *mark, const char *after)
{
	struct weir_text text = {0};
	weir_text_printf(&text, "%s%s%s", before, mark, after);
	weir_text_append(&text, "", 1);
	return text.at;
}

static enum weir_status read_account(struct aws *aws, struct weir_error *error)
{
	char *key = NULL, *secret = NULL, *session = NULL;
	enum weir_status status = cloud_secret(&aws->cloud, "access_key", true, &key, error);
	if (status == WEIR_OK)
		status = cloud_secret(&aws->cloud, "secret_key", true, &secret, error);
	if (status == WEIR_OK)
		status = cloud_secret(&aws->cloud, "session_token", false, &session, error);
	if (status == WEIR_OK)
		aws->account = joined(key, ":", secret);
	if (status == WEIR_OK && session != NULL)
		aws->session = joined("X-Amz-Security-Token", ": ", session);
	free(key);
	free(secret);
	free(session);
	return status;
}

static enum weir_status read_settings(struct aws *aws, struct weir_error *error)
{
	enum weir_status status = cloud_word(&aws->cloud, "region", "write such as \"eu-west-1\"", &aws->region, error);
	if (status == WEIR_OK)
		status = cloud_word(&aws->cloud, "scope", "write \"REGIONAL\" or \"CLOUDFRONT\"", &aws->scope, error);
	if (status == WEIR_OK)
		status = cloud_word(&aws->cloud, "name", "write the IP set's name", &aws->name, error);
	if (status == WEIR_OK)
		status = cloud_word(&aws->cloud, "id", "write the IP set's id", &aws->id, error);
	if (status != WEIR_OK)
		return status;
	snprintf(aws->signing, sizeof aws->signing, "aws:amz:%.60s:wafv2", aws->region);
	if (aws->cloud.url == NULL) {
		aws->cloud.url = joined("https://wafv2.", aws->region, ".amazonaws.com/");
		aws->cloud.name = joined("https://wafv2.", aws->region, ".amazonaws.com");
	}
	return read_account(aws, error);
}

enum weir_status target_aws_make(const char *rest, const struct target_options *options, struct target **target,
                                 struct weir_error *error)
{
	static const char *const names[] = {"region",     "scope",         "name", "id", "access_key",
	                                    "secret_key", "session_token", "url",  "ca", NULL};
	struct aws *made = weir_alloc(1, sizeof *made);
	struct weir_error ignored;
	made->cloud.target.ops = &ops;
	enum weir_status status = cloud_open(&made->cloud, rest, names, NULL, options, error);
	if (status == WEIR_OK)
		status = read_settings(made, error);
	if (status == WEIR_OK)
		*target = &made->cloud.target;
	else
		(void)!close_target(&made->cloud.target, &ignored);
	return status;
}
