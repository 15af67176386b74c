/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook: changes as JSON to a server, which may keep a list of them; or words for people, in a chat or by mail.
 *
 * A server gets all live blocks first, and after each failure again: "first": true says that what it had is to be
 * forgotten. People are not told of what they were told: of each partition the newest decision that was said is known,
 * and what was in force at the start is not said at all. What is said waits in a bounded buffer until it was taken.
 *
 * What is refused for good holds up no other. A server that refuses a part of the list five times does without it. A
 * message that is refused for what it says is left out at once. Where the place is wrong or the right is missing, which
 * is the configuration's fault, the server's list waits for as long as it takes, as nothing is lost of it; each line
 * that people were to be told is given up once it was refused so for "give_up_after". All that is left out is told and
 * counted.
 *
 * One question at a time, so that the order is kept. While a server says that it wants a pause (Retry-After), it is not
 * asked.
 */
#include "deploy/gateways/target/webhook/target_webhook.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hmac.h"
#include "common/http_client/http_client.h"
#include "deploy/gateways/target/exec/program.h"
#include "deploy/gateways/target/webhook/webhook_notice.h"
#include "deploy/gateways/target/webhook/webhook_settings.h"
#include "deploy/gateways/target/webhook/webhook_waiting.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	LIST_INTERVAL_MS = 200,
	NOTICE_INTERVAL_MS = 2000,
	CHECK_MS = 10000,
	CONNECT_MS = 5000,
	ANSWER_MS = 20000,
	ANSWER_MOST_BYTES = 64 << 10,
	BATCH_CHANGES = 500,
	BATCH_BYTES = 256 << 10,
	PAUSE_MOST_MS = 600000,
	REFUSALS_MOST = 5, /* of a list, one copy after another */
};

/* What <sysexits.h> says of a message that no later try can change. */
enum { MAIL_BAD_DATA = 65, MAIL_NO_USER = 67, MAIL_NO_HOST = 68 };

/* ... and of the program itself: how it is called, that it is there, what it may do, how it is configured. */
enum {
	MAIL_USAGE = 64,
	MAIL_UNAVAILABLE = 69,
	MAIL_SOFTWARE = 70,
	MAIL_CANNOT_CREATE = 73,
	MAIL_NO_RIGHT = 77,
	MAIL_CONFIG = 78
};

struct webhook_target {
	struct target target;
	struct webhook_settings settings;
	struct weir_http_client *client; /* NULL: mail */
	struct weir_hmac *hmac;          /* NULL: nothing is signed */
	char *authorization;             /* NULL: none */
	const struct weir_log *log;
	int64_t pause_end_ms; /* monotonic */
	bool misconfigured;   /* the newest answer says so */
	/* of a list */
	struct weir_text body;
	size_t changes;
	bool first;
	unsigned refusals; /* of copies, one after another */
	/* of words for people */
	struct webhook_waiting waiting;
	struct decision_version *said;
	uint32_t partitions;
	bool begun;
	struct weir_error refusal; /* the newest answer that says that it is misconfigured */
};

/* ---- sending ---- */

/* A pause that the server asks for. */
static void note_pause(struct webhook_target *webhook, int64_t pause_ms)
{
	if (pause_ms > PAUSE_MOST_MS)
		pause_ms = PAUSE_MOST_MS;
	if (pause_ms > 0)
		webhook->pause_end_ms = weir_monotonic_ms() + pause_ms;
}

/* What no later try changes: that the place is wrong or a right is missing, or else what was sent. */
static bool is_configured_wrong(long code)
{
	return (code >= 300 && code < 400) || code == 401 || code == 403 || code == 404 || code == 405 || code == 407 ||
	       code == 410;
}

static bool is_refused(long code)
{
	return code >= 400 && code < 500 && code != 408 && code != 425 && code != 429 && !is_configured_wrong(code);
}

