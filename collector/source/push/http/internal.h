/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the HTTP source share. */
#ifndef COLLECTOR_SOURCE_PUSH_HTTP_INTERNAL_H
#define COLLECTOR_SOURCE_PUSH_HTTP_INTERNAL_H

#include "collector/source/push/decode/decode.h"
#include "collector/source/push/http/source_http.h"
#include "collector/source/push/push_source.h"
#include "collector/source/source_senders.h"
#include "common/http/http.h"

#include <semaphore.h>

enum {
	HTTP_TOKENS_MOST = 16,
	HTTP_DECODERS_MOST = 4, /* bodies that are unpacked and taken apart at a time: each may need many times its size */
};

struct http_config {
	const char *name, *listen, *asked_path; /* as configured; read while that is there */
	bool follow;
	char *host; /* owned, as is all that follows */
	char *path;
	uint16_t port;
	char *tokens[HTTP_TOKENS_MOST];
	size_t token_count;
	char *certificate, *key, *client_ca; /* NULL: plain HTTP */
	struct source_senders from;
	int64_t body_most_bytes, spool_bytes, connections, line_max;
};

extern const struct weir_json_rule http_members[];

/**
 * Reads the configuration.
 *
 * @param config  http_config_deinit() is due, also after a failure
 * @param secrets  whether tokens are opened; else they need not be on this machine
 */
WEIR_MUST_USE enum weir_status http_configure(struct http_config *config, const struct weir_json *json, bool secrets,
                                              struct weir_error *error);
/** Opens the tokens. */
WEIR_MUST_USE enum weir_status http_open_tokens(struct http_config *config, const struct weir_json *json,
                                                struct weir_error *error);
/** Whether it asks for a token or a certificate. */
bool http_knows_senders(const struct http_config *config);
void http_config_deinit(struct http_config *config);

struct http_source {
	struct push_source base; /* first */
	struct http_config config;
	struct weir_http *http; /* NULL: with `once` */
	sem_t decoders;
	_Atomic uint64_t refused; /* requests with a status from 400 to 499 */
};

/* A request on its way through a door. */
struct http_call {
	struct http_source *source;
	const struct weir_http_request *request;
	struct weir_http_reply *reply;
	char id[PUSH_ID_MOST_BYTES];
	struct weir_span name;   /* the batch's id, in `id`; at NULL: it has none */
	struct weir_text plain;  /* what was unpacked */
	struct weir_text lines;  /* what was taken apart */
	struct weir_text answer; /* what a decoder has to say */
	uint32_t line_count;
	bool again; /* the batch was known */
};

/* What lies behind a path: a protocol. */
struct http_door {
	const char *path; /* NULL: that of the configuration. With a leading "*": how it ends */
	push_decode *decode;
	unsigned status;  /* of success */
	const char *type; /* the content type of answers; NULL: plain text */
	bool pieces;      /* its bodies may never end: they are taken as they come, up to what is whole */
	/** Writes the answer to what is taken. NULL: none is */
	void (*accept)(const struct http_call *call);
	/** Writes words of a refusal. NULL: as they are */
	void (*refuse)(const struct http_call *call, unsigned status, const char *words);
	/** Answers a request that brings nothing to store. NULL: GET is refused */
	void (*greet)(const struct http_call *call);
};

/** The door of a path; NULL: there is none. @param firehose  the request has Firehose's id */
const struct http_door *http_door_of(const struct http_config *config, const char *target, bool firehose);

/** Whether a request may enter; false: the reply says why not. */
bool http_admit(struct http_source *source, const struct weir_http_request *request, struct weir_http_reply *reply);

/* Callbacks of the server. */
void http_begin(void *context, const struct weir_http_request *request, struct weir_http_reply *reply);
void http_handle(void *context, const struct weir_http_request *request, struct weir_http_reply *reply);

#endif
