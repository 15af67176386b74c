/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy: zones, and for each what it counts, by which key, against which
 * limits. Parsed once from the configuration or from a policy record of the
 * log; immutable afterwards, shared by all threads.
 *
 * The collector reads match, exempt and key (common/matcher/matcher.h); the limiter
 * reads limits, count, block_for and mode (limiter/bucket/compiled_policy.h).
 */
#ifndef WEIR_COMMON_POLICY_H
#define WEIR_COMMON_POLICY_H

#include "common/algorithm/algorithm.h"
#include "common/base/status.h"
#include "common/bytes/address.h"
#include "common/json/json.h"
#include "common/match/match.h"
#include "common/policy/exempt_entries.h"
#include "common/policy/verified.h"

enum {
	WEIR_ZONES_MAX = 1024,
	WEIR_ZONE_ID_MAX = 65535,
	WEIR_ZONE_LIMITS_MAX = 8,
	WEIR_ZONE_KEY_MAX = 4,
	WEIR_ZONE_SOURCES_MAX = 256,
	WEIR_ZONE_BLOCKS_MAX = 16,
	WEIR_ZONE_EXEMPT_MATCHES_MAX = 256,
	WEIR_ZONE_HISTORY_FIELDS_MAX = 16,
	WEIR_ZONE_NAME_MAX_BYTES = 64,
	WEIR_ZONE_DESCRIPTION_MAX_BYTES = 1024,
	WEIR_POLICY_TEXT_MAX_BYTES = 1000000, /* one policy is one record of the log: exempt lists included */
	WEIR_KEY_MAX_BYTES = 1024, /* of a joined key: longer ones are shortened (common/matcher/key_template.h) */
	WEIR_PARTITIONS_MAX = 1024,
};

/* The name of the source of weir's own decisions. Only zones that name it count them. */
#define WEIR_SOURCE_DECISIONS "decisions"

/* One value of a key template. */
struct weir_key_field {
	char *field;
	bool grouped;             /* an address is canonical and masked; other values stay as they are */
	uint8_t prefix4, prefix6; /* 32 and 128 by default; the value of a shorter one is written as a network */
};

enum weir_zone_mode { WEIR_ENFORCE, WEIR_SHADOW };

static inline const char *weir_mode_name(enum weir_zone_mode mode)
{
	return mode == WEIR_SHADOW ? "shadow" : "enforce";
}

/* What a zone counts: a request that is both logged and checked would count twice in a zone of both. */
enum weir_zone_feed { WEIR_FEED_BOTH, WEIR_FEED_LOG, WEIR_FEED_CHECK };

enum { WEIR_SHARE_BYTES = 32 };

/* "mode": {"shadow_until": …}: what has to hold before the zone enforces. */
struct weir_arming {
	int64_t share_ppm; /* below which share of a day's keys, in millionths; 0: "mode" is a word */
	int64_t span_ms;   /* on so many days in a row: whole days */
	char *armed;       /* why it enforces, as weir wrote it; NULL: it waits, in shadow mode */
};

/** The fewest keys with which a day says anything: one blocked key of them is the share, or less. */
static inline int64_t weir_arming_least_keys(const struct weir_arming *arming)
{
	return (1000000 + arming->share_ppm - 1) / arming->share_ppm;
}

/** "0.1%". @return text */
const char *weir_share_text(int64_t share_ppm, char text[WEIR_SHARE_BYTES]);

/* A file of "exempt", and its state when it was read. */
struct weir_exempt_file {
	char *path;
	struct weir_exempt_file_state state;
};

