/* SPDX-License-Identifier: Apache-2.0 */
/* A `match` made ready for records: its fields are indexes, its values sets and patterns. */
#ifndef WEIR_RECORD_FILTER_H
#define WEIR_RECORD_FILTER_H

#include "common/match/network_set.h"
#include "common/match/wildcard.h"
#include "common/match/word_set.h"
#include "common/policy/policy.h"
#include "common/record/record.h"

enum { WEIR_STATUS_COUNT = 1000 };

/* One field: its value must be one of the words, or match one of the wildcards, or be one of the statuses. */
struct weir_filter_field {
	uint32_t field;
	struct weir_word_set words;
	struct wildcard *wildcards;
	uint32_t wildcard_count;
	uint64_t *statuses; /* a bit each; NULL but for the field "status" */
	struct weir_network_set networks;
	bool has_networks;
	bool negated;  /* it must be none of them; an absent one is none */
	bool any_case; /* words and wildcards are in small letters, and so are values for them */
	char *settled; /* the bytes of paths, hosts and methods in another form than the policy has; NULL: there are none */
};

struct weir_record_filter {
	struct weir_filter_field *fields; /* all must hold; none: every record matches */
	uint32_t field_count;
};

/**
 * @param match   borrowed: must outlive the filter
 * @param fields  those of the match are added as wanted
 * @return WEIR_OK; WEIR_INVALID: there is no room for another field. To be deinited in both cases
 */
WEIR_MUST_USE enum weir_status weir_record_filter_init(struct weir_record_filter *filter,
                                                       const struct weir_match *match, struct weir_field_table *fields,
                                                       struct weir_error *error);
void weir_record_filter_deinit(struct weir_record_filter *filter);

/** An absent field matches nothing, and so it matches every "not". */
bool weir_record_filter_test(const struct weir_record_filter *filter, const struct weir_record *record);

/** Whether the record has every field that the filter looks at. */
bool weir_record_filter_is_told(const struct weir_record_filter *filter, const struct weir_record *record);

/** weir_field_table_want() with words: "the zones name more than 64 fields; ...". */
WEIR_MUST_USE enum weir_status weir_record_field_want(struct weir_field_table *fields, const char *name,
                                                      uint32_t *index, struct weir_error *error);

#endif