static enum weir_status judge(struct webhook_target *webhook, const struct weir_http_answer *answer,
                              struct weir_error *error)
{
	webhook->misconfigured = is_configured_wrong(answer->code);
	if (answer->code >= 200 && answer->code < 300)
		return WEIR_OK;
	note_pause(webhook, answer->retry_after_ms);
	/* Its words may repeat what was sent, a secret too, so they are not shown. */
	return weir_fail(error, is_refused(answer->code) ? WEIR_INVALID : WEIR_IO, "%s answered with status %ld%s",
	                 webhook->settings.name, answer->code,
	                 answer->code == 401 || answer->code == 403   ? ": are url, token and secret right?"
	                 : answer->code == 404 || answer->code == 410 ? ": is the url right?"
	                 : answer->code >= 300 && answer->code < 400  ? ": name the address that it leads to"
	                                                              : "");
}

/* Tells that something is left out for good. */
static void give_up(struct webhook_target *webhook, size_t count, const char *what, const char *why)
{
	weir_counter_add(&webhook->target.given_up, count);
	weir_log(webhook->log, WEIR_LOG_WARNING, "target", "gave up on %zu %s: %s", count, what, why);
}

/* @return WEIR_OK; WEIR_INVALID: this body is refused; WEIR_IO: later again */
static enum weir_status post(struct webhook_target *webhook, const struct weir_text *body, struct weir_error *error)
{
	char moment[48], signature[48 + WEIR_HMAC_DIGITS];
	struct weir_http_answer answer = {0};
	struct weir_http_call call = {.address = webhook->settings.url,
	                              .headers = {"Content-Type: application/json", "Expect:"},
	                              .body = {body->at, (uint32_t)body->length}};
	size_t headers = 2;
	if (webhook->authorization != NULL)
		call.headers[headers++] = webhook->authorization;
	if (webhook->hmac != NULL) {
		struct weir_text text = {0};
		int digits = snprintf(moment, sizeof moment, "X-Weir-Timestamp: %lld", (long long)weir_wall_ms() / 1000);
		weir_text_append(&text, moment + sizeof "X-Weir-Timestamp: " - 1,
		                 (size_t)digits - (sizeof "X-Weir-Timestamp: " - 1));
		weir_text_puts(&text, ".");
		weir_text_append(&text, body->at, body->length);
		size_t length = (size_t)snprintf(signature, sizeof signature, "X-Weir-Signature: sha256=");
		weir_hmac_digits(webhook->hmac, (struct weir_span){text.at, (uint32_t)text.length}, signature + length,
		                 WEIR_HMAC_DIGITS);
		signature[length + WEIR_HMAC_DIGITS] = '\0';
		weir_text_deinit(&text);
		call.headers[headers++] = moment;
		call.headers[headers++] = signature;
	}
	webhook->misconfigured = false;
	enum weir_status status = weir_http_client_call(webhook->client, &call, &answer, error);
	weir_text_deinit(&answer.body);
	if (status == WEIR_OK)
		return judge(webhook, &answer, error);
	weir_error_prefix(error, "%s", webhook->settings.name);
	return WEIR_IO;
}

static enum weir_status send_mail(struct webhook_target *webhook, struct weir_span words, size_t count,
                                  struct weir_error *error)
{
	struct weir_text mail = {0};
	webhook_notice_mail(&mail, &webhook->settings, words, count);
	const char *program = webhook->settings.sendmail != NULL ? webhook->settings.sendmail : "/usr/sbin/sendmail";
	const char *const arguments[] = {program, "-i", "--", webhook->settings.to, NULL};
	int left_with;
	const struct program_run run = {.arguments = arguments,
	                                .input = mail.at,
	                                .input_bytes = mail.length,
	                                .timeout_ms = TARGET_TIMEOUT_MS,
	                                .left_with = &left_with};
	enum weir_status status = program_run(&run, error);
	weir_text_deinit(&mail);
	webhook->misconfigured = left_with == MAIL_USAGE || left_with == MAIL_UNAVAILABLE || left_with == MAIL_SOFTWARE ||
	                         left_with == MAIL_CANNOT_CREATE || left_with == MAIL_NO_RIGHT || left_with == MAIL_CONFIG;
	return left_with == MAIL_BAD_DATA || left_with == MAIL_NO_USER || left_with == MAIL_NO_HOST ? WEIR_INVALID : status;
}

