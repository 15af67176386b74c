/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: connections, calls, methods. */
#ifndef LIMITER_GRPC_INTERNAL_H
#define LIMITER_GRPC_INTERNAL_H

#include "common/policy/policy.h"
#include "limiter/check/grpc/grpc_server.h"
#include "limiter/check/grpc/protobuf.h"
#include "limiter/check/link_server.h"

enum {
	CALL_ASKS_MAX = 256,       /* of one call */
	CALL_KEPT_BYTES = 2 << 10, /* of each buffer that a free call keeps */
	OUT_BYTES = 64 << 10,      /* what is written at once */
	MESSAGE_HEAD_BYTES = 5,    /* in front of each message: whether it is compressed, and its length */
};

/* Codes of gRPC that weir answers with. */
enum grpc_status {
	GRPC_OK = 0,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAVAILABLE = 14,
	GRPC_UNAUTHENTICATED = 16,
};

struct grpc_call;

/* A method. Its functions may finish the call, and must not free it. */
struct grpc_method {
	const char *name; /* "RateLimitService/ShouldRateLimit" */
	const char *path;
	bool streams; /* requests and answers may be several; its calls wait without an end */
	/** One request. @param message  borrowed; of a method that does not stream until the call is answered */
	void (*message)(struct grpc_call *call, struct weir_span message);
	/** All that the call asked is answered, and it is not finished. */
	void (*answered)(struct grpc_call *call);
	/** Of one that streams, once a second. NULL: nothing */
	void (*look)(struct grpc_call *call);
	/** Of one that streams: the client has said all. NULL: the call is finished */
	void (*ended)(struct grpc_call *call);
	/** Of one that streams: the call is over, and what it has is to be given back. NULL: nothing */
	void (*closed)(struct grpc_call *call);
};

/* One ask of a call. */
struct call_ask {
	uint32_t part;   /* of the call: which descriptor, say; the method's */
	uint32_t bundle; /* 0; else those beside it with the same number count all, or none: CHECK_BUNDLE_MAX at most */
	bool peek, tries, shadow;
	int64_t cost;
	uint32_t key, key_length; /* in call->keys */
	char zone[WEIR_ZONE_NAME_MAX_BYTES + 1];
	struct check_answer answer;
};

struct grpc_call {
	struct grpc_connection *connection; /* NULL: the call is free */
	struct grpc_call *previous, *next;  /* of the connection; next of a free one */
	struct grpc_call *waiting_previous, *waiting_next;
	const struct grpc_method *method; /* NULL: not known yet, or none */
	int32_t stream;
	uint32_t index, turn;          /* where it is in the server, and how often it was used */
	int64_t began_ms, deadline_ms; /* monotonic; 0: it has no deadline */

	bool closed;                                    /* its stream is no more: nobody reads an answer */
	bool ended;                                     /* the client has said all */
	bool submitted;                                 /* the answer's head is on its way */
	bool finished;                                  /* all that is to be answered is there */
	bool idle;                                      /* the stream has nothing to write just now */
	bool waits;                                     /* for answers, and has a deadline */
	bool is_post, is_grpc, authorised, bad_timeout; /* of its head */
	uint32_t header_bytes;
	enum grpc_status status;
	const char *words; /* what is wrong; a constant, without what has to be escaped. NULL: nothing */

	struct weir_text in; /* what came and is no whole message yet */
	size_t in_start;
	struct weir_text out;    /* messages with their heads */
	size_t sent, message_at; /* of out */
	int64_t read_ms;         /* since when nothing of out has gone */
	int64_t partial_ms;      /* since when a message of a stream is not whole; 0: none is */
	size_t state_bytes;      /* of what the method keeps: call_keeps() */
	size_t counted;          /* bytes that the server counts for it */
	struct weir_text keys;   /* joined keys of its asks */

	struct call_ask *asks; /* room for asks_room */
	uint32_t ask_count, asks_room;
	uint32_t open; /* asks that are not answered, and 1 while more are handed over */
	void *state;   /* the method's */
};

struct nghttp2_session;

enum { FRAME_HEAD_BYTES = 9 };

/* Where among frames what has come ends. */
struct frame_place {
	uint32_t left; /* bytes to come of the preface, or of a frame behind its head */
	uint8_t head[FRAME_HEAD_BYTES];
	uint32_t head_length; /* bytes of the next frame's head that have come */
	bool block;           /* a block of header fields goes on in the next frame */
};

struct grpc_connection {
	struct link_connection base;
	struct grpc_server *server;
	struct nghttp2_session *session; /* NULL: it has ended */
	bool leaving;
	bool spoke;      /* something has come: nothing is said before, as the client may speak another protocol */
	bool strange;    /* what came first is not HTTP/2 */
	bool greeted;    /* a frame has come */
	bool authorised; /* a call with the password has come, or none is asked for */
	bool failed;     /* nothing more is read: it is closed when what is to be said is written */
	bool pending;    /* TLS has more that was received */

	char *out; /* NULL: nothing is kept */
	size_t out_length, sent;

