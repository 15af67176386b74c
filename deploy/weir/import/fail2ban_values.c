/* SPDX-License-Identifier: Apache-2.0 */
/* Values of fail2ban's options. */
#include "deploy/weir/import/fail2ban.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *begin; /* "min", "minutes" begin with "m", "mo" comes before it */
	double seconds;
};

/* As fail2ban's str2seconds() counts them. */
static const struct unit units[] = {
	{"y", 365.25 * 86400},
	{"mo", 30.4375 * 86400},
	{"w", 7 * 86400},
	{"d", 86400},
	{"h", 3600},
	{"m", 60},
	{"s", 1},
	{NULL, 0},
};

static double unit_seconds(const char *word, size_t length)
{
	if (length == 0)
		return 1;
	for (const struct unit *unit = units; unit->begin != NULL; unit++)
		if (strncmp(word, unit->begin, strlen(unit->begin)) == 0)
			return unit->seconds;
	return 0;
}

bool fail2ban_duration(const char *text, int64_t *duration_ms)
{
	double seconds = 0;
	const char *at = text + strspn(text, " ");
	if (*at == '\0')
		return false;
	while (*at != '\0') {
		char *end;
		if (!isdigit((unsigned char)*at) && *at != '-')
			return false;
		double number = strtod(at, &end);
		if (end == at || !isfinite(number))
			return false;
		at = end + strspn(end, " ");
		size_t word = 0;
		while (isalpha((unsigned char)at[word]))
			word++;
		double each = unit_seconds(at, word);
		if (each == 0)
			return false;
		seconds += number * each;
		at += word;
		at += strspn(at, " ");
	}
	if (seconds > 1e12 || seconds < -1e12)
		return false;
	*duration_ms = (int64_t)(seconds * 1000);
	return true;
}

/* Fail2ban takes 10.0.0.1/8 for 10.0.0.0/8; weir asks for the network. */
static void mask(unsigned char *bytes, unsigned length, unsigned prefix)
{
	for (unsigned i = 0; i < length; i++) {
		unsigned bits = prefix > 8 * i ? prefix - 8 * i : 0;
		bytes[i] = (unsigned char)(bits >= 8 ? bytes[i] : bytes[i] & (0xff00u >> bits));
	}
}

bool fail2ban_exempt(const char *entry, struct weir_text *list)
{
	char address[INET6_ADDRSTRLEN + 1], written[INET6_ADDRSTRLEN + 8];
	if (strncmp(entry, "file:", 5) == 0 && entry[5] == '/') {
		weir_text_puts(list, list->length > 0 ? ", {\"file\": " : "{\"file\": ");
		put_string(list, entry + 5);
		weir_text_puts(list, "}");
		return true;
	}
	size_t length = strcspn(entry, "/");
	if (length >= sizeof address)
		return false;
	memcpy(address, entry, length);
	address[length] = '\0';
	unsigned char bytes[16];
	int family = strchr(address, ':') != NULL ? AF_INET6 : AF_INET;
	if (inet_pton(family, address, bytes) != 1)
		return false;
	unsigned most = family == AF_INET6 ? 128 : 32;
	unsigned long prefix = most;
	if (entry[length] == '/') {
		char *end;
		prefix = strtoul(entry + length + 1, &end, 10);
		if (*end != '\0' || end == entry + length + 1 || prefix > most)
			return false;
	}
	mask(bytes, most / 8, (unsigned)prefix);
	inet_ntop(family, bytes, address, sizeof address);
	if (prefix == most)
		snprintf(written, sizeof written, "%s", address);
	else
		snprintf(written, sizeof written, "%s/%lu", address, prefix);
	weir_text_puts(list, list->length > 0 ? ", " : "");
	put_string(list, written);
	return true;
}
