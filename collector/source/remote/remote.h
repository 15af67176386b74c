/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a store of remote objects (HDFS, S3) does for the mechanism in source_remote.c, and what it gets from there.
 *
 * A kind lists its objects and reads ranges of them; it knows nothing of lines, positions or what was read before. The
 * mechanism calls it on the source's own thread, so it may block, but for no longer than its requests' time limits.
 *
 * An object is the same as long as its id is: under it bytes are only added at the end. What is replaced gets another id
 * (of S3 a hash of key and ETag; of HDFS the fileId).
 */
#ifndef COLLECTOR_SOURCE_REMOTE_H
#define COLLECTOR_SOURCE_REMOTE_H

#include "collector/source/source.h"

enum {
	REMOTE_NAME_MOST = 4096, /* bytes of an object's name */
	REMOTE_TAG_BYTES = 72,   /* an ETag and its end */
	REMOTE_FOLDERS_MOST = 64,
};

struct remote_object {
	const char *name; /* borrowed: "/logs/access.log", a key */
	uint64_t id;      /* never 0 */
	uint64_t size;    /* at least so many bytes are there */
	int64_t modified_ms;
	char tag[REMOTE_TAG_BYTES]; /* what read() may ask for: an ETag; "" */
	bool open;                  /* somebody writes to it: more than `size` may be there, or come */
};

/* Places in struct source_status.own. */
enum { REMOTE_OWN_WAITING, REMOTE_OWN_REPLACED };

struct remote_round; /* one listing, under way */

/** Notes one object of a listing. @param object  borrowed */
void remote_found(struct remote_round *round, const struct remote_object *object);

/**
 * Whether the kind should ask if somebody writes to an object, as what is listed of it is new: then `open` is set, for
 * the kind to take back. Otherwise it is set to what is known.
 */
bool remote_wants_open(struct remote_round *round, struct remote_object *object);

/**
 * Where the listing of a folder or prefix may begin: all names up to this one are settled. "": at the beginning.
 * Only for kinds that are `ordered`. Borrowed until the next call.
 */
const char *remote_floor(struct remote_round *round, const char *folder);

/**
 * Says that an object's bytes were replaced: the listing names it with another id, and so all its lines are read, also
 * those that it had before.
 */
void remote_replaced(struct remote_round *round, const char *name);

/** Says what people should know of the listing though it goes on: "2 names are too long". */
void remote_remark(struct remote_round *round, const char *format, ...) WEIR_PRINTF(2, 3);

/* Common to all kinds; the kind's own configuration begins with it. */
struct remote_settings {
	const char *name; /* of the configuration, borrowed while it is read; NULL */
	bool follow;
	int64_t poll_ms;
	int start;        /* enum source_at_start */
	int64_t late_ms;  /* an object may appear so long after its time of modification */
	int64_t line_max; /* bytes */
};

/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses): a member of a struct is none that could have them */
/* The members of struct remote_settings, for a kind's table. @param type_  the kind's struct @param at_  its member */
#define REMOTE_MEMBERS(type_, at_) \
	{.name = "type", .meaning = "the kind of source"}, \
	{.name = "name", .kind = WEIR_JSON_TEXT, .offset = offsetof(type_, at_.name), \
	 .meaning = "the name by which weir remembers what was read"}, \
	SOURCE_FORMAT_RULE, \
	{.name = "follow", .kind = WEIR_JSON_FLAG, .offset = offsetof(type_, at_.follow), \
	 .meaning = "look for more, until weir ends"}, \
	{.name = "poll", .kind = WEIR_JSON_TIME, .offset = offsetof(type_, at_.poll_ms), .least = 100, .most = 86400000, \
	 .meaning = "how often to look for more"}, \
	SOURCE_START_RULE(offsetof(type_, at_.start)), \
	{.name = "late", .kind = WEIR_JSON_TIME, .offset = offsetof(type_, at_.late_ms), .least = 60000, \
	 .most = INT64_C(86400000) * 366, \
	 .meaning = "how long after its time of modification an object may appear; 25h by default"}, \
	SOURCE_LINE_MAX_RULE(offsetof(type_, at_.line_max))
/* NOLINTEND(bugprone-macro-parentheses) */
/* clang-format on */

struct remote_ops {
	const char *noun; /* what its objects are called: "file", "object" */
	bool fixed;       /* an object never grows: it is complete once it is listed */
	bool rising;      /* ids rise in the order in which objects were made: one below those settled is old */
	int at_once;      /* read() may be called by so many threads at a time; 0: by one */
	bool ordered;     /* within a folder list() gives names in byte order, from remote_floor() on */
	/**
	 * Names everything that may be read, by remote_found(). Folders that cannot be listed do not keep it from others.
	 *
	 * @param whole  false: what has not changed since the last listing (by the folder's own time) may be left out
	 * @return WEIR_OK; WEIR_AGAIN: some was left out as unchanged; WEIR_IO, WEIR_INVALID in words: what was named counts
	 */
	enum weir_status (*list)(void *kind, bool whole, struct remote_round *round, struct weir_error *error);
	/**
	 * Appends the bytes from..to of an object to a descriptor, as far as they are there.
	 *
	 * @param got  how many were written, also where it fails
	 * @return WEIR_OK: *got may be 0, at the end; WEIR_END: there is no such object; WEIR_ANEW: another has its name;
	 *         WEIR_INVALID: it is shorter than `from`; WEIR_IO
	 */
	enum weir_status (*read)(void *kind, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
	                         uint64_t *got, struct weir_error *error);
	void (*free)(void *kind);
};

/**
 * Makes the source, and begins its thread.
 *
 * @param ops_of_kind  with type, members, create and describe of the kind, and the rest by REMOTE_SOURCE_OPS
 * @param kind         taken, also on failure
 * @param label        what tells it from other sources of the kind where there is no "name": "nn1:9870 /logs/x*"
 * @param stop         of the kind: set when the source is freed, to end a request (weir_http_client_options.stop); or NULL
 */
WEIR_MUST_USE enum weir_status remote_source_new(const struct source_ops *ops_of_kind, const struct remote_ops *ops,
                                                 void *kind, const struct remote_settings *settings, const char *label,
                                                 _Atomic bool *stop, const struct weir_json *config,
                                                 const struct source_context *context, struct source **source,
                                                 struct weir_error *error);

extern const struct source_metric *const remote_metrics[];
enum weir_status remote_collect(struct source *source, struct source_stream *stream, struct source_chunk *chunk,
                                struct weir_error *error);
size_t remote_streams(struct source *source, struct source_stream ***streams);
int remote_fd(const struct source *source);
void remote_acknowledge(struct source *source, struct source_stream *stream, uint64_t position);
enum weir_status remote_resume(struct source *source, struct source_stream *stream, uint64_t position,
                               struct weir_error *error);
size_t remote_status(struct source *source, struct source_status *statuses, size_t count);
void remote_free(struct source *source);

#define REMOTE_SOURCE_OPS                                                                                     \
	.replayable = true, .tells_at_once = true, .guarantee = SOURCE_EXACTLY_ONCE, .metrics = remote_metrics,   \
	.collect = remote_collect, .streams = remote_streams, .fd = remote_fd, .acknowledge = remote_acknowledge, \
	.resume = remote_resume, .status = remote_status, .free = remote_free

#endif
