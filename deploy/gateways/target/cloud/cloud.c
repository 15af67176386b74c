/* SPDX-License-Identifier: Apache-2.0 */
/* Answers are bounded by the client, and their words are shown only as far as a kind has picked them. */
#include "deploy/gateways/target/cloud/cloud.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/gateways/target/network_key.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONNECT_MS = 5000, ANSWER_MS = 30000, ANSWER_MOST_BYTES = 4 << 20, PAUSE_MOST_MS = 600000 };

struct address {
	char text[CLOUD_ADDRESS_BYTES];
	int64_t until_ms;
};

static enum weir_status read_url(struct cloud_target *cloud, const struct weir_json *root, const char *usual,
                                 struct weir_error *error)
{
	struct weir_json url = weir_json_member(root, "url"), ca = weir_json_member(root, "ca");
	struct weir_text name = {0};
	const char *text = usual;
	enum weir_status status;
	if ((status = weir_json_string(&url, &text, error)) != WEIR_OK ||
	    (status = weir_json_string(&ca, &cloud->ca, error)) != WEIR_OK || text == NULL)
		return status;
	if (text[strcspn(text, " \t\r\n?#")] != '\0' || !weir_http_address_host(text, &name)) {
		weir_text_deinit(&name);
		return weir_json_fail(&url, error, "must be https://HOST[/PATH]; http:// only on this machine");
	}
	weir_text_append(&name, "", 1);
	cloud->name = name.at; /* taken */
	size_t length = strlen(text);
	while (length > 0 && text[length - 1] == '/')
		length--;
	cloud->url = weir_copy(text, length);
	return WEIR_OK;
}

enum weir_status cloud_open(struct cloud_target *cloud, const char *path, const char *const *names, const char *url,
                            const struct target_options *options, struct weir_error *error)
{
	if (path[0] != '/')
		return weir_fail(error, WEIR_INVALID, "\"%s\" is not the absolute path of a file of JSON with the settings",
		                 path);
	if (weir_json_load(path, &cloud->document, error) != WEIR_OK)
		return WEIR_INVALID;
	struct weir_json root = weir_json_root(cloud->document);
	if (!json_is_object(root.value))
		return weir_json_fail(&root, error, "must be an object");
	enum weir_status status = weir_json_only(&root, names, error);
	if (status == WEIR_OK)
		status = read_url(cloud, &root, url, error);
	if (status != WEIR_OK)
		return status;
	cloud->stop = options->stop;
	const struct weir_http_client_options client = {.connect_ms = CONNECT_MS,
	                                                .answer_ms = ANSWER_MS,
	                                                .body_most_bytes = ANSWER_MOST_BYTES,
	                                                .agent = "weir/" WEIR_VERSION,
	                                                .ca_file = cloud->ca,
	                                                .stop = options->stop};
	return weir_http_client_new(&client, &cloud->client, error);
}

void cloud_deinit(struct cloud_target *cloud)
{
	weir_http_client_free(cloud->client);
	free(cloud->url);
	free(cloud->name);
	if (cloud->document != NULL)
		weir_json_document_free(cloud->document);
}

enum weir_status cloud_word(const struct cloud_target *cloud, const char *name, const char *words, const char **out,
                            struct weir_error *error)
{
	struct weir_json root = weir_json_root(cloud->document), at = weir_json_member(&root, name);
	enum weir_status status = weir_json_require(&at, words, error);
	if (status == WEIR_OK)
		status = weir_json_string(&at, out, error);
	if (status == WEIR_OK && ((*out)[0] == '\0' || (*out)[strspn(*out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
	                                                                   "UVWXYZ0123456789_-")] != '\0'))
		return weir_json_fail(&at, error, "must be of letters, digits, _ and -");
	return status;
}

enum weir_status cloud_secret(const struct cloud_target *cloud, const char *name, bool needed, char **out,
                              struct weir_error *error)
{
	struct weir_json root = weir_json_root(cloud->document), at = weir_json_member(&root, name);
	enum weir_status status =
		needed ? weir_json_require(&at, "write {\"file\": PATH} or {\"env\": NAME}", error) : WEIR_OK;
	if (status == WEIR_OK)
		status = weir_json_secret(&at, out, error);
	for (const char *byte = *out; status == WEIR_OK && byte != NULL && *byte != '\0'; byte++)
		if ((unsigned char)*byte <= ' ' || *byte == 0x7F)
			status = weir_json_fail(&at, error, "must not have blanks");
	return status;
}

