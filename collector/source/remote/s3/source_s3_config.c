/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The s3 source's configuration.
 *
 *     { "type": "s3", "bucket": "logs", "prefix": "AWSLogs/", "match": "*.log.gz", "region": "eu-central-1",
 *       "key": {"env": "AWS_ACCESS_KEY_ID"}, "secret": {"env": "AWS_SECRET_ACCESS_KEY"}, "format": "alb" }
 *
 *     bucket         the bucket
 *     prefix         one or more beginnings of keys; default: all of the bucket
 *     match          only keys that are like this, in which '*' stands for anything, slashes too
 *     region         "us-east-1"
 *     url            of the server; default: that of AWS for the region
 *     path_style     whether the bucket stands in the path; default: unless the server is AWS's
 *     key, secret    {"env": NAME} or {"file": PATH}, or the text itself; without both the bucket is read by anybody's right
 *     session_token  likewise, of temporary keys
 *     ca             certificates that are trusted in place of the system's
 *     and what remote files have in common: name, follow, poll, start, late, line_max
 */
#include "collector/source/remote/s3/internal.h"
#include "collector/source/remote/s3/s3_address.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/bytes/http_address.h"
#include "common/http_client/http_client.h"
#include "common/json/json_shape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	LINE_MAX_BYTES = 64 << 10,
	POLL_MS = 30000,
	LATE_MS = 25 * 3600000,
	CONNECT_MS = 10000,
	ANSWER_MS = 600000,
	STALL_MS = 30000,
	PAGE_BYTES_MOST = 16 << 20,
	BUCKET_LEAST = 3,
	BUCKET_MOST = 63,
	PREFIX_MOST = 1024,
};

struct config {
	struct remote_settings common; /* first */
	const char *url, *bucket, *match, *region, *ca;
	bool path_style;
};

#define AT(member) offsetof(struct config, member)

static json_t *bucket_shape(void)
{
	return weir_shape_pattern("^[a-zA-Z0-9._-]{3,63}$");
}

static json_t *prefix_shape(void)
{
	return weir_shape_some(REMOTE_FOLDERS_MOST, weir_shape_text());
}

static json_t *name_shape(void)
{
	return weir_shape_name(0);
}

const struct weir_json_rule s3_members[] = {
	REMOTE_MEMBERS(struct config, common),
	{.name = "bucket",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(bucket),
     .needed = "give the bucket's name, such as \"logs\"",
     .meaning = "the bucket",
     .shape = bucket_shape},
	{.name = "prefix", .meaning = "the beginnings of the keys; all of the bucket by default", .shape = prefix_shape},
	{.name = "match",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(match),
     .meaning = "only keys that are like this; * stands for anything, slashes too",
     .shape = name_shape},
	{.name = "region",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(region),
     .meaning = "the bucket's region; \"us-east-1\" by default",
     .shape = name_shape},
	{.name = "url",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(url),
     .meaning = "the server's address; that of AWS for the region by default",
     .shape = name_shape},
	{.name = "path_style",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(path_style),
     .meaning = "put the bucket into the path, not before the host; true by default unless the server is AWS's"},
	{.name = "key",
     .meaning = "the access key; without one the bucket is read anonymously",
     .shape = weir_shape_secret},
	{.name = "secret", .meaning = "the access key's secret", .shape = weir_shape_secret},
	{.name = "session_token", .meaning = "the session token of temporary keys", .shape = weir_shape_secret},
	{.name = "ca",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(ca),
     .meaning = "a file of certificates that are trusted in place of the system's",
     .shape = name_shape},
	{.name = NULL},
};

/* ---- secrets ---- */

static char *copy_string(const struct weir_json *at)
{
	return json_is_string(at->value) ? weir_copy(json_string_value(at->value), json_string_length(at->value)) : NULL;
}

static enum weir_status read_secret(struct s3_secret *secret, const struct weir_json *json, const char *name,
                                    struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, name), file = weir_json_member(&at, "file");
	enum weir_status status = weir_json_check_secret(&at, error);
	if (status != WEIR_OK)
		return status;
	secret->file = copy_string(&file);
	return secret->file != NULL ? WEIR_OK : weir_json_secret(&at, &secret->text, error);
}

