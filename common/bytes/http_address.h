/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of HTTP that a configuration names. */
#ifndef WEIR_COMMON_HTTP_ADDRESS_H
#define WEIR_COMMON_HTTP_ADDRESS_H

#include "common/base/text.h"

/** Whether a text is meant as one: it begins with http:// or https://. */
bool weir_http_address_meant(const char *text);

/**
 * Whether an address is https:// and a host, or http:// and this machine: nothing goes in clear over a network.
 *
 * @param host  set to "https://HOST:PORT", without an account
 */
bool weir_http_address_host(const char *address, struct weir_text *host);
/** Whether it has an account: "https://NAME:PASSWORD@HOST/". */
bool weir_http_address_has_account(const char *address);

/**
 * Appends a text without what may be secret, if it is meant as an address: without its account and its query. Another text,
 * such as a path of a file, is appended as it is.
 */
void weir_http_address_show(const char *text, struct weir_text *shown);

#endif