static int last_first(const void *a, const void *b)
{
	const struct address *x = a, *y = b;
	int order = (x->until_ms < y->until_ms) - (x->until_ms > y->until_ms);
	return order != 0 ? order : strcmp(x->text, y->text); /* the same list is the same bytes */
}

static bool take(struct address *address, const struct block_table *table, const struct block_entry *entry,
                 cloud_fits *fits, const void *context, bool all_as_networks)
{
	struct weir_span key = block_entry_key(entry);
	struct weir_network network;
	if (!network_key(key, block_table_has_operators(table, key), &network) || !fits(context, &network))
		return false;
	bool v4 = weir_address_is_v4(&network.base) && network.prefix >= 96;
	uint32_t length = weir_address_format(&network.base, address->text);
	if (network.prefix < 128 || all_as_networks)
		snprintf(address->text + length, sizeof address->text - length, "/%u", network.prefix - (v4 ? 96U : 0U));
	address->until_ms = entry->until_ms;
	return true;
}

void cloud_put_addresses(struct cloud_target *cloud, const struct block_table *table, cloud_fits *fits,
                         const void *context, bool all_as_networks, const char *before, const char *after,
                         struct weir_text *out)
{
	struct address *addresses = weir_alloc((size_t)block_table_count(table) + 1, sizeof *addresses);
	struct block_walk walk = {0};
	const struct block_entry *entry;
	size_t count = 0;
	while ((entry = block_table_next(table, &walk)) != NULL) {
		/* Of one key in several zones the block that ends last speaks for all. */
		if (block_table_find_key(table, block_entry_key(entry)) != entry)
			continue;
		if (take(&addresses[count], table, entry, fits, context, all_as_networks))
			count++;
		else
			weir_counter_add(&cloud->target.unfit, 1);
	}
	qsort(addresses, count, sizeof *addresses, last_first);
	if (count > CLOUD_ADDRESSES_MAX) {
		weir_counter_add(&cloud->target.unfit, count - CLOUD_ADDRESSES_MAX);
		count = CLOUD_ADDRESSES_MAX;
	}
	for (size_t i = 0; i < count; i++)
		weir_text_printf(out, "%s%s%s%s", i > 0 ? "," : "", before, addresses[i].text, after);
	free(addresses);
}

enum weir_status cloud_wait(const struct cloud_target *cloud, struct weir_error *error)
{
	int64_t left_ms = cloud->pause_end_ms - weir_monotonic_ms();
	return left_ms <= 0 ? WEIR_OK
	                    : weir_fail(error, WEIR_IO, "%s asked to wait for %lld s", cloud->name,
	                                (long long)(left_ms + 999) / 1000);
}

enum weir_status cloud_ask(struct cloud_target *cloud, const struct weir_http_call *call, json_t **answer,
                           struct weir_error *error)
{
	struct weir_http_answer got = {0};
	enum weir_status status = weir_http_client_call(cloud->client, call, &got, error);
	*answer = NULL;
	if (status != WEIR_OK) {
		weir_error_prefix(error, "%s", cloud->name);
		weir_text_deinit(&got.body);
		return WEIR_IO;
	}
	if (got.retry_after_ms > 0 && got.code >= 400)
		cloud->pause_end_ms =
			weir_monotonic_ms() + (got.retry_after_ms < PAUSE_MOST_MS ? got.retry_after_ms : PAUSE_MOST_MS);
	if (got.body.length > 0)
		*answer = json_loadb(got.body.at, got.body.length, JSON_REJECT_DUPLICATES, NULL);
	weir_text_deinit(&got.body);
	if (got.code >= 200 && got.code < 300)
		return WEIR_OK;
	return weir_fail(error, WEIR_IO, "%s answered with status %ld%s", cloud->name, got.code,
	                 got.code == 401 || got.code == 403 ? ": are the credentials right, and may they change the list?"
	                                                    : "");
}
