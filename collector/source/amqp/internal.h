/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the amqp source share. Only source_amqp*.c include it. */
#ifndef COLLECTOR_SOURCE_AMQP_INTERNAL_H
#define COLLECTOR_SOURCE_AMQP_INTERNAL_H

#include "collector/source/amqp/amqp_client.h"
#include "collector/source/amqp/source_amqp.h"
#include "collector/source/queue/source_queue.h"

enum { AMQP_URLS_MAX = 16, AMQP_HOST_BYTES = 256 };

struct amqp_place {
	char host[AMQP_HOST_BYTES];
	int port;
	bool tls;
};

/* The values of a configuration; strings are borrowed from it. */
struct amqp_config {
	struct amqp_place places[AMQP_URLS_MAX];
	size_t place_count;
	const char *queue, *vhost, *name; /* name NULL: it has none */
	const char *user, *ca, *certificate, *key;
	struct weir_json password; /* a secret, opened for each connection: it may be renewed */
	bool stream;
	int64_t generation, prefetch, line_max;
	int start; /* enum source_at_start */
};

/* The members of the configuration; read into struct amqp_config. */
extern const struct weir_json_rule amqp_members[];

/** source_amqp_config.c: reads and checks a configuration. */
WEIR_MUST_USE enum weir_status amqp_configure(struct amqp_config *config, const struct weir_json *json,
                                              const struct source_context *context, struct weir_error *error);

/** Refuses two sources that read one queue under one name. */
WEIR_MUST_USE enum weir_status amqp_apart(const struct weir_json *config, const struct weir_json *other,
                                          struct weir_error *error);

#endif
