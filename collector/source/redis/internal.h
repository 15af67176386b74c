/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the redis source share. */
#ifndef COLLECTOR_SOURCE_REDIS_INTERNAL_H
#define COLLECTOR_SOURCE_REDIS_INTERNAL_H

#include "collector/source/queue/source_queue.h"
#include "collector/source/redis/redis_entry.h"
#include "collector/source/redis/redis_server.h"
#include "collector/source/redis/source_redis.h"

enum {
	REDIS_URLS_MAX = 8,
	REDIS_STREAMS_MAX = 1024,
	REDIS_NODES_MAX = 64,  /* servers of a cluster */
	REDIS_MARKS_MAX = 256, /* of a stream, not acknowledged yet */
	REDIS_KEY_MAX_BYTES = 1024,
};

/*
 * The groups that weir keeps in a stream: the low-water mark, with how many entries were added up to there; and numbers,
 * in ids of about that place. A number is in its id, as a server may hold what a group says it has read to be at most what
 * the stream has added, and a stream that was made anew has added less.
 */
enum {
	REDIS_GROUP,
	REDIS_GROUP_READ, /* with departures: how many entries weir has read up to there */
	REDIS_GROUP_DONE, /* with departures: how many departures are safe */
	REDIS_GROUPS,
};

/* The values of a configuration; strings are borrowed from it. */
struct redis_config {
	const char *urls[REDIS_URLS_MAX];
	size_t url_count;
	const char *streams[REDIS_STREAMS_MAX]; /* keys, and patterns of keys */
	size_t stream_count;
	const char *user, *name, *field, *group;
	struct weir_json password; /* a secret, opened for each connection: it may be renewed */
	bool departures;           /* entries that leave are records of a second stream */
	const char *workers;       /* they leave when this group acknowledges them; NULL: when they are removed */
	int64_t generation, line_max;
	int start; /* enum source_at_start */
	bool follow;
};

/* How much of a stream there was up to a position. */
struct redis_mark {
	uint64_t position;
	uint64_t added; /* entries that were ever added; known if the stream is counted */
	uint64_t read;  /* entries that were ever read by weir */
};

/* What a server says of a stream at one moment. */
struct redis_extent {
	bool known;
	bool counts;   /* `added` is known: Redis 7 and later */
	uint64_t last; /* position of the newest entry ever added */
	uint64_t added, length;
	bool acknowledges;     /* `acknowledged` is known */
	uint64_t acknowledged; /* by the workers' group */
};

struct redis_stream {
	char *key;
	uint32_t key_length;
	size_t node;       /* which of the source's servers has it */
	bool asking;       /* it is being moved to that one */
	size_t asked_node; /* likewise, when the commands under way were sent */
	bool asked_asking;
	int64_t begin_ms;             /* monotonic: when it is due to be found, after it was refused */
	bool absent;                  /* it was not there when it was looked for: all that comes is new */
	bool gone;                    /* the problem that is shown is that it is not there */
	bool sought;                  /* it was not there, and what an earlier run knew of it was looked for */
	bool kept;                    /* its groups are there */
	bool tallied;                 /* place.read is known */
	bool waits;                   /* told that no departures are given now */
	uint64_t end;                 /* position of the server's newest entry, when last looked */
	bool went_back;               /* told that the server's end is before what was read */
	bool stopped;                 /* an entry cannot be ordered: nothing is read any more */
	bool told;                    /* that it is no stream, or may not be read */
	bool unreadable;              /* it is not read until it was looked at again */
	bool refused;                 /* XREAD was: what is told of that stays until one is answered */
	struct queue_stream *entries; /* NULL: it is not known yet where it begins */
	struct queue_stream *done;    /* NULL: departures are not asked for */
	bool counted;                 /* place.added is known */
	bool at_least;           /* it was that many or more, as far as this machine remembers: its group is not there */
	struct redis_mark place; /* of the newest entry read */
	struct redis_mark marks[REDIS_MARKS_MAX];
	size_t mark_count;
	struct redis_mark safe;                     /* the newest mark that is acknowledged */
	uint64_t saved, saved_added, saved_done;    /* what the groups keep: a position, and counts */
	uint64_t saving, saving_added, saving_done; /* the same, while it is being kept */
	struct redis_extent extent;                 /* to be compared once all up to its end is read */
	uint64_t departed;                          /* records of departures that were ever given */
	bool asked;                                 /* by the XREAD under way */
	uint64_t got;                               /* entries that it gave */
	bool dry;                                   /* there was nothing more behind them */
};

static inline struct weir_span redis_key(const struct redis_stream *stream)
{
	return (struct weir_span){.at = stream->key, .length = stream->key_length};
}

