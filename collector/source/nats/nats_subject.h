/* SPDX-License-Identifier: Apache-2.0 */
/* NATS's words: subjects with wildcards, and what a JetStream message's reply subject says of it. */
#ifndef COLLECTOR_NATS_SUBJECT_H
#define COLLECTOR_NATS_SUBJECT_H

#include "common/base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum { NATS_SUBJECT_BYTES = 255 };

/* A message's place, as the server writes it into the subject by which it would be acknowledged. */
struct nats_place {
	uint64_t sequence; /* in the stream */
	uint64_t consumer; /* its number among those that this consumer was sent, from 1 on */
	uint64_t pending;  /* how many the server has behind it */
	int64_t put_ns;    /* Unix time */
};

/** Whether it is a subject, or a pattern of some: tokens between dots, "*" for one of them, ">" for the rest. */
bool nats_subject_valid(const char *pattern);

/** Whether a subject fits a pattern. */
bool nats_subject_fits(const char *pattern, struct weir_span subject);

/** Reads "$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE.CONSUMER_SEQUENCE.TIME.PENDING", and the longer form of 2.9. */
bool nats_place_read(struct weir_span reply, struct nats_place *place);

#endif
