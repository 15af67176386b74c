/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Redis does by itself, each in one step that no other subscriber can come
 * between: Lua scripts, loaded on every new connection.
 *
 * A block is the key weir:ZONE:KEY, whose value is the decision and so says its
 * own version. Where a bucket was let go before its blocks could have ended by
 * themselves, the key weir-lift:ZONE:KEY keeps that version until then. Both
 * are compared before anything is changed, so that a subscriber that lags
 * behind another cannot put back what the other has gone past.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_REDIS_REDIS_SCRIPT_H
#define DEPLOY_GATEWAYS_TARGET_REDIS_REDIS_SCRIPT_H

enum redis_script {
	/* KEYS block, lift; ARGV offset, index, until ("": no end), decision, guard ("": none), guard's value. */
	REDIS_SCRIPT_PUT,
	/* KEYS block, lift; ARGV offset, index, guard ("": none), guard's value. Removes what is not newer. */
	REDIS_SCRIPT_DROP,
	REDIS_SCRIPT_COUNT,
};

const char *redis_script_text(enum redis_script script);

#endif