static enum weir_status wait_for_pause(const struct webhook_target *webhook, struct weir_error *error)
{
	int64_t left_ms = webhook->pause_end_ms - weir_monotonic_ms();
	return left_ms <= 0 ? WEIR_OK
	                    : weir_fail(error, WEIR_IO, "%s asked to wait for %lld s", webhook->settings.name,
	                                (long long)(left_ms + 999) / 1000);
}

/* ---- a list ---- */

/* Sends what has gathered. */
static enum weir_status flush(struct webhook_target *webhook, struct weir_error *error)
{
	struct weir_text whole = {0};
	weir_text_printf(&whole, "{\"first\":%s,\"changes\":[", webhook->first ? "true" : "false");
	weir_text_append(&whole, webhook->body.at, webhook->body.length);
	weir_text_puts(&whole, "]}\n");
	enum weir_status status = post(webhook, &whole, error);
	weir_text_deinit(&whole);
	size_t changes = webhook->changes;
	weir_text_clear(&webhook->body);
	webhook->changes = 0;
	if (status == WEIR_INVALID && webhook->refusals + 1 >= REFUSALS_MOST && changes > 0) {
		give_up(webhook, changes, "changes of the list", error->text);
		return WEIR_OK; /* a later part is the first one */
	}
	webhook->refusals += status == WEIR_INVALID;
	webhook->first = webhook->first && status != WEIR_OK;
	return status == WEIR_INVALID ? WEIR_IO : status; /* it is all sent again */
}

/* The end of a copy, or of changes. */
static enum weir_status end_list(struct webhook_target *webhook, enum weir_status status)
{
	if (status == WEIR_OK)
		webhook->refusals = 0;
	return status;
}

static enum weir_status add(struct webhook_target *webhook, const struct block_entry *entry, struct weir_error *error)
{
	weir_text_puts(&webhook->body, webhook->changes++ > 0 ? "," : "");
	if (entry->state == BLOCK_LIVE)
		weir_text_append(&webhook->body, entry->json, entry->json_length);
	else
		decision_record_end_json(&webhook->body, block_entry_json(entry), entry->partition, entry->version,
		                         entry->state == BLOCK_ENDED    ? "end"
		                         : entry->state == BLOCK_LIFTED ? "lift"
		                                                        : "drop",
		                         entry->state == BLOCK_ENDED ? entry->until_ms : entry->at_ms);
	if (webhook->changes < BATCH_CHANGES && webhook->body.length < BATCH_BYTES)
		return WEIR_OK;
	return flush(webhook, error);
}

static enum weir_status copy_list(struct target *target, const struct block_table *table, int64_t now_ms,
                                  struct weir_error *error)
{
	(void)now_ms;
	struct webhook_target *webhook = (struct webhook_target *)target;
	struct block_walk walk = {0};
	const struct block_entry *entry;
	enum weir_status status = wait_for_pause(webhook, error);
	weir_text_clear(&webhook->body);
	webhook->changes = 0;
	webhook->first = true;
	while (status == WEIR_OK && (entry = block_table_next(table, &walk)) != NULL)
		status = add(webhook, entry, error);
	return end_list(webhook,
	                status == WEIR_OK && (webhook->changes > 0 || webhook->first) ? flush(webhook, error) : status);
}

static enum weir_status apply_list(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)now_ms;
	struct webhook_target *webhook = (struct webhook_target *)target;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	enum weir_status status = wait_for_pause(webhook, error);
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++)
		if (changes[i]->json != NULL)
			status = add(webhook, changes[i], error);
	return end_list(webhook, status == WEIR_OK && webhook->changes > 0 ? flush(webhook, error) : status);
}

/* A server is heard of when something is to be said. */
static enum weir_status check_list(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)target, (void)table, (void)now_ms, (void)error;
	return WEIR_OK;
}

