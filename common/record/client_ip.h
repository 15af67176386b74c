/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client behind trusted proxies: "client_ip": {"header": "xff", "trusted": ["10.0.0.0/8"]}.
 *
 * The hops are the elements of the header, separated by commas, and then the ip that the line gives, which may be such a
 * list itself. An element is an address, with or without port and brackets, or one of RFC 7239's `Forwarded`
 * ("for=192.0.2.60;proto=http"). Empty ones do not count. Seen from the right, the first that is not trusted is the
 * client: what is left of it may be forged. If all are trusted, it is the leftmost. An element that is no address names
 * nobody, and then there is no client: the proxy that wrote it is not taken for one.
 */
#ifndef WEIR_CLIENT_IP_H
#define WEIR_CLIENT_IP_H

#include "common/json/json.h"
#include "common/record/record.h"

enum { WEIR_CLIENT_IP_TRUSTED_MAX = 4096 };

struct weir_client_ip; /* immutable */

/**
 * @param fields     the header is added as wanted, and so is the ip
 * @param client_ip  returned: weir_client_ip_free(); NULL where config has no value
 */
WEIR_MUST_USE enum weir_status weir_client_ip_new(const struct weir_json *config, struct weir_field_table *fields,
                                                  struct weir_client_ip **client_ip, struct weir_error *error);
/** What config may be (common/json/json_shape.h). */
json_t *weir_client_ip_shape(void);
void weir_client_ip_free(struct weir_client_ip *client_ip);

/** The index of the header's field. */
int weir_client_ip_header(const struct weir_client_ip *client_ip);

/**
 * Sets the record's ip to the client's, which is a part of the header or of the ip that the line gave.
 *
 * @param header  borrowed: the header's value without the log's escapes; absent: the line has none
 * @return false: there is no client, for a trusted proxy names none
 */
bool weir_client_ip_apply(const struct weir_client_ip *client_ip, struct weir_span header, struct weir_record *record);

#endif
