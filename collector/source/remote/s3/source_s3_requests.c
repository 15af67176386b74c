/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists a bucket's prefixes and reads ranges of its objects. A server that asks for fewer requests, or fails, is asked
 * again after pauses that double: a listing of a thousand pages is not begun anew for one that failed. What lasts longer
 * is for the next round.
 */
#include "collector/source/remote/s3/internal.h"
#include "collector/source/remote/s3/s3_address.h"
#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/http_client/http_client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	TRIES = 5,
	FIRST_PAUSE_MS = 200,
	PAUSE_MOST_MS = 10000, /* whatever a server asks for: the next round comes later by itself */
	LOOK_MS = 50,
	EMPTY_PAGES_MOST = 100,
	HEADER_BYTES = 4200,
};

/* Of no body, by SHA-256: S3 wants the hash of the body in each signed request. */
#define EMPTY_HASH "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* Waits, but not where the source ends. */
static void pause_ms(const struct s3 *s3, int64_t ms)
{
	const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
	for (int64_t left = ms; left > 0 && !atomic_load(&s3->stop); left -= LOOK_MS)
		(void)nanosleep(&look, NULL);
}

/* What a request is signed with, read anew for each. Wiped and freed together. */
struct credentials {
	char *key, *secret, *token;
	struct weir_text account, token_header;
};

static void wipe(char *text, size_t length)
{
	if (text != NULL)
		explicit_bzero(text, length);
}

static void credentials_deinit(struct credentials *credentials)
{
	char *const texts[] = {credentials->key, credentials->secret, credentials->token};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		wipe(texts[i], texts[i] != NULL ? strlen(texts[i]) : 0);
		free(texts[i]);
	}
	wipe(credentials->account.at, credentials->account.length);
	wipe(credentials->token_header.at, credentials->token_header.length);
	weir_text_deinit(&credentials->account);
	weir_text_deinit(&credentials->token_header);
}

static bool is_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7F)
			return false;
	return true;
}

static enum weir_status credentials_open(struct credentials *credentials, const struct s3 *s3, struct weir_error *error)
{
	enum weir_status status = s3_secret_open(&s3->key, &credentials->key, error);
	if (status == WEIR_OK)
		status = s3_secret_open(&s3->secret, &credentials->secret, error);
	if (status == WEIR_OK)
		status = s3_secret_open(&s3->session_token, &credentials->token, error);
	if (status != WEIR_OK || credentials->key == NULL || credentials->secret == NULL)
		return status;
	if (!is_printable(credentials->key) || !is_printable(credentials->secret) ||
	    (credentials->token != NULL && !is_printable(credentials->token)))
		return weir_fail(error, WEIR_IO, "the key, the secret or the session token has blanks or control characters");
	weir_text_printf(&credentials->account, "%s:%s", credentials->key, credentials->secret);
	weir_text_append(&credentials->account, "", 1);
	if (credentials->token == NULL)
		return WEIR_OK;
	if (strlen(credentials->token) > HEADER_BYTES)
		return weir_fail(error, WEIR_IO, "the session token is too long");
	weir_text_printf(&credentials->token_header, "x-amz-security-token: %s", credentials->token);
	weir_text_append(&credentials->token_header, "", 1);
	return WEIR_OK;
}

/* Signs a call, unless the bucket is read without a key. */
static void sign(const struct s3 *s3, const struct credentials *credentials, struct weir_http_call *call)
{
	size_t headers = 0;
	while (call->headers[headers] != NULL)
		headers++;
	if (credentials->account.length == 0)
		return;
	call->aws_scope = s3->scope;
	call->aws_account = credentials->account.at;
	call->headers[headers++] = EMPTY_HASH;
	if (credentials->token_header.length > 0)
		call->headers[headers] = credentials->token_header.at;
}

static bool may_pass(enum weir_status status, const struct weir_http_answer *answer)
{
	return status == WEIR_IO || (status == WEIR_OK && (answer->code >= 500 || answer->code == 429));
}

/* Asks, and again where that may help; not where a part of the body came: whoever asks goes on behind it. */
static enum weir_status ask(struct s3 *s3, struct weir_http_call *call, struct weir_http_answer *answer,
                            struct weir_error *error)
{
	struct credentials credentials = {0};
	int64_t pause = FIRST_PAUSE_MS;
	enum weir_status status = credentials_open(&credentials, s3, error);
	if (status == WEIR_OK)
		sign(s3, &credentials, call);
	for (int tries = 1; status == WEIR_OK; tries++, pause *= 2) {
		weir_text_clear(&answer->body);
		status = weir_http_client_call(s3->client, call, answer, error);
		if (tries == TRIES || !may_pass(status, answer) || answer->body_fd_bytes > 0 || atomic_load(&s3->stop))
			break;
		int64_t asked = status == WEIR_OK && answer->retry_after_ms > pause ? answer->retry_after_ms : pause;
		pause_ms(s3, asked < PAUSE_MOST_MS ? asked : PAUSE_MOST_MS);
		status = WEIR_OK;
	}
	credentials_deinit(&credentials);
	return status;
}

