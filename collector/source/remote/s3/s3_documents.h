/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What S3 answers: a page of a listing (ListObjectsV2), or why it refuses.
 *
 * @thread one at a time
 */
#ifndef COLLECTOR_REMOTE_S3_DOCUMENTS_H
#define COLLECTOR_REMOTE_S3_DOCUMENTS_H

#include "collector/source/remote/remote.h"
#include "common/base/text.h"

enum {
	S3_PAGE_MOST = 10000, /* objects; S3 gives 1,000 */
	S3_WORD_BYTES = 64,   /* a code or a region, and its end */
};

struct s3_entry {
	size_t key_at; /* in the page's keys */
	uint32_t key_length;
	uint64_t size;
	int64_t modified_ms;         /* Unix ms */
	char etag[REMOTE_TAG_BYTES]; /* with its quotes */
};

/* Zero-initialised is empty; it can be read into again. */
struct s3_page {
	struct weir_text keys;    /* one behind the other, each terminated */
	struct s3_entry *entries; /* owned */
	size_t count, capacity;
	struct weir_text next; /* what asks for the page behind it, terminated; empty: nothing does */
	bool truncated;        /* there is one */
};

void s3_page_deinit(struct s3_page *page);

/** The key of an entry, terminated; borrowed from the page. It may hold any bytes, zero bytes too. */
static inline const char *s3_page_key(const struct s3_page *page, const struct s3_entry *entry)
{
	return page->keys.at + entry->key_at;
}

/**
 * Reads a page: all of it, or nothing.
 *
 * @return WEIR_OK; WEIR_INVALID: error says what the document is instead, without "the answer" before it
 */
WEIR_MUST_USE enum weir_status s3_page_read(struct s3_page *page, struct weir_span document, struct weir_error *error);

/* Why S3 refuses. */
struct s3_refusal {
	char code[S3_WORD_BYTES];   /* "SignatureDoesNotMatch"; "": the answer is no such document */
	char region[S3_WORD_BYTES]; /* where the bucket is, if it says so; "" */
	bool html;                  /* it is HTML */
};

void s3_refusal_read(struct s3_refusal *refusal, struct weir_span document);

/**
 * Puts in words why S3 refuses and what helps. Names nothing but the code and the region: what a server says may hold
 * parts of a key.
 *
 * @param code  of HTTP
 */
void s3_refusal_words(const struct s3_refusal *refusal, long code, struct weir_text *words);

#endif
