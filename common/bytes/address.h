/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPv4 and IPv6 addresses and networks, in one 128-bit form: IPv4 is kept as
 * ::ffff:a.b.c.d, so a v4-mapped IPv6 address and its IPv4 are the same.
 */
#ifndef WEIR_COMMON_ADDRESS_H
#define WEIR_COMMON_ADDRESS_H

#include "common/base/span.h"
#include "common/base/status.h"

enum {
	WEIR_ADDRESS_TEXT_BYTES = 46,
	WEIR_NETWORK_TEXT_BYTES = WEIR_ADDRESS_TEXT_BYTES + 4,
	WEIR_RANGE_NETWORKS_MAX = 256, /* a range of IPv6 comes to 254 networks at most */
};

struct weir_address {
	uint8_t bytes[16]; /* network order; IPv4 as ::ffff:a.b.c.d */
};

struct weir_network {
	struct weir_address base; /* host bits are zero */
	uint8_t prefix;           /* 0..128 in the 128-bit form (IPv4 /8 is 104) */
};

/** A bare address as inet_pton takes it: no brackets, port or zone, no leading zeros in IPv4. */
bool weir_address_parse(struct weir_span text, struct weir_address *out);
/**
 * An address as logs and gateways write it: bare, with a port ("192.0.2.1:443", "[2001:db8::1]:443"), in brackets, with
 * the zone of a link ("fe80::1%eth0"), or with blanks around it. None of these is a part of it.
 */
bool weir_address_read(struct weir_span text, struct weir_address *out);
bool weir_address_is_v4(const struct weir_address *address);
/** Canonical text as inet_ntop writes it (RFC 5952; IPv4 dotted), terminated. Gives its length. */
uint32_t weir_address_format(const struct weir_address *address, char text[WEIR_ADDRESS_TEXT_BYTES]);
/** Clears the host bits: prefix4 of an IPv4 address, prefix6 of any other. */
void weir_address_mask(struct weir_address *address, uint8_t prefix4, uint8_t prefix6);

/**
 * "10.0.0.0/8", "2001:db8::/32" or a bare address.
 *
 * @param why  set to words on failure: "host bits are set", "prefix above 32", "not an address"
 */
bool weir_network_parse(struct weir_span text, struct weir_network *out, const char **why);
/**
 * The networks of "10.0.0.0/8", of a bare address, or of a range "192.0.2.1-192.0.2.9", both ends included. An address
 * may stand in brackets ("[2001:db8::]/32"), and a single one may have the zone of a link behind it ("fe80::1%eth0").
 *
 * @param why  set to words on failure
 * @return how many; 0: it is none of these
 */
uint32_t weir_networks_parse(struct weir_span text, struct weir_network networks[WEIR_RANGE_NETWORKS_MAX],
                             const char **why);
/** Whether a text that is no network was meant as one: "10.0.0.1/8", "192.0.2.9-192.0.2.1", "192.0.2.*". */
bool weir_network_meant(const char *text);
/** Refuses a text that is no network and was meant as one; any other is WEIR_OK. @param why  of weir_networks_parse() */
WEIR_MUST_USE enum weir_status weir_network_check(const char *text, const char *why, struct weir_error *error);
/** Canonical text of a network; a bare address where it is one. Buffer of WEIR_NETWORK_TEXT_BYTES. */
const char *weir_network_format(const struct weir_network *network, char *buffer);
/** An IPv4 address is in no IPv6 network, ::/0 included. */
bool weir_network_contains(const struct weir_network *network, const struct weir_address *address);

#endif
