/* SPDX-License-Identifier: Apache-2.0 */
/* The zones of all policies in the store, current and earlier. */
#ifndef ARCHIVER_API_ZONES_H
#define ARCHIVER_API_ZONES_H

#include "common/base/text.h"
#include "common/json/json_writer.h"
#include "common/log/log.h"
#include "common/policy/policy.h"
#include "common/store/store.h"

struct api_zones;

/* What is asked of one. */
struct api_zone {
	uint32_t id;
	char name[WEIR_ZONE_NAME_MAX_BYTES + 1]; /* [A-Za-z0-9_.-]: needs no quoting in SQL */
	bool history;
};

/** @param momentary  each store may be another one than the last: nothing that is known of one holds for the next */
struct api_zones *api_zones_new(const struct weir_log *log, bool momentary);
/** NULL is fine. */
void api_zones_free(struct api_zones *zones);

/**
 * Finds a zone by its name; of several that had it, the one of the newest policy.
 *
 * @return WEIR_OK; WEIR_END: there is none; WEIR_IO: policies could not be read
 * @thread any
 */
WEIR_MUST_USE enum weir_status api_zones_find(struct api_zones *zones, struct weir_store *store, struct weir_span name,
                                              struct api_zone *found, struct weir_error *error);

/** Writes the members "policy_version" and "zones". Likewise. */
WEIR_MUST_USE enum weir_status api_zones_describe(struct api_zones *zones, struct weir_store *store,
                                                  struct weir_json_writer *json, struct weir_error *error);

#endif
