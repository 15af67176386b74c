/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudflare-list: a custom list of kind "ip" of an account. All items are replaced at once; Cloudflare does so after it
 * has answered, and says by the operation's number how that went.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/words.h"
#include "deploy/gateways/target/cloud/cloud.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { INTERVAL_MS = 10000, CHECK_MS = 60000, OPERATION_MS = 60000, LOOK_MS = 1000, NAP_MS = 50 };

struct cloudflare {
	struct cloud_target cloud;
	const char *account, *list;
	char *authorization; /* owned */
};

/* An address, or a network of IPv4 from /8 on, of IPv6 from /12 on. */
static bool fits(const void *context, const struct weir_network *network)
{
	(void)context;
	if (weir_address_is_v4(&network->base) && network->prefix >= 96)
		return network->prefix >= 96 + 8;
	return network->prefix >= 12;
}

static enum weir_status ask(struct cloudflare *cloudflare, const char *method, const char *rest,
                            const struct weir_text *body, json_t **answer, struct weir_error *error)
{
	struct weir_text address = {0};
	weir_text_printf(&address, "%s/accounts/%s/rules/lists/%s", cloudflare->cloud.url, cloudflare->account, rest);
	weir_text_append(&address, "", 1);
	const struct weir_http_call call = {
		.method = method,
		.address = address.at,
		.headers = {cloudflare->authorization, body != NULL ? "Content-Type: application/json" : NULL},
		.body = {body != NULL ? body->at : NULL, body != NULL ? (uint32_t)body->length : 0}};
	enum weir_status status = cloud_ask(&cloudflare->cloud, &call, answer, error);
	weir_text_deinit(&address);
	if (status == WEIR_OK && !json_is_true(json_object_get(*answer, "success")))
		status = weir_fail(error, WEIR_IO, "%s answered without success", cloudflare->cloud.name);
	return status;
}

static bool stopped(const struct cloudflare *cloudflare)
{
	return cloudflare->cloud.stop != NULL && atomic_load(cloudflare->cloud.stop);
}

/* @return WEIR_AGAIN: it is at work still */
static enum weir_status look(struct cloudflare *cloudflare, const char *operation, struct weir_error *error)
{
	char rest[160];
	json_t *answer;
	snprintf(rest, sizeof rest, "bulk_operations/%s", operation);
	enum weir_status status = ask(cloudflare, "GET", rest, NULL, &answer, error);
	const json_t *result = json_object_get(answer, "result");
	const char *state = json_string_value(json_object_get(result, "status"));
	const char *why = json_string_value(json_object_get(result, "error"));
	if (status == WEIR_OK && state == NULL)
		status = weir_fail(error, WEIR_IO, "%s does not say how the change went", cloudflare->cloud.name);
	else if (status == WEIR_OK && strcmp(state, "failed") == 0) {
		status = weir_fail(error, WEIR_IO, "%s could not change the list: %.200s", cloudflare->cloud.name,
		                   why != NULL ? why : "it does not say why");
		weir_words_clean(error->text);
	} else if (status == WEIR_OK && strcmp(state, "completed") != 0)
		status = WEIR_AGAIN;
	json_decref(answer);
	return status;
}

static enum weir_status await(struct cloudflare *cloudflare, const char *operation, struct weir_error *error)
{
	int64_t end_ms = weir_monotonic_ms() + OPERATION_MS;
	enum weir_status status;
	while ((status = look(cloudflare, operation, error)) == WEIR_AGAIN) {
		if (weir_monotonic_ms() >= end_ms || stopped(cloudflare))
			return weir_fail(error, WEIR_IO, "%s has not changed the list within %d s", cloudflare->cloud.name,
			                 OPERATION_MS / 1000);
		for (int i = 0; i < LOOK_MS / NAP_MS && !stopped(cloudflare); i++)
			nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL);
	}
	return status;
}

static bool is_operation(const char *text)
{
	return text != NULL && text[0] != '\0' && strlen(text) <= 64 &&
	       text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")] == '\0';
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct cloudflare *cloudflare = (struct cloudflare *)target;
	struct weir_text body = {0};
	char rest[160];
	json_t *answer = NULL;
	enum weir_status status = cloud_wait(&cloudflare->cloud, error);
	if (status != WEIR_OK)
		return status;
	weir_text_puts(&body, "[");
	cloud_put_addresses(&cloudflare->cloud, table, fits, NULL, false, "{\"ip\":\"", "\"}", &body);
	weir_text_puts(&body, "]");
	snprintf(rest, sizeof rest, "%.100s/items", cloudflare->list);
	status = ask(cloudflare, "PUT", rest, &body, &answer, error);
	weir_text_deinit(&body);
	const char *operation = json_string_value(json_object_get(json_object_get(answer, "result"), "operation_id"));
	if (status == WEIR_OK)
		status = is_operation(operation) ? await(cloudflare, operation, error)
		                                 : weir_fail(error, WEIR_IO, "%s named no operation", cloudflare->cloud.name);
	json_decref(answer);
	return status;
}

static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	(void)target, (void)table, (void)now_ms, (void)error;
	return WEIR_OK; /* each look would count against the account's limit */
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct cloudflare *cloudflare = (struct cloudflare *)target;
	cloud_deinit(&cloudflare->cloud);
	free(cloudflare->authorization);
	free(cloudflare);
	return WEIR_OK;
}

static void lists(const struct target *target, struct weir_text *lines)
{
	const struct cloudflare *cloudflare = (const struct cloudflare *)target;
	weir_text_printf(lines, "cloudflare %s %s\n", cloudflare->account, cloudflare->list);
}

static const struct target_ops ops = {
	.lists = lists,
	.kind = "cloudflare-list",
	.interval_ms = INTERVAL_MS,
	.copies_only = true,
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.check = check,
	.close = close_target,
};

enum weir_status target_cloudflare_make(const char *rest, const struct target_options *options, struct target **target,
                                        struct weir_error *error)
{
	static const char *const names[] = {"account", "list", "token", "url", "ca", NULL};
	struct cloudflare *made = weir_alloc(1, sizeof *made);
	struct weir_text field = {0};
	struct weir_error ignored;
	char *token = NULL;
	made->cloud.target.ops = &ops;
	enum weir_status status =
		cloud_open(&made->cloud, rest, names, "https://api.cloudflare.com/client/v4", options, error);
	if (status == WEIR_OK)
		status = cloud_word(&made->cloud, "account", "write the account's id", &made->account, error);
	if (status == WEIR_OK)
		status = cloud_word(&made->cloud, "list", "write the list's id", &made->list, error);
	if (status == WEIR_OK)
		status = cloud_secret(&made->cloud, "token", true, &token, error);
	if (status == WEIR_OK) {
		weir_text_printf(&field, "Authorization: Bearer %s", token);
		weir_text_append(&field, "", 1);
		made->authorization = field.at; /* taken */
		*target = &made->cloud.target;
	}
	free(token);
	if (status != WEIR_OK)
		(void)!close_target(&made->cloud.target, &ignored);
	return status;
}
