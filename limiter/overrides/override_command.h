/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's command: the body of a WEIR_FRAME_COMMAND frame.
 *
 *   {"command":"block","zone":"site","key":["203.0.113.9"],"until":1732173655007,"by":"ann","reason":"scraping",
 *    "id":"5f0c…"}
 *
 *   command   block: the key is blocked until its time, or until it is lifted
 *             lift: ends its block, whether a limit or an operator set it, and empties its bucket
 *             allow: it passes, and nothing is recorded, until its time; ends its block; a time in the past ends it
 *             override: the rates of its limits are multiplied until its time; "1" ends it
 *   zone      the zone's name
 *   key       the values of its key, as a collector would have them; or
 *   key_hex   the joined key as hexadecimal digits, where it is not UTF-8
 *   until     Unix ms, exclusive; absent: no end
 *   rate      of an override: "0.5", "10"; at most three decimal places, 0.001 to 100
 *   prefix    true, of an override: for every key whose joined form begins with that of these values
 *   network   true, of a block, lift or allow: the key's one value is a network, "10.0.0.0/8", and every key of the zone
 *             that lies in it is meant
 *   by        who gives the command
 *   reason    why; "" by default
 *   id        of the command, so that people can tell two alike apart; any word
 *
 * A command goes to the key's partition, one for a prefix or a network to every partition.
 */
#ifndef LIMITER_OVERRIDE_COMMAND_H
#define LIMITER_OVERRIDE_COMMAND_H

#include "common/base/span.h"
#include "common/base/text.h"
#include "common/bytes/address.h"
#include "common/frame/frame.h"
#include "common/policy/policy.h"

enum {
	OVERRIDE_BY_MAX_BYTES = 64,
	OVERRIDE_REASON_MAX_BYTES = 256,
	OVERRIDE_ID_MAX_BYTES = 64,
	OVERRIDE_BODY_MAX_BYTES = 16 * 1024,
	OVERRIDE_RATE_DIGITS = 3,
};

/* Of what has no end: above every event's time. */
#define OVERRIDE_NO_END WEIR_TIME_END_MS

/* Of the commands that `weir forget` gives. */
#define OVERRIDE_REASON_FORGET "weir forget"

enum override_kind { OVERRIDE_BLOCK, OVERRIDE_LIFT, OVERRIDE_ALLOW, OVERRIDE_RATE };

enum { OVERRIDE_KIND_COUNT = OVERRIDE_RATE + 1 };

/* What a command is about. */
enum override_scope {
	OVERRIDE_OF_KEY,
	OVERRIDE_OF_PREFIX,  /* every key that begins with it; only rates */
	OVERRIDE_OF_NETWORK, /* every key that lies in it; never rates */
};

struct override_command {
	enum override_kind kind;
	char zone[WEIR_ZONE_NAME_MAX_BYTES + 1];
	char key[WEIR_KEY_MAX_BYTES]; /* joined */
	uint32_t key_length;
	uint32_t value_count;
	enum override_scope scope;
	int64_t until_ms;     /* OVERRIDE_NO_END */
	uint32_t thousandths; /* override */
	char by[OVERRIDE_BY_MAX_BYTES + 1];
	char reason[OVERRIDE_REASON_MAX_BYTES + 1];
	char id[OVERRIDE_ID_MAX_BYTES + 1];
	uint64_t offset; /* of its record: not of the body, whoever reads the log sets it */
};

/** "block", "lift", "allow", "override". */
const char *override_kind_name(enum override_kind kind);

/**
 * Reads a body and checks all that can be checked without a policy.
 *
 * @return WEIR_OK; WEIR_INVALID with the reason
 */
WEIR_MUST_USE enum weir_status override_command_parse(struct weir_span body, struct override_command *command,
                                                      struct weir_error *error);

/**
 * Whether a zone takes the command: its key must have as many values (a prefix: at most as many). It takes a network if
 * its key is one address, and the network is wider than what the zone counts as one.
 */
WEIR_MUST_USE enum weir_status override_command_check(const struct override_command *command,
                                                      const struct weir_zone *zone, struct weir_error *error);

/** Appends the body. What is joined in `key` is written as its values, or in hexadecimal digits. */
void override_command_json(struct weir_text *text, const struct override_command *command);

/** Its record. @return the message; the caller frees */
char *override_command_message(const struct override_command *command, uint64_t policy_version, int64_t now_ms,
                               size_t *length);

/** "0.5", "10" to thousandths; false: it is none, or not from 0.001 to 100. */
bool override_rate_parse(const char *text, uint32_t *thousandths);

/** The other way: the shortest form. @param text  of at least 12 bytes */
void override_rate_format(uint32_t thousandths, char *text);

/** A network as commands write it: canonical, of several addresses, not of all. @return false: it is none */
bool override_network_parse(struct weir_span text, struct weir_network *network);

/** Whether a zone's key is one address, which may lie in networks. */
bool override_zone_takes_networks(const struct weir_zone *zone);

/** How many leading bits the zone tells addresses of this one's family apart by, in the 128-bit form. */
uint8_t override_zone_bits(const struct weir_zone *zone, const struct weir_address *address);

/** How many values a joined key has: escapes are taken off as they come. */
uint32_t override_value_count(struct weir_span key);

/** Appends one more value to a joined key; false: it does not fit. */
bool override_key_add(struct override_command *command, struct weir_span value);

static inline struct weir_span override_key(const struct override_command *command)
{
	return (struct weir_span){.at = command->key, .length = command->key_length};
}

#endif
