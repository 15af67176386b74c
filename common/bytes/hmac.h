/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA256: what only who knows a secret can compute. And SHA-512, for protocols that ask for it. */
#ifndef WEIR_COMMON_HMAC_H
#define WEIR_COMMON_HMAC_H

#include "common/base/span.h"

enum { WEIR_HMAC_BYTES = 32, WEIR_HMAC_DIGITS = 64, WEIR_SHA512_DIGITS = 128 };

struct weir_hmac;

/** Prepares for a secret, which costs several times what a computation does. @return NULL: libcrypto has none */
struct weir_hmac *weir_hmac_new(struct weir_span secret);
/** NULL is fine. */
void weir_hmac_free(struct weir_hmac *hmac);

/** Computes it. Ends the process where memory is exhausted. @thread any; they take turns */
void weir_hmac(struct weir_hmac *hmac, struct weir_span bytes, unsigned char result[WEIR_HMAC_BYTES]);

/** The same as `count` hexadecimal digits, at most WEIR_HMAC_DIGITS; not terminated. */
void weir_hmac_digits(struct weir_hmac *hmac, struct weir_span bytes, char *digits, size_t count);

/** SHA-512 of some bytes one after another, as hexadecimal digits; not terminated. Ends the process as weir_hmac(). */
void weir_sha512_digits(const struct weir_span *parts, size_t count, char digits[WEIR_SHA512_DIGITS]);

#endif
