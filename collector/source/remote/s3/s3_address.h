/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses as S3's signature wants them: each byte that is not a letter, a digit or one of "-._~" is escaped, in capital
 * letters, and a query's members are sorted.
 */
#ifndef COLLECTOR_REMOTE_S3_ADDRESS_H
#define COLLECTOR_REMOTE_S3_ADDRESS_H

#include "common/base/text.h"

/** Appends a value as a query holds it. */
void s3_escape(struct weir_text *text, struct weir_span value);

/** Appends a key as a path holds it: its slashes stay. */
void s3_escape_key(struct weir_text *text, struct weir_span key);

/**
 * Makes the address of a bucket, without a slash at its end.
 *
 * @param url         of the server: "https://s3.eu-central-1.amazonaws.com"
 * @param path_style  the bucket is the path's first part; else it stands before the host's name
 */
void s3_put_bucket(struct weir_text *text, const char *url, const char *bucket, bool path_style);

/**
 * Appends the query of a page of ListObjectsV2.
 *
 * @param after  names behind this one; "": from the beginning
 * @param next   what the page before gave; NULL: this is the first
 */
void s3_put_listing(struct weir_text *text, const char *prefix, const char *after, const char *next);

#endif
