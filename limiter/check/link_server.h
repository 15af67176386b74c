/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server that each surface is, whatever its protocol: it takes connections, waits for them, and has those served that
 * something is to be done for. A surface's server begins with struct link_server and its connections with struct
 * link_connection; what is its protocol's own, it gives as a table of functions.
 *
 * Of one thread: the owner's.
 */
#ifndef LIMITER_CHECK_LINK_SERVER_H
#define LIMITER_CHECK_LINK_SERVER_H

#include "common/config/config.h"
#include "common/log/metrics.h"
#include "limiter/check/check.h"
#include "limiter/check/check_counts.h"
#include "limiter/check/link_loop.h"
#include "limiter/check/refusals.h"
#include "limiter/check/surface.h"

enum { LINK_KINDS_MAX = 48, LINK_CONNECTIONS_DEFAULT = 10000 };

/* What a server counts. Read by any thread. */
struct link_figures {
	struct weir_counter connections; /* that are open */
	struct weir_counter accepted, refused, failed_logins, protocol_errors;
	struct weir_counter stalled; /* ended: too slow, idle too long, without the password, or too much kept for them */
	struct weir_counter buffered_bytes;
	struct weir_counter in_flight;             /* RESP: checks; gRPC: calls */
	struct weir_counter kinds[LINK_KINDS_MAX]; /* what came, by command, path or method */
	struct weir_counter unknown;               /* of other kinds */
	struct weir_counter redirected;            /* RESP: checks answered with MOVED */
	struct weir_counter late;                  /* gRPC: calls answered with DEADLINE_EXCEEDED */
};

struct link_connection {
	struct link_server *server;
	struct link link;
	struct link_connection *previous, *next, *next_touched;
	bool touched; /* something is to be done for it: it is finished in this turn, or in the next one */
	bool dead;    /* it ends as soon as nobody looks at what it has */
	bool half_closed, watched_in, watched_out;
	int64_t opened_ms;
	int64_t partial_ms; /* since when what came is not whole; 0: it is */
	int64_t written_ms; /* when its client last read, or had nothing to read */
	size_t counted;     /* bytes that the server counts for it: link_connection_keeps() */
};

struct link_server;

/* What is the same whatever the protocol. */
struct link_options {
	struct check_judge judge;
	uint32_t connections; /* at most; 0: LINK_CONNECTIONS_DEFAULT */
	int64_t stall_ms;     /* how long what is asked may take to come, and its answer to be read; 0: the protocol's */
	enum weir_on_unavailable on_unavailable; /* what is answered where nothing can be judged */
	bool durable;                            /* answers wait for the log's acknowledgement */
	struct refusals *refusals;               /* told of what is refused; borrowed. NULL: nobody is */
};

/* A protocol. */
struct link_protocol {
	enum refusal_surface surface;
	const char *alpn;          /* by TLS; NULL: any */
	struct weir_span no_tls;   /* what is said, without TLS, to a client that speaks none where it must */
	struct weir_span too_many; /* what is said to a client for which there is no room */
	size_t connection_bytes;   /* of a connection */
	int64_t stall_ms;          /* where the options have none */
	size_t kept_max_bytes;     /* by all connections: link_connection_keeps() */

	/** Begins one, in memory that is zero but for its struct link_connection. */
	void (*open)(struct link_connection *connection);
	/** Reads what has come. */
	void (*read)(struct link_connection *connection);
	/** Last in a turn: writes, and says what is waited for. @return whether somebody still looks at what it has */
	bool (*finish)(struct link_connection *connection);
	/** Once a second: ends one that is too slow. */
	void (*look)(struct link_connection *connection);
	/** The server stops. NULL: that it is touched is enough */
	void (*leave)(struct link_connection *connection);
	/** Gives back what it has, but for its struct link_connection. */
	void (*close)(struct link_connection *connection);

	/** As link_server_turn(). */
	void (*turn)(struct link_server *server, int timeout_ms);
	/** The timer has ticked: link_server_look(), unless the surface has a time of its own for that. */
	void (*tick)(struct link_server *server);
	/** As link_server_answered(). */
	void (*answered)(struct link_server *server, const struct check_answer *answer);
	/** Frees what the server has, but for its struct link_server. Connections have ended. */
	void (*deinit)(struct link_server *server);
};

