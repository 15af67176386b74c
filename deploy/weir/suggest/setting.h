/* SPDX-License-Identifier: Apache-2.0 */
/* What is read, and the zone whose limits are looked for: of the command line, and of a configuration where one is given. */
#ifndef DEPLOY_WEIR_SUGGEST_SETTING_H
#define DEPLOY_WEIR_SUGGEST_SETTING_H

#include "common/base/exit.h"
#include "common/config/config.h"
#include "common/exempt/exempt_list.h"

struct setting {
	const char *config_path; /* NULL: none; borrowed, as all that the command line gives */
	const char *zone_name;   /* NULL: not given */
	const char *key;         /* "ip,user"; NULL: not given */
	const char *format;
	const char *const *logs;
	uint32_t log_count;

	struct weir_json_document *document; /* owned: of config_path; NULL: there is none */
	struct weir_config *given;           /* owned: the same; NULL: none, or it has no zones yet */
	json_t *zone;                        /* owned: without name, id, mode and limits */
};

/** Reads the configuration, and finds the zone. What is wrong is said. @return WEIR_EXIT_NOT_YET: go on */
enum weir_exit setting_load(struct setting *setting);
void setting_deinit(struct setting *setting);

/** The zone's name in what is suggested. */
const char *setting_name(const struct setting *setting);

/** The zone with these limits, returned. @param limits  taken */
json_t *setting_zone(const struct setting *setting, const char *name, json_t *limits);

/**
 * The configuration of a reading that judges by some zones.
 *
 * @param zones   taken
 * @param config  returned: weir_config_free()
 * @return WEIR_OK; WEIR_INVALID: the words say what to give
 */
WEIR_MUST_USE enum weir_status setting_config(const struct setting *setting, json_t *zones, struct weir_config **config,
                                              struct weir_error *error);

#endif
