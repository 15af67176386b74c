/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the s3 source share. Only source_s3*.c include it. */
#ifndef COLLECTOR_SOURCE_S3_INTERNAL_H
#define COLLECTOR_SOURCE_S3_INTERNAL_H

#include "collector/source/remote/remote.h"
#include "collector/source/remote/s3/s3_documents.h"
#include "collector/source/remote/s3/s3_versions.h"
#include "common/match/wildcard.h"

struct weir_http_client;

/* Where a secret is: one of them, or none. A file is read again for each request, as tokens are renewed in it. */
struct s3_secret {
	char *text, *file; /* owned */
};

/* A bucket, and how it is asked. Below the source's own thread alone uses it. */
struct s3 {
	_Atomic bool stop;
	struct weir_http_client *client;
	char *bucket; /* its address, without a slash at its end; owned, as all here */
	char *scope;  /* "aws:amz:REGION:s3" */
	char *ca;     /* or NULL */
	char *label;  /* what tells this source from others of its kind, but for its name */
	char *prefixes[REMOTE_FOLDERS_MOST];
	size_t prefix_count;
	char *match;              /* NULL: every key */
	struct wildcard wildcard; /* of match */
	struct s3_secret key, secret, session_token;
	struct s3_page page;
	struct s3_versions versions;
	struct weir_text address;
};

extern const struct weir_json_rule s3_members[];

/**
 * Reads the configuration.
 *
 * @param s3  zeroed; to be released by s3_free(), after failure too
 */
WEIR_MUST_USE enum weir_status s3_configure(struct s3 *s3, struct remote_settings *settings,
                                            const struct weir_json *json, const struct source_context *context,
                                            struct weir_error *error);
enum weir_status s3_apart(const struct weir_json *json, const struct weir_json *other, struct weir_error *error);
void s3_describe(const struct weir_json *json, struct weir_text *place, struct weir_text *manner);

/** What the secret is. *out is returned, the caller frees; NULL: none is configured. */
WEIR_MUST_USE enum weir_status s3_secret_open(const struct s3_secret *secret, char **out, struct weir_error *error);

/* The functions of struct remote_ops; `kind` is the struct s3. */
enum weir_status s3_list(void *kind, bool whole, struct remote_round *round, struct weir_error *error);
enum weir_status s3_read(void *kind, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
                         uint64_t *got, struct weir_error *error);
void s3_free(void *kind);

#endif
