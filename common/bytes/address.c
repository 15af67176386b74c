/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses as text and as 16 bytes.
 *
 * Accepts exactly what inet_pton accepts and writes what inet_ntop writes
 * (RFC 5952), without their terminated strings and, for IPv4, several times
 * faster: a zone with exempt networks parses an address for every line.
 */
#include "common/bytes/address.h"

#include "common/bytes/hex.h"

#include <stdio.h>

enum { GROUPS = 8, MAPPED_BITS = 96 };

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Four decimal numbers of 0..255 without leading zeros. */
static bool parse_v4(const char *at, uint32_t length, uint8_t out[4])
{
	const char *end = at + length;
	for (int octet = 0; octet < 4; octet++) {
		if (octet > 0) {
			if (at == end || *at != '.')
				return false;
			at++;
		}
		if (at == end || (unsigned)(*at - '0') > 9)
			return false;
		unsigned value = (unsigned)(*at++ - '0');
		if (value == 0) {
			out[octet] = 0;
			continue;
		}
		while (at < end && (unsigned)(*at - '0') <= 9) {
			value = value * 10 + (unsigned)(*at++ - '0');
			if (value > 255)
				return false;
		}
		out[octet] = (uint8_t)value;
	}
	return at == end;
}

/* One group of 1 to 4 hexadecimal digits. */
static bool parse_group(const char **at, const char *end, unsigned *out)
{
	unsigned value = 0;
	int digits = 0;
	for (; *at < end && weir_hex_digit(**at) >= 0; (*at)++) {
		if (++digits > 4)
			return false;
		value = value << 4 | (unsigned)weir_hex_digit(**at);
	}
	*out = value;
	return digits > 0;
}

/*
 * Groups are written from the front; where a "::" stands, those behind it are
 * moved to the end when the text is read.
 */
static bool parse_v6(const char *at, uint32_t length, uint8_t out[16])
{
	const char *end = at + length;
	uint8_t bytes[16] = {0};
	int used = 0, gap = -1;
	if (length >= 2 && at[0] == ':' && at[1] == ':') {
		gap = 0;
		at += 2;
	}
	while (at < end) {
		const char *start = at;
		unsigned group;
		if (used > 14 || !parse_group(&at, end, &group))
			return false;
		if (at < end && *at == '.') {
			if (used > 12 || !parse_v4(start, (uint32_t)(end - start), bytes + used))
				return false;
			used += 4;
			at = end;
			break;
		}
		bytes[used++] = (uint8_t)(group >> 8);
		bytes[used++] = (uint8_t)group;
		if (at == end)
			break;
		if (*at++ != ':' || at == end)
			return false;
		if (*at == ':') {
			if (gap >= 0)
				return false;
			gap = used;
			at++;
		}
	}
	if (gap < 0 ? used != 16 : used > 14)
		return false;
	memset(out, 0, 16);
	if (gap < 0)
		gap = 16;
	memcpy(out, bytes, (size_t)(gap < used ? gap : used));
	if (used > gap)
		memcpy(out + 16 - (used - gap), bytes + gap, (size_t)(used - gap));
	return true;
}

bool weir_address_parse(struct weir_span text, struct weir_address *out)
{
	if (text.length < 2 || text.length >= WEIR_ADDRESS_TEXT_BYTES)
		return false;
	/* What ends the first number tells the two kinds apart: at most three digits before a dot, four before a colon. */
	for (uint32_t i = 0; i < text.length && i < 4 && text.at[i] != ':'; i++)
		if (text.at[i] == '.') {
			memcpy(out->bytes, mapped_prefix, sizeof mapped_prefix);
			return parse_v4(text.at, text.length, out->bytes + 12);
		}
	return parse_v6(text.at, text.length, out->bytes);
}

/* ":" and 1 to 5 digits. */
static bool is_port(const char *at, const char *end)
{
	if (end - at < 2 || end - at > 6 || *at != ':')
		return false;
	for (at++; at < end; at++)
		if ((unsigned)(*at - '0') > 9)
			return false;
	return true;
}

static struct weir_span without_blanks(struct weir_span text)
{
	for (; text.length > 0 && (text.at[0] == ' ' || text.at[0] == '\t'); text.length--)
		text.at++;
	while (text.length > 0 && (text.at[text.length - 1] == ' ' || text.at[text.length - 1] == '\t'))
		text.length--;
	return text;
}

