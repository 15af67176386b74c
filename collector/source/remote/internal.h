/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the thread share. */
#ifndef COLLECTOR_SOURCE_REMOTE_INTERNAL_H
#define COLLECTOR_SOURCE_REMOTE_INTERNAL_H

#include "collector/input/input.h"
#include "collector/source/remote/remote_fetch.h"

#include <pthread.h>

enum {
	REMOTE_RANGE_BYTES = 8 << 20, /* of an object that grows, at a time: then others have their turn */
	REMOTE_STEP_BYTES = 64 << 20,
	REMOTE_STEP_PIECES = 4096,
	REMOTE_STEP_NAMES_BYTES = 256 << 10, /* of their names */
	REMOTE_AHEAD_MOST = 64,
	REMOTE_STEP_MS = 250, /* a step with few lines waits no longer for more */
};

/* A packed object, downloaded whole: only one at a time. */
struct remote_unpacking {
	uint64_t id;           /* 0: none */
	struct input *input;   /* at `offset` plus what is in tail */
	uint64_t offset;       /* unpacked */
	struct weir_text tail; /* of a line whose end has not come */
};

struct remote_fetch {
	struct remote_fetch_options options;
	struct remote_table table;
	struct remote_piece *replays;
	size_t replay_count;
	uint64_t listing;          /* number of the newest whole one */
	uint64_t round;            /* of reading */
	uint64_t range_bytes;      /* of a complete object, at a time: see remote_range_next() */
	int64_t list_ms, whole_ms; /* when the next is due */
	int64_t full_ms;           /* when the next of an ordered kind is due that begins below the floor */
	bool more;                 /* the newest one named objects for which there is no room yet */
	uint32_t list_failures;    /* in a row */
	struct remote_step *step;  /* being made; NULL: none */
	int64_t step_ms;           /* when it was begun */
	struct remote_known **active;
	size_t active_count, active_room;
	struct remote_unpacking unpacking;
	struct remote_ahead *ahead; /* REMOTE_AHEAD_MOST, for the next of the objects that grow */
	size_t ahead_count, ahead_left;
	char *buffer;                 /* REMOTE_BUFFER_BYTES */
	struct weir_error once_error; /* of the first object that cannot be read, or of which a part is lost */
	bool failed;
	int64_t loss_ms; /* when the newest loss was told */
	char listing_problem[256], loss[256];
	/* guarded by mutex */
	pthread_mutex_t mutex;
	pthread_cond_t moved;
	pthread_t thread;
	bool started, stop;
	struct remote_step *ready[REMOTE_STEPS_AHEAD];
	size_t ready_count;
	struct remote_fetch_state state;
	struct weir_text notices; /* for people, each once, with a NUL behind it */
	uint64_t unnamed;         /* that were too many to be told */
	uint32_t named;           /* how many came in the minute from named_ms on */
	int64_t named_ms;
	int event;
};

enum { REMOTE_BUFFER_BYTES = 256 << 10 };

/* A range that was read before its object's turn. */
struct remote_ahead {
	struct remote_known *known; /* NULL: it was taken */
	uint64_t from;
	int fd;
	uint64_t got;
	enum weir_status status;
	struct weir_error error;
};

enum { REMOTE_AHEAD_BYTES = 1 << 20 };

/* What a turn of an object has given. */
enum remote_turn {
	REMOTE_TURN_NOTHING, /* there is no more just now */
	REMOTE_TURN_MORE,    /* there is, or may be, more */
	REMOTE_TURN_LATER,   /* it failed, and is tried again */
};

/* ---- remote_list.c ---- */

/** Lists, where that is due. */
void remote_list_if_due(struct remote_fetch *fetch, int64_t now_ms);
/** Whether the first listing is over, or no listing is needed. */
bool remote_is_listed(const struct remote_fetch *fetch);

/* ---- remote_ahead.c ---- */

/** Reads the next range of each of some objects, several at a time. */
void remote_read_ahead(struct remote_fetch *fetch, struct remote_known *const *objects, size_t count);
/** What was read ahead of an object, once; NULL: nothing. */
struct remote_ahead *remote_ahead_of(struct remote_fetch *fetch, const struct remote_known *known);
/** Drops what nobody took. */
void remote_ahead_clear(struct remote_fetch *fetch);

/* ---- remote_read.c ---- */

