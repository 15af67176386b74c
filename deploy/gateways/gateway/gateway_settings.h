/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which gateways a configuration names, in its section "gateways":
 *
 *   "gateways": ["nginx-geo:/etc/nginx/weir.map", {"to": "nft:inet/filter/weir", "zones": ["ssh"]}]
 */
#ifndef DEPLOY_GATEWAYS_GATEWAY_GATEWAY_SETTINGS_H
#define DEPLOY_GATEWAYS_GATEWAY_GATEWAY_SETTINGS_H

#include "common/config/config.h"
#include "common/log/log.h"
#include "deploy/gateways/target/target.h"

enum { GATEWAY_BLOCKS_MOST = 100000000 };
#define GATEWAY_INTERVAL_MOST_MS INT64_C(3600000)

/* One of them; its texts are borrowed from the configuration. */
struct gateway_settings {
	struct weir_json at; /* where it stands: for errors */
	const char *to, *reload, *map;
	const char **zones; /* owned; those to keep; none: all */
	size_t zone_count;
	int64_t interval_ms;    /* -1: the target's own */
	int64_t max;            /* entries of its list */
	struct weir_text lists; /* which it keeps (target.h), or its name */
	bool one_of_several;    /* others keep other maps through the same target */
};

struct gateway_list {
	struct gateway_settings *at; /* owned */
	size_t count;
};

/**
 * Reads the section. A target that cannot be meant, a zone that there is not, and a list that two would write are
 * refused. Nothing is connected.
 *
 * @param list  returned, on failure too: gateway_list_deinit()
 * @return WEIR_OK; WEIR_INVALID: the error names the place
 */
WEIR_MUST_USE enum weir_status gateway_list_read(const struct weir_config *config, struct gateway_list *list,
                                                 struct weir_error *error);
void gateway_list_deinit(struct gateway_list *list);

/** What an element of the section may be (common/json/json_shape.h). */
json_t *gateway_shape(void);

/** Makes its target, as target_open() does. */
WEIR_MUST_USE enum weir_status gateway_open(const struct gateway_settings *settings, uint32_t partitions,
                                            const struct weir_log *log, const _Atomic bool *stop,
                                            struct target **target, struct weir_error *error);

/** Whether a gateway is told of a zone: it names it, or none. */
bool gateway_keeps_zone(const struct gateway_settings *settings, const char *zone);

/**
 * Whether a gateway lets clients in that a zone blocks: its list compares whole texts, so it finds nobody in a network.
 *
 * @param words  what comes of it is appended
 */
bool gateway_misses(const struct gateway_settings *settings, const struct weir_zone *zone, struct weir_text *words);
/** Warns of each zone whose blocks a gateway misses. */
void gateway_tell_misses(const struct gateway_settings *settings, const struct weir_policy *policy,
                         const struct weir_log *log);
/** The same of each gateway. */
void gateway_list_tell_misses(const struct gateway_list *list, const struct weir_policy *policy,
                              const struct weir_log *log);

/** Whether a gateway keeps this map of this target; NULL: the default, or it has none. */
bool gateway_keeps(const struct gateway_settings *settings, const char *to, const char *map);

/** What a target is called on pages and in logs: without a password, and of a command the program alone. The caller frees. */
char *gateway_name(const char *to);
/** What one of the list is called: its target, with its map where others have the same target. The caller frees. */
char *gateway_settings_name(const struct gateway_settings *settings);

#endif