/* IPv6, with or without the zone of a link. */
static bool read_v6(const char *at, const char *end, struct weir_address *out)
{
	const char *zone = memchr(at, '%', (size_t)(end - at));
	struct weir_span bare = {.at = at, .length = (uint32_t)((zone != NULL ? zone : end) - at)};
	return memchr(at, ':', bare.length) != NULL && weir_address_parse(bare, out);
}

/* What stands in brackets: either kind. */
static bool read_inside(const char *at, const char *end, struct weir_address *out)
{
	return read_v6(at, end, out) ||
	       weir_address_parse((struct weir_span){.at = at, .length = (uint32_t)(end - at)}, out);
}

bool weir_address_read(struct weir_span text, struct weir_address *out)
{
	if (weir_address_parse(text, out))
		return true;
	text = without_blanks(text);
	if (text.length < 3)
		return false;
	const char *at = text.at, *end = at + text.length;
	if (*at == '[') {
		const char *close = memchr(at, ']', text.length);
		return close != NULL && (close + 1 == end || is_port(close + 1, end)) && read_inside(at + 1, close, out);
	}
	const char *colon = memchr(at, ':', text.length);
	if (colon == NULL)
		return weir_address_parse(text, out);
	if (is_port(colon, end))
		return weir_address_parse((struct weir_span){.at = at, .length = (uint32_t)(colon - at)}, out) &&
		       weir_address_is_v4(out);
	return read_v6(at, end, out);
}

bool weir_address_is_v4(const struct weir_address *address)
{
	return memcmp(address->bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

static char *put_decimal(char *at, unsigned value)
{
	if (value >= 100)
		*at++ = (char)('0' + value / 100);
	if (value >= 10)
		*at++ = (char)('0' + value / 10 % 10);
	*at++ = (char)('0' + value % 10);
	return at;
}

static char *put_v4(char *at, const uint8_t bytes[4])
{
	for (int octet = 0; octet < 4; octet++) {
		if (octet > 0)
			*at++ = '.';
		at = put_decimal(at, bytes[octet]);
	}
	return at;
}

static char *put_group(char *at, unsigned group)
{
	bool begun = false;
	for (int shift = 12; shift >= 0; shift -= 4) {
		unsigned digit = group >> shift & 15;
		if (digit == 0 && !begun && shift > 0)
			continue;
		begun = true;
		*at++ = "0123456789abcdef"[digit];
	}
	return at;
}

static unsigned group_of(const struct weir_address *address, int group)
{
	return (unsigned)address->bytes[2 * group] << 8 | address->bytes[2 * group + 1];
}

/* The longest run of zero groups, the first of equals; at least two groups. */
static int longest_zero_run(const struct weir_address *address, int *first)
{
	int best = 1;
	*first = -1;
	for (int i = 0; i < GROUPS;) {
		int run = 0;
		while (i + run < GROUPS && group_of(address, i + run) == 0)
			run++;
		if (run > best) {
			best = run;
			*first = i;
		}
		i += run + 1;
	}
	return *first < 0 ? 0 : best;
}

uint32_t weir_address_format(const struct weir_address *address, char text[WEIR_ADDRESS_TEXT_BYTES])
{
	char *at = text;
	if (weir_address_is_v4(address)) {
		at = put_v4(at, address->bytes + 12);
		*at = '\0';
		return (uint32_t)(at - text);
	}
	int zero_first, zero_count = longest_zero_run(address, &zero_first);
	for (int i = 0; i < GROUPS; i++) {
		if (i == zero_first) {
			*at++ = ':';
			*at++ = ':';
			i += zero_count - 1;
			continue;
		}
		if (i > 0 && at[-1] != ':')
			*at++ = ':';
		/* ::a.b.c.d, the deprecated IPv4-compatible form, is still what inet_ntop writes. */
		if (i == 6 && zero_first == 0 && zero_count == 6) {
			at = put_v4(at, address->bytes + 12);
			break;
		}
		at = put_group(at, group_of(address, i));
	}
	*at = '\0';
	return (uint32_t)(at - text);
}

/* Clears all bits from `kept` on. */
static void keep_bits(struct weir_address *address, unsigned kept)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned before = i * 8;
		if (kept <= before)
			address->bytes[i] = 0;
		else if (kept < before + 8)
			address->bytes[i] = (uint8_t)(address->bytes[i] & 0xff00u >> (kept - before));
	}
}