/* ---- words for people ---- */

/* Whether a decision is behind those that were said of its partition. */
static bool is_news(const struct webhook_target *webhook, const struct decision_version *said,
                    const struct block_entry *entry)
{
	return entry->partition < webhook->partitions && decision_version_newer(entry->version, said[entry->partition]);
}

/* What was said before, to compare with while more is said: decisions do not come in their order. To be freed. */
static struct decision_version *said_before(const struct webhook_target *webhook)
{
	struct decision_version *said = weir_alloc(webhook->partitions, sizeof *said);
	memcpy(said, webhook->said, webhook->partitions * sizeof *said);
	return said;
}

static void say(struct webhook_target *webhook, const struct block_entry *entry)
{
	if (is_news(webhook, webhook->said, entry))
		webhook->said[entry->partition] = entry->version;
	struct weir_text *lines = webhook_waiting_add(&webhook->waiting, weir_monotonic_ms());
	if (lines != NULL)
		webhook_notice_line(lines, entry);
	else
		weir_counter_add(&webhook->target.unfit, 1);
}

static enum weir_status send_words(struct webhook_target *webhook, struct weir_span words, size_t count,
                                   struct weir_error *error)
{
	if (webhook->settings.template == WEBHOOK_MAIL)
		return send_mail(webhook, words, count, error);
	struct weir_text body = {0};
	webhook_notice_body(&body, &webhook->settings, words);
	enum weir_status status = post(webhook, &body, error);
	weir_text_deinit(&body);
	return status;
}

/* Where the configuration is wrong, what is old by now is given up. */
static void note_refusal(struct webhook_target *webhook, const struct weir_error *why)
{
	if (!webhook->misconfigured) {
		webhook_waiting_not_refused(&webhook->waiting);
		return;
	}
	webhook->refusal = *why;
	size_t old = webhook_waiting_refused(&webhook->waiting, weir_monotonic_ms(), webhook->settings.give_up_after_ms);
	if (old > 0)
		give_up(webhook, old, "messages", why->text);
}

/*
 * What waits; a message that is refused for what it says is left out, so that it holds up no other. That nothing waits
 * any more, as it was given up, is no success: it fails until something gets through.
 */
static enum weir_status deliver(struct webhook_target *webhook, struct weir_error *error)
{
	enum weir_status status = wait_for_pause(webhook, error);
	while (status == WEIR_OK && webhook->waiting.lines.length > 0) {
		size_t count;
		struct weir_span words = webhook_waiting_message(&webhook->waiting, &count);
		status = send_words(webhook, words, count, error);
		note_refusal(webhook, error);
		if (status == WEIR_IO)
			return status;
		if (status == WEIR_INVALID)
			give_up(webhook, count, "messages", error->text);
		webhook_waiting_remove(&webhook->waiting, count);
		status = WEIR_OK;
	}
	if (status == WEIR_OK && webhook->waiting.refused_ms != 0)
		return weir_fail(error, WEIR_IO, "%s", webhook->refusal.text);
	return status;
}

static enum weir_status copy_words(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error)
{
	(void)now_ms;
	struct webhook_target *webhook = (struct webhook_target *)target;
	struct block_walk walk = {0};
	const struct block_entry *entry;
	struct decision_version *said = said_before(webhook);
	while (webhook->begun && (entry = block_table_next(table, &walk)) != NULL)
		if (is_news(webhook, said, entry))
			say(webhook, entry);
	free(said);
	for (uint32_t i = 0; i < webhook->partitions && !webhook->begun; i++)
		webhook->said[i] = block_table_seen(table, i);
	webhook->begun = true;
	return deliver(webhook, error);
}

static bool is_worth_words(const struct block_entry *change)
{
	return change->state == BLOCK_LIVE || change->state == BLOCK_LIFTED;
}

