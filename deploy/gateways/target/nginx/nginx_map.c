/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every key is written in quotes, and one that begins like something nginx
 * knows (~ for a pattern, a parameter's name) behind a backslash, which nginx
 * takes off again.
 */
#include "deploy/gateways/target/nginx/nginx_map.h"

#include "common/base/alloc.h"
#include "deploy/gateways/target/network_key.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

enum {
	BUCKET_LEAST_BYTES = 6144, /* what chance never fills; eight of them are one bucket of nginx's default size */
	BUCKET_MOST_BYTES = 60000, /* below 64 KiB and a cache line */
	BUCKET_SHARES = 4,
};

#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

bool nginx_map_fits(struct weir_span key)
{
	return key.length <= NGINX_MAP_KEY_MAX_BYTES && (key.length == 0 || memchr(key.at, '\0', key.length) == NULL);
}

bool nginx_geo_key(struct weir_span key, bool any_size, char text[NGINX_GEO_KEY_BYTES])
{
	struct weir_network network;
	if (!network_key(key, any_size, &network))
		return false;
	bool v4 = weir_address_is_v4(&network.base) && network.prefix >= 96;
	uint32_t length = weir_address_format(&network.base, text);
	if (network.prefix < 128)
		snprintf(text + length, NGINX_GEO_KEY_BYTES - length, "/%u", network.prefix - (v4 ? 96U : 0U));
	return true;
}

/* "Fri, 21 Nov 2026 23:27:00 GMT", rounded up to the second; beyond the year 9999: its end. */
static void format_date(int64_t time_ms, char text[NGINX_MAP_DATE_BYTES])
{
	static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	int64_t seconds = time_ms / 1000 + (time_ms % 1000 > 0);
	time_t moment = (time_t)(seconds > LAST_SECOND ? LAST_SECOND : seconds);
	struct tm parts;
	gmtime_r(&moment, &parts);
	/* What a byte of a number can show at most is what the compiler must believe. */
	snprintf(text, NGINX_MAP_DATE_BYTES, "%s, %02u %s %04u %02u:%02u:%02u GMT", days[parts.tm_wday % 7],
	         (unsigned)parts.tm_mday % 100, months[parts.tm_mon % 12], (unsigned)(parts.tm_year + 1900) % 10000,
	         (unsigned)parts.tm_hour % 100, (unsigned)parts.tm_min % 100, (unsigned)parts.tm_sec % 100);
}

static bool is_special(struct weir_span key)
{
	static const char *const words[] = {"default", "hostnames", "include", "volatile"};
	if (key.length > 0 && (key.at[0] == '~' || key.at[0] == '\\'))
		return true;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (key.length == strlen(words[i]) && strncasecmp(key.at, words[i], key.length) == 0)
			return true;
	return false;
}

void nginx_map_line(struct weir_text *text, struct weir_span key, int64_t until_ms)
{
	char date[NGINX_MAP_DATE_BYTES];
	format_date(until_ms, date);
	weir_text_puts(text, is_special(key) ? "\"\\\\" : "\"");
	for (uint32_t i = 0; i < key.length; i++) {
		if (key.at[i] == '"' || key.at[i] == '\\')
			weir_text_append(text, "\\", 1);
		weir_text_append(text, &key.at[i], 1);
	}
	weir_text_printf(text, "\" \"%s\";\n", date);
}

bool nginx_map_read(const char **at, const char *end, int64_t *until_ms)
{
	const char *key_end = *at + 1;
	char date[NGINX_MAP_DATE_BYTES + 4], again[NGINX_MAP_DATE_BYTES];
	if (*at == end || **at != '"')
		return false;
	while (key_end < end && *key_end != '"')
		key_end += *key_end == '\\' && key_end + 1 < end ? 2 : 1;
	/* `" "DATE";` and a line's end */
	static const char form[] = "\" \"Thu, 01 Jan 1970 00:00:00 GMT\";\n";
	enum { DATE_AT = 3, DATE_BYTES = sizeof "Thu, 01 Jan 1970 00:00:00 GMT" - 1 };
	if ((size_t)(end - key_end) < sizeof form - 1)
		return false;
	snprintf(date, sizeof date, "%.*s", DATE_BYTES, key_end + DATE_AT);
	struct tm parts = {0};
	const char *date_end = strptime(date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
	if (date_end == NULL || *date_end != '\0')
		return false;
	*until_ms = (int64_t)timegm(&parts) * 1000;
	/* Whatever else stands there was not written here. */
	format_date(*until_ms, again);
	if (strcmp(again, date) != 0 || memcmp(key_end, form, DATE_AT) != 0 ||
	    memcmp(key_end + DATE_AT + DATE_BYTES, form + DATE_AT + DATE_BYTES, sizeof form - 1 - DATE_AT - DATE_BYTES) !=
	        0)
		return false;
	*at = key_end + sizeof form - 1;
	return true;
}

int nginx_map_compare(struct weir_span a, struct weir_span b)
{
	uint32_t common = a.length < b.length ? a.length : b.length;
	for (uint32_t i = 0; i < common; i++) {
		unsigned char x = (unsigned char)a.at[i], y = (unsigned char)b.at[i];
		x = x >= 'A' && x <= 'Z' ? (unsigned char)(x + 32) : x;
		y = y >= 'A' && y <= 'Z' ? (unsigned char)(y + 32) : y;
		if (x != y)
			return x < y ? -1 : 1;
	}
	return a.length < b.length ? -1 : a.length > b.length;
}

/* nginx's own: ngx_hash_key_lc(), and NGX_HASH_ELT_SIZE of a 64-bit machine. */
static uint64_t hash_of(struct weir_span key)
{
	uint64_t hash = 0;
	for (uint32_t i = 0; i < key.length; i++) {
		unsigned char byte = (unsigned char)key.at[i];
		hash = hash * 31 + (byte >= 'A' && byte <= 'Z' ? byte + 32U : byte);
	}
	return hash;
}

uint32_t nginx_map_bytes(struct weir_span key)
{
	return 8 + ((key.length + 2 + 7) & ~UINT32_C(7));
}

void nginx_map_buckets_init(struct nginx_map_buckets *buckets, uint64_t bytes)
{
	uint64_t most = BUCKET_SHARES * bytes / NGINX_MAP_HASH_SIZE;
	most = most < BUCKET_LEAST_BYTES ? BUCKET_LEAST_BYTES : most;
	buckets->most = (uint32_t)(most > BUCKET_MOST_BYTES ? BUCKET_MOST_BYTES : most);
	buckets->bytes = weir_alloc(NGINX_MAP_HASH_SIZE, sizeof *buckets->bytes);
}

void nginx_map_buckets_deinit(struct nginx_map_buckets *buckets)
{
	free(buckets->bytes);
	*buckets = (struct nginx_map_buckets){0};
}

bool nginx_map_buckets_take(struct nginx_map_buckets *buckets, struct weir_span key)
{
	uint32_t *bytes = &buckets->bytes[hash_of(key) % NGINX_MAP_HASH_SIZE], more = nginx_map_bytes(key);
	if (*bytes + more > buckets->most)
		return false;
	*bytes += more;
	return true;
}
