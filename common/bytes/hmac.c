/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that uses libcrypto. The context keeps the secret; threads that compute take turns at it. */
#include "common/bytes/hmac.h"

#include "common/base/alloc.h"
#include "common/bytes/hex.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

struct weir_hmac {
	EVP_MAC *mac;
	EVP_MAC_CTX *context; /* with the secret */
	pthread_mutex_t lock; /* guards the context */
};

struct weir_hmac *weir_hmac_new(struct weir_span secret)
{
	char digest[] = "SHA256";
	OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	                           OSSL_PARAM_construct_end()};
	struct weir_hmac *hmac = weir_alloc(1, sizeof *hmac);
	pthread_mutex_init(&hmac->lock, NULL);
	hmac->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	hmac->context = hmac->mac != NULL ? EVP_MAC_CTX_new(hmac->mac) : NULL;
	if (hmac->context != NULL &&
	    EVP_MAC_init(hmac->context, (const unsigned char *)secret.at, secret.length, parameters) == 1)
		return hmac;
	weir_hmac_free(hmac);
	return NULL;
}

void weir_hmac_free(struct weir_hmac *hmac)
{
	if (hmac == NULL)
		return;
	EVP_MAC_CTX_free(hmac->context);
	EVP_MAC_free(hmac->mac);
	pthread_mutex_destroy(&hmac->lock);
	free(hmac);
}

void weir_hmac(struct weir_hmac *hmac, struct weir_span bytes, unsigned char result[WEIR_HMAC_BYTES])
{
	size_t length = 0;
	pthread_mutex_lock(&hmac->lock);
	bool good = EVP_MAC_init(hmac->context, NULL, 0, NULL) == 1 && /* begins anew with the same secret */
	            EVP_MAC_update(hmac->context, (const unsigned char *)bytes.at, bytes.length) == 1 &&
	            EVP_MAC_final(hmac->context, result, &length, WEIR_HMAC_BYTES) == 1;
	pthread_mutex_unlock(&hmac->lock);
	if (!good || length != WEIR_HMAC_BYTES)
		abort(); /* only if memory is exhausted: better than a result that anybody could have made */
}

void weir_hmac_digits(struct weir_hmac *hmac, struct weir_span bytes, char *digits, size_t count)
{
	unsigned char result[WEIR_HMAC_BYTES];
	char all[WEIR_HMAC_DIGITS];
	weir_hmac(hmac, bytes, result);
	(void)weir_hex_put(all, result, sizeof result);
	memcpy(digits, all, count);
}

void weir_sha512_digits(const struct weir_span *parts, size_t count, char digits[WEIR_SHA512_DIGITS])
{
	unsigned char result[WEIR_SHA512_DIGITS / 2];
	unsigned length = 0;
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool good = context != NULL && EVP_DigestInit_ex(context, EVP_sha512(), NULL) == 1;
	for (size_t i = 0; i < count && good; i++)
		good = parts[i].length == 0 || EVP_DigestUpdate(context, parts[i].at, parts[i].length) == 1;
	if (!good || EVP_DigestFinal_ex(context, result, &length) != 1 || length != sizeof result)
		abort();
	EVP_MD_CTX_free(context);
	(void)weir_hex_put(digits, result, sizeof result);
}
