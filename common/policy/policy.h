/*
 * The policy: zones, and for each what it counts, by which key, against which
 * limits. Parsed once from the configuration or from a policy record of the
 * log; immutable afterwards, shared by all threads.
 *
 * The collector reads match, exempt and key (collector/match/matcher.h); the limiter
 * reads limits, count, block_for and mode (limiter/bucket/rules.h).
 */
#ifndef WEIR_COMMON_POLICY_H
#define WEIR_COMMON_POLICY_H

#include "common/base/status.h"
#include "common/bytes/address.h"
#include "common/json/json.h"

enum {
	WEIR_ZONES_MAX = 1024,
	WEIR_ZONE_ID_MAX = 65535,
	WEIR_ZONE_LIMITS_MAX = 8,
	WEIR_ZONE_KEY_MAX = 4,
	WEIR_ZONE_NAME_MAX_BYTES = 64,
	WEIR_ZONE_DESCRIPTION_MAX_BYTES = 1024,
	WEIR_FIELD_NAME_MAX_BYTES = 256,
	WEIR_MATCH_FIELDS_MAX = 16,
	WEIR_MATCH_VALUES_MAX = 4096,
	WEIR_MATCH_VALUE_MAX_BYTES = 4096,
	WEIR_POLICY_TEXT_MAX_BYTES = 1000000, /* one policy is one record of the log: exempt lists included */
	WEIR_KEY_MAX_BYTES = 1024, /* of a joined key: longer ones are shortened (collector/match/key_template.h) */
	WEIR_PARTITIONS_MAX = 1024,
};

enum weir_algorithm {
	WEIR_SLIDING_WINDOW,
	WEIR_FIXED_WINDOW,
	WEIR_UNIFORM,
	WEIR_TOKEN_BUCKET,
	WEIR_GCRA,
	WEIR_QUEUE,
	WEIR_ALGORITHM_COUNT,
};

const char *weir_algorithm_name(enum weir_algorithm algorithm);

/*
 * Bounds that keep all arithmetic in 64 bits (128 where said): rate, burst, length 1..10^9; times 1 ms..366 d;
 * and burst (gcra: burst + 1) times the window in ms, which is what a full bucket holds.
 */
#define WEIR_RATE_MAX INT64_C(1000000000)
#define WEIR_WINDOW_MAX_MS (INT64_C(366) * 86400000)
#define WEIR_BURST_WINDOW_MAX INT64_C(4000000000000000000)

/* One value of "match": exact bytes, or with '*' a pattern; for status three digits, or a digit and "xx". */
struct weir_match_value {
	char *text;
	uint32_t length;
	bool wildcard;
};

/* One field of "match": any of its values. */
struct weir_match_field {
	char *field;
	struct weir_match_value *values;
	uint32_t value_count;
};

struct weir_match {
	struct weir_match_field *fields; /* all of them must hold */
	uint32_t field_count;
};

/* One value of a key template. */
struct weir_key_field {
	char *field;
	bool grouped;             /* an address is canonical and masked; other values stay as they are */
	uint8_t prefix4, prefix6; /* 32 and 128 by default; the value of a shorter one is written as a network */
};

struct weir_limit {
	enum weir_algorithm algorithm;
	int64_t rate;           /* sliding_window, fixed_window, token_bucket, gcra; 1 for uniform */
	int64_t window_ms;      /* the same; uniform: its interval */
	int64_t precision_ms;   /* sliding_window; 0: none */
	int64_t offset_ms;      /* fixed_window, 0 <= offset < window */
	int64_t burst;          /* token_bucket (rate by default), gcra (0 is allowed) */
	bool penalize;          /* token_bucket */
	int64_t length;         /* queue */
	int64_t hold_ms;        /* queue */
	struct weir_match done; /* queue: field_count 0 if none is given */
};

/* What a limit of any algorithm says in two numbers: of a queue its length and hold stand for rate and window. */
static inline int64_t weir_limit_rate(const struct weir_limit *limit)
{
	return limit->algorithm == WEIR_QUEUE ? limit->length : limit->rate;
}

static inline int64_t weir_limit_window_ms(const struct weir_limit *limit)
{
	return limit->algorithm == WEIR_QUEUE ? limit->hold_ms : limit->window_ms;
}

enum weir_zone_mode { WEIR_ENFORCE, WEIR_SHADOW };

static inline const char *weir_mode_name(enum weir_zone_mode mode)
{
	return mode == WEIR_SHADOW ? "shadow" : "enforce";
}

struct weir_zone {
	uint32_t id;       /* 1..WEIR_ZONE_ID_MAX, never reused */
	char *name;        /* [A-Za-z0-9_.-]+, at most WEIR_ZONE_NAME_MAX_BYTES */
	char *description; /* "" by default */
	struct weir_key_field key[WEIR_ZONE_KEY_MAX];
	uint32_t key_count; /* 0: one bucket for the zone */
	struct weir_match match;
	struct weir_network *exempt_networks;
	uint32_t exempt_network_count; /* sorted, each once */
	char **exempt_words;           /* sorted by strcmp, each once */
	uint32_t exempt_word_count;
	struct weir_limit limits[WEIR_ZONE_LIMITS_MAX];
	uint32_t limit_count; /* >= 1 */
	bool count_all;
	int64_t block_for_ms;
	enum weir_zone_mode mode;
	bool history;
};

struct weir_policy {
	uint64_t version; /* 0 until it is numbered */
	struct weir_zone *zones;
	uint32_t zone_count;
	char *text; /* canonical JSON {"zones":[…]} with every default filled in, sorted keys: what a policy record
	               holds and what "differs" compares */
};

/**
 * Parses "zones" (an array). Zone ids may be left out: they are 1, 2, … by place; all or none.
 * {"file": …} in exempt is read here, so the canonical text is complete in itself.
 */
WEIR_MUST_USE enum weir_status weir_policy_parse(const struct weir_json *zones, struct weir_policy **policy,
                                                 struct weir_error *error);
/** From a policy record's canonical text. */
WEIR_MUST_USE enum weir_status weir_policy_decode(uint64_t version, const char *text, size_t length,
                                                  struct weir_policy **policy, struct weir_error *error);
void weir_policy_free(struct weir_policy *policy);

const struct weir_zone *weir_policy_zone(const struct weir_policy *policy, uint32_t id);
/** Whether b can go on with a's state: the same algorithm and numbers (`done` is the collector's affair). */
bool weir_limit_equal(const struct weir_limit *a, const struct weir_limit *b);
/** Whether `next` may follow `previous`: a zone in both keeps its id, its name and its key. Words in error. */
WEIR_MUST_USE enum weir_status weir_policy_check_successor(const struct weir_policy *previous,
                                                           const struct weir_policy *next, struct weir_error *error);
/** What a zone means in one sentence, as `weir validate` prints it; returned, the caller frees. */
char *weir_zone_describe(const struct weir_zone *zone);
/** How far back a limit's state can matter, ms: W + precision, interval, burst*W/N, (burst+1)*W/N (up), hold. */
int64_t weir_limit_memory_ms(const struct weir_limit *limit);

#endif