	struct grpc_call *calls;
	uint32_t call_count;
	size_t held; /* bytes that its calls hold */
	struct frame_place place;
	uint32_t frames; /* that asked nothing, in this second: each counts one, and one more for each whole KiB */
};

struct nghttp2_session_callbacks;
struct nghttp2_option;

struct grpc_server {
	struct link_server base;
	struct grpc_options options;
	int64_t look_ms;
	struct nghttp2_session_callbacks *callbacks;
	struct nghttp2_option *option;

	char *room;  /* that is read into */
	char *spare; /* of OUT_BYTES, for the connection that writes */

	struct grpc_call **calls; /* room for GRPC_CALLS_MAX */
	uint32_t calls_made;
	struct grpc_call *free_calls;
	uint32_t free_count;
	struct grpc_call *waiting; /* calls with a deadline that wait for answers */

	struct check_ask asks[CHECK_GROUP_MAX];
	struct {
		struct grpc_call *call;
		uint32_t index;
	} asked[CHECK_GROUP_MAX];
	uint32_t ask_count;
	uint32_t bundles; /* the last one's number */
};

/* ---- grpc_server.c ---- */

/** Has the gathered asks judged. */
void grpc_server_ask(struct grpc_server *server);

/* ---- connection.c: sockets, buffers, time ---- */

/* As struct link_protocol has them. */
void grpc_connection_open(struct link_connection *base);
void grpc_connection_read(struct link_connection *base);
bool grpc_connection_finish(struct link_connection *base);
void grpc_connection_look(struct link_connection *base);
void grpc_connection_leave(struct link_connection *base);
void grpc_connection_close(struct link_connection *base);

/* ---- session.c: HTTP/2 ---- */

void session_prepare(struct grpc_server *server);
void session_unprepare(struct grpc_server *server);
void session_open(struct grpc_connection *connection);
/** All calls' streams are over. */
void session_close(struct grpc_connection *connection);
/** @return false: the connection is to be ended */
bool session_receive(struct grpc_connection *connection, const char *bytes, size_t length);
/** Moves what is to be written to the connection's out, for as long as there is room. @return false: as above */
bool session_send(struct grpc_connection *connection);
/** Whether it has nothing more to read or to write. */
bool session_is_over(const struct grpc_connection *connection);
/** Tells the client to begin no more calls here. */
void session_leave(struct grpc_connection *connection);
/** The call has something to write: its head, messages, or its end. */
void session_answer(struct grpc_call *call);
/** Ends a stream without an answer. */
void session_reset(struct grpc_call *call);

/* ---- call.c ---- */

/** @return NULL: there are too many */
struct grpc_call *call_open(struct grpc_connection *connection, int32_t stream);
/** Its stream is no more. It is free when all that it asked is answered. */
void call_close(struct grpc_call *call);
/** A field of its head. */
void call_header(struct grpc_call *call, struct weir_span name, struct weir_span value);
/** Its head is whole. */
void call_begin(struct grpc_call *call);
void call_data(struct grpc_call *call, const char *bytes, size_t length);
/** The client has said all. */
void call_end(struct grpc_call *call);

/** Where the call's next message is written, until call_message_close(). */
struct weir_text *call_message_open(struct grpc_call *call);
void call_message_close(struct grpc_call *call);
/** Nothing is said instead. */
void call_message_drop(struct grpc_call *call);
/** Nothing more is answered. @param words  a constant; NULL: none */
void call_finish(struct grpc_call *call, enum grpc_status status, const char *words);
/** Whether the call may keep so many bytes more, for longer than a message: half of its connection's, and of all; the rest is for messages. */
bool call_may_keep(const struct grpc_call *call, size_t bytes);
/** Tells how many bytes the method keeps for the call now. */
void call_keeps(struct grpc_call *call, size_t bytes);
/** Adds an ask, whose key is copied. Never within answered(). @return false: the call asks too much */
bool call_ask(struct grpc_call *call, const struct call_ask *ask, const struct weir_zone *zone, struct weir_span key);
/** Has what was added judged, together with other calls' asks. The method's answered() follows, or has been called. */
void call_asks_send(struct grpc_call *call);
/** @param answer  not CHECK_LATER */
void call_take_answer(struct grpc_call *call, uint32_t index, const struct check_answer *answer);
/** It has to wait for answers. */
void call_wait(struct grpc_call *call);
/** The call of a ticket, and which of its asks it is. @return NULL: there is none */
struct grpc_call *call_of_ticket(struct grpc_server *server, uint64_t ticket, uint32_t *index);
/** Ends calls whose deadlines have passed. */
void calls_expire(struct grpc_server *server);
void calls_free(struct grpc_server *server);

/* ---- method.c ---- */

/** NULL: there is none of the path. */
const struct grpc_method *method_find(struct weir_span path);
uint32_t method_index(const struct grpc_method *method);
const struct grpc_method *method_at(uint32_t index);

extern const struct grpc_method method_rate_limit;                        /* rate_limit.c */
extern const struct grpc_method method_quota;                             /* quota.c */
extern const struct grpc_method method_health_check, method_health_watch; /* health.c */

#endif