enum weir_status s3_secret_open(const struct s3_secret *secret, char **out, struct weir_error *error)
{
	*out = NULL;
	if (secret->file != NULL)
		return weir_read_first_line(secret->file, out, error);
	if (secret->text != NULL)
		*out = weir_copy(secret->text, strlen(secret->text));
	return WEIR_OK;
}

static void free_secret(struct s3_secret *secret)
{
	if (secret->text != NULL)
		explicit_bzero(secret->text, strlen(secret->text));
	free(secret->text);
	free(secret->file);
}

static enum weir_status read_secrets(struct s3 *s3, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json key = weir_json_member(json, "key"), secret = weir_json_member(json, "secret");
	struct weir_json token = weir_json_member(json, "session_token");
	if (weir_json_exists(&key) && !weir_json_exists(&secret))
		return weir_json_require(&secret,
		                         "give the secret of the \"key\", such as {\"env\": \"AWS_SECRET_ACCESS_KEY\"}", error);
	if (weir_json_exists(&secret) && !weir_json_exists(&key))
		return weir_json_require(&key, "give the key of the \"secret\", such as {\"env\": \"AWS_ACCESS_KEY_ID\"}",
		                         error);
	if (weir_json_exists(&token) && !weir_json_exists(&key))
		return weir_json_fail(&token, error, "belongs to a \"key\" and a \"secret\": give them, too");
	enum weir_status status = read_secret(&s3->key, json, "key", error);
	if (status == WEIR_OK)
		status = read_secret(&s3->secret, json, "secret", error);
	return status == WEIR_OK ? read_secret(&s3->session_token, json, "session_token", error) : status;
}

/* ---- the bucket ---- */

static bool is_word(const char *text, const char *besides)
{
	for (; *text != '\0'; text++)
		if (!isalnum((unsigned char)*text) && strchr(besides, *text) == NULL)
			return false;
	return true;
}

static bool is_aws(const char *url)
{
	const char *host = strstr(url, "://") + 3;
	size_t length = strcspn(host, ":/");
	static const char *const ends[] = {".amazonaws.com", ".amazonaws.com.cn"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (length > strlen(ends[i]) && strncmp(host + length - strlen(ends[i]), ends[i], strlen(ends[i])) == 0)
			return true;
	return false;
}

static enum weir_status check_url(const struct weir_json *json, const struct config *config, struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "url"), token = weir_json_member(json, "session_token");
	struct weir_text host = {0};
	bool safe = weir_http_address_host(config->url, &host), host_there = host.length > strlen("https://");
	weir_text_deinit(&host);
	if (!weir_http_address_meant(config->url) || !host_there || strpbrk(config->url, "?# ") != NULL)
		return weir_json_fail(&at, error, "must be an address such as \"https://s3.example.org\"");
	if (weir_http_address_has_account(config->url))
		return weir_json_fail(&at, error, "must not have an account: use \"key\" and \"secret\"");
	if (!safe && weir_json_exists(&token))
		return weir_json_fail(&at, error,
		                      "must begin with https://, as a session token must not go in clear over a network");
	return WEIR_OK;
}

/* Whether a bucket's name can stand before a host's, and within one certificate. */
static bool fits_host(const char *bucket)
{
	return is_word(bucket, "-");
}

static enum weir_status read_bucket(struct s3 *s3, const struct weir_json *json, const struct config *config,
                                    struct weir_error *error)
{
	struct weir_json bucket = weir_json_member(json, "bucket");
	struct weir_json style = weir_json_member(json, "path_style");
	size_t length = strlen(config->bucket);
	if (length < BUCKET_LEAST || length > BUCKET_MOST || !is_word(config->bucket, "._-"))
		return weir_json_fail(&bucket, error, "is not a bucket's name: use %d to %d letters, digits, '.', '_' or '-'",
		                      BUCKET_LEAST, BUCKET_MOST);
	bool in_path = weir_json_exists(&style) ? config->path_style : !is_aws(config->url) || !fits_host(config->bucket);
	struct weir_text address = {0}, scope = {0};
	s3_put_bucket(&address, config->url, config->bucket, in_path);
	weir_text_append(&address, "", 1);
	weir_text_printf(&scope, "aws:amz:%s:s3", config->region);
	weir_text_append(&scope, "", 1);
	s3->bucket = address.at;
	s3->scope = scope.at;
	return WEIR_OK;
}

