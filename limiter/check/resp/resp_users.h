/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask by Redis' protocol: `checks.password`, whose user is "default", and `checks.users`. */
#ifndef LIMITER_RESP_USERS_H
#define LIMITER_RESP_USERS_H

#include "common/json/json.h"
#include "common/policy/policy.h"

enum { RESP_USERS_MAX = 64, RESP_USER_NAME_MAX_BYTES = 64, RESP_USER_ZONES_MAX = 64 };

struct resp_user {
	const char *name; /* "default": of AUTH with a password alone */
	const char *password;
	const char *const *zones; /* that it may ask in */
	uint32_t zone_count;      /* 0: in all */
};

/* Zero-initialised; deinitialised by resp_users_deinit(), after a failure, too. */
struct resp_users {
	struct resp_user *at; /* what they point to is owned */
	uint32_t count;
};

/** @param named  `checks.users`: {"NAME": {"password": …, "zones": […]}, …}; may be absent */
WEIR_MUST_USE enum weir_status resp_users_check(const struct weir_json *named, struct weir_error *error);

/**
 * Opens the passwords.
 *
 * @param password  of the user "default"; borrowed; NULL: there is none
 * @param named     as of resp_users_check(), which has found it good
 */
WEIR_MUST_USE enum weir_status resp_users_open(const char *password, const struct weir_json *named,
                                               struct resp_users *users, struct weir_error *error);
void resp_users_deinit(struct resp_users *users);

/** @param user  NULL: nobody need log in */
bool resp_user_may_ask(const struct resp_user *user, const struct weir_zone *zone);

#endif
