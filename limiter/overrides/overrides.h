/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Overrides: operators' commands that are in force for keys of one partition. They are
 * kept beside the buckets and are part of the shard's state: only commands in the log
 * change them, and only their clock ends them: the highest sending time in the log
 * from the newest command on, that of the command included. The partition's clock
 * would not do. If a sender's clock was ahead once, it is past the ends of commands
 * that are given now, and they would be over as they come.
 *
 * For one key there may be a block or an allow (the later command counts), and
 * beside it an override of its rates; for a prefix of joined keys an override; for
 * a network a block or an allow. Of a key and the networks that it lies in, the
 * narrowest whose block or allow is for an event counts.
 *
 *   a block or an allow is for events whose time is before its end, whenever
 *   they come; it is forgotten once the clock is past that and the lateness
 *   an override is for what is judged while the clock is before its end, as a
 *   policy is for what comes behind it: so that an event out of order does not
 *   change a key's limits to and fro
 *
 * Bounded in number and bytes. One thread touches them.
 */
#ifndef LIMITER_OVERRIDES_H
#define LIMITER_OVERRIDES_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "limiter/overrides/override_command.h"

enum {
	OVERRIDES_MAX = 10000,                 /* keys, prefixes and networks of one partition */
	OVERRIDES_BYTES_MAX = 4 * 1024 * 1024, /* of their keys and words: they are in every checkpoint */
};

/* One command that is in force. */
struct override_setting {
	bool active;
	int64_t at_ms;    /* when it was given */
	int64_t until_ms; /* exclusive; OVERRIDE_NO_END */
	uint64_t offset;  /* of the record that gave it, which its decision's id is made of */
	char *by, *reason;
};

enum { OVERRIDE_NETWORK_BYTES = 17 }; /* an address and a number of bits */

/* What is in force for a key, or a prefix of keys, or a network, in a zone. */
struct override {
	uint32_t zone_id;
	enum override_scope scope;
	struct weir_span key; /* joined, or a network's text; owned */
	char network[OVERRIDE_NETWORK_BYTES];
	uint64_t hash;
	struct override_setting block, allow, rate; /* block and allow never both */
	uint32_t thousandths;                       /* of the rate */
};

/* The lengths that prefixes have, or networks: each once, the longest first. */
struct override_lengths {
	uint16_t *all; /* owned */
	uint32_t count;
};

struct overrides {
	int64_t lateness_ms;    /* < 0: blocks and allows are never forgotten */
	struct override **list; /* in the order of their first commands */
	uint32_t count, room;
	uint32_t *index; /* place in the list + 1 by hash, linear probing; 0: free */
	uint32_t index_room;
	size_t bytes;
	int64_t clock_ms;
	int64_t next_end_ms; /* the clock at which some setting ends; INT64_MAX: none does */
	struct override_lengths prefixes, networks;
	uint32_t partition, partitions;
};

/** @param partitions  of the log */
void overrides_init(struct overrides *overrides, int64_t lateness_ms, uint32_t partition, uint32_t partitions);
void overrides_deinit(struct overrides *overrides);

static inline bool overrides_any(const struct overrides *overrides)
{
	return overrides->count > 0;
}

static inline bool overrides_have_networks(const struct overrides *overrides)
{
	return overrides->networks.count > 0;
}

/** Whether anything may hold for a key. */
bool overrides_touch(const struct overrides *overrides, uint32_t zone_id, struct weir_span key);

/* What is in force for a key at an event. */
struct override_effect {
	bool blocked, allowed;
	uint32_t thousandths; /* 1000: its rates are the policy's */
};

/**
 * @param t         Unix ms: the event's time, with which blocks and allows compare their ends
 * @param clock_ms  Unix ms: the overrides' clock or a later time, with which rates do
 */
struct override_effect overrides_effect(const struct overrides *overrides, uint32_t zone_id, struct weir_span key,
                                        int64_t t, int64_t clock_ms);

/* Goes over what holds for a key: zero-initialised is before the first. The overrides must not change meanwhile. */
struct overrides_walk {
	bool begun;
	uint32_t from;
};

/**
 * Of the blocks and allows that are for an event of a key, the next: that of the key itself, then those of the networks
 * that it lies in, from the narrowest on. The first of all is what counts. @param key  a network's text is fine
 * @return NULL: there are no more
 */
const struct override *overrides_next(const struct overrides *overrides, uint32_t zone_id, struct weir_span key,
                                      int64_t t, struct overrides_walk *walk);

/**
 * Whether this partition publishes what is commanded for a key: of a network, which every partition has, the one that
 * its text as a key would have.
 */
bool overrides_publish(const struct overrides *overrides, enum override_scope scope, struct weir_span key);

/** The block of a key or a network that ends after a time, NULL if there is none; valid until the next command or purge. */
const struct override_setting *overrides_block_after(const struct overrides *overrides, uint32_t zone_id,
                                                     enum override_scope scope, struct weir_span key, int64_t at_ms);

/**
 * Changes the overrides as a command says. Their clock is its time from then on, unless it only ends something.
 *
 * @param at_ms  when it was given
 * @return WEIR_OK; WEIR_FULL: there are too many overrides, nothing was changed: words in error
 */
WEIR_MUST_USE enum weir_status overrides_apply(struct overrides *overrides, uint32_t zone_id,
                                               const struct override_command *command, int64_t at_ms,
                                               struct weir_error *error);

/** Advances the clock to the time that a record was sent at, if that is later, and forgets what has ended. */
void overrides_advance(struct overrides *overrides, int64_t sent_ms);

/** Drops the overrides of zones that are not in force. */
void overrides_keep_zones(struct overrides *overrides, bool (*in_force)(const void *context, uint32_t zone_id),
                          const void *context);

/* ---- as bytes, little-endian; overrides_blob.c says which ---- */

void overrides_export(const struct overrides *overrides, struct weir_text *bytes);

/** Takes the place of what is there. @return false: the bytes are no overrides, and there are none */
bool overrides_import(struct overrides *overrides, struct weir_span bytes);

/* ---- for overrides_blob.c ---- */

/** An override of a key, made if there is none yet. @param key  of a network: override_network_parse() takes it */
struct override *overrides_make(struct overrides *overrides, uint32_t zone_id, enum override_scope scope,
                                struct weir_span key);
void overrides_set(struct overrides *overrides, struct override_setting *setting, int64_t at_ms, int64_t until_ms,
                   uint64_t offset, const char *by, const char *reason);
/** To be called when overrides were made or changed. */
void overrides_settle(struct overrides *overrides);

#endif