/** How many bytes before its offset are read again, to compare them. */
uint64_t remote_check_bytes(const struct remote_fetch *fetch, const struct remote_known *known);

/** Reads the next range of an object into the step that is being made. */
enum remote_turn remote_turn_of(struct remote_fetch *fetch, struct remote_known *known);
/** Reads a saved piece again. @return WEIR_OK, also where it is gone; WEIR_IO: not now */
enum weir_status remote_read_again(struct remote_fetch *fetch, struct remote_piece *piece, struct weir_error *error);

/* ---- remote_range.c ---- */

/* What came of an object: `length` bytes of it from its offset on, at `at` in the step's file. */
struct remote_range {
	int fd;
	uint64_t at, length;
	bool full; /* as much as was asked for: there may be more */
};

/** How many bytes to ask for of an object that is complete. */
uint64_t remote_range_next(const struct remote_fetch *fetch);
/**
 * Lets the next range be longer where they come fast, as each costs a server some milliseconds, and shorter where they
 * come slowly, as lines wait for the end of their range.
 */
void remote_range_came(struct remote_fetch *fetch, uint64_t asked, uint64_t got, int64_t took_ms);
/** How many bytes of it are whole lines. */
uint64_t remote_range_last(struct remote_fetch *fetch, const struct remote_range *range);
/** Passes over the rest of a line that is too long. @return whether its end has come */
bool remote_range_skip(struct remote_fetch *fetch, struct remote_known *known, struct remote_range *range);

/* ---- remote_head.c ---- */

/**
 * The object's first lines, where a format needs them, for a piece that begins behind them.
 *
 * @param kept   where they are kept for the next piece
 * @param lines  returned; NULL: none are needed
 * @return WEIR_OK; else WEIR_IO: they cannot be had just now, and without them the piece would be misread
 */
WEIR_MUST_USE enum weir_status remote_head(struct remote_fetch *fetch, const struct remote_object *object, bool packed,
                                           char **kept, char **lines, struct weir_error *error);

/* ---- remote_unpack.c ---- */

/** As remote_turn_of(), of a packed object. */
enum remote_turn remote_unpack_turn(struct remote_fetch *fetch, struct remote_known *known);
enum weir_status remote_unpack_again(struct remote_fetch *fetch, struct remote_piece *piece, struct weir_error *error);
void remote_unpack_close(struct remote_fetch *fetch);

/* ---- remote_fetch.c ---- */

bool remote_stopped(struct remote_fetch *fetch);
/** A temporary file without a name. @return -1 */
int remote_temporary(const struct remote_fetch *fetch, struct weir_error *error);
/** As remote_ops.read, and notes that something could be read. @thread any */
enum weir_status remote_read_bytes(struct remote_fetch *fetch, const struct remote_object *object, uint64_t from,
                                   uint64_t to, int fd, uint64_t *got, struct weir_error *error);
/** Where bytes may be added to the step that is being made: begins it where there is none. -1: error */
int remote_step_fd(struct remote_fetch *fetch, struct weir_error *error);
/** Takes what was added as a piece, with a newline behind it where it is `closed`. @param piece  its texts are taken, unless it fails */
enum weir_status remote_step_add(struct remote_fetch *fetch, const struct remote_piece *piece,
                                 struct weir_error *error);
/** Drops what was added behind the last piece. */
void remote_step_drop(struct remote_fetch *fetch);
/** What people should know, and be told once. */
void WEIR_PRINTF(2, 3) remote_notice(struct remote_fetch *fetch, const char *format, ...);
/** The bytes of a piece of this object are lost: counts and tells. A run to the end fails by it. @param bytes  UINT64_MAX: not known how many */
void WEIR_PRINTF(4, 5)
	remote_lost(struct remote_fetch *fetch, const char *name, uint64_t bytes, const char *format, ...);
/** It failed: tried again after a pause that grows. */
enum remote_turn remote_failed(struct remote_fetch *fetch, struct remote_known *known, const struct weir_error *error);
/** Where the object's last bytes lie that are in a piece: a hash of them is kept. */
void remote_set_check(struct remote_known *known, const char *bytes, size_t length);
/** It was read as it should be: what was told of it is over. */
void remote_set_well(struct remote_known *known);
void remote_set_done(struct remote_fetch *fetch, struct remote_known *known);
struct remote_object remote_object_of(const struct remote_known *known);

#endif
