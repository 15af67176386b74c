/* SPDX-License-Identifier: Apache-2.0 */
/* In a cluster a subscriber keeps a gateway's list: how it is started and stopped, by systemd and by hand. */
#ifndef DEPLOY_WEIR_SETUP_SETUP_SUBSCRIBER_H
#define DEPLOY_WEIR_SETUP_SETUP_SUBSCRIBER_H

#include "deploy/weir/setup/setup_plan.h"

/** Adds it to the plan's notes. @param zones  that are blocked for; none: all */
void setup_note_subscriber(struct setup_plan *plan, const char *config_path, const char *const *zones,
                           size_t zone_count);

#endif