/* Says in words why an answer is none. @return WEIR_INVALID: another try gives the same */
static enum weir_status refuse(const struct weir_http_answer *answer, const char *what, struct weir_error *error)
{
	struct s3_refusal refusal;
	struct weir_text words = {0};
	s3_refusal_read(&refusal, weir_text_span(&answer->body));
	s3_refusal_words(&refusal, answer->code, &words);
	bool for_good = answer->code < 500 && answer->code != 429 && answer->code != 408;
	enum weir_status status =
		weir_fail(error, for_good ? WEIR_INVALID : WEIR_IO, "%s: %.*s", what, (int)words.length, words.at);
	weir_text_deinit(&words);
	return status;
}

/* ---- listing ---- */

static bool is_wanted(const struct s3 *s3, struct weir_span key)
{
	if (s3->match == NULL)
		return true;
	return strchr(s3->match, '*') != NULL ? wildcard_match(&s3->wildcard, key)
	                                      : weir_span_equal(weir_span_of(s3->match), key);
}

/* A name is its key and what lies there: one that is written again under the same key is another. */
static uint64_t id_of(const struct s3_entry *entry, const char *key)
{
	struct weir_text text = {0};
	weir_text_append(&text, key, entry->key_length + 1);
	weir_text_printf(&text, "%s %" PRIu64, entry->etag, entry->size);
	uint64_t id = weir_hash64(text.at, text.length);
	weir_text_deinit(&text);
	return id != 0 ? id : 1;
}

static void note(struct s3 *s3, const struct s3_entry *entry, struct remote_round *round)
{
	const char *key = s3_page_key(&s3->page, entry);
	bool folder = key[entry->key_length - 1] == '/'; /* that a console made: it has nothing in it */
	if (folder || entry->size == 0 || !is_wanted(s3, (struct weir_span){.at = key, .length = entry->key_length}))
		return;
	struct remote_object object = {
		.name = key, .id = id_of(entry, key), .size = entry->size, .modified_ms = entry->modified_ms};
	snprintf(object.tag, sizeof object.tag, "%s", entry->etag);
	if (s3_versions_note(&s3->versions, weir_hash64(key, entry->key_length), object.id))
		remote_replaced(round, key);
	remote_found(round, &object);
}

/* Notes what a page has. @param last  the key before it, terminated; becomes the page's last one */
static enum weir_status take_page(struct s3 *s3, struct weir_text *last, struct remote_round *round,
                                  struct weir_error *error)
{
	for (size_t i = 0; i < s3->page.count; i++) {
		const struct s3_entry *entry = &s3->page.entries[i];
		const char *key = s3_page_key(&s3->page, entry);
		if (entry->key_length == 0 || entry->key_length > REMOTE_NAME_MOST || strlen(key) != entry->key_length) {
			remote_remark(round, "a key that is too long, or has a zero byte, is left out");
			continue;
		}
		if (strcmp(key, last->at) <= 0)
			return weir_fail(error, WEIR_INVALID,
			                 "the server does not list its keys in the order of their bytes, as S3 does: weir cannot "
			                 "tell which of them are new");
		weir_text_clear(last);
		weir_text_append(last, key, entry->key_length + 1);
		note(s3, entry, round);
	}
	return WEIR_OK;
}

static enum weir_status fetch_page(struct s3 *s3, const char *prefix, const char *after, const char *next,
                                   struct weir_error *error)
{
	struct weir_http_answer answer = {0};
	struct weir_error reason;
	weir_text_clear(&s3->address);
	weir_text_puts(&s3->address, s3->bucket);
	weir_text_puts(&s3->address, strchr(strstr(s3->bucket, "://") + 3, '/') == NULL ? "/" : "");
	s3_put_listing(&s3->address, prefix, after, next);
	weir_text_append(&s3->address, "", 1);
	struct weir_http_call call = {.address = s3->address.at};
	enum weir_status status = ask(s3, &call, &answer, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "cannot list the bucket");
	else if (answer.code != 200)
		status = refuse(&answer, "cannot list the bucket", error);
	else if (s3_page_read(&s3->page, weir_text_span(&answer.body), &reason) != WEIR_OK)
		status = weir_fail(error, WEIR_IO, "cannot list the bucket: the answer %s%s", reason.text,
		                   strstr(reason.text, "HTML") != NULL ? ": see the source's \"url\"" : "");
	weir_text_deinit(&answer.body);
	return status;
}

static enum weir_status list_prefix(struct s3 *s3, const char *prefix, struct remote_round *round,
                                    struct weir_error *error)
{
	struct weir_text last = {0}, next = {0};
	const char *floor = remote_floor(round, prefix);
	weir_text_append(&last, floor, strlen(floor) + 1);
	enum weir_status status = WEIR_OK;
	unsigned empty_pages = 0;
	do {
		status = fetch_page(s3, prefix, last.at, next.length > 0 ? next.at : NULL, error);
		if (status == WEIR_OK)
			status = take_page(s3, &last, round, error);
		if (status != WEIR_OK)
			break;
		weir_text_clear(&next);
		weir_text_append(&next, s3->page.next.at, s3->page.next.length);
		empty_pages = s3->page.count > 0 ? 0 : empty_pages + 1;
		if (atomic_load(&s3->stop))
			status = weir_fail(error, WEIR_IO, "the listing was stopped");
		else if (empty_pages > EMPTY_PAGES_MOST)
			status =
				weir_fail(error, WEIR_IO, "cannot list the bucket: the server gives page after page without a key");
	} while (s3->page.truncated && status == WEIR_OK);
	weir_text_deinit(&last);
	weir_text_deinit(&next);
	return status;
}

