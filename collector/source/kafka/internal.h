/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the kafka source share: included by source_kafka*.c alone. */
#ifndef COLLECTOR_SOURCE_KAFKA_INTERNAL_H
#define COLLECTOR_SOURCE_KAFKA_INTERNAL_H

#include "collector/source/kafka/source_kafka.h"
#include "common/base/text.h"
#include "common/bus/kafka/kafka.h"

#include <pthread.h>

enum {
	KAFKA_TOPICS_MAX = 256,
	KAFKA_ASK_MS = 3000, /* the brokers are waited for so long, with everything else standing still */
	KAFKA_NO_OFFSET = -1,
	KAFKA_PROBLEM_BYTES = 200,
};

/* What a stream's status counts by itself. */
enum { KAFKA_SKIPPED }; /* messages without a line in them */

struct kafka_config {
	const char *brokers, *group, *name; /* borrowed from the configuration */
	const char *topics[KAFKA_TOPICS_MAX];
	size_t topic_count;
	int64_t generation;
	int64_t line_max;
	int start; /* enum source_at_start */
};

/* Of the configuration; read into struct kafka_config. */
extern const struct weir_json_rule kafka_members[];

/* What is wrong with a topic as a whole: it is not there, or may not be read. Guarded by the mutex. */
struct kafka_topic {
	char *name; /* "kafka:app-logs", for people */
	char problem[KAFKA_PROBLEM_BYTES];
};

/* Where a partition begins. */
enum kafka_begin {
	KAFKA_NEW,     /* at an offset that the group does not know yet */
	KAFKA_KNOWN,   /* at one that it has committed */
	KAFKA_STOPPED, /* nowhere: that one lay beyond the end of the log */
	KAFKA_WAITING, /* its offsets cannot be had now, perhaps as it has no leader */
};

/* A partition, from when it was first ours until the source ends; others may have it in between. */
struct kafka_stream {
	struct source_stream stream;
	char *topic;
	int32_t partition;
	/* Guarded by the mutex: status() looks at them. */
	bool assigned;
	bool stopped;      /* its offset was beyond the log's end: nothing is read, however far that grows */
	int64_t next;      /* the offset to be taken next */
	int64_t end;       /* the log's end as last met: between `next` and it there is no message */
	int64_t newest_ms; /* when the newest record taken was put there; 0: not known */
	uint64_t skipped;  /* messages without a line in them */
	uint64_t lost;     /* offsets that were trimmed before they were read */
	char problem[KAFKA_PROBLEM_BYTES]; /* until something is read of it, or its end is met */
	/* The reading thread's. */
	int64_t handed;    /* after the newest line handed out */
	int64_t safe;      /* of them, what is acknowledged */
	int64_t committed; /* what the group knows */
	bool marked;       /* it knows, too, that the partition is stopped; */
	bool marking;      /* so says the commit that is on its way */
	int64_t retry_ms;  /* when the log's ends are asked for again; 0: not */
};

/* How the assignment stands. */
enum kafka_state {
	KAFKA_READING,
	KAFKA_TAKING, /* partitions were given: their offsets are being asked for */
	KAFKA_GIVING, /* partitions are to be given back: what was handed out of them is waited for */
};

struct kafka_source {
	struct source source;
	struct kafka_config config;
	bool once;
	struct weir_kafka *kafka;
	rd_kafka_t *handle;
	rd_kafka_queue_t *queue, *replies; /* messages and news; what became of commits */
	int fd;                            /* an eventfd: readable once the queue has something */
	char *cluster;                     /* its id; NULL: not known yet */

	enum kafka_state state;
	rd_kafka_topic_partition_list_t *given; /* partitions that are yet to be taken, or NULL */
	int64_t due_ms;                         /* of those the next try; while giving: the end of patience */
	int64_t pause_ms;                       /* until the try after that */
	bool committing;                        /* one is on its way */
	bool commit_due;
	bool commit_refused; /* the problem is that of a commit: another's success ends it, and nothing else */
	int64_t commit_ms;   /* when it was sent, or the last one was */

	struct kafka_topic *topics; /* in the order of the configuration */
	struct kafka_stream **streams;
	struct source_stream **handles;
	size_t stream_count;
	struct kafka_stream *last;         /* the stream of the message before */
	rd_kafka_event_t *pending;         /* with a message that did not go into the chunk before, or NULL */
	const rd_kafka_message_t *message; /* of the event that is taken: it gives it but once */
	struct weir_text lines;            /* of the chunk that is handed out */
	uint64_t *positions;
	size_t position_count;