static bool overlap(const char *one, const char *other)
{
	size_t length = strlen(one), others = strlen(other);
	return strncmp(one, other, length < others ? length : others) == 0;
}

static enum weir_status add_prefix(struct s3 *s3, const struct weir_json *at, struct weir_error *error)
{
	const char *prefix = "";
	enum weir_status status = weir_json_string(at, &prefix, error);
	if (status == WEIR_OK && strlen(prefix) > PREFIX_MOST)
		return weir_json_fail(at, error, "must have at most %d bytes", PREFIX_MOST);
	if (status == WEIR_OK && prefix[0] == '/')
		return weir_json_fail(at, error, "begins with a slash, as keys seldom do: remove it");
	for (size_t i = 0; status == WEIR_OK && i < s3->prefix_count; i++)
		if (overlap(prefix, s3->prefixes[i]))
			return weir_json_fail(at, error, "and \"%s\" have keys in common: give the shorter one alone",
			                      s3->prefixes[i]);
	if (status == WEIR_OK)
		s3->prefixes[s3->prefix_count++] = weir_copy(prefix, strlen(prefix));
	return status;
}

static enum weir_status read_prefixes(struct s3 *s3, const struct weir_json *json, struct weir_error *error)
{
	struct weir_json prefix = weir_json_member(json, "prefix");
	size_t count;
	enum weir_status status = weir_json_one_or_more(&prefix, REMOTE_FOLDERS_MOST, &count, error);
	for (size_t i = 0; status == WEIR_OK && i < count; i++) {
		struct weir_json at = weir_json_one_of(&prefix, i);
		status = add_prefix(s3, &at, error);
	}
	return status;
}

/* "https://HOST/BUCKET PREFIX PREFIX MATCH": what is read, whatever the keys. */
static void make_label(struct s3 *s3)
{
	struct weir_text label = {0};
	weir_text_puts(&label, s3->bucket);
	for (size_t i = 0; i < s3->prefix_count; i++)
		weir_text_printf(&label, " %s", s3->prefixes[i]);
	weir_text_printf(&label, "%s%s", s3->match != NULL ? " " : "", s3->match != NULL ? s3->match : "");
	weir_text_append(&label, "", 1);
	s3->label = label.at;
}

static enum weir_status make_client(struct s3 *s3, struct weir_error *error)
{
	struct weir_http_client_options options = {.connect_ms = CONNECT_MS,
	                                           .path_as_is = true, /* keys may have such segments */
	                                           .answer_ms = ANSWER_MS,
	                                           .stall_ms = STALL_MS,
	                                           .body_most_bytes = PAGE_BYTES_MOST,
	                                           .agent = "weir/" WEIR_VERSION,
	                                           .ca_file = s3->ca,
	                                           .stop = &s3->stop};
	return weir_http_client_new(&options, &s3->client, error);
}

static void set_match(struct s3 *s3, const char *match)
{
	s3->match = weir_copy(match, strlen(match));
	if (strchr(match, '*') != NULL)
		wildcard_init(&s3->wildcard, weir_span_of(s3->match));
}

