/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as people write them ("10s", "64KiB"), and back. */
#include "common/json/units.h"

#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;
	int64_t factor;
};

/* Largest first: formatting takes the first that divides. */
static const struct unit duration_units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
static const struct unit size_units[] = {
	{"TiB", INT64_C(1) << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}};

enum { UNIT_COUNT = 5 };

/* Digits and then one of the units, nothing else. */
static bool parse_amount(const char *text, const struct unit *units, int64_t *out)
{
	int64_t number = 0;
	const char *at = text;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, *at - '0', &number))
			return false;
	if (at == text)
		return false;
	for (int i = 0; i < UNIT_COUNT; i++)
		if (strcmp(at, units[i].name) == 0)
			return !__builtin_mul_overflow(number, units[i].factor, out);
	return false;
}

static const char *format_amount(int64_t amount, const struct unit *units, const char *zero, char *buffer, size_t bytes)
{
	if (amount == 0) {
		snprintf(buffer, bytes, "%s", zero);
		return buffer;
	}
	int i = 0;
	while (amount % units[i].factor != 0)
		i++;
	snprintf(buffer, bytes, "%lld%s", (long long)(amount / units[i].factor), units[i].name);
	return buffer;
}

bool weir_parse_duration(const char *text, int64_t *out_ms)
{
	return parse_amount(text, duration_units, out_ms);
}

bool weir_parse_size(const char *text, int64_t *out_bytes)
{
	return parse_amount(text, size_units, out_bytes);
}

const char *weir_format_duration(int64_t duration_ms, char *buffer, size_t bytes)
{
	return format_amount(duration_ms, duration_units, "0s", buffer, bytes);
}

const char *weir_format_size(int64_t size_bytes, char *buffer, size_t bytes)
{
	return format_amount(size_bytes, size_units, "0", buffer, bytes);
}
