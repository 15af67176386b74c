/*
 * Every key is written in quotes, and one that begins like something nginx
 * knows (~ for a pattern, a parameter's name) behind a backslash, which nginx
 * takes off again.
 */
#include "deploy/gateways/nginx_map.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

bool nginx_map_fits(struct weir_span key)
{
	return key.length <= NGINX_MAP_KEY_MAX_BYTES && (key.length == 0 || memchr(key.at, '\0', key.length) == NULL);
}

void nginx_map_date(int64_t time_ms, char text[NGINX_MAP_DATE_BYTES])
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
	nginx_map_date(until_ms, date);
	weir_text_puts(text, is_special(key) ? "\"\\\\" : "\"");
	for (uint32_t i = 0; i < key.length; i++) {
		if (key.at[i] == '"' || key.at[i] == '\\')
			weir_text_append(text, "\\", 1);
		weir_text_append(text, &key.at[i], 1);
	}
	weir_text_printf(text, "\" \"%s\";\n", date);
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
