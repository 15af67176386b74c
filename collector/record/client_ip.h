/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client behind trusted proxies: "client_ip": {"header": "xff", "trusted": ["10.0.0.0/8"]}.
 *
 * The hops are the addresses of the header, separated by commas, and then the ip that the line gives. Seen from the
 * right, the first that is not trusted is the client: what is left of it may be forged. If all are trusted, it is the
 * leftmost; what is no address ends the walk, and the hop before it counts.
 */
#ifndef COLLECTOR_CLIENT_IP_H
#define COLLECTOR_CLIENT_IP_H

#include "collector/record/record.h"
#include "common/json/json.h"

enum { CLIENT_IP_TRUSTED_MAX = 4096 };

struct client_ip; /* immutable */

/**
 * @param fields     the header is added as wanted, and so is the ip
 * @param client_ip  returned: client_ip_free(); NULL where config has no value
 */
WEIR_MUST_USE enum weir_status client_ip_new(const struct weir_json *config, struct field_table *fields,
                                             struct client_ip **client_ip, struct weir_error *error);
void client_ip_free(struct client_ip *client_ip);

/** Sets the record's ip to the client's, as the line writes it, without brackets and port. */
void client_ip_apply(const struct client_ip *client_ip, struct record *record);

#endif