enum weir_status s3_configure(struct s3 *s3, struct remote_settings *settings, const struct weir_json *json,
                              const struct source_context *context, struct weir_error *error)
{
	struct config config = {
		.common = {.follow = true,
	               .poll_ms = POLL_MS,
	               .late_ms = LATE_MS,
	               .line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES},
		.bucket = "",
		.region = "us-east-1",
	};
	char aws[S3_WORD_BYTES * 2];
	enum weir_status status = weir_json_read(json, s3_members, &config, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json region = weir_json_member(json, "region");
	if (config.region[0] == '\0' || strlen(config.region) >= S3_WORD_BYTES || !is_word(config.region, "-"))
		return weir_json_fail(&region, error, "is not a region, such as \"eu-central-1\"");
	snprintf(aws, sizeof aws, "https://s3.%s.amazonaws.com%s", config.region,
	         strncmp(config.region, "cn-", 3) == 0 ? ".cn" : "");
	config.url = config.url != NULL ? config.url : aws;
	if ((status = check_url(json, &config, error)) != WEIR_OK ||
	    (status = read_bucket(s3, json, &config, error)) != WEIR_OK ||
	    (status = read_prefixes(s3, json, error)) != WEIR_OK || (status = read_secrets(s3, json, error)) != WEIR_OK)
		return status;
	if (config.match != NULL)
		set_match(s3, config.match);
	s3->ca = config.ca != NULL ? weir_copy(config.ca, strlen(config.ca)) : NULL;
	make_label(s3);
	*settings = config.common;
	return make_client(s3, error);
}

void s3_free(void *kind)
{
	struct s3 *s3 = kind;
	weir_http_client_free(s3->client);
	for (size_t i = 0; i < s3->prefix_count; i++)
		free(s3->prefixes[i]);
	if (s3->match != NULL && strchr(s3->match, '*') != NULL)
		wildcard_deinit(&s3->wildcard);
	free_secret(&s3->key);
	free_secret(&s3->secret);
	free_secret(&s3->session_token);
	s3_page_deinit(&s3->page);
	s3_versions_deinit(&s3->versions);
	weir_text_deinit(&s3->address);
	free(s3->bucket);
	free(s3->scope);
	free(s3->ca);
	free(s3->label);
	free(s3->match);
	free(s3);
}

/* ---- what others ask of a configuration ---- */

static const char *member_text(const struct weir_json *json, const char *name)
{
	struct weir_json at = weir_json_member(json, name);
	const char *text = json_string_value(at.value);
	return text != NULL ? text : "";
}

/* The prefix of a place in a list, or the only one; NULL behind the last. */
static const char *prefix_at(const struct weir_json *json, size_t place)
{
	struct weir_json prefix = weir_json_member(json, "prefix");
	if (json_is_array(prefix.value))
		return json_string_value(json_array_get(prefix.value, place));
	return place == 0 ? member_text(json, "prefix") : NULL;
}

static bool share_keys(const struct weir_json *json, const struct weir_json *other)
{
	const char *one, *others;
	for (size_t i = 0; (one = prefix_at(json, i)) != NULL; i++)
		for (size_t k = 0; (others = prefix_at(other, k)) != NULL; k++)
			if (overlap(one, others))
				return true;
	return false;
}

enum weir_status s3_apart(const struct weir_json *json, const struct weir_json *other, struct weir_error *error)
{
	struct weir_json bucket = weir_json_member(json, "bucket"), name = weir_json_member(json, "name");
	if (weir_json_exists(&name) && weir_json_same(json, other, "name"))
		return weir_json_fail(&name, error,
		                      "is the name of another source of type \"s3\": what was read is remembered by it");
	if (!weir_json_same(json, other, "bucket") || !weir_json_same(json, other, "url") || !share_keys(json, other))
		return WEIR_OK;
	bool both_match = member_text(json, "match")[0] != '\0' && member_text(other, "match")[0] != '\0';
	if (both_match && !weir_json_same(json, other, "match"))
		return WEIR_OK; /* whether two patterns have keys in common is not looked at */
	return weir_json_fail(
		&bucket, error,
		"is already read by another source with a prefix and a \"match\" that have keys in common: their "
		"lines would count twice");
}

void s3_describe(const struct weir_json *json, struct weir_text *place, struct weir_text *manner)
{
	const char *prefix;
	weir_text_printf(place, "s3://%s/", member_text(json, "bucket"));
	for (size_t i = 0; (prefix = prefix_at(json, i)) != NULL; i++)
		weir_text_printf(place, "%s%s", i > 0 ? ", " : "", prefix);
	if (member_text(json, "match")[0] != '\0')
		weir_text_printf(place, " (%s)", member_text(json, "match"));
	source_words_manner(manner, json, true);
}
