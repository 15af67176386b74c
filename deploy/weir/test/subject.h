/* SPDX-License-Identifier: Apache-2.0 */
/* The policy under test, ready to judge: what all cases against one configuration share. */
#ifndef DEPLOY_WEIR_TEST_SUBJECT_H
#define DEPLOY_WEIR_TEST_SUBJECT_H

#include "collector/format/format.h"
#include "common/config/config.h"
#include "common/matcher/matcher.h"
#include "deploy/weir/test/test_file.h"
#include "limiter/lane/policy_registry.h"

struct subject {
	const struct weir_config *config; /* borrowed */
	struct policy_registry *registry; /* with one policy */
	const struct weir_policy *policy;
	struct weir_exempt_lists *lists;
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	uint32_t partitions;
};

/** @return WEIR_OK; WEIR_INVALID: it has no zones, or they cannot be used; subject_deinit() in any case */
WEIR_MUST_USE enum weir_status subject_init(struct subject *subject, const struct weir_config *config,
                                            struct weir_error *error);
void subject_deinit(struct subject *subject);

/* A zone and one of its keys, as events have it. */
struct subject_key {
	const struct weir_zone *zone; /* NULL: any */
	bool any;                     /* every key of the zone */
	struct override_command key;
};

/**
 * Finds what a case names.
 *
 * @param at    the object that names it, for errors
 * @param zone  NULL: any, and so any key
 * @param key   NULL: any
 */
WEIR_MUST_USE enum weir_status subject_find(const struct subject *subject, const struct weir_json *at, const char *zone,
                                            const struct test_key *key, struct subject_key *found,
                                            struct weir_error *error);

bool subject_is_key(const struct subject_key *wanted, uint32_t zone_id, struct weir_span key);

/**
 * The source that lines are of: that which is named, else the only one there is.
 *
 * @param place  returned; SIZE_MAX: there is none, or several
 */
WEIR_MUST_USE enum weir_status subject_source(const struct subject *subject, const struct test_given *given,
                                              size_t *place, struct weir_error *error);

/** Its name; NULL: it has none. */
const char *subject_source_name(const struct subject *subject, size_t place);

/** The format of lines or fields. @param place  of their source, or SIZE_MAX */
WEIR_MUST_USE enum weir_status subject_format(const struct subject *subject, const struct test_given *given,
                                              size_t place, struct format **format, struct weir_error *error);

/** Fields of a record as a line of that format; strings are templates. */
void subject_put_fields(struct weir_text *text, const struct test_given *given, uint64_t number, int64_t time_ms);

/** Refuses fields that no zone asks for, as they would say nothing. */
WEIR_MUST_USE enum weir_status subject_check_fields(const struct subject *subject, const struct test_given *given,
                                                    struct weir_error *error);

#endif
