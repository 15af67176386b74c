/* SPDX-License-Identifier: Apache-2.0 */
/* Operators' overrides as JSON lines. */
#ifndef DEPLOY_WEIR_INSPECT_STATE_OVERRIDES_H
#define DEPLOY_WEIR_INSPECT_STATE_OVERRIDES_H

#include "limiter/overrides/overrides.h"

enum { STATE_OVERRIDE_SETTINGS = 3 };

/* One command that is in force, as the lines have it. */
struct state_override {
	enum override_kind kind; /* block, allow, override */
	const struct override *override;
	const struct override_setting *setting;
};

/** What is in force of an override, at most three. @return how many */
uint32_t state_override_settings(const struct override *override,
                                 struct state_override settings[STATE_OVERRIDE_SETTINGS]);

/**
 * Appends {"order":"block","zone":…,"key":[…],"partition":…,"at":…,"until":…,"by":…,"reason":…} and a newline; until is
 * null where there is no end.
 */
void state_override_json(struct weir_text *text, const struct state_override *entry, const struct weir_zone *zone,
                         uint32_t partition);

/** Appends a joined key, or a prefix of one, as a JSON array of its values. */
void state_override_key_json(struct weir_text *text, const struct weir_zone *zone, const struct override *override);

#endif
