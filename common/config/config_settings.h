/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings behind common/config/config.h. */
#ifndef WEIR_COMMON_CONFIG_SETTINGS_H
#define WEIR_COMMON_CONFIG_SETTINGS_H

#include "common/config/config.h"

/** The sections that hold settings, NULL-terminated. */
extern const char *const weir_config_sections[];

/** Fills everything that the table knows with its default. */
void weir_settings_default(struct weir_config *config);

/** Reads one section, if it is there. */
WEIR_MUST_USE enum weir_status weir_settings_read(const struct weir_json *root, const char *section,
                                                  struct weir_config *config, struct weir_error *error);

/** What a section may hold (common/json/json_shape.h). */
json_t *weir_settings_shape(const char *section);

/** Frees the strings of the table. */
void weir_settings_free(struct weir_config *config);

#endif