struct redis_source {
	struct queue_source queue; /* first */
	struct redis_config config;
	struct weir_redis_url urls[REDIS_URLS_MAX]; /* without a password of the configuration */
	size_t url_next;                            /* which of them is tried next */
	struct redis_server *servers[REDIS_NODES_MAX];
	struct weir_redis_url nodes[REDIS_NODES_MAX]; /* where they are; the first: as configured */
	bool named[REDIS_NODES_MAX]; /* the cluster's last list of slots has it, or a stream was sent there since */
	size_t server_count;
	bool cluster; /* keys are spread over servers, by which each is asked for alone */
	bool old;     /* the server knows no ENTRIESREAD: before Redis 7 */
	bool keeps;   /* the low-water mark is kept in groups */
	char *groups[REDIS_GROUPS];
	struct redis_stream *streams[REDIS_STREAMS_MAX];
	size_t stream_count;
	struct redis_entry entry;
	bool scanned;                      /* patterns were looked for once: what they name later is new */
	bool too_many;                     /* streams are not read, as there are too many */
	uint64_t count;                    /* entries to ask for at once */
	uint64_t largest;                  /* bytes of the largest entry lately */
	int64_t look_ms, keep_ms, scan_ms; /* when each is due */
};

/** source_redis_config.c */
extern const struct weir_json_rule redis_members[];
WEIR_MUST_USE enum weir_status redis_configure(struct redis_config *config, const struct weir_json *json,
                                               const struct source_context *context, struct weir_error *error);
WEIR_MUST_USE enum weir_status redis_apart(const struct weir_json *config, const struct weir_json *other,
                                           struct weir_error *error);
/** Refuses zones that free places by departures and count by more than the stream: a departure says no more. */
WEIR_MUST_USE enum weir_status redis_fits(const struct weir_json *config, const struct weir_policy *policy,
                                          struct weir_error *error);
bool redis_is_pattern(const char *key);

/* ---- source_redis_servers.c: where streams are ---- */

/** One of the servers, connected: the first of a list that is a master. */
WEIR_MUST_USE enum weir_status redis_connect(struct redis_source *source, size_t node, struct weir_error *error);
/**
 * What a server's refusal of a command means.
 *
 * @return WEIR_AGAIN: the stream is elsewhere, ask again there; WEIR_IO: connect anew; WEIR_INVALID: it concerns this
 *         stream alone; error says why, in each case but the first
 */
WEIR_MUST_USE enum weir_status redis_refused(struct redis_source *source, struct redis_stream *stream,
                                             struct weir_span words, struct weir_error *error);
/** The node at "HOST:PORT", or at ":PORT" of the one that says so. @return false: there are too many, or it is none */
bool redis_find_node(struct redis_source *source, size_t teller, struct weir_span at, size_t *node);
/** Forgets all nodes but the first, which is asked again where each stream is: a cluster's change in time. */
void redis_forget_nodes(struct redis_source *source);
/**
 * What a failure of a stream's command means: one node of a cluster that is lost is that stream's problem alone, and the
 * first node is asked where the stream is.
 */
enum weir_status redis_lost(struct redis_source *source, struct redis_stream *stream, enum weir_status status);
/** The server of a stream, connected. @return as redis_lost() */
WEIR_MUST_USE enum weir_status redis_reach(struct redis_source *source, struct redis_stream *stream,
                                           struct weir_error *error);
void redis_disconnect(struct redis_source *source);

/* ---- source_redis_streams.c: what a server says of them ---- */

/** Queues a command of a stream: one word or two, and so many more, which follow. */
void redis_command(struct redis_source *source, struct redis_stream *stream, const char *words, size_t more);
/** The first token of its answer. @return as redis_refused(), if it is refused */
WEIR_MUST_USE enum weir_status redis_answer(struct redis_source *source, struct redis_stream *stream,
                                            struct weir_resp_token *token, struct weir_error *error);

void redis_free_streams(struct redis_source *source);
struct redis_stream *redis_add_stream(struct redis_source *source, struct weir_span key);
/** Finds where the streams begin that are not known yet, and what has become of the others. */
WEIR_MUST_USE enum weir_status redis_look(struct redis_source *source, struct weir_error *error);
/** Compares what was read with what the server had, once all of that is read: losses and departures. */
void redis_settle(struct redis_source *source, struct redis_stream *stream);
/** Shows why a stream is not read, and leaves it alone until it was looked at; NULL: it is read. */
void redis_stream_problem(struct redis_source *source, struct redis_stream *stream, const char *words);

/* ---- source_redis_keep.c: the low-water mark in the group ---- */

/** Notes how much was read up to here, for when it is acknowledged. */
void redis_mark(struct redis_stream *stream);
/** Keeps what is acknowledged, of each stream where that has moved. */
WEIR_MUST_USE enum weir_status redis_keep(struct redis_source *source, struct weir_error *error);

/* ---- source_redis_departures.c ---- */

/** Gives a record for each entry that was read and has left, up to that moment. */
void redis_depart(struct redis_source *source, struct redis_stream *stream, const struct redis_extent *extent);

/* ---- source_redis_read.c ---- */

/** Reads what is there, or waits for it. */
WEIR_MUST_USE enum weir_status redis_read(struct redis_source *source, struct weir_error *error);

/* ---- source_redis_keys.c ---- */

/** Looks for keys that a pattern names. */
WEIR_MUST_USE enum weir_status redis_scan(struct redis_source *source, struct weir_error *error);

#endif
