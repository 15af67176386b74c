/* SPDX-License-Identifier: Apache-2.0 */
/* A Redis server's address, as its own tools take it. Words never repeat the password. */
#include "common/bytes/redis_url.h"

#include "common/base/alloc.h"
#include "common/bytes/hex.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_DEFAULT = 6379, PORT_MAX = 65535, DATABASE_MAX = 1000000, NAME_MAX_BYTES = 4096 };

/* A part with its %XX taken back; NULL where one of them is none, or a 0. */
static char *decode(const char *at, const char *end)
{
	char *made = weir_alloc((size_t)(end - at) + 1, 1), *to = made;
	while (at < end) {
		if (*at != '%') {
			*to++ = *at++;
			continue;
		}
		int byte = end - at > 2 ? weir_hex_byte(at + 1) : -1;
		if (byte <= 0) {
			free(made);
			return NULL;
		}
		*to++ = (char)byte;
		at += 3;
	}
	return made;
}

static bool read_number(const char *at, const char *end, uint32_t most, uint32_t *number)
{
	uint64_t value = 0;
	for (; at < end && *at >= '0' && *at <= '9' && value <= most; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	*number = (uint32_t)value;
	return at == end && value <= most;
}

/* [USER]:PASSWORD, or PASSWORD alone as some write it. */
static bool read_account(const char *at, const char *end, struct weir_redis_url *url)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));
	if (colon != NULL && colon > at && (url->user = decode(at, colon)) == NULL)
		return false;
	url->password = decode(colon != NULL ? colon + 1 : at, end);
	return url->password != NULL;
}

/* HOST, HOST:PORT, [ADDRESS], [ADDRESS]:PORT */
static bool read_host(const char *at, const char *end, struct weir_redis_url *url)
{
	const char *host_end = end, *port = NULL;
	if (at >= end)
		return false;
	if (*at == '[') {
		at++;
		host_end = memchr(at, ']', (size_t)(end - at));
		if (host_end == NULL || (host_end + 1 < end && host_end[1] != ':'))
			return false;
		port = host_end + 1 < end ? host_end + 2 : NULL;
	} else if ((port = memchr(at, ':', (size_t)(end - at))) != NULL) {
		host_end = port++;
	}
	uint32_t number = PORT_DEFAULT;
	if (host_end == at || (port != NULL && (port == end || !read_number(port, end, PORT_MAX, &number) || number == 0)))
		return false;
	url->port = (uint16_t)number;
	url->host = decode(at, host_end);
	return url->host != NULL;
}

/* The files of TLS, by name. */
static char **file_of(struct weir_redis_url *url, const char *at, size_t length)
{
	const struct {
		const char *name;
		char **file;
	} files[] = {{"ca=", &url->ca}, {"certificate=", &url->certificate}, {"key=", &url->key}};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (length >= strlen(files[i].name) && memcmp(at, files[i].name, strlen(files[i].name)) == 0)
			return files[i].file;
	return NULL;
}

/* Where they begin: a question mark before the name of one. @return NULL: none is named */
static const char *find_files(const char *at, const char *end)
{
	struct weir_redis_url ignored;
	for (; (at = memchr(at, '?', (size_t)(end - at))) != NULL; at++)
		if (file_of(&ignored, at + 1, (size_t)(end - at - 1)) != NULL)
			return at;
	return NULL;
}

static bool read_files(const char *at, const char *end, struct weir_redis_url *url)
{
	for (const char *next; at <= end; at = next + 1) {
		char **file = file_of(url, at, (size_t)(end - at));
		next = memchr(at, '&', (size_t)(end - at));
		next = next != NULL ? next : end;
		if (file == NULL || *file != NULL)
			return false;
		*file = decode((const char *)memchr(at, '=', (size_t)(end - at)) + 1, next);
		if (*file == NULL || **file == '\0')
			return false;
	}
	return (url->certificate == NULL) == (url->key == NULL);
}

enum weir_status weir_redis_url_parse(const char *text, struct weir_redis_url *url, struct weir_error *error)
{
	*url = (struct weir_redis_url){0};
	static const char clear[] = "redis://", tls[] = "rediss://";
	url->tls = strncmp(text, tls, sizeof tls - 1) == 0;
	bool good = (url->tls || strncmp(text, clear, sizeof clear - 1) == 0) && strlen(text) <= NAME_MAX_BYTES;
	if (good) {
		const char *at = text + (url->tls ? sizeof tls : sizeof clear) - 1, *end = at + strlen(at);
		const char *question = url->tls ? find_files(at, end) : NULL;
		good = question == NULL || read_files(question + 1, end, url);
		end = question != NULL ? question : end;
		const char *account_end = memrchr(at, '@', (size_t)(end - at));
		good = good && (account_end == NULL || read_account(at, account_end, url));
		at = account_end != NULL ? account_end + 1 : at;
		const char *slash = memchr(at, '/', (size_t)(end - at));
		good = good && read_host(at, slash != NULL ? slash : end, url) &&
		       (slash == NULL || read_number(slash + 1, end, DATABASE_MAX, &url->database));
	}
	if (good)
		return WEIR_OK;
	weir_redis_url_deinit(url);
	return weir_fail(error, WEIR_INVALID,
	                 "a Redis address must be redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// with "
	                 "?ca=FILE or ?ca=FILE&certificate=FILE&key=FILE at its end or without it, with %%XX for reserved "
	                 "characters");
}

void weir_redis_url_deinit(struct weir_redis_url *url)
{
	free(url->host);
	free(url->user);
	free(url->password);
	free(url->ca);
	free(url->certificate);
	free(url->key);
	*url = (struct weir_redis_url){0};
}
