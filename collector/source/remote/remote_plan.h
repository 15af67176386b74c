/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is remembered of remote objects: how far each was read, and which bytes of them have which positions.
 *
 * The stream's positions count its bytes from the first on, one piece behind the other. A piece is a range of one object
 * that ends with a line. It is saved before its first line is handed out, and dropped when all of it is acknowledged, so
 * that a run after a crash reads the same bytes again under the same positions:
 *
 *     position 1000   access.log       0 .. 700
 *     position 1700   error.log      300 .. 340     with `closed`: its last line had no newline, and got one
 *     position 1741   access.log     700 .. 950
 *
 * An object that is complete is remembered until it is older than "late". Then all that are as old are settled: with a
 * lower id where ids rise, else with an older time.
 *
 * @thread of the table the source's own, of the rest any
 */
#ifndef COLLECTOR_SOURCE_REMOTE_PLAN_H
#define COLLECTOR_SOURCE_REMOTE_PLAN_H

#include "collector/source/remote/remote.h"
#include "common/base/text.h"

enum {
	REMOTE_OBJECTS_MOST = 131072, /* remembered one by one */
	REMOTE_PIECES_MOST = 65536,   /* not acknowledged */
	/* Of names, which are saved in hexadecimal digits: with all else they leave room in what may be saved. */
	REMOTE_TABLE_NAMES_BYTES = 4 << 20,
	REMOTE_PIECES_NAMES_BYTES = 1 << 20,
	REMOTE_CHECK_BYTES = 64, /* before the offset, by which a replaced object is told */
};

struct remote_piece {
	uint64_t position;
	uint64_t id, from, to; /* bytes of the object, of a packed one unpacked */
	bool packed, closed;
	uint64_t size; /* of the object, when the piece was made */
	char *name;    /* owned */
	char tag[REMOTE_TAG_BYTES];
	uint64_t at; /* where its bytes are in its step's file; not saved */
	bool gone;   /* it cannot be read again; not saved */
	char *
		before; /* owned: the object's first lines, where the piece does not have them, and a format needs them; not saved */
};

static inline uint64_t remote_piece_length(const struct remote_piece *piece)
{
	return piece->to - piece->from + piece->closed;
}

struct remote_known {
	uint64_t id, offset, size;
	uint64_t listed_size;
	int64_t modified_ms;
	uint64_t check; /* hash of the check_bytes before offset */
	uint8_t check_bytes;
	bool open, packed;
	bool skips; /* the rest of a line that is too long comes first */
	bool done;  /* all of it is in pieces, or is lost: nothing more is expected */
	char *name; /* owned, set by remote_table_name(); NULL where it is done */
	char tag[REMOTE_TAG_BYTES];
	/* not saved */
	uint64_t rested;  /* the round in which it had no more */
	uint64_t listing; /* the last whole one that named it */
	bool checked;     /* it was read in this run */
	char *head;       /* owned: its first lines, where a format needs them */
	int64_t retry_ms; /* monotonic: not before */
	uint32_t failures;
	char *problem; /* owned; NULL: none */
};

struct remote_floor_of {
	char *folder, *name;
};

struct remote_table {
	struct remote_known **objects; /* in no order */
	size_t count;
	uint64_t name_bytes;
	uint32_t *slots; /* by id: index + 1; open addressing */
	size_t slot_count;
	int64_t settled_ms;  /* objects of that time or older that are not remembered were read */
	uint64_t settled_id; /* where ids rise: those up to this one */
	struct remote_floor_of floors[REMOTE_FOLDERS_MOST];
	size_t floor_count;
	bool begun; /* a listing was whole once: what is new from then on begins at its beginning */
};

void remote_table_deinit(struct remote_table *table);
struct remote_known *remote_table_find(const struct remote_table *table, uint64_t id);
/** Whether there is no room for another object with such a name. */
bool remote_table_is_full(const struct remote_table *table, const char *name);
/** Gives an object a name; NULL: none. */
void remote_table_name(struct remote_table *table, struct remote_known *known, const char *name);
/** @return NULL: there are REMOTE_OBJECTS_MOST */
struct remote_known *remote_table_add(struct remote_table *table, uint64_t id);
/** Forgets objects. */
void remote_table_sweep(struct remote_table *table, bool (*drops)(void *context, const struct remote_known *known),
                        void *context);
/** Owned name of the floor; NULL: there is none. @param name  to set; NULL: only asks */
const char *remote_table_floor(struct remote_table *table, const char *folder, const char *name);

/** The table as members of a JSON object, without its braces. */
void remote_table_put(const struct remote_table *table, struct weir_text *text);

/** The notes: the table as remote_table_put() gave it, and the pieces. */
void remote_notes_put(struct weir_text *text, struct weir_span table, const struct remote_piece *pieces, size_t count,
                      uint64_t end);
/** Reads them. @param pieces  returned, with their names */
WEIR_MUST_USE enum weir_status remote_notes_get(const char *notes, uint32_t length, struct remote_table *table,
                                                struct remote_piece **pieces, size_t *count, uint64_t *end,
                                                struct weir_error *error);

void remote_pieces_free(struct remote_piece *pieces, size_t count);

#endif
