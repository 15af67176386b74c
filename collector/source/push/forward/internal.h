/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the forward source share. */
#ifndef COLLECTOR_SOURCE_FORWARD_INTERNAL_H
#define COLLECTOR_SOURCE_FORWARD_INTERNAL_H

#include "collector/source/push/forward/forward_lines.h"
#include "collector/source/push/forward/source_forward.h"
#include "collector/source/push/push_source.h"
#include "collector/source/push/push_spool.h"
#include "collector/source/source_senders.h"
#include "common/http/tls_stream.h"
#include "common/match/wildcard.h"

#include <sys/socket.h>

enum {
	FORWARD_CONNECTIONS_MAX = 16384,
	FORWARD_TAGS_MAX = 256,
	FORWARD_FRAME_LEAST_BYTES = 64 << 10,
	FORWARD_PING_MOST_BYTES = 8 << 10, /* of a message of who has not said who it is: no buffer grows for it */
	FORWARD_FRAME_MOST_BYTES = 256 << 20,
	FORWARD_SPOOL_LEAST_BYTES = 16 << 20,
	FORWARD_NAME_BYTES = 80,
};

/* ---- source_forward_config.c ---- */

struct forward_tag {
	struct weir_span text; /* the whole of it; with a star, of its wildcard */
	struct wildcard wildcard;
	bool has_star;
};

/* Owned: forward_config_deinit(). */
struct forward_config {
	const char *name, *listen; /* borrowed from the document, while it is read */
	bool follow;
	char *socket; /* the path of a unix socket; NULL: TCP */
	char *host;   /* "*": every address */
	uint16_t port;
	char *shared_key;      /* NULL: none is asked for */
	char *user, *password; /* NULL: none is asked for */
	struct weir_http_tls tls;
	char *certificate, *key, *client_ca;
	bool knows_senders; /* by a secret or a certificate */
	struct source_senders from;
	struct forward_tag *tags;
	size_t tag_count; /* 0: all are taken */
	int64_t frame_most, connections, idle_ms, spool_bytes, line_max;
};

extern const struct weir_json_rule forward_members[];

/** @param opens  whether secrets are opened; else only what they say is checked */
WEIR_MUST_USE enum weir_status forward_configure(const struct weir_json *json, bool opens,
                                                 struct forward_config *config, struct weir_error *error);
void forward_config_deinit(struct forward_config *config);
bool forward_takes_tag(const struct forward_config *config, struct weir_span tag);

/* ---- forward_listen.c ---- */

/** A socket that listens, and one that receives the heartbeats of UDP (-1: a unix socket has none). */
WEIR_MUST_USE enum weir_status forward_listen(const struct forward_config *config, int *fd, int *heartbeats,
                                              struct weir_error *error);

/** Writes who has a socket's name: an address and a port, or that it is the unix socket. */
void forward_name_peer(const struct sockaddr_storage *name, socklen_t length, char text[FORWARD_NAME_BYTES]);

/** Some senders ask by UDP whether anyone is there: a byte says so, to those of `from`. @param fd  the socket of heartbeats */
void forward_answer_heartbeats(int fd, const struct forward_config *config);

/* ---- forward_greeting.c: who may send ---- */

enum { FORWARD_NONCE_DIGITS = 32 };

struct forward_greeting {
	char nonce[FORWARD_NONCE_DIGITS], salt[FORWARD_NONCE_DIGITS];
};

/** Appends the HELO of a connection. */
void forward_greet(struct forward_greeting *greeting, bool asks_user, struct weir_text *out);
/** Appends the PONG. @return NULL: it may send; else why not */
const char *forward_answer_ping(const struct forward_greeting *greeting, const struct forward_config *config,
                                const struct forward_frame *ping, struct weir_text *out);
/** Appends {"ack": chunk}. */
void forward_put_ack(struct weir_span chunk, struct weir_text *out);

/* ---- forward_connection.c: bytes in, bytes out ---- */

struct forward_memory {
	size_t held;                        /* bytes of all buffers beyond their first */
	struct forward_connection *favored; /* may grow nevertheless, so that one always can; NULL: nobody needs it */
};

struct forward_connection {
	int fd;
	struct weir_tls_stream *tls; /* NULL: plain */
	char peer[FORWARD_NAME_BYTES];
	struct forward_greeting greeting;
	bool trusted; /* may send */
	bool spoke;
	char *bytes;
	size_t capacity, begin, end;
	size_t frame_most; /* of a message that begins */
	struct msgpack_extent extent;
	bool whole;   /* a message is there: extent.seen bytes from begin on */
	bool starved; /* there is no memory for it at present */
	bool ended;   /* the peer sends no more */
	bool failed;  /* to be closed as it is */
	bool reset;   /* by its peer: who knows what that has read of what was sent */
	struct weir_text out;
	uint64_t sent, sent_seen; /* bytes of it, by now and at the look before */
	int64_t unread_ms;        /* monotonic: since when no more of it was sent */
	uint64_t waiting;         /* messages of it that the spool has and has not answered */
	int64_t accepted_ms;      /* monotonic */
	int64_t heard_ms;
	int64_t begun_ms; /* when the message that is not whole began; 0: none */
	uint32_t watched; /* epoll's events; 0: none */
	size_t acks;      /* of it that forward_acks has */
	size_t place;
};