struct weir_zone {
	uint32_t id;       /* 1..WEIR_ZONE_ID_MAX, never reused */
	bool id_given;     /* by the configuration; else its name decides: weir_policy_give_ids() */
	char *name;        /* [A-Za-z0-9_.-]+, at most WEIR_ZONE_NAME_MAX_BYTES */
	char *description; /* "" by default */
	struct weir_key_field key[WEIR_ZONE_KEY_MAX];
	uint32_t key_count; /* 0: one bucket for the zone */
	struct weir_match match;
	struct weir_network *exempt_networks;
	uint32_t exempt_network_count; /* sorted, each once */
	char **exempt_words;           /* sorted by strcmp, each once; with '*' a pattern */
	uint32_t exempt_word_count;
	struct weir_match *exempt_matches; /* records, by any of their fields */
	uint32_t exempt_match_count;
	struct weir_verified *exempt_verified; /* robots, whose hosts are asked for by name */
	uint32_t exempt_verified_count;
	struct weir_exempt_file *exempt_files; /* that were read for it; none in a policy that comes from a record */
	uint32_t exempt_file_count;
	char **exempt_lists; /* paths of more entries, which are not read here: common/exempt/exempt_list.h */
	uint32_t exempt_list_count;
	char **sources; /* names: only their records are in the zone; none: all are */
	uint32_t source_count;
	struct weir_limit limits[WEIR_ZONE_LIMITS_MAX];
	uint32_t limit_count; /* >= 1 */
	bool count_all;
	enum weir_zone_feed feed;
	bool durable;                                /* its checks are answered after the log has acknowledged them */
	int64_t block_for_ms;                        /* of the first block; 0: as long as the limits say */
	int64_t block_list_ms[WEIR_ZONE_BLOCKS_MAX]; /* of the n-th block of a key, ascending */
	uint32_t block_list_count;                   /* 0: every block is like the first */
	int64_t forgive_after_ms;                    /* from the end of a block on, until the next is a first one */
	enum weir_zone_mode mode;
	struct weir_arming arming;
	bool history;          /* the archiver keeps every event */
	char **history_fields; /* and, of its record, these fields, each once */
	uint32_t history_field_count;
};

struct weir_policy {
	uint64_t version; /* 0 until it is numbered */
	struct weir_zone *zones;
	uint32_t zone_count;
	char *text; /* canonical JSON {"zones":[…]} with every default filled in, sorted keys: what a policy record
	               holds and what "differs" compares */
};

/**
 * Parses "zones" (an array). A zone without an id gets one that is free.
 * {"file": …} in exempt is read here; of one with more than 10,000 entries the canonical text holds its path alone.
 *
 * @param exempt  what every zone has beside its own "exempt", without words; NULL: nothing
 */
WEIR_MUST_USE enum weir_status weir_policy_parse(const struct weir_json *zones, const struct weir_json *exempt,
                                                 struct weir_policy **policy, struct weir_error *error);
/** What an element of "zones" may be (common/json/json_shape.h); it names "match" and "limit". */
json_t *weir_zone_shape(void);

/** Whether a zone exempts anybody. */
static inline bool weir_zone_exempts(const struct weir_zone *zone)
{
	return zone->exempt_word_count > 0 || zone->exempt_network_count > 0 || zone->exempt_match_count > 0 ||
	       zone->exempt_list_count > 0 || zone->exempt_verified_count > 0;
}

/** What the "exempt" of all zones may be. */
json_t *weir_exempt_shared_shape(void);
/** From a policy record's canonical text. */
WEIR_MUST_USE enum weir_status weir_policy_decode(uint64_t version, const char *text, size_t length,
                                                  struct weir_policy **policy, struct weir_error *error);
void weir_policy_free(struct weir_policy *policy);

const struct weir_zone *weir_policy_zone(const struct weir_policy *policy, uint32_t id);
/** The zone of a name; NULL: there is none, or no policy. */
const struct weir_zone *weir_policy_zone_named(const struct weir_policy *policy, struct weir_span name);
/** Says that there is no zone of a name of any bytes, and which of these was meant, or may be. @param names  NULL ends them */
void weir_policy_no_zone(const char *const *names, struct weir_span name, struct weir_error *error);
/** The zone of a name of any bytes, NULL: there is none; the words then suggest what was meant. */
const struct weir_zone *weir_policy_find_zone(const struct weir_policy *policy, struct weir_span name,
                                              struct weir_error *error);
/**
 * Gives an id to each zone whose configuration gives none: that of the zone of its name in the newest policy that has
 * one, else one that no zone ever had. Writes the policy's text anew.
 *
 * @param history  all policies so far, by ascending version; none: 1, 2, … by place
 * @return WEIR_OK; WEIR_INVALID: there is none left
 */
WEIR_MUST_USE enum weir_status weir_policy_give_ids(struct weir_policy *policy,
                                                    const struct weir_policy *const *history, size_t count,
                                                    struct weir_error *error);
