/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdkafka: its header is met here alone, with what every user of it needs:
 * properties from the configuration, handles, one voice in the log, an end that
 * cannot hang.
 *
 * A struct weir_kafka is what the handles of one user share (the bus; a source
 * of lines). Properties go on a handle in three layers: weir's defaults, what
 * the configuration says, and what weir's promises rest on, which the
 * configuration may not say.
 */
#ifndef WEIR_COMMON_KAFKA_H
#define WEIR_COMMON_KAFKA_H

#include "common/json/json.h"
#include "common/log/log.h"

#include <librdkafka/rdkafka.h>

enum { WEIR_KAFKA_COMPLAINT_BYTES = 256 };

/* A property with its value; lists end with a NULL name. */
struct weir_kafka_property {
	const char *name, *value;
	bool newer; /* left out where this librdkafka does not know it */
};

/* A property that a configuration may not set, and what to do instead; lists end with a NULL name. */
struct weir_kafka_refusal {
	const char *name, *why;
};

struct weir_kafka_options {
	const char *part;    /* for the log: "bus" */
	const char *client;  /* client.id, where the configuration gives none */
	const char *brokers; /* HOST:PORT[,HOST:PORT...] */
	struct weir_json
		settings; /* the configuration's properties: an object, or without value; its document is borrowed */
	const struct weir_kafka_refusal *refusals;
	const struct weir_log *log; /* borrowed until weir_kafka_free(); handles that end later have a copy */
};

struct weir_kafka;

/**
 * Reads and checks the properties, secrets from files and the environment included. Connects to nothing.
 *
 * @return WEIR_OK; WEIR_INVALID with the path, the line and librdkafka's own words
 */
WEIR_MUST_USE enum weir_status weir_kafka_new(const struct weir_kafka_options *options, struct weir_kafka **kafka,
                                              struct weir_error *error);
/** What its handles still hold stays until they have ended. */
void weir_kafka_free(struct weir_kafka *kafka);

/**
 * The properties of a handle: defaults, the configuration's, then `fixed`; the caller adds events and makes it.
 *
 * @param fixed  may be NULL
 */
rd_kafka_conf_t *weir_kafka_conf(struct weir_kafka *kafka, const struct weir_kafka_property *fixed);

/**
 * A handle; it ends by weir_kafka_end().
 *
 * @param conf  taken, on failure too
 * @return WEIR_OK; WEIR_INVALID: properties that do not go together, a certificate that cannot be read: the words are
 *         librdkafka's
 */
WEIR_MUST_USE enum weir_status weir_kafka_open(struct weir_kafka *kafka, rd_kafka_type_t type, rd_kafka_conf_t *conf,
                                               rd_kafka_t **handle, struct weir_error *error);

/**
 * Ends a handle, of which nothing else is held any more. librdkafka's own end can hang after a broker was lost: it
 * runs aside, is waited for so long, and then left to itself.
 */
void weir_kafka_end(rd_kafka_t *handle, int64_t wait_ms);

/** What a handle complained of last ("Connect to ... failed: Connection refused"); false: of nothing. @thread any */
bool weir_kafka_complaint(struct weir_kafka *kafka, char *text, size_t bytes);
/** Forgets it: all goes well. @thread any */
void weir_kafka_content(struct weir_kafka *kafka);

#endif
