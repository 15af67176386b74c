/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the kafka source share. Only source_kafka*.c include it. */
#ifndef COLLECTOR_SOURCE_KAFKA_INTERNAL_H
#define COLLECTOR_SOURCE_KAFKA_INTERNAL_H

#include "collector/source/kafka/source_kafka.h"
#include "collector/source/source_memory.h"
#include "common/base/text.h"
#include "common/bus/kafka/kafka.h"

#include <pthread.h>

enum {
	KAFKA_TOPICS_MAX = 256,
	KAFKA_ASK_MS = 3000, /* how long to wait for an answer of the brokers, while nothing else is done */
	KAFKA_NO_OFFSET = -1,
	KAFKA_PROBLEM_BYTES = 200,
};

struct kafka_config {
	const char *brokers, *group, *name; /* borrowed from the configuration */
	const char *topics[KAFKA_TOPICS_MAX];
	size_t topic_count;
	int64_t generation;
	int64_t line_max;
	int start; /* enum source_at_start */
};

/* The members of the configuration; read into struct kafka_config. */
extern const struct weir_json_rule kafka_members[];

/* A problem of a topic as a whole: it does not exist, or may not be read. Guarded by the mutex. */
struct kafka_topic {
	char *name; /* "kafka:app-logs", for people */
	char problem[KAFKA_PROBLEM_BYTES];
};

/* Where a partition begins. */
enum kafka_begin {
	KAFKA_NEW,     /* at an offset that the group has not committed yet */
	KAFKA_KNOWN,   /* at the group's committed offset */
	KAFKA_STOPPED, /* nowhere: the committed offset was beyond the end of the log */
	KAFKA_WAITING, /* its offsets cannot be read now, perhaps because it has no leader */
};

/* A partition, from its first assignment until the source ends; others may have it in between. */
struct kafka_stream {
	struct source_stream stream;
	char *topic;
	int32_t partition;
	/* Guarded by the mutex, as status() reads them. */
	bool assigned;
	bool stopped;      /* its offset was beyond the log's end: nothing is read, however far the log grows */
	int64_t next;      /* the next offset to take */
	int64_t end;       /* the log's end when last reached: there is no message between `next` and it */
	int64_t told_end;  /* the log's end when the brokers were last asked; KAFKA_NO_OFFSET: not known */
	int64_t newest_ms; /* timestamp of the newest record taken; 0: not known */
	uint64_t skipped;  /* messages without a line in them */
	uint64_t lost;     /* offsets that were trimmed before they were read */
	char problem[KAFKA_PROBLEM_BYTES]; /* until something is read of it, or its end is reached */
	/* Only the reading thread uses these. */
	int64_t handed;                      /* the offset after the newest line handed out */
	int64_t safe;                        /* everything before this offset is acknowledged */
	int64_t committed;                   /* the offset that the group has */
	bool marked;                         /* the committed offset says that the partition is stopped */
	bool marking;                        /* the commit in progress says so */
	struct source_memory_stream *record; /* what this collector remembers of it: NULL: nothing */
	bool verifying;                      /* the message before record->low_water is fetched once more, and compared */
	int64_t marked_at; /* a message that is to be remembered once it is acknowledged; KAFKA_NO_OFFSET: none */
	int64_t mark;      /* its hash */
	int64_t retry_ms;  /* when to ask for the log's ends again; 0: never */
};

/* The state of the assignment. */
enum kafka_state {
	KAFKA_READING,
	KAFKA_TAKING, /* partitions were assigned, and their offsets are being asked for */
	KAFKA_GIVING, /* partitions are revoked, but what was handed out of them is not acknowledged yet */
};

struct kafka_source {
	struct source source;
	struct kafka_config config;
	struct source_memory *memory; /* borrowed; NULL: nothing is remembered */
	bool once;
	struct weir_kafka *kafka;
	rd_kafka_t *handle;
	rd_kafka_queue_t *queue, *replies; /* messages and other events; outcomes of commits */
	struct kafka_ends *ends;           /* NULL: it is not followed */
	int fd;                            /* an eventfd: readable once the queue has something */
	char *cluster;                     /* its id; NULL: not known yet */

	enum kafka_state state;
	rd_kafka_topic_partition_list_t *given; /* assigned partitions that are not taken yet, or NULL */
	int64_t due_ms;                         /* when to try to take those again; KAFKA_GIVING: when to stop waiting */
	int64_t pause_ms;                       /* from that attempt to the one after */
	bool committing;                        /* a commit is in progress */
	bool commit_due;
	bool commit_refused; /* the problem is a refused commit: only a later commit's success ends it */
	int64_t commit_ms;   /* when the last commit was sent */

	struct kafka_topic *topics; /* in the order of the configuration */
	struct kafka_stream **streams;
	struct source_stream **handles;
	size_t stream_count;
	struct kafka_stream *last;         /* the stream of the previous message */
	rd_kafka_event_t *pending;         /* with a message that did not fit into the previous chunk, or NULL */
	const rd_kafka_message_t *message; /* of the event being taken, which returns it only once */
	struct weir_text lines;            /* of the chunk handed out */
	uint64_t *positions;
	size_t position_count;

	pthread_mutex_t mutex;
	uint64_t errors;
	char problem[256];
	char *label; /* "kafka:app-logs": names the source as a whole */
};

