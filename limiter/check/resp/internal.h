/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: connections, slots, commands. */
#ifndef LIMITER_RESP_INTERNAL_H
#define LIMITER_RESP_INTERNAL_H

#include "common/policy/policy.h"
#include "common/resp/resp_command.h"
#include "common/resp/resp_writer.h"
#include "limiter/check/link_server.h"
#include "limiter/check/resp/resp_server.h"

enum {
	NAME_MAX_BYTES = 64, /* of a client: CLIENT SETNAME */
	BUFFER_BYTES = 16 << 10,
	SPARE_BUFFERS = 256,
	SLOTS_MAX = 1 << 16, /* of all connections */
	SLOT_TURNS = 1 << 28,
	THROTTLES_KEPT = 64,
	NODE_ID_DIGITS = 40, /* hexadecimal, as Redis has them */
};

struct connection;
struct command;

/* How a check is answered. */
enum reply_form {
	REPLY_FIVE,        /* limited, limit, remaining, retry and reset in ms */
	REPLY_SETTLED,     /* the same, of a settlement, which on_unavailable says nothing of */
	REPLY_THROTTLE,    /* the same in whole seconds, as redis-cell rounds */
	REPLY_ONE,         /* 1 or 0 */
	REPLY_RESERVATION, /* the five, and the reservation's id; null where there is none */
	REPLY_PART,        /* the five, of one of several that count together */
	REPLY_WHOLE,       /* to another limiter: outcome, the four numbers, why, the reservation's id, the window */
};

/* A check that is not answered to its client yet. */
struct slot {
	struct connection *connection;
	struct slot *next; /* behind it in its connection; of a free one: the next free */
	uint32_t turn;     /* how often it was used, modulo SLOT_TURNS: an answer for an earlier use is a bug */
	bool answered;
	bool shadow;       /* its zone is on trial: it passes, also where it cannot be judged */
	uint32_t together; /* of a bundle's first: how many there are, for one reply; else 0 */
	enum reply_form form;
	uint32_t counted; /* the number of its zone's counts */
	struct check_answer answer;
};

/* Why the commands of a connection are not read on, although there may be some. */
enum stop {
	STOP_NONE,     /* there are none: more must arrive */
	STOP_OUTPUT,   /* the client does not read its replies */
	STOP_ANSWERS,  /* answers must come first */
	STOP_FINISHED, /* it is closed when its replies are written */
};

enum multi { MULTI_NONE, MULTI_QUEUES, MULTI_SPOILT /* a command that cannot be queued */, MULTI_RUNS };

struct connection {
	struct link_connection base;
	struct resp_server *server;
	bool answered; /* since it was run */
	enum stop stop;

	char *in; /* NULL: nothing is kept */
	size_t in_room, in_start, in_end;
	char *keys; /* joined keys that stand in no command as they are; NULL: none */
	size_t keys_used;
	char *unquoted; /* words of a line that had quotes; NULL: none */
	struct weir_text out;
	size_t sent; /* of out */

	struct slot *first, *last;
	uint32_t slot_count;

	enum multi multi;
	struct weir_text queued; /* commands as they came */
	uint32_t queued_count;
	size_t queued_at; /* where MULTI_RUNS reads on */

	uint64_t id;
	enum weir_resp_protocol protocol;
	const struct resp_user *user; /* NULL: not logged in; where nobody need, too */
	char name[NAME_MAX_BYTES + 1];
	int64_t heard_ms;  /* when the last command came */
	int64_t greets_ms; /* since when it has not been logged in */
};

/* A limiter as cluster clients know it. */
struct node {
	char id[NODE_ID_DIGITS + 1];
	char host[OWNERS_HOST_BYTES];
	uint16_t port;
};

/* Slots of one node, none of the next range. */
struct node_range {
	uint32_t first, last;
	uint32_t node;
};

/* Who answers for which slots, as one client is told. */
struct nodes {
	struct node at[OWNERS_PLACES_MAX + 1]; /* first this server */
	uint32_t count;
	struct node_range *ranges; /* of all slots, in order */
	uint32_t range_count;
};

/* Which zone CL.THROTTLE means by its numbers. */
struct throttle {
	int64_t burst, count, period_s;
	const struct resp_user *user; /* who may not ask in all zones; NULL: whoever may */
	const struct weir_zone *zone; /* NULL: nothing is kept here */
};

/* Of the process, in bytes. */
struct resp_memory {
	int64_t read_ms; /* 0: not yet */
	uint64_t resident, peak;
};

struct resp_server {
	struct link_server base;
	struct resp_options options;
	uint64_t next_id;
	int64_t started_ms;

	char *spare[SPARE_BUFFERS];
	uint32_t spare_count;

	struct slot *slots, *free_slots;
	uint32_t slots_used; /* of which some may be free again */
	struct check_ask asks[CHECK_GROUP_MAX];
	struct slot *asked[CHECK_GROUP_MAX];
	uint32_t ask_count;
	uint32_t bundles; /* that were asked */
	bool starved;     /* a connection waits for a slot of others */

	const struct weir_policy *policy; /* of which the members below are */
	uint64_t policy_version;
	const struct weir_zone *zone; /* asked for last */
	struct throttle throttles[THROTTLES_KEPT];
	struct resp_memory memory;   /* as INFO tells it */
	char id[NODE_ID_DIGITS + 1]; /* of this node, where it stands alone */
};

/* ---- connection.c: sockets, buffers, time ---- */