struct link_server {
	const struct link_protocol *protocol;
	struct link_options options;
	struct link_figures figures;
	struct check_counts *counts; /* how its checks were answered, by zone; read by any thread */
	struct link_loop loop;
	int failed;                             /* errno of its opening, which link_server_opened() tells; 0: it is open */
	struct epoll_event events[LINK_EVENTS]; /* of this turn */
	int event_count;
	bool stopping;
	int64_t now_ms;
	struct link_connection *connections, *touched;
	uint32_t connection_count;
	size_t buffered; /* bytes */
};

/* ---- for its owner ---- */

/** Whether it could be made. @return WEIR_IO: it takes no connections, and can only be freed */
WEIR_MUST_USE enum weir_status link_server_opened(const struct link_server *server, struct weir_error *error);

/**
 * Takes connections by TCP; may be called for several addresses.
 *
 * @param host    as for weir_listen_socket(), whose status is given
 * @param shared  servers of other threads listen there, too
 * @param tls     borrowed while the server lives; NULL: plain
 * @param bound   set: the port
 */
WEIR_MUST_USE enum weir_status link_server_listen(struct link_server *server, const char *host, uint16_t port,
                                                  bool shared, struct weir_http_tls_server *tls, uint16_t *bound,
                                                  struct weir_error *error);
/** Serves what has come, after at most timeout_ms. -1: waits for it. */
void link_server_turn(struct link_server *server, int timeout_ms);
/** Of an ask that was told CHECK_LATER, by an ask() that has returned. It is written by the next turn. */
void link_server_answered(struct link_server *server, const struct check_answer *answer);
/** Takes no connection and no question any more; connections end as soon as what they asked is answered. */
void link_server_stop(struct link_server *server);
/** Closes the connections that are left. It may only be freed afterwards. */
void link_server_end(struct link_server *server);
/** Closes all connections. What was not answered by then must not be answered any more. NULL is fine. */
void link_server_free(struct link_server *server);
/** The server as a surface, which is freed by its free(). */
struct check_surface link_server_surface(struct link_server *server);

/* ---- for surfaces: a turn is link_server_wait(), _receive(), _finish() and _rest(), and what they do between ---- */

/** Begins a server, in zeroed memory. */
void link_server_init(struct link_server *server, const struct link_protocol *protocol,
                      const struct link_options *options);
/** Waits, unless connections are touched already, and reads the clock. */
void link_server_wait(struct link_server *server, int timeout_ms);
/** Takes connections, and has those read that can be. All that came are touched. */
void link_server_receive(struct link_server *server);
/** Finishes those that are touched. Frees those that have ended. */
void link_server_finish(struct link_server *server);
/** Ends the turn. @param soon_ms  how often the timer ticks; 0: once a second, while there is something to look at */
void link_server_rest(struct link_server *server, int64_t soon_ms);
/** Looks at all connections, and at what is listened at. */
void link_server_look(struct link_server *server);

/** Has asks judged, CHECK_GROUP_MAX at most: as struct check_judge. */
static inline void link_server_judge(const struct link_server *server, const struct check_ask *asks, uint32_t count,
                                     struct check_answer *answers)
{
	server->options.judge.ask(server->options.judge.context, asks, count, answers);
}

/** In force; NULL: there is none yet. Borrowed until the next turn. */
static inline const struct weir_policy *link_server_policy(const struct link_server *server)
{
	return server->options.judge.policy(server->options.judge.context);
}

/** Has it finished in this turn, or in the next one. */
static inline void link_connection_touch(struct link_connection *connection)
{
	if (connection->touched)
		return;
	connection->touched = true;
	connection->next_touched = connection->server->touched;
	connection->server->touched = connection;
}

/** As link_read(). It is dead if that fails, and half_closed at the end. */
ssize_t link_connection_read(struct link_connection *connection, void *room, size_t bytes);
/** Writes what its client takes. It is dead if that fails. @param sent  moved on @return whether all is written */
bool link_connection_write(struct link_connection *connection, const char *bytes, size_t length, size_t *sent);
/** What is waited for from now on; also to write, while TLS has to before it can read. */
void link_connection_watch(struct link_connection *connection, bool in, bool out);
/**
 * Tells how many bytes are kept for it now. It is dead if all keep too much.
 *
 * @param free_bytes  that it may keep however much the others do
 */
void link_connection_keeps(struct link_connection *connection, size_t bytes, size_t free_bytes);
/** Whether something took too long to come, or to be read. @param unread  there is something to read */
bool link_connection_is_late(const struct link_connection *connection, bool unread);
/** Ends one that is too slow. */
void link_connection_stall(struct link_connection *connection);
/** As refusals_tell(). */
void link_connection_refuse(const struct link_connection *connection, enum refusal_reason reason, const char *by,
                            const char *what, const char *detail);

#endif
