/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message of the decisions topic, as a subscriber reads it: which bucket,
 * blocked until when or let go, and which version of that bucket's story it is.
 */
#ifndef DEPLOY_GATEWAYS_TABLE_DECISION_RECORD_H
#define DEPLOY_GATEWAYS_TABLE_DECISION_RECORD_H

#include "common/base/text.h"
#include "common/bus/bus.h"

enum { DECISION_RECORD_MAX_BYTES = 64 * 1024 }; /* of the JSON: what weir writes is far below */

#define DECISION_NO_END INT64_MAX

/* Where in the log of events the decision was made. Grows within a bucket; a decision published again has the same. */
struct decision_version {
	uint64_t offset;
	uint64_t index; /* within that offset */
};

static inline bool decision_version_newer(struct decision_version a, struct decision_version than)
{
	return a.offset > than.offset || (a.offset == than.offset && a.index > than.index);
}

struct decision_record {
	uint32_t partition;
	struct decision_version version;
	bool lift;
	bool whole_zone;  /* a lift of all that the zone blocks in this partition; `key` is empty then */
	bool shadow;      /* not to be enforced */
	bool by_operator; /* an operator decided, no limit */
	int64_t at_ms;
	int64_t until_ms;      /* DECISION_NO_END: until it is lifted; so too what lies beyond the year 9999 */
	struct weir_span zone; /* [A-Za-z0-9_.-]+ */
	struct weir_span key;  /* the values joined by '|', with '\' before a '\' or '|' of their own; any bytes */
	struct weir_span json;
};

/**
 * Reads a message.
 *
 * @param record  its spans are borrowed from the message
 * @return WEIR_OK; WEIR_INVALID: it is no decision, the words say why
 */
WEIR_MUST_USE enum weir_status decision_record_parse(const struct weir_message *message, struct decision_record *record,
                                                     struct weir_error *error);

/**
 * Appends {"id":…,"zone":…,"key":…,"action":ACTION,"at":…,"until":…} without a newline: a bucket's decision turned
 * into the news that it is over.
 *
 * @param block  the JSON of the decision that blocked it; its key is taken over
 */
void decision_record_end_json(struct weir_text *text, struct weir_span block, uint32_t partition,
                              struct decision_version version, const char *action, int64_t at_ms);

#endif
