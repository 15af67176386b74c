/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a few members out of a JSON line in one pass, without building a tree or allocating.
 *
 * What is looked for is given once, as names: a plain name is a member of the line's object, a name with a leading
 * slash a JSON pointer (RFC 6901), which may lead through objects and arrays. The whole line is checked anyway:
 *
 * - structure is strict (RFC 8259), at most JSON_SCAN_DEPTH_MAX deep
 * - strings are lenient: any byte but '"' and '\' stands for itself; see unescape.h for escapes
 * - a value that is no JSON, but what servers write where they have no number (NaN, -, 0.1, 0.2, nothing), is absent
 * - of members with equal names the last counts, with all that lies in it; names are compared without their escapes
 * - of a line that ends too early, what was whole before its end counts; of one whose middle is missing, what is whole behind
 *   that, too
 * - an array of numbers may be the bytes of a value, as journalctl writes what is no UTF-8
 */
#ifndef COLLECTOR_JSON_SCAN_H
#define COLLECTOR_JSON_SCAN_H

#include "collector/record/unescape.h"

enum { JSON_SCAN_DEPTH_MAX = 64, JSON_SCAN_NAME_MAX_BYTES = 256, JSON_SCAN_NODES_MAX = 1 << 14 };

/* One step of a name; the steps of all names form a tree. */
struct json_scan_node {
	char *key; /* owned */
	uint32_t key_length;
	char first;                 /* the key's first byte: most other keys of its length differ there */
	uint32_t element;           /* what the key means in an array; UINT32_MAX: nothing */
	uint64_t child_lengths;     /* bit n: some child's key has n bytes (63: or more) */
	uint16_t first_child, next; /* 0: none, as the root is nobody's child */
	bool joins;                 /* json_scan_join() was called for it */
	bool takes_bytes;           /* json_scan_take_bytes() was */
	bool takes_last;            /* and of several values the last counts */
	bool null;                  /* in the last line its value is null */
	struct weir_span value;     /* in the last line; at is NULL if there is none */
};

/* Owned by one thread. */
struct json_scan {
	struct json_scan_node *nodes; /* the root first */
	uint32_t count;
	bool cut; /* the last line was an object as far as it went, and ended too early */
	struct unescape_scratch scratch, joined;
};

void json_scan_init(struct json_scan *scan);
void json_scan_deinit(struct json_scan *scan);

/** Looks for a name from here on; gives its node's number. At most JSON_SCAN_NAME_MAX_BYTES. */
uint32_t json_scan_want(struct json_scan *scan, const char *name);

/** Takes an array of strings there as one value, separated by commas; any other array as it is written. */
void json_scan_join(struct json_scan *scan, uint32_t node);

/**
 * Takes an array of numbers there as the bytes that they are.
 *
 * @param node  a member of the line's object, of whose elements none is looked for
 * @param last  of an array of values, as of a field that an entry has more than once, the last one counts
 */
void json_scan_take_bytes(struct json_scan *scan, uint32_t node, bool last);

/** Scans a line into the nodes' values; false: it is no JSON object, or cut. Values hold until the next scan. */
bool json_scan_line(struct json_scan *scan, const char *line, uint32_t length);

/**
 * The same of a line of which the first bytes are here and the last ones, and none between: it is cut. Members of its object
 * that begin in its last bytes are found from the line's end, so that nothing within a string can look like one.
 *
 * @param tail  borrowed; absent: it is not known
 */
bool json_scan_ends(struct json_scan *scan, const char *line, uint32_t length, struct weir_span tail);

/** A string unescaped, a number's text, the words true and false; absent for null, objects, arrays and nothing. */
static inline struct weir_span json_scan_value(const struct json_scan *scan, uint32_t node)
{
	return scan->nodes[node].value;
}

/** Whether the last line has null there. */
static inline bool json_scan_is_null(const struct json_scan *scan, uint32_t node)
{
	return scan->nodes[node].null;
}

#endif