/** Whether `next` may follow `previous`: a zone in both keeps its id, its name and its key. Words in error. */
WEIR_MUST_USE enum weir_status weir_policy_check_successor(const struct weir_policy *previous,
                                                           const struct weir_policy *next, struct weir_error *error);
/** Gives the ids, and checks against every earlier policy, the newest first. @return as those two */
WEIR_MUST_USE enum weir_status weir_policy_follow(struct weir_policy *policy, const struct weir_policy *const *history,
                                                  size_t count, struct weir_error *error);
/** Where a configuration names a zone's list of "exempt", so that an error about it can say so. */
struct weir_json weir_exempt_place(const struct weir_json *root, uint32_t zone, const char *path);
/** Whether some zone's "exempt" names a list that stays a file. */
bool weir_policy_has_lists(const struct weir_policy *policy);
/**
 * Whether a weir that reads frames of version 1 alone would refuse it or take it for another: a zone has robots, a list
 * that is fetched, fields of its history, a feed, durable checks, or is in shadow until something holds.
 */
bool weir_policy_is_extended(const struct weir_policy *policy);
/** Whether records of a source of that name may be in the zone. @param name  NULL: it has none */
bool weir_zone_takes_source(const struct weir_zone *zone, const char *name);
/** Whether the zone counts decisions of zones. */
bool weir_zone_counts_decisions(const struct weir_zone *zone);
/** Whether it counts those of another zone. What is not certain counts as counted. */
bool weir_zone_counts_those_of(const struct weir_zone *zone, const struct weir_zone *other);
/** Whether checks may be asked in the zone. Words in error. @return WEIR_OK; WEIR_INVALID: it counts log lines alone */
WEIR_MUST_USE enum weir_status weir_zone_takes_checks(const struct weir_zone *zone, struct weir_error *error);
/** Whether the zone's key has the field. */
bool weir_zone_counts_by(const struct weir_zone *zone, const char *field);
/** Whether some zone's key has it. */
bool weir_policy_counts_by(const struct weir_policy *policy, const char *field);
/** Whether a key field's values are addresses, which have one form in every key: the ip, or a grouped field. */
static inline bool weir_key_field_is_address(const struct weir_key_field *field)
{
	return field->grouped || strcmp(field->field, "ip") == 0;
}
/** Whether every field of a zone's key is an address. A word never equals one. */
bool weir_zone_counts_addresses(const struct weir_zone *zone);
/** Whether the zone is in shadow mode until it would block few. */
static inline bool weir_zone_waits(const struct weir_zone *zone)
{
	return zone->arming.share_ppm > 0 && zone->arming.armed == NULL;
}
/** What decides who is blocked, as JSON: key, match, sources, limits, count. Returned, the caller frees. */
char *weir_zone_settings(const struct weir_zone *zone);
/** Makes a zone that waits enforce. Writes the policy's text anew. @param words  why, copied */
void weir_policy_arm(struct weir_policy *policy, uint32_t zone, const char *words);
/** Whether all that changes is that zones which waited enforce, armed by weir. @param before  NULL: false */
bool weir_policy_is_arming(const struct weir_policy *before, const struct weir_policy *after);
/**
 * Zones that wait, but were armed in the newest policy, stay armed while their settings are the same: whoever applies his
 * file again does not put them back into shadow. Writes the policy's text anew.
 *
 * @param newest  NULL: there is none
 */
void weir_policy_stay_armed(struct weir_policy *policy, const struct weir_policy *newest);
/** The least that the n-th block of a key lasts, n from 1. */
static inline int64_t weir_zone_block_ms(const struct weir_zone *zone, uint32_t nth)
{
	if (zone->block_list_count == 0)
		return zone->block_for_ms;
	return zone->block_list_ms[(nth < zone->block_list_count ? nth : zone->block_list_count) - 1];
}
/**
 * Which records a zone takes, under which keys, and which of them are done in its queues, as text: zones with the same text
 * take the same. Returned, the caller frees.
 */
char *weir_zone_records_text(const struct weir_zone *zone);
/** What a zone means in one sentence, as `weir validate` prints it; returned, the caller frees. */
char *weir_zone_describe(const struct weir_zone *zone);

#endif