/* A copy would say nothing of who was let in, or whose block is over by then. What is read again was said before. */
static void pass_words(struct target *target, const struct block_table *table)
{
	struct webhook_target *webhook = (struct webhook_target *)target;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	if (!webhook->begun || count == 0)
		return;
	struct decision_version *said = said_before(webhook);
	for (uint32_t i = 0; i < count; i++)
		if (is_worth_words(changes[i]) && is_news(webhook, said, changes[i]))
			say(webhook, changes[i]);
	free(said);
}

static enum weir_status apply_words(struct target *target, const struct block_table *table, int64_t now_ms,
                                    struct weir_error *error)
{
	(void)now_ms;
	struct webhook_target *webhook = (struct webhook_target *)target;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	for (uint32_t i = 0; i < count; i++)
		if (is_worth_words(changes[i]))
			say(webhook, changes[i]);
	return deliver(webhook, error);
}

/* ---- */

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct webhook_target *webhook = (struct webhook_target *)target;
	weir_http_client_free(webhook->client);
	weir_hmac_free(webhook->hmac);
	webhook_settings_deinit(&webhook->settings);
	free(webhook->authorization);
	weir_text_deinit(&webhook->body);
	webhook_waiting_deinit(&webhook->waiting);
	free(webhook->said);
	free(webhook);
	return WEIR_OK;
}

/* People may be told of several zones apart. */
static void lists(const struct target *target, struct weir_text *lines)
{
	weir_text_printf(lines, "webhook %s\n", ((const struct webhook_target *)target)->settings.url);
}

static const struct target_ops list_ops = {
	.lists = lists,
	.kind = "webhook",
	.interval_ms = LIST_INTERVAL_MS,
	.keeps_json = true,
	.check_after_ms = CHECK_MS,
	.copy = copy_list,
	.apply = apply_list,
	.check = check_list,
	.close = close_target,
};

static const struct target_ops words_ops = {
	.kind = "webhook",
	.interval_ms = NOTICE_INTERVAL_MS,
	.check_after_ms = CHECK_MS,
	.copy = copy_words,
	.apply = apply_words,
	.pass = pass_words,
	.check = check_list,
	.close = close_target,
};

static enum weir_status open_client(struct webhook_target *webhook, const struct target_options *options,
                                    struct weir_error *error)
{
	const struct weir_http_client_options client = {.connect_ms = CONNECT_MS,
	                                                .answer_ms = ANSWER_MS,
	                                                .body_most_bytes = ANSWER_MOST_BYTES,
	                                                .agent = "weir/" WEIR_VERSION,
	                                                .ca_file = webhook->settings.ca,
	                                                .stop = options->stop};
	struct weir_text field = {0};
	if (webhook->settings.token != NULL) {
		weir_text_printf(&field, "Authorization: Bearer %s", webhook->settings.token);
		weir_text_append(&field, "", 1);
		webhook->authorization = field.at; /* taken */
	}
	if (webhook->settings.secret != NULL) {
		webhook->hmac = weir_hmac_new(weir_span_of(webhook->settings.secret));
		if (webhook->hmac == NULL)
			return weir_fail(error, WEIR_INVALID, "libcrypto on this machine has no HMAC-SHA256");
	}
	return webhook->settings.template == WEBHOOK_MAIL ? WEIR_OK
	                                                  : weir_http_client_new(&client, &webhook->client, error);
}

enum weir_status target_webhook_make(const char *rest, const struct target_options *options, struct target **target,
                                     struct weir_error *error)
{
	struct webhook_target *made = weir_alloc(1, sizeof *made);
	struct weir_error ignored;
	enum weir_status status = webhook_settings_read(rest, &made->settings, error);
	made->target.ops = made->settings.template == WEBHOOK_JSON ? &list_ops : &words_ops;
	made->log = options->log;
	made->partitions = options->partitions;
	made->said = weir_alloc(options->partitions > 0 ? options->partitions : 1, sizeof *made->said);
	if (status == WEIR_OK)
		status = open_client(made, options, error);
	if (status != WEIR_OK) {
		(void)!close_target(&made->target, &ignored);
		return status;
	}
	*target = &made->target;
	return WEIR_OK;
}