void weir_address_mask(struct weir_address *address, uint8_t prefix4, uint8_t prefix6)
{
	keep_bits(address, weir_address_is_v4(address) ? (unsigned)MAPPED_BITS + prefix4 : prefix6);
}

/* A prefix length as it stands behind the slash: -1 if it is none. */
static int parse_prefix(struct weir_span text)
{
	if (text.length == 0 || text.length > 3 || (text.length > 1 && text.at[0] == '0'))
		return -1;
	int value = 0;
	for (uint32_t i = 0; i < text.length; i++) {
		if ((unsigned)(text.at[i] - '0') > 9)
			return -1;
		value = value * 10 + (text.at[i] - '0');
	}
	return value;
}

bool weir_network_parse(struct weir_span text, struct weir_network *out, const char **why)
{
	const char *slash = text.length > 0 ? memchr(text.at, '/', text.length) : NULL;
	struct weir_span base = {.at = text.at, .length = slash ? (uint32_t)(slash - text.at) : text.length};
	*why = "not an address";
	if (!weir_address_parse(base, &out->base))
		return false;
	out->prefix = 128;
	if (slash == NULL)
		return true;
	/* "::ffff:10.0.0.0/104" is IPv6 as it is written: its prefix counts all 128 bits. */
	bool dotted = memchr(base.at, ':', base.length) == NULL;
	int prefix = parse_prefix((struct weir_span){.at = slash + 1, .length = text.length - base.length - 1});
	*why = "the part after \"/\" is not a prefix length";
	if (prefix < 0)
		return false;
	*why = dotted ? "prefix above 32" : "prefix above 128";
	if (prefix > (dotted ? 32 : 128))
		return false;
	out->prefix = (uint8_t)(dotted ? MAPPED_BITS + prefix : prefix);
	struct weir_address masked = out->base;
	keep_bits(&masked, out->prefix);
	*why = "host bits are set";
	return memcmp(&masked, &out->base, sizeof masked) == 0;
}

