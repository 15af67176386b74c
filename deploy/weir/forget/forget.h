/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir forget`: the key to forget, and the progress.
 *
 * In this order: append commands to the log, as an operator would (live); wait until
 * limiters and archivers have passed them; then delete the rows. So nothing that was
 * in flight when the command came is written afterwards. Each step may be done
 * twice.
 */
#ifndef DEPLOY_WEIR_FORGET_FORGET_H
#define DEPLOY_WEIR_FORGET_FORGET_H

#include "common/cluster/key_hash.h"
#include "common/cluster/policy_log.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/overrides/override_append.h"
#include "deploy/weir/overrides/override_options.h"

/* How far the topics that are archived are, or were read, in one partition. */
struct forget_ends {
	uint64_t judged, decisions, shadow;
};

/* A key of one zone. A zone that was renamed is there by each of its names: decisions go by it. */
struct forget_zone {
	uint32_t id;
	char name[WEIR_ZONE_NAME_MAX_BYTES + 1];
	bool live;                    /* limiters know it: it is of the newest policy */
	bool velocity;                /* check_velocity's, whose keys are in clear */
	bool shared;                  /* the key is a network's, and so that of all its members */
	const struct weir_zone *zone; /* borrowed from the history; NULL: check_velocity's */
	char key[WEIR_KEY_MAX_BYTES];
	uint32_t key_length;
	bool placed;
	struct override_place place; /* of the last of its commands */
	struct forget_ends ends;     /* in its partition: what an archiver must have stored */
};

struct forget {
	struct override_options options; /* those that it shares with weir lift */
	int64_t timeout_ms;              /* how long may still be waited */
	int64_t end_ms;                  /* monotonic: of the waiting at work */
	struct backend backend;
	struct weir_policy_history history;
	struct weir_key_hash *hash; /* NULL: keys are in clear */
	struct forget_zone *zones;
	uint32_t zone_count, known_count; /* those first so many have the values as their whole key */
	struct weir_archive_removed removed;
	struct weir_text left;    /* in words: what is not done yet; empty: all is */
	struct weir_text unfound; /* likewise: which zones may have keys that cannot be found */
};

static inline struct weir_span forget_key(const struct forget_zone *zone)
{
	return (struct weir_span){zone->key, zone->key_length};
}

static inline bool forget_is_done(const struct forget *forget)
{
	return forget->left.length == 0 && forget->unfound.length == 0;
}

/** Finds the zones. @return WEIR_INVALID: none takes these values; WEIR_IO */
WEIR_MUST_USE enum weir_status forget_find_zones(struct forget *forget, struct weir_error *error);

/**
 * Adds the keys of other zones that have these values beside others, as far as the archive has them; what it cannot say
 * is added to `unfound`.
 */
WEIR_MUST_USE enum weir_status forget_find_wider(struct forget *forget, struct weir_error *error);

/** Whether a key of a zone is among them already. */
bool forget_has(const struct forget *forget, uint32_t id, const char *name, struct weir_span key);
/** Adds one. @param zone  borrowed for as long; @param live  it is of the newest policy */
void forget_add(struct forget *forget, const struct weir_zone *zone, struct weir_span key, bool live);
/** Whether a part of the key is a network, whose members the zone counts as one. */
bool forget_is_shared(const struct weir_zone *zone, struct weir_span key);

/** Appends the commands that empty buckets, lift blocks, and end what operators allowed or overrode. @param from  of the zones */
WEIR_MUST_USE enum weir_status forget_command(struct forget *forget, uint32_t from, struct weir_error *error);

/** Whether anybody archives: as a configuration says that has an archiver, or is of one machine; else as the store says. */
bool forget_is_archived(const struct forget *forget);

/**
 * Waits until limiters and archivers have passed the commands, at most timeout_ms, which is less by that afterwards: what
 * is still waited for then, or was not asked by then, is added to `left`.
 *
 * @param from  of the zones
 * @return WEIR_OK, also then; WEIR_INVALID: what is stored is damaged, or of a newer weir
 */
WEIR_MUST_USE enum weir_status forget_await(struct forget *forget, uint32_t from, struct weir_error *error);

/** Appends what was done, what is left, and where the key still lies until when. */
void forget_report(const struct forget *forget, struct weir_text *text);
/** The same as a JSON line. */
void forget_report_json(const struct forget *forget, struct weir_text *text);

#endif
