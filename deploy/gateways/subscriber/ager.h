/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends what is over in a target's list while nobody knows yet what else it is
 * to hold: its subscriber waits for the bus, or reads the topic. On a thread of
 * its own, as the bus is waited for on the subscriber's.
 */
#ifndef DEPLOY_GATEWAYS_SUBSCRIBER_AGER_H
#define DEPLOY_GATEWAYS_SUBSCRIBER_AGER_H

#include "deploy/gateways/target/target.h"

struct ager;

/**
 * Begins to age the list each second.
 *
 * @param target  borrowed until ager_stop(); nobody else may use it meanwhile
 * @return NULL: this kind's entries end by themselves, or cannot be read back
 */
struct ager *ager_start(struct target *target, const struct weir_log *log);

/** Ends, when what it does at this moment is done. NULL is fine. */
void ager_stop(struct ager *ager);

#endif
