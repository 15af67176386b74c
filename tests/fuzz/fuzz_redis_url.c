/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as the address of a Redis server: what is read has its parts, and written with every byte as %XX it is the same
 * address; what is not leaves nothing behind.
 */
#include "common/base/text.h"
#include "common/bytes/redis_url.h"
#include "require.h"

enum { LONGEST_WRITTEN = 1024 }; /* an address has a most; written so it takes three times the bytes */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_same(const char *one, const char *other)
{
	return one == NULL || other == NULL ? one == other : strcmp(one, other) == 0;
}

static void put_bytes(struct weir_text *text, const char *before, const char *part, const char *after)
{
	weir_text_puts(text, before);
	for (; *part != '\0'; part++)
		weir_text_printf(text, "%%%02x", (unsigned char)*part);
	weir_text_puts(text, after);
}

static void put_file(struct weir_text *text, char *before, const char *name, const char *file)
{
	if (file == NULL)
		return;
	weir_text_printf(text, "%c%s", *before, name);
	put_bytes(text, "=", file, "");
	*before = '&';
}

static void put_url(struct weir_text *text, const struct weir_redis_url *url)
{
	char before = '?';
	weir_text_puts(text, url->tls ? "rediss://" : "redis://");
	if (url->user != NULL)
		put_bytes(text, "", url->user, "");
	if (url->password != NULL)
		put_bytes(text, ":", url->password, "@");
	put_bytes(text, "", url->host, "");
	weir_text_printf(text, ":%u/%u", url->port, url->database);
	put_file(text, &before, "key", url->key);
	put_file(text, &before, "ca", url->ca);
	put_file(text, &before, "certificate", url->certificate);
	weir_text_append(text, "", 1);
}

static void check_parts(const struct weir_redis_url *url)
{
	require(url->host != NULL && url->host[0] != '\0' && url->port > 0);
	require(url->user == NULL || (url->user[0] != '\0' && url->password != NULL));
	require((url->certificate == NULL) == (url->key == NULL));
	require(url->tls || (url->ca == NULL && url->key == NULL));
}

static void check_written(const struct weir_redis_url *url)
{
	struct weir_redis_url again;
	struct weir_error error;
	struct weir_text text = {0};
	put_url(&text, url);
	require(weir_redis_url_parse(text.at, &again, &error) == WEIR_OK);
	require(is_same(url->host, again.host) && is_same(url->user, again.user) && is_same(url->password, again.password));
	require(is_same(url->ca, again.ca) && is_same(url->certificate, again.certificate) && is_same(url->key, again.key));
	require(url->tls == again.tls && url->port == again.port && url->database == again.database);
	weir_redis_url_deinit(&again);
	weir_text_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_redis_url url;
	struct weir_error error = {.text = ""};
	char *text = malloc(size + 1); /* no more than it has: what reads further is found */
	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (weir_redis_url_parse(text, &url, &error) == WEIR_OK) {
		check_parts(&url);
		if (strlen(text) <= LONGEST_WRITTEN)
			check_written(&url);
	} else {
		require(strstr(error.text, "redis://") != NULL);
		require(url.host == NULL && url.user == NULL && url.password == NULL && url.ca == NULL);
	}
	weir_redis_url_deinit(&url);
	free(text);
	return 0;
}