/* As struct link_protocol has them. Commands are read by connection_run(). */
void connection_open(struct link_connection *base);
void connection_read(struct link_connection *base);
bool connection_finish(struct link_connection *base);
void connection_look(struct link_connection *base);
void connection_close(struct link_connection *base);
char *buffer_take(struct resp_server *server);
void buffer_give(struct resp_server *server, char *buffer);

/* ---- executor.c: commands in their order ---- */

/** Reads and answers commands for as long as there are whole ones. */
void connection_run(struct connection *connection);
/** Has the gathered checks judged. */
void server_ask(struct resp_server *server);
/** As link_server_answered(). */
void server_answered(struct link_server *base, const struct check_answer *answer);
/** Whether all checks of the connection are answered, after those that were gathered are judged. */
bool answers_are_out(struct connection *connection);
/** Whether there is room for another check of this connection; else it waits for answers. */
bool slot_possible(const struct connection *connection);
/** Whether there is room for so many checks of this connection in one group, and for their keys; else it waits for answers. */
bool slots_together(struct connection *connection, uint32_t count);
/** Answers what cannot be judged, as nothing is known yet. answers_are_out(). @param together  of a bundle: how many; else 0 */
void slot_unavailable(struct connection *connection, enum reply_form form, uint32_t together);
/** Takes a slot and the ask that goes with it, whose other members the caller sets. */
struct check_ask *slot_ask(struct connection *connection, enum reply_form form);

/* ---- command.c: the table ---- */

enum {
	COMMAND_OPEN = 1,  /* before a client has logged in, too */
	COMMAND_CHECK = 2, /* a check: does not wait for answers of those before it */
	COMMAND_NOW = 4,   /* also between MULTI and EXEC */
};

/* false: it must be read again when answers have come. */
typedef bool command_run(struct connection *connection, const struct weir_resp_command *command);

struct command {
	const char *name; /* lower case */
	int8_t arity;     /* words with the name; negative: at least so many */
	uint8_t flags;
	uint8_t key; /* which word is a key; 0: none */
	command_run *run;
	const char *summary;
};

/** NULL: there is none of the name. */
const struct command *command_find(struct weir_span name);
uint32_t command_index(const struct command *command);
uint32_t command_count(void);
const struct command *command_at(uint32_t index);
bool word_is(struct weir_span word, const char *lower);

command_run run_check_command, run_peek, run_allow, run_throttle, run_forward; /* command_check.c */
command_run run_all;                                                           /* command_all.c */
command_run run_reserve, run_settle, run_release;                              /* command_reserve.c */

command_run run_hello, run_auth, run_acl, run_client, run_ping, run_echo, run_select, run_ok, run_quit,
	run_reset;                        /* command_client.c */
command_run run_cluster, run_command; /* command_server.c */
command_run run_info, run_config, run_dbsize, run_keys, run_scan, run_slowlog, run_latency,
	run_module;                               /* command_info.c */
command_run run_multi, run_exec, run_discard; /* command_multi.c */
/** The ask of a check of a key as a caller wrote it; NULL: see below, `more` says what to return. */
struct check_ask *check_take(struct connection *connection, const struct weir_zone *zone, struct weir_span given,
                             enum reply_form form, bool *more);
/** The zone of a name, or an error in words. */
const struct weir_zone *check_zone(struct connection *connection, struct weir_span name, struct weir_error *error);
/** Whether a key that a caller wrote may be asked for in a zone. */
WEIR_MUST_USE enum weir_status check_can_be(const struct weir_zone *zone, struct weir_span given,
                                            struct weir_error *error);
/**
 * Whether a command's last word says that its answer waits for the log's acknowledgement: DURABLE, in any case.
 *
 * @param least  words that it has anyway
 * @param count  set: its words without that one
 */
bool check_durable(const struct weir_resp_command *words, uint32_t least, uint32_t *count);
/** Replies with an error, once those before it are out. @return as command_run */
bool check_fail(struct connection *connection, const char *words);
/** The same where resp_user_may_ask() is false. */
bool check_deny(struct connection *connection, const struct weir_zone *zone);
/** Says that check_zone() found none, or, before there is a policy, what a check is told that cannot be judged. @return as command_run */
bool check_no_zone(struct connection *connection, enum reply_form form, const char *words);
/** Says the latter. @param together  as of slot_unavailable() */
bool check_no_policy(struct connection *connection, enum reply_form form, uint32_t together);
/** An id as 32 hexadecimal digits. @return text */
const char *reservation_text(const uint8_t id[WEIR_RESERVATION_ID_BYTES], char text[2 * WEIR_RESERVATION_ID_BYTES + 1]);

/* ---- nodes.c ---- */

/** An id that the same text always has. */
void node_make_id(const char *text, char id[NODE_ID_DIGITS + 1]);
/** Who answers now. @param nodes  to be freed by nodes_free() */
void nodes_read(const struct connection *connection, struct nodes *nodes);
void nodes_free(struct nodes *nodes);
/** This server's id. */
void node_own_id(const struct resp_server *server, char id[NODE_ID_DIGITS + 1]);
/** Where another answers for a key, as sent and as counted. @return false: here, or nobody knows, or it must be forwarded */
bool node_elsewhere(const struct resp_server *server, struct weir_span given, struct weir_span key, uint32_t *slot,
                    struct owners_place *place);

/** Keeps a command for EXEC. */
void multi_queue(struct connection *connection, const char *bytes, size_t length);
/** Forgets what was queued. */
void multi_clear(struct connection *connection);
/** What is said about itself to HELLO and INFO alike. */
#define RESP_AS_REDIS_VERSION "7.4.0"

#endif
