/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the nats source share. Only source_nats*.c include it. */
#ifndef COLLECTOR_SOURCE_NATS_INTERNAL_H
#define COLLECTOR_SOURCE_NATS_INTERNAL_H

#include "collector/source/nats/nats_client.h"
#include "collector/source/nats/source_nats.h"
#include "collector/source/queue/source_queue.h"

enum { NATS_URLS_MAX = 16, NATS_SUBJECTS_MAX = 64 };

/* The values of a configuration; strings are borrowed from it. */
struct nats_config {
	const char *urls[NATS_URLS_MAX];
	size_t url_count;
	const char *stream, *name;               /* name NULL: it has none */
	const char *subjects[NATS_SUBJECTS_MAX]; /* sorted; none: all of the stream's */
	size_t subject_count;
	const char *user, *nkey, *credentials, *ca, *certificate, *key;
	struct weir_json password, token, seed; /* secrets, opened for each connection: they may be renewed */
	int start;                              /* enum source_at_start */
	bool follow;
	int64_t line_max;
};

/* A stream that ended before what was read of it, when it was looked at last. */
struct nats_back {
	uint64_t place; /* up to where it was read; 0: it did not */
	uint64_t last;  /* messages of higher numbers, up to the place, are counted as lost */
};

/**
 * source_nats.c: how many numbers that were read already may come again, with other messages, beyond what the last look
 * found.
 *
 * @param newer  the stream's last message is newer than all that were read: so may be all that are there
 */
uint64_t nats_went_back(struct nats_back *back, uint64_t place, uint64_t last, bool newer);

/* The members of the configuration; read into struct nats_config. */
extern const struct weir_json_rule nats_members[];

/** source_nats_config.c: reads and checks a configuration. */
WEIR_MUST_USE enum weir_status nats_configure(struct nats_config *config, const struct weir_json *json,
                                              const struct source_context *context, struct weir_error *error);

/** Refuses two sources that read one stream under one name. */
WEIR_MUST_USE enum weir_status nats_apart(const struct weir_json *config, const struct weir_json *other,
                                          struct weir_error *error);

#endif
