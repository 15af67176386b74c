/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a record to its events: which zones it is in, under which keys.
 *
 * An event is one record under one joined key. Zones that give the same key
 * share the event, so a record with three zones by ip travels once.
 *
 * A record is in a zone if it has every field of the key, none of the key's
 * values (as they stand, before grouping) nor its address is exempt, and it
 * matches. A record
 * that matches `done` of one of the zone's queues takes an entry out of them
 * and is not judged there, whatever `match` says.
 *
 * A record that stands for several has several events under each key, so that
 * some of them may pass where others are too many.
 */
#ifndef WEIR_MATCHER_H
#define WEIR_MATCHER_H

#include "common/base/status.h"
#include "common/exempt/exempt_list.h"
#include "common/frame/frame.h"
#include "common/policy/policy.h"
#include "common/record/record.h"

struct weir_matcher; /* a policy made ready for records; its scratch belongs to one thread */

/* One event of the newest record. */
struct weir_matched_event {
	struct weir_span key; /* joined; points into the record or into the matcher */
	uint64_t key_hash;    /* weir_hash64 of it */
	int64_t cost;
	uint32_t partition;
	uint32_t zone_count;
	const struct weir_frame_zone *zones; /* in the policy's order */
};

/*
 * In the order of the first zone of each; of a record that stands for several as often as it has parts, one part behind
 * the other. Valid until the next record is matched or parsed.
 */
struct weir_matched {
	const struct weir_matched_event *events;
	uint32_t event_count; /* at most WEIR_ZONES_MAX, with as many zones in all; 0: the record is in no zone */
	uint32_t key_count;   /* of how many keys they are: the first ones are one each */
	struct weir_span
		fields; /* that "history" of one of these zones names (common/frame/frame_fields.h); mostly empty */
};

/**
 * @param policy      borrowed, must outlive the matcher
 * @param lists       of its "exempt"; NULL: this matcher reads its own
 * @param fields      the fields of keys, matches, done and history are added as wanted, before any format is made; not kept
 * @param partitions  1..WEIR_PARTITIONS_MAX
 * @param matcher     returned: weir_matcher_free()
 * @return WEIR_OK; WEIR_INVALID: the zones name more than WEIR_FIELD_MAX fields; WEIR_INVALID, WEIR_IO: of a list
 */
WEIR_MUST_USE enum weir_status weir_matcher_new(const struct weir_policy *policy, struct weir_exempt_lists *lists,
                                                struct weir_field_table *fields, uint32_t partitions,
                                                struct weir_matcher **matcher, struct weir_error *error);
void weir_matcher_free(struct weir_matcher *matcher);

/** Goes on with the newest lists of the same policy. @param lists  not NULL */
void weir_matcher_renew_lists(struct weir_matcher *matcher, struct weir_exempt_lists *lists);

/**
 * Finds a record's events.
 *
 * @param record  borrowed; keys may point into it
 * @thread one thread per matcher
 */
void weir_matcher_match(struct weir_matcher *matcher, const struct weir_record *record, struct weir_matched *matched);

/**
 * Whether a key is exempt in a zone, by what it says: an object of "exempt" that looks at any other field says nothing of it.
 *
 * @param zone    of the matcher's policy
 * @param record  the zone's key fields, and no other
 * @thread one thread per matcher
 */
bool weir_matcher_exempts_key(struct weir_matcher *matcher, const struct weir_zone *zone,
                              const struct weir_record *record);

#endif