bool weir_network_contains(const struct weir_network *network, const struct weir_address *address)
{
	/* IPv4 lives inside ::/0 only in this notation, not on the network. */
	if (network->prefix < MAPPED_BITS && weir_address_is_v4(address))
		return false;
	unsigned whole = network->prefix / 8, rest = network->prefix % 8;
	if (memcmp(network->base.bytes, address->bytes, whole) != 0)
		return false;
	return rest == 0 || (network->base.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

static bool bit_of(const struct weir_address *address, unsigned place)
{
	return (address->bytes[place / 8] >> (7 - place % 8) & 1) != 0;
}

/* Sets all bits from `kept` on. */
static void fill_bits(struct weir_address *address, unsigned kept)
{
	for (unsigned place = kept; place < 128; place++)
		address->bytes[place / 8] = (uint8_t)(address->bytes[place / 8] | 0x80u >> place % 8);
}

/* One higher; false: there is none. */
static bool increment(struct weir_address *address)
{
	for (unsigned i = 16; i-- > 0;)
		if (++address->bytes[i] != 0)
			return true;
	return false;
}

/* The largest network that begins at `first` and does not go beyond `last`; its end in `end`. */
static struct weir_network largest_network(struct weir_address first, const struct weir_address *last,
                                           struct weir_address *end)
{
	struct weir_network network = {.base = first, .prefix = 128};
	*end = first;
	while (network.prefix > 0 && !bit_of(&first, network.prefix - 1U)) {
		struct weir_address wider = first;
		fill_bits(&wider, network.prefix - 1U);
		if (memcmp(&wider, last, sizeof wider) > 0)
			break;
		network.prefix--;
		*end = wider;
	}
	return network;
}

/*
 * A network without the blanks and brackets around it, or the zone behind it: in `room` where it is not a part of the
 * text.
 */
static struct weir_span bare(struct weir_span text, char room[WEIR_NETWORK_TEXT_BYTES])
{
	text = without_blanks(text);
	const char *end = text.at + text.length;
	if (text.length < 4 || text.length > WEIR_NETWORK_TEXT_BYTES)
		return text;
	const char *close = text.at[0] == '[' ? memchr(text.at, ']', text.length) : NULL;
	const char *zone = memchr(text.at, '%', text.length);
	if (close != NULL && (close + 1 == end || close[1] == '/') && zone == NULL) {
		size_t inside = (size_t)(close - text.at - 1), behind = (size_t)(end - close - 1);
		memcpy(room, text.at + 1, inside);
		memcpy(room + inside, close + 1, behind);
		return (struct weir_span){.at = room, .length = (uint32_t)(inside + behind)};
	}
	bool v6 = memchr(text.at, ':', text.length) != NULL;
	if (close == NULL && zone != NULL && v6 && memchr(text.at, '/', text.length) == NULL)
		return (struct weir_span){.at = text.at, .length = (uint32_t)(zone - text.at)};
	return text;
}

uint32_t weir_networks_parse(struct weir_span text, struct weir_network networks[WEIR_RANGE_NETWORKS_MAX],
                             const char **why)
{
	char room[WEIR_NETWORK_TEXT_BYTES];
	const char *dash = text.length > 0 ? memchr(text.at, '-', text.length) : NULL;
	struct weir_address first, last, end;
	if (dash == NULL)
		return weir_network_parse(bare(text, room), &networks[0], why);
	struct weir_span left = {.at = text.at, .length = (uint32_t)(dash - text.at)};
	struct weir_span right = {.at = dash + 1, .length = text.length - left.length - 1};
	*why = "not an address";
	if (!weir_address_parse(without_blanks(left), &first) || !weir_address_parse(without_blanks(right), &last))
		return 0;
	*why = "a range's ends must both be IPv4 or both IPv6";
	if (weir_address_is_v4(&first) != weir_address_is_v4(&last))
		return 0;
	*why = "a range's first address must not be above its last";
	if (memcmp(&first, &last, sizeof first) > 0)
		return 0;
	uint32_t count = 0;
	do {
		networks[count++] = largest_network(first, &last, &end);
		first = end;
	} while (memcmp(&end, &last, sizeof end) < 0 && increment(&first));
	return count;
}

/* How many dots stand in a part of a text. */
static unsigned dots_in(const char *at, const char *end)
{
	unsigned dots = 0;
	for (; at < end; at++)
		dots += *at == '.';
	return dots;
}

bool weir_network_meant(const char *text)
{
	const char *end = text + strlen(text), *mark = strpbrk(text, "*/-"), *colon = strchr(text, ':');
	if (mark == NULL)
		return false;
	size_t digits = strspn(text, "0123456789.*/- "), hex = strspn(text, "0123456789abcdefABCDEF:.*/- ");
	bool v4 = text[digits] == '\0' && text[0] >= '0' && text[0] <= '9' && dots_in(text, mark) > 0;
	bool v6 = text[hex] == '\0' && colon != NULL && strchr(colon + 1, ':') != NULL;
	if (*mark == '-') /* and no version or date */
		v4 = v4 && dots_in(text, mark) == 3 && dots_in(mark, end) == 3;
	return v4 || v6;
}

enum weir_status weir_network_check(const char *text, const char *why, struct weir_error *error)
{
	bool meant = weir_network_meant(text);
	if (meant && strchr(text, '*') != NULL)
		return weir_fail(error, WEIR_INVALID,
		                 "\"%s\" is a wildcard in an address; give a network such as 192.0.2.0/24, or a range such as "
		                 "192.0.2.1-192.0.2.9",
		                 text);
	if (meant || strcmp(why, "not an address") != 0)
		return weir_fail(error, WEIR_INVALID, "\"%s\" is not a network: %s", text, why);
	return WEIR_OK;
}

const char *weir_network_format(const struct weir_network *network, char *buffer)
{
	uint32_t length = weir_address_format(&network->base, buffer);
	bool v4 = weir_address_is_v4(&network->base) && network->prefix >= MAPPED_BITS;
	if (network->prefix < 128)
		snprintf(buffer + length, 5, "/%d", v4 ? network->prefix - MAPPED_BITS : network->prefix);
	return buffer;
}
