/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request's fields to what is asked: each zone that the request is in, with its key there.
 *
 * A surface names fields as formats do: ip, method, path, host, agent, or any other that a zone uses. What a zone's match,
 * key and exempt say of a log line they say of a request. Zones that name sources take no requests. A zone that counts in
 * a queue takes no entry out for `done` here.
 *
 *   switch (check_request_begin(request, policy, &error)) ...
 *   check_request_set(request, weir_span_of("method"), method);
 *   check_request_client(request, hops, peer, &error);
 *   check_request_find(request, &found);
 *
 * @thread one: the owner's
 */
#ifndef LIMITER_CHECK_REQUEST_H
#define LIMITER_CHECK_REQUEST_H

#include "common/exempt/exempt_list.h"
#include "common/log/log.h"
#include "common/policy/policy.h"

#include <stdbool.h>

struct check_request;

struct check_request_options {
	/* Borrowed; another thread reads them anew. NULL: lists are read with each policy, and no robot is verified */
	struct weir_exempt_lists *lists;
	const struct weir_log *log; /* borrowed; says which policy cannot be used. NULL: nobody hears it */
	/*
	 * {"header": …, "trusted": […]}, as of a format (common/record/client_ip.h); without a value, X-Forwarded-For behind
	 * proxies of this machine. Read by check_request_new() alone.
	 */
	struct weir_json client_ip;
};

/** @return WEIR_OK; WEIR_INVALID: client_ip is none, error says where and why */
WEIR_MUST_USE enum weir_status check_request_new(const struct check_request_options *options,
                                                 struct check_request **request, struct weir_error *error);
void check_request_free(struct check_request *request);

/**
 * Begins a request, without fields. A policy that is another than the last one is compiled; the lists of `exempt` are
 * those that another thread has read by a second ago, but for those that nobody has read yet.
 *
 * @param policy  in force, borrowed until another is given; NULL: there is none
 * @return WEIR_OK; WEIR_AGAIN: there is no policy yet; WEIR_INVALID, WEIR_IO: it cannot be used here, as error says
 */
WEIR_MUST_USE enum weir_status check_request_begin(struct check_request *request, const struct weir_policy *policy,
                                                   struct weir_error *error);

/**
 * Sets a field, if some zone uses it. Set twice, the first value stays; an empty one is none. Of `path` and `target` either
 * gives the other, unless that is set, too.
 *
 * @param value  borrowed until the next request begins
 */
void check_request_set(struct check_request *request, struct weir_span name, struct weir_span value);

/** Whether a header's value says that there is none: it is empty, or `-` alone, as access logs write it. */
bool check_request_is_none(struct weir_span value);

/**
 * Sets what a header of HTTP gives, likewise: `agent` is User-Agent, `host` Host, `user` X-Forwarded-User; any other
 * field but these, ip, method, path, status and bytes is the header of its name, in any case, with `-` for `_`. A value
 * that check_request_is_none() gives no field: a line of most logs cannot tell the two apart.
 */
void check_request_header(struct check_request *request, struct weir_span name, struct weir_span value);

/** The header that client_ip names: what check_request_client() takes as hops. */
const char *check_request_hops_header(const struct check_request *request);

/**
 * Sets `ip` to the client's: seen from the right, the first of the hops that is not trusted.
 *
 * @param hops  of X-Forwarded-For, or one address that a gateway gives; absent, or `-`: none
 * @param peer  who asks, which is trusted; the client where there are no hops
 * @return false: one of the hops that count is no address, so there is no client
 */
WEIR_MUST_USE bool check_request_client(struct check_request *request, struct weir_span hops, struct weir_span peer);

enum { CHECK_REQUEST_EXEMPT_MAX_BYTES = 8 << 10 }; /* of a key: each of many patterns may be tried on it */

/**
 * Whether a key that a caller gives is exempt in a zone, by what the key says. One of more than
 * CHECK_REQUEST_EXEMPT_MAX_BYTES is not.
 *
 * @param zone   of the policy
 * @param given  as check_key() takes it
 * @return false: it is not, or the policy cannot be used here, as the log says
 */
WEIR_MUST_USE bool check_request_exempts(struct check_request *request, const struct weir_policy *policy,
                                         const struct weir_zone *zone, struct weir_span given);

enum { CHECK_REQUEST_ZONES_MAX = 64 };

struct check_found {
	const struct weir_zone *zone; /* of the policy */
	struct weir_span key;         /* joined; valid until the next request begins, as long as the fields' values are */
};

/**
 * Finds the zones that the request is in.
 *
 * @param found  room for CHECK_REQUEST_ZONES_MAX
 * @param count  set to how many; 0: the request is in no zone
 * @return WEIR_OK; WEIR_FULL: it is in more zones than that, which the log says
 */
WEIR_MUST_USE enum weir_status check_request_find(struct check_request *request, struct check_found *found,
                                                  uint32_t *count);

/** Logs that the request is in more zones than can be asked together. */
void check_request_note_crowd(struct check_request *request, uint32_t most);

#endif