WEIR_MUST_USE enum weir_status kafka_configure(struct kafka_config *config, const struct weir_json *json,
                                               const struct source_context *context, struct weir_kafka **kafka,
                                               struct weir_error *error);

/** source_kafka_config.c: refuses two sources with a common topic and the same brokers and generation. */
WEIR_MUST_USE enum weir_status kafka_apart(const struct weir_json *config, const struct weir_json *other,
                                           struct weir_error *error);

/* ---- source_kafka_stream.c ---- */

/** The stream of a partition, or NULL. */
struct kafka_stream *kafka_find(const struct kafka_source *source, const char *topic, int32_t partition);
/** Marks a partition's stream, a new one if needed, as assigned from the offset on. @param begin  not KAFKA_WAITING */
void kafka_take(struct kafka_source *source, const rd_kafka_topic_partition_t *at, enum kafka_begin begin);
/** Stops reading a stream, and shows a problem that says so. */
void kafka_stop(struct kafka_source *source, struct kafka_stream *stream);
/** Where fetching begins: one earlier while the topic is to be verified. */
int64_t kafka_fetch_offset(const struct kafka_stream *stream);
/** Compares a fetched message with what is remembered. @return false: the topic was recreated, and it is stopped */
bool kafka_verify(struct kafka_source *source, struct kafka_stream *stream, const rd_kafka_message_t *message);
/** Notes a message that was taken, by which the topic may be recognised later. */
void kafka_note_mark(struct kafka_stream *stream, const rd_kafka_message_t *message);
/** Remembers the noted message, once everything up to it is acknowledged. */
void kafka_remember(struct kafka_source *source, struct kafka_stream *stream);
/** Marks all streams as not assigned. */
void kafka_drop_all(struct kafka_source *source);
/** Whether all that was handed out is acknowledged. */
bool kafka_settled(const struct kafka_source *source);
/** The offset to commit: every message before it is acknowledged, or was skipped. */
int64_t kafka_low_water(const struct kafka_stream *stream);
void kafka_free_streams(struct kafka_source *source);
size_t kafka_status(struct source *base, struct source_status *statuses, size_t count);

/* ---- source_kafka_group.c ---- */

/** Takes the next steps of what is in progress: taking and giving back partitions, commits. */
void kafka_serve(struct kafka_source *source, int64_t now_ms);
/** Handles an event that is not a message to use: a rebalance or an error; drops others. @param event  taken */
void kafka_take_news(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms);
/** At the end: commits what is acknowledged and leaves the group, each within a bound. */
void kafka_leave(struct kafka_source *source);
/** Has librdkafka fetch partitions that are assigned and not stopped, from `next` on; it drops what it prefetched. */
void kafka_assign(struct kafka_source *source);

/* ---- source_kafka_ends.c ---- */

/** Asks where the partitions end that are read, from now on, on a thread of its own: kafka_stream.told_end. */
WEIR_MUST_USE enum weir_status kafka_ends_new(struct kafka_source *source, struct kafka_ends **ends,
                                              struct weir_error *error);
/** Asks no more. */
void kafka_ends_stop(struct kafka_ends *ends);
/** After kafka_ends_stop(). Waits for an answer that is under way, KAFKA_ASK_MS at most. */
void kafka_ends_free(struct kafka_ends *ends);

/* ---- source_kafka_errors.c ---- */

/** Shows a problem of the source as a whole until kafka_succeeded(); counts it. */
void kafka_problem(struct kafka_source *source, const char *format, ...) WEIR_PRINTF(2, 3);
void kafka_succeeded(struct kafka_source *source);
/** Shows a problem of a topic until kafka_look_at_topics() ends it; counts it. */
void kafka_topic_problem(struct kafka_source *source, const char *name, const char *words);
/** Ends the problem of each topic that has partitions, whoever reads them, as no event reports that. */
void kafka_look_at_topics(struct kafka_source *source);
/** Checks partitions whose offset was not in the log again, once that is due. */
void kafka_look_again(struct kafka_source *source, int64_t now_ms);
/** Handles an error event of the consumer. @param event  borrowed */
void kafka_take_error(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms);

/* ---- source_kafka_offsets.c ---- */

/**
 * Finds where to begin: at the offsets that the group has committed under this generation, or otherwise where "start"
 * says.
 *
 * @param list   partitions; their offsets are filled in
 * @param begin  one for each
 * @return WEIR_OK, also if some are KAFKA_WAITING: error then says why; WEIR_IO: the group does not answer
 */
WEIR_MUST_USE enum weir_status kafka_begin_offsets(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                                   enum kafka_begin *begin, struct weir_error *error);
/** Reads how many partitions a topic has. */
WEIR_MUST_USE enum weir_status kafka_partitions(struct kafka_source *source, const char *topic, int32_t *count,
                                                struct weir_error *error);
/** Reads the first and the next offset of a partition's log. */
WEIR_MUST_USE enum weir_status kafka_extent(struct kafka_source *source, const char *topic, int32_t partition,
                                            int64_t *first, int64_t *next, struct weir_error *error);
/**
 * Adds the metadata "generation=3" to an offset to commit, so that offsets of an earlier topic are recognised; and
 * " stopped" if nothing is read from there on.
 */
void kafka_mark_offset(const struct kafka_source *source, rd_kafka_topic_partition_t *at, bool stopped);

#endif
