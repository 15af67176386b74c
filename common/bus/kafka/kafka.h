/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdkafka: only this file includes its header. It has what every user needs:
 * properties from the configuration, handles, logging, and an end of a handle that
 * cannot hang.
 *
 * The handles of one user (the bus, or a source of lines) share a struct
 * weir_kafka. A handle gets its properties in three layers: weir's defaults, the
 * configuration's, and those on which weir's guarantees depend, which a
 * configuration may not set.
 */
#ifndef WEIR_COMMON_KAFKA_H
#define WEIR_COMMON_KAFKA_H

#include "common/bus/kafka/kafka_words.h"
#include "common/json/json.h"
#include "common/log/log.h"

#include <librdkafka/rdkafka.h>

enum { WEIR_KAFKA_COMPLAINT_BYTES = 400 }; /* within an error with more words around it */

/* A property with its value; lists end with a NULL name. */
struct weir_kafka_property {
	const char *name, *value;
	bool newer; /* left out if this version of librdkafka does not know it */
};

/* A property that a configuration may not set, and what to do instead; lists end with a NULL name. */
struct weir_kafka_refusal {
	const char *name, *why;
};

struct weir_kafka_options {
	const char *part;    /* for the log: "bus" */
	const char *client;  /* client.id, if the configuration has none */
	const char *brokers; /* HOST:PORT[,HOST:PORT...] */
	struct weir_json
		settings; /* the configuration's properties: an object, or without value; its document is borrowed */
	const struct weir_kafka_refusal *refusals;
	const struct weir_log *log; /* borrowed until weir_kafka_free(); handles that end later have a copy */
};

struct weir_kafka;

/**
 * Reads and checks the properties, including secrets from files and the environment. Does not connect.
 *
 * @return WEIR_OK; WEIR_INVALID: the error has the path, the line and librdkafka's own message
 */
WEIR_MUST_USE enum weir_status weir_kafka_new(const struct weir_kafka_options *options, struct weir_kafka **kafka,
                                              struct weir_error *error);
/** Frees it once its handles have ended, which keep what they still need. */
void weir_kafka_free(struct weir_kafka *kafka);

/**
 * The properties of a handle: defaults, the configuration's, then `fixed`. The caller adds events and opens the handle.
 *
 * @param fixed  may be NULL
 */
rd_kafka_conf_t *weir_kafka_conf(struct weir_kafka *kafka, const struct weir_kafka_property *fixed);

/**
 * Opens a handle. It is ended with weir_kafka_end().
 *
 * @param conf  taken, also on failure
 * @return WEIR_OK; WEIR_INVALID: properties are inconsistent, or a certificate cannot be read: the error has
 *         librdkafka's message
 */
WEIR_MUST_USE enum weir_status weir_kafka_open(struct weir_kafka *kafka, rd_kafka_type_t type, rd_kafka_conf_t *conf,
                                               rd_kafka_t **handle, struct weir_error *error);

/**
 * Ends a handle whose topics and queues are all released. librdkafka's own end can hang after a broker was lost. So it
 * runs on another thread, is waited for wait_ms, and is then left alone.
 */
void weir_kafka_end(rd_kafka_t *handle, int64_t wait_ms);

/**
 * rd_kafka_queue_poll(), for a queue that is asked rarely. Its timeout is in time that cannot be set: librdkafka's own
 * waits last for as long as a wall clock is set back.
 */
rd_kafka_event_t *weir_kafka_queue_poll(rd_kafka_queue_t *queue, int64_t timeout_ms);

/**
 * The last complaint of a handle, with the broker's name before it ("b1:9092/1: Connection refused: no broker runs
 * there").
 *
 * @param cause  NULL, or set: the cause that was understood, with what helps
 * @return false: there is none
 * @thread any
 */
bool weir_kafka_complaint(struct weir_kafka *kafka, char *text, size_t bytes, const struct weir_kafka_cause **cause);
/**
 * Tells of each broker that speaks TLS when the certificate ends that it showed last (Unix time), 64 brokers at most.
 *
 * @thread any; tell() must not ask this again
 */
void weir_kafka_each_certificate(struct weir_kafka *kafka,
                                 void (*tell)(void *context, const char *broker, int64_t ends_s), void *context);
/** Forgets the complaint, as everything works. @thread any */
void weir_kafka_content(struct weir_kafka *kafka);

#endif