/** @param fd  taken */
struct forward_connection *forward_connection_new(int fd, struct weir_http_tls_server *tls, size_t frame_most,
                                                  int64_t now_ms);
void forward_connection_free(struct forward_connection *connection, struct forward_memory *memory);
/**
 * Reads what is there, up to one whole message and a little more.
 *
 * @return WEIR_OK, also where there is nothing; WEIR_INVALID: what comes is no message that can be taken; WEIR_FULL: it is
 *         one of more than `frame_most` bytes. The words say why
 */
WEIR_MUST_USE enum weir_status forward_connection_read(struct forward_connection *connection,
                                                       struct forward_memory *memory, int64_t now_ms,
                                                       struct weir_error *error);
/** Passes over the message that is whole, and looks for the next in what is there. As forward_connection_read(). */
WEIR_MUST_USE enum weir_status forward_connection_pass(struct forward_connection *connection,
                                                       struct forward_memory *memory, int64_t now_ms,
                                                       struct weir_error *error);
/** Gives back the buffer of a connection that is silent. */
void forward_connection_rest(struct forward_connection *connection, struct forward_memory *memory);
/** Whether bytes of it are here of which no poll tells, as TLS has them, and it can be read. */
bool forward_connection_behind(const struct forward_connection *connection);
/** Whether its buffer counts in what all may have together. */
bool forward_connection_holds(const struct forward_connection *connection);
/** Sends what waits in `out`, as far as the peer takes it. */
void forward_connection_flush(struct forward_connection *connection);
/** What epoll should tell of it. */
uint32_t forward_connection_wants(const struct forward_connection *connection);

/* ---- forward_acks.c: which acknowledgements have arrived ---- */

enum { FORWARD_TAG_HASH_BYTES = 16, FORWARD_ACK_CHAINS = 1024 };

/* Of chunks that are hashes of their records. Zero-initialised: none. Of the listener's thread. */
struct forward_acks {
	struct forward_ack *chains[FORWARD_ACK_CHAINS];
	size_t count;
};

/** Whether a chunk is Fluent Bit's: 32 hexadecimal digits, of a hash of the records. Others are made up for one message. */
bool forward_chunk_is_content(struct weir_span chunk);
void forward_hash_tag(struct weir_span tag, uint8_t hash[FORWARD_TAG_HASH_BYTES]);
/** Appends the spool's id of a part of a message. */
void forward_put_id(struct weir_text *id, uint32_t part, const uint8_t tag[FORWARD_TAG_HASH_BYTES],
                    struct weir_span chunk);
/** Notes an acknowledgement that was sent. @param connection  until forward_acks_leave() */
void forward_acks_add(struct forward_acks *acks, struct forward_connection *connection,
                      const uint8_t tag[FORWARD_TAG_HASH_BYTES], struct weir_span chunk, uint32_t parts);
/** Ends the ids of a chunk that comes, where the acknowledgement of the one before has arrived. */
void forward_acks_match(struct forward_acks *acks, struct push_spool *spool, struct weir_span tag,
                        struct weir_span chunk);
/** The same of all that were sent some seconds ago. */
void forward_acks_look(struct forward_acks *acks, struct push_spool *spool, int64_t now_ms);
/** The same before a stop, of those that a living sender has read by now. */
void forward_acks_stop(struct forward_acks *acks, struct push_spool *spool, int64_t now_ms);
/** The same for a connection that is to be closed; those that have not arrived stay known for their hour. */
void forward_acks_leave(struct forward_acks *acks, struct push_spool *spool,
                        const struct forward_connection *connection);

/* ---- forward_server.c ---- */

struct forward_server;

/* What the listener has seen since its start. */
struct forward_status {
	uint64_t received; /* messages with entries */
	uint64_t skipped;  /* of them, by their tag, or as they were no logs */
	uint64_t refused;  /* connections and messages */
	uint64_t nameless; /* messages that asked for no acknowledgement */
	uint64_t lost_lines;
	char problem[256]; /* "": none of late */
	bool waits;        /* the problem: the spool takes nothing, and senders wait */
};

/**
 * Listens, and appends what comes to the spool, on a thread of its own.
 *
 * @param config, spool, log  borrowed until the stop; log NULL: what becomes of its certificate is not said
 */
WEIR_MUST_USE enum weir_status forward_server_start(const struct forward_config *config, struct push_spool *spool,
                                                    size_t line_max, const struct weir_log *log,
                                                    struct forward_server **server, struct weir_error *error);
/** Takes what is here whole, and no more, acknowledges what the spool still stores, and ends: within PUSH_COMMIT_MOST_MS and a second. NULL is fine. */
void forward_server_stop(struct forward_server *server);
void forward_server_status(struct forward_server *server, struct forward_status *status);

#endif
