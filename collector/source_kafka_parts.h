/* What the files of the kafka source share: included by source_kafka*.c alone. */
#ifndef COLLECTOR_SOURCE_KAFKA_PARTS_H
#define COLLECTOR_SOURCE_KAFKA_PARTS_H

#include "collector/source_kafka.h"
#include "common/kafka.h"
#include "common/text.h"

#include <pthread.h>

enum {
	KAFKA_TOPICS_MAX = 256,
	KAFKA_ASK_MS = 3000, /* the brokers are waited for so long, with everything else standing still */
	KAFKA_NO_OFFSET = -1,
};

struct kafka_config {
	const char *brokers, *group, *name; /* borrowed from the configuration */
	const char *topics[KAFKA_TOPICS_MAX];
	size_t topic_count;
	int64_t generation;
	int64_t line_max;
	bool from_end;
};

/* A partition, from when it was first ours until the source ends; others may have it in between. */
struct kafka_stream {
	struct source_stream stream;
	char *topic;
	int32_t partition;
	/* Guarded by the mutex: status() looks at them. */
	bool assigned;
	bool stopped;      /* its offset is beyond the log's end: nothing is read */
	int64_t next;      /* the offset to be taken next */
	int64_t end;       /* the log's end as last met: between `next` and it there is no message */
	int64_t newest_ms; /* when the newest record taken was put there; 0: not known */
	uint64_t skipped;  /* messages without a line in them */
	uint64_t lost;     /* offsets that were trimmed before they were read */
	/* The reading thread's. */
	int64_t handed;    /* behind the newest line handed out */
	int64_t safe;      /* of them, what is acknowledged */
	int64_t committed; /* what the group knows */
	int64_t retry_ms;  /* while stopped: when it is looked at again */
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
	rd_kafka_topic_partition_list_t *given; /* while taking */
	int64_t due_ms;                         /* while taking: the next try; while giving: the end of patience */
	bool committing;                        /* one is on its way */
	bool commit_due;
	int64_t commit_ms; /* when it was sent, or the last one was */

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

/* ---- source_kafka_stream.c ---- */

/** The stream of a partition, or NULL. */
struct kafka_stream *kafka_find(struct kafka_source *source, const char *topic, int32_t partition);
/** It is ours from an offset on; made where it is new. */
struct kafka_stream *kafka_take(struct kafka_source *source, const char *topic, int32_t partition, int64_t offset);
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
/** Shows a problem until something succeeds; counts it. */
void kafka_problem(struct kafka_source *source, const char *format, ...) WEIR_PRINTF(2, 3);
void kafka_succeeded(struct kafka_source *source);

/* ---- source_kafka_offsets.c ---- */

/**
 * Where to begin: the offsets that the group has committed under this generation, or else what "start" says.
 *
 * @param list   partitions; their offsets are filled in
 * @param known  for each whether it was committed
 * @return WEIR_OK; WEIR_IO: the brokers do not answer
 */
WEIR_MUST_USE enum weir_status kafka_begin_offsets(struct kafka_source *source, rd_kafka_topic_partition_list_t *list,
                                                   bool *known, struct weir_error *error);
/** The ends of a partition's log. */
WEIR_MUST_USE enum weir_status kafka_extent(struct kafka_source *source, const char *topic, int32_t partition,
                                            int64_t *first, int64_t *next, struct weir_error *error);
/** "generation=3": what is committed beside the offsets, so that those of an earlier topic are known for what they are. */
void kafka_generation_text(const struct kafka_source *source, char *text, size_t bytes);

#endif