	pthread_mutex_t mutex;
	uint64_t errors;
	char problem[256];
	char *label; /* "kafka:app-logs": of the source as a whole */
};

WEIR_MUST_USE enum weir_status kafka_configure(struct kafka_config *config, const struct weir_json *json,
                                               const struct source_context *context, struct weir_kafka **kafka,
                                               struct weir_error *error);

/** source_kafka_config.c: refuses two sources of the same brokers and generation, and of one topic. */
WEIR_MUST_USE enum weir_status kafka_apart(const struct weir_json *config, const struct weir_json *other,
                                           struct weir_error *error);

/* ---- source_kafka_stream.c ---- */

/** The stream of a partition, or NULL. */
struct kafka_stream *kafka_find(const struct kafka_source *source, const char *topic, int32_t partition);
/** It is ours from the offset on; made if it is new. @param begin  not KAFKA_WAITING */
void kafka_take(struct kafka_source *source, const rd_kafka_topic_partition_t *at, enum kafka_begin begin);
/** Nothing is read of it any more, under words that say so. */
void kafka_stop(struct kafka_source *source, struct kafka_stream *stream);
/** None is ours any more. */
void kafka_drop_all(struct kafka_source *source);
/** Whether all that was handed out is acknowledged. */
bool kafka_settled(const struct kafka_source *source);
/** What the group may know: all before it is acknowledged, or is nothing. */
int64_t kafka_low_water(const struct kafka_stream *stream);
void kafka_free_streams(struct kafka_source *source);
size_t kafka_status(struct source *base, struct source_status *statuses, size_t count);

/* ---- source_kafka_group.c ---- */

/** Moves on what is under way: partitions that come and go, commits. */
void kafka_serve(struct kafka_source *source, int64_t now_ms);
/** News that is no message. @param event  taken */
void kafka_take_news(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms);
/** At the end: commits what is acknowledged and leaves the group, each in bounded time. */
void kafka_leave(struct kafka_source *source);
/** Has read what is ours and not stopped, each from its next offset on: what was fetched ahead is fetched again. */
void kafka_assign(struct kafka_source *source);

/* ---- source_kafka_errors.c ---- */

/** Shows a problem of the source as a whole until something succeeds; counts it. */
void kafka_problem(struct kafka_source *source, const char *format, ...) WEIR_PRINTF(2, 3);
void kafka_succeeded(struct kafka_source *source);
/** Shows a problem of a topic until kafka_look_at_topics(); counts it. */
void kafka_topic_problem(struct kafka_source *source, const char *name, const char *words);
/** Topics with a problem are well once they have partitions, whoever reads them: nothing else tells of that. */
void kafka_look_at_topics(struct kafka_source *source);
/** Partitions whose offset was not there, once they are due. */
void kafka_look_again(struct kafka_source *source, int64_t now_ms);
/** An error that the consumer tells of. @param event  borrowed */
void kafka_take_error(struct kafka_source *source, rd_kafka_event_t *event, int64_t now_ms);

/* ---- source_kafka_offsets.c ---- */

/**
 * Where to begin: the offsets that the group has committed under this generation, or else what "start" says.
 *
 * @param list   partitions; their offsets are filled in
 * @param begin  one for each
 * @return WEIR_OK, be it that all are KAFKA_WAITING: error says why; WEIR_IO: the group does not answer
 */
WEIR_MUST_USE enum weir_status kafka_begin_offsets(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                                   enum kafka_begin *begin, struct weir_error *error);
/** How many partitions a topic has. */
WEIR_MUST_USE enum weir_status kafka_partitions(struct kafka_source *source, const char *topic, int32_t *count,
                                                struct weir_error *error);
/** The ends of a partition's log. */
WEIR_MUST_USE enum weir_status kafka_extent(struct kafka_source *source, const char *topic, int32_t partition,
                                            int64_t *first, int64_t *next, struct weir_error *error);
/**
 * Puts "generation=3" beside an offset that is to be committed, so that those of an earlier topic are known for what
 * they are; " stopped" behind it where nothing is read from there on.
 */
void kafka_mark_offset(const struct kafka_source *source, rd_kafka_topic_partition_t *at, bool stopped);

#endif