enum weir_status s3_list(void *kind, bool whole, struct remote_round *round, struct weir_error *error)
{
	(void)whole; /* a listing is the only way to see what is new */
	struct s3 *s3 = kind;
	enum weir_status first = WEIR_OK;
	for (size_t i = 0; i < s3->prefix_count && !atomic_load(&s3->stop); i++) {
		struct weir_error reason;
		enum weir_status status = list_prefix(s3, s3->prefixes[i], round, &reason);
		if (first == WEIR_OK && status != WEIR_OK) {
			first = status;
			*error = reason;
		}
	}
	return first;
}

/* ---- reading ---- */

/* An ETag without its quotes, of which servers have different minds. */
static struct weir_span bare(const char *etag)
{
	struct weir_span span = weir_span_of(etag);
	if (span.length >= 2 && span.at[0] == '"' && span.at[span.length - 1] == '"')
		span = (struct weir_span){.at = span.at + 1, .length = span.length - 2};
	return span;
}

/* Takes back what was written of an answer that is another than the one that was asked for. */
static void take_back(int fd, struct weir_http_answer *answer)
{
	off_t end = answer->body_fd_bytes > 0 ? lseek(fd, -(off_t)answer->body_fd_bytes, SEEK_CUR) : -1;
	if (end >= 0 && ftruncate(fd, end) == 0)
		answer->body_fd_bytes = 0;
}

static enum weir_status judge(const struct remote_object *object, uint64_t from, int fd,
                              struct weir_http_answer *answer, struct weir_error *error)
{
	bool changed =
		object->tag[0] != '\0' && answer->etag[0] != '\0' && !weir_span_equal(bare(object->tag), bare(answer->etag));
	if (answer->code == 412 || (answer->code / 100 == 2 && changed)) {
		take_back(fd, answer);
		return weir_fail(error, WEIR_ANEW, "%s was replaced while it was being read", object->name);
	}
	if (answer->code == 206 || (answer->code == 200 && from == 0))
		return WEIR_OK;
	take_back(fd, answer);
	if (answer->code == 200)
		return weir_fail(error, WEIR_IO, "cannot read %s: the server gives whole objects only, and no ranges",
		                 object->name);
	if (answer->code == 416)
		return weir_fail(error, WEIR_INVALID, "%s is shorter than its listing says", object->name);
	struct s3_refusal refusal;
	s3_refusal_read(&refusal, weir_text_span(&answer->body));
	if (answer->code == 404 && strcmp(refusal.code, "NoSuchBucket") != 0)
		return weir_fail(error, WEIR_END, "%s was deleted before it was read", object->name);
	char what[REMOTE_NAME_MOST + 16];
	snprintf(what, sizeof what, "cannot read %.200s", object->name);
	(void)refuse(answer, what, error);
	return error->status = WEIR_IO; /* once it is allowed, it can be read */
}

enum weir_status s3_read(void *kind, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
                         uint64_t *got, struct weir_error *error)
{
	struct s3 *s3 = kind;
	struct weir_http_answer answer = {0};
	char range[80], match[REMOTE_TAG_BYTES + 16];
	*got = 0;
	to = to < object->size ? to : object->size; /* it does not grow */
	if (from >= to)
		return from > object->size ? weir_fail(error, WEIR_INVALID, "%s ends before byte %" PRIu64, object->name, from)
		                           : WEIR_OK;
	weir_text_clear(&s3->address);
	weir_text_printf(&s3->address, "%s/", s3->bucket);
	s3_escape_key(&s3->address, weir_span_of(object->name));
	weir_text_append(&s3->address, "", 1);
	snprintf(range, sizeof range, "Range: bytes=%" PRIu64 "-%" PRIu64, from, to - 1);
	snprintf(match, sizeof match, "If-Match: %s", object->tag);
	struct weir_http_call call = {.address = s3->address.at, .body_fd = fd, .body_fd_most = to - from};
	call.headers[0] = range;
	call.headers[1] = object->tag[0] != '\0' ? match : NULL;
	enum weir_status status = ask(s3, &call, &answer, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "cannot read %.200s", object->name);
	if (status == WEIR_OK || answer.body_fd_bytes > 0) { /* what came before it failed may be of another answer, too */
		enum weir_status judged = judge(object, from, fd, &answer, error);
		status = judged != WEIR_OK ? judged : status;
	}
	*got = answer.body_fd_bytes;
	weir_text_deinit(&answer.body);
	return status;
}
