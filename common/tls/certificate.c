/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL reads them. At a file's end, and where it refuses one, it notes an error for this thread; whoever asks for errors
 * clears them before what he asks of (common/redis), and no handshake of librdkafka is on a thread that comes here.
 */
#include "common/tls/certificate.h"

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 4096 }; /* certificates of a file */

static int64_t end_of(const X509 *certificate)
{
	struct tm parts;
	return ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

int64_t weir_certificate_ends_s(struct weir_span der)
{
	const unsigned char *at = (const unsigned char *)der.at;
	X509 *certificate = d2i_X509(NULL, &at, (long)der.length);
	int64_t ends_s = certificate != NULL ? end_of(certificate) : 0;
	X509_free(certificate);
	return ends_s;
}

/* A pipe would be waited for. @return NULL: it is no file that can be read */
static FILE *open_file(const char *path)
{
	struct stat found;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	FILE *file = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) ? fdopen(fd, "r") : NULL;
	if (file == NULL)
		close(fd);
	return file;
}

int64_t weir_certificate_file_ends_s(const char *path, bool authorities)
{
	int64_t last_s = 0;
	FILE *file = open_file(path);
	if (file == NULL)
		return 0;
	for (int i = 0; i < (authorities ? MOST : 1); i++) {
		X509 *certificate = PEM_read_X509(file, NULL, NULL, NULL);
		if (certificate == NULL)
			break;
		int64_t ends_s = end_of(certificate);
		if (ends_s > last_s)
			last_s = ends_s;
		X509_free(certificate);
	}
	fclose(file);
	return last_s;
}

/* The file's certificates: the first is shown, the others may lie between. @return NULL: there is none */
static STACK_OF(X509) * read_chain(const char *path)
{
	FILE *file = open_file(path);
	STACK_OF(X509) *chain = sk_X509_new_null();
	for (X509 *one; file != NULL && sk_X509_num(chain) < MOST && (one = PEM_read_X509(file, NULL, NULL, NULL)) != NULL;)
		sk_X509_push(chain, one);
	if (file != NULL)
		fclose(file);
	if (sk_X509_num(chain) > 0)
		return chain;
	sk_X509_free(chain);
	return NULL;
}

const char *weir_certificate_refused(const char *certificate, const char *authorities)
{
	STACK_OF(X509) *chain = read_chain(certificate);
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *asking = X509_STORE_CTX_new();
	const char *why = chain == NULL ? "the certificate cannot be read" : "the authorities cannot be read";
	if (chain != NULL && X509_STORE_load_locations(store, authorities, NULL) == 1 &&
	    X509_STORE_CTX_init(asking, store, sk_X509_value(chain, 0), chain) == 1) {
		X509_STORE_CTX_set_default(asking, "ssl_client");
		X509_STORE_CTX_set_flags(asking, X509_V_FLAG_PARTIAL_CHAIN);
		bool good = X509_verify_cert(asking) == 1;
		why = good ? NULL : X509_verify_cert_error_string(X509_STORE_CTX_get_error(asking));
	}
	X509_STORE_CTX_free(asking);
	X509_STORE_free(store);
	sk_X509_pop_free(chain, X509_free);
	return why;
}
