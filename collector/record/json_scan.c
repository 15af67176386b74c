/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans a JSON line by recursive descent.
 *
 * Along with the text goes the place in the tree of wanted names; where the two part, the node is NOWHERE, and what
 * follows is only checked. Most members are, so the work is to get over strings and numbers quickly.
 */
#include "collector/record/json_scan.h"

#include "common/base/alloc.h"
#include "common/record/find.h"

#include <assert.h>
#include <stdlib.h>

enum { ROOT = 0, NOWHERE = UINT16_MAX };

/* ---- the names ---- */

void json_scan_init(struct json_scan *scan)
{
	*scan = (struct json_scan){.nodes = weir_alloc(1, sizeof *scan->nodes), .count = 1};
}

void json_scan_deinit(struct json_scan *scan)
{
	for (uint32_t i = 0; i < scan->count; i++)
		free(scan->nodes[i].key);
	free(scan->nodes);
	unescape_scratch_deinit(&scan->scratch);
	unescape_scratch_deinit(&scan->joined);
}

static uint64_t length_bit(uint32_t length)
{
	return UINT64_C(1) << (length < 63 ? length : 63);
}

/* What a key means in an array: digits without a leading zero. */
static uint32_t element_of(const char *key, uint32_t length)
{
	uint32_t number = 0;
	if (length == 0 || length > 9 || (key[0] == '0' && length > 1))
		return UINT32_MAX;
	for (uint32_t i = 0; i < length; i++) {
		if (key[i] < '0' || key[i] > '9')
			return UINT32_MAX;
		number = number * 10 + (uint32_t)(key[i] - '0');
	}
	return number;
}

static uint32_t child_of(struct json_scan *scan, uint32_t parent, const char *key, uint32_t length)
{
	for (uint32_t child = scan->nodes[parent].first_child; child != 0; child = scan->nodes[child].next) {
		if (scan->nodes[child].key_length == length && memcmp(scan->nodes[child].key, key, length) == 0)
			return child;
	}
	assert(scan->count < JSON_SCAN_NODES_MAX);
	scan->nodes = weir_realloc(scan->nodes, scan->count + 1, sizeof *scan->nodes);
	scan->nodes[scan->count] = (struct json_scan_node){
		.key = weir_copy(key, length),
		.key_length = length,
		.first = length > 0 ? key[0] : '\0',
		.element = element_of(key, length),
		.next = scan->nodes[parent].first_child,
	};
	scan->nodes[parent].first_child = (uint16_t)scan->count;
	scan->nodes[parent].child_lengths |= length_bit(length);
	return scan->count++;
}

uint32_t json_scan_want(struct json_scan *scan, const char *name)
{
	size_t length = strlen(name);
	assert(length <= JSON_SCAN_NAME_MAX_BYTES);
	if (name[0] != '/')
		return child_of(scan, ROOT, name, (uint32_t)length);
	uint32_t node = ROOT;
	const char *at = name;
	while (*at == '/') {
		char key[JSON_SCAN_NAME_MAX_BYTES];
		uint32_t used = 0;
		for (at++; *at != '/' && *at != '\0'; at++) {
			bool escape = at[0] == '~' && (at[1] == '0' || at[1] == '1');
			key[used++] = escape ? (at[1] == '0' ? '~' : '/') : *at;
			at += escape;
		}
		node = child_of(scan, node, key, used);
	}
	return node;
}

void json_scan_join(struct json_scan *scan, uint32_t node)
{
	scan->nodes[node].joins = true;
}

void json_scan_take_bytes(struct json_scan *scan, uint32_t node, bool last)
{
	scan->nodes[node].takes_bytes = true;
	scan->nodes[node].takes_last = last;
}

/* ---- the line ---- */

/* A scan on its way: the line's end, and its length for the scratch. */
struct walk {
	struct json_scan *scan;
	const char *end;
	uint32_t length;
};

static void clear(struct json_scan *scan, uint32_t node)
{
	scan->nodes[node].value = (struct weir_span){0};
	scan->nodes[node].null = false;
	for (uint32_t child = scan->nodes[node].first_child; child != 0; child = scan->nodes[child].next)
		clear(scan, child);
}

static inline const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && (unsigned char)*at <= ' ' && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at;
}

/* The line ends too early here. */
static const char *cut_here(const struct walk *walk)
{
	walk->scan->cut = true;
	return NULL;
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* -?(0|[1-9]D*)(.D+)?([eE][+-]?D+)?; NULL: no number stands here. */
static const char *number_end(const char *at, const char *end)
{
	at += at < end && *at == '-';
	const char *digits = at;
	at = skip_digits(at, end);
	if (at == digits)
		return NULL;
	if (*digits == '0')
		at = digits + 1;
	if (at < end && *at == '.') {
		digits = at + 1;
		at = skip_digits(digits, end);
		if (at == digits)
			return NULL;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < end && (*at == '+' || *at == '-');
		digits = at;
		at = skip_digits(digits, end);
		if (at == digits)
			return NULL;
	}
	return at;
}

/* The child of a node that a member's key leads to. */
static uint32_t node_of_key(const struct walk *walk, uint32_t node, struct weir_span key, bool escaped)
{
	const struct json_scan_node *nodes = walk->scan->nodes;
	if (node == NOWHERE || nodes[node].first_child == 0)
		return NOWHERE;
	if (escaped)
		key = unescape(&walk->scan->scratch, key, walk->length, false);
	if ((nodes[node].child_lengths & length_bit(key.length)) == 0)
		return NOWHERE;
	char first = key.length > 0 ? key.at[0] : '\0';
	for (uint32_t child = nodes[node].first_child; child != 0; child = nodes[child].next) {
		if (nodes[child].key_length == key.length && nodes[child].first == first &&
		    memcmp(nodes[child].key, key.at, key.length) == 0)
			return child;
	}
	return NOWHERE;
}

static uint32_t node_of_element(const struct walk *walk, uint32_t node, uint32_t element)
{
	const struct json_scan_node *nodes = walk->scan->nodes;
	if (node == NOWHERE)
		return NOWHERE;
	for (uint32_t child = nodes[node].first_child; child != 0; child = nodes[child].next) {
		if (nodes[child].element == element)
			return child;
	}
	return NOWHERE;
}

static const char *scan_object(const struct walk *walk, const char *at, uint32_t node, unsigned depth);
static const char *scan_array(const struct walk *walk, const char *at, uint32_t node, unsigned depth);

/* "true" and the like, of which some, or none, is wanted. */
static inline const char *scan_word(const struct walk *walk, const char *at, const char *word, uint32_t bytes)
{
	return (size_t)(walk->end - at) >= bytes && memcmp(at, word, bytes) == 0 ? at + bytes : NULL;
}

/* Whether no more than blanks stand between here and what follows a value. */
static bool ends_value(const char *at, const char *end)
{
	at = skip_blanks(at, end);
	return at < end && (*at == ',' || *at == '}' || *at == ']');
}

/*
 * Over what servers write in place of a number, and JSON does not know: NaN, -, 0.1 : 0.2, or nothing at all. NULL: it is
 * something else.
 */
static const char *skip_bare(const struct walk *walk, const char *at)
{
	static const char known[] = "0123456789.+-: \t\rabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	while (at < walk->end && *at != '\0' && memchr(known, *at, sizeof known - 1) != NULL)
		at++;
	if (at == walk->end)
		return cut_here(walk);
	return *at == ',' || *at == '}' || *at == ']' ? at : NULL;
}

/* The strings of an array that ends before `behind`, as one list; one with anything else in it stays as it is. */
static struct weir_span join_strings(const struct walk *walk, const char *array, const char *behind)
{
	struct unescape_scratch *joined = &walk->scan->joined;
	struct weir_span list = {.length = 0};
	uint32_t begin = joined->used;
	for (const char *at = skip_blanks(array + 1, behind); *at != ']'; at = skip_blanks(at, behind)) {
		bool escaped;
		const char *quote = *at == '"' ? weir_find_string_end(at + 1, behind, &escaped) : NULL;
		if (quote == NULL)
			return (struct weir_span){.at = array, .length = (uint32_t)(behind - array)};
		struct weir_span inside = {.at = at + 1, .length = (uint32_t)(quote - at - 1)};
		if (inside.length > 0 && joined->used > begin)
			joined->bytes[joined->used++] = ',';
		if (inside.length > 0)
			unescape(joined, inside, walk->length, true);
		at = skip_blanks(quote + 1, behind);
		at += *at == ',';
	}
	list.length = joined->used - begin;
	list.at = list.length > 0 ? joined->bytes + begin : NULL;
	return list;
}

/*
 * The bytes of an array of numbers, the first of which is at `at`; what it stands in ends before `behind`, with a `]`. Absent:
 * an element is none.
 *
 * @param end  set to the array's own `]`, unless it is absent
 */
static struct weir_span take_numbers(const struct walk *walk, const char *at, const char *behind, const char **end)
{
	struct unescape_scratch *scratch = &walk->scan->scratch;
	char *begin = unescape_room(scratch, walk->length), *out = begin;
	while (*(at = skip_blanks(at, behind)) != ']') {
		const char *digits = at;
		unsigned number = 0;
		for (; at < behind && *at >= '0' && *at <= '9' && number <= UINT8_MAX; at++)
			number = number * 10 + (unsigned)(*at - '0');
		const char *next = skip_blanks(at, behind);
		if (at == digits || number > UINT8_MAX || (*next != ',' && *next != ']'))
			return (struct weir_span){0};
		*out++ = (char)number;
		at = next + (*next == ',');
	}
	*end = at;
	scratch->used += (uint32_t)(out - begin);
	return (struct weir_span){.at = begin, .length = (uint32_t)(out - begin)};
}

/* The value of an array that ends before `behind`: bytes, or the last of several values. Absent: it is neither. */
static struct weir_span take_bytes(const struct walk *walk, const char *array, const char *behind, bool last)
{
	struct weir_span value = {0};
	const char *at = skip_blanks(array + 1, behind), *end;
	if (*at != '"' && *at != '[')
		return take_numbers(walk, at, behind, &end);
	while (last && *at != ']') {
		bool escaped = false;
		const char *begin = at + 1;
		end = NULL;
		if (*at == '[') {
			value = take_numbers(walk, begin, behind, &end);
		} else if (*at == '"' && (end = weir_find_string_end(begin, behind, &escaped)) != NULL) {
			value = (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
			if (escaped)
				value = unescape(&walk->scan->scratch, value, walk->length, true);
		}
		if (end == NULL)
			return (struct weir_span){0};
		at = skip_blanks(end + 1, behind);
		if (*at != ',' && *at != ']')
			return (struct weir_span){0};
		at = *at == ',' ? skip_blanks(at + 1, behind) : at;
	}
	return value;
}

static const char *scan_list(const struct walk *walk, const char *at, uint32_t node, unsigned depth)
{
	const char *behind = scan_array(walk, at, node, depth);
	if (behind != NULL && node != NOWHERE && walk->scan->nodes[node].joins)
		walk->scan->nodes[node].value = join_strings(walk, at, behind);
	else if (behind != NULL && node != NOWHERE && walk->scan->nodes[node].takes_bytes &&
	         walk->scan->nodes[node].first_child == 0)
		walk->scan->nodes[node].value = take_bytes(walk, at, behind, walk->scan->nodes[node].takes_last);
	return behind;
}

/* Takes the value at `at`, of `depth` if it is a container, into the node; gives the place behind it, or NULL. */
static inline const char *scan_value(const struct walk *walk, const char *at, uint32_t node, unsigned depth)
{
	if (at == walk->end)
		return cut_here(walk);
	if (node != NOWHERE)
		clear(walk->scan, node);
	const char *begin = at, *behind;
	bool escaped = false, absent = false, string = *at == '"';
	switch (*at) {
	case '"':
		begin++;
		at = weir_find_string_end(begin, walk->end, &escaped);
		if (at == NULL)
			return cut_here(walk);
		behind = at + 1;
		break;
	case '{': return scan_object(walk, at, node, depth);
	case '[': return scan_list(walk, at, node, depth);
	case 'n':
		behind = at = scan_word(walk, at, "null", 4);
		absent = true;
		break;
	case 't': behind = at = scan_word(walk, at, "true", 4); break;
	case 'f': behind = at = scan_word(walk, at, "false", 5); break;
	default: behind = at = number_end(at, walk->end); break;
	}
	if (!string && (at == NULL || !ends_value(at, walk->end)))
		return skip_bare(walk, begin);
	if (node != NOWHERE && absent)
		walk->scan->nodes[node].null = true;
	if (node != NOWHERE && !absent) {
		struct weir_span value = {.at = begin, .length = (uint32_t)(at - begin)};
		if (escaped)
			value = unescape(&walk->scan->scratch, value, walk->length, true);
		walk->scan->nodes[node].value = value;
	}
	return behind;
}

/*
 * Behind a value and the blanks after it: at the quote of the next member, or at '}'. Numbers may be several ("0.1, 0.2"):
 * a list of them is no value. NULL: neither.
 */
static const char *next_member(const struct walk *walk, const char *at, char first, uint32_t child)
{
	at = skip_blanks(at, walk->end);
	if (at < walk->end && *at != ',')
		return *at == '}' ? at : NULL;
	while (at < walk->end && *at == ',') {
		at = skip_blanks(at + 1, walk->end);
		if (at == walk->end || *at == '"')
			break;
		const char *more = first != '"' && first != '{' && first != '[' ? skip_bare(walk, at) : NULL;
		if (more == NULL || more == at)
			return NULL;
		if (child != NOWHERE)
			clear(walk->scan, child);
		at = more;
	}
	if (at == walk->end)
		return cut_here(walk);
	return at;
}

/* From an object's member to behind its '}', or NULL. */
static const char *scan_members(const struct walk *walk, const char *at, uint32_t node, unsigned depth)
{
	const char *end = walk->end;
	for (;;) {
		if (at == end)
			return cut_here(walk);
		if (*at != '"')
			return NULL;
		bool escaped;
		const char *key = at + 1;
		at = weir_find_string_end(key, end, &escaped);
		if (at == NULL)
			return cut_here(walk);
		struct weir_span name = {.at = key, .length = (uint32_t)(at - key)};
		uint32_t child = node_of_key(walk, node, name, escaped);
		at = skip_blanks(at + 1, end);
		if (at == end)
			return cut_here(walk);
		if (*at != ':')
			return NULL;
		at = skip_blanks(at + 1, end);
		char first = at < end ? *at : '"';
		at = scan_value(walk, at, child, depth + 1);
		if (at == NULL)
			return NULL;
		if (at < end && *at == ',' && end - at > 1 && at[1] == '"') {
			at++;
			continue;
		}
		at = next_member(walk, at, first, child);
		if (at == NULL || *at != '"')
			return at != NULL && *at == '}' ? at + 1 : NULL;
	}
}

/* From '{' to behind '}', or NULL. */
static const char *scan_object(const struct walk *walk, const char *at, uint32_t node, unsigned depth)
{
	if (depth > JSON_SCAN_DEPTH_MAX)
		return NULL;
	at = skip_blanks(at + 1, walk->end);
	if (at < walk->end && *at == '}')
		return at + 1;
	return scan_members(walk, at, node, depth);
}

/* From '[' to behind ']', or NULL. */
static const char *scan_array(const struct walk *walk, const char *at, uint32_t node, unsigned depth)
{
	const char *end = walk->end;
	if (depth > JSON_SCAN_DEPTH_MAX)
		return NULL;
	at = skip_blanks(at + 1, end);
	if (at < end && *at == ']')
		return at + 1;
	for (uint32_t element = 0;; element++) {
		if (at < end && (*at == ',' || *at == '}' || *at == ']'))
			return NULL;
		at = scan_value(walk, at, node_of_element(walk, node, element), depth + 1);
		if (at == NULL)
			return NULL;
		at = skip_blanks(at, end);
		if (at == end)
			return cut_here(walk);
		if (*at == ']')
			return at + 1;
		if (*at != ',')
			return NULL;
		at = skip_blanks(at + 1, end);
	}
}

/* Scans a line, or its first part. @param whole  the length of all of it that is there */
static bool scan_line(struct json_scan *scan, const char *line, uint32_t length, uint32_t whole)
{
	struct walk walk = {.scan = scan, .end = line + length, .length = whole};
	unescape_scratch_clear(&scan->scratch);
	unescape_scratch_clear(&scan->joined);
	scan->cut = false;
	for (uint32_t i = 0; i < scan->count; i++) {
		scan->nodes[i].value = (struct weir_span){0};
		scan->nodes[i].null = false;
	}
	const char *at = skip_blanks(line, walk.end);
	if (at == walk.end || *at != '{')
		return false;
	at = scan_object(&walk, at, ROOT, 1);
	return at != NULL && skip_blanks(at, walk.end) == walk.end;
}

bool json_scan_line(struct json_scan *scan, const char *line, uint32_t length)
{
	return scan_line(scan, line, length, length);
}

/* ---- a line's end ---- */

/* The quote that opens the string which `close` ends: one with no backslash before it, or with pairs of them. NULL: none. */
static const char *string_begin(const char *begin, const char *close)
{
	for (const char *at = close; at > begin;) {
		if (*--at != '"')
			continue;
		const char *slash = at;
		while (slash > begin && slash[-1] == '\\')
			slash--;
		if (slash == begin) /* what stands before that may be one more */
			return NULL;
		if ((at - slash) % 2 == 0)
			return at;
		at = slash;
	}
	return NULL;
}

/*
 * The first member of the line's object that begins in its last bytes. From the right each string is known as one, even where
 * these bytes begin within another. NULL: none begins there.
 */
static const char *first_member(struct weir_span tail)
{
	const char *first = NULL, *behind = NULL; /* what stands behind the place, but for blanks */
	uint32_t depth = 0;
	for (const char *at = tail.at + tail.length; at > tail.at;) {
		at--;
		if (*at == ' ' || *at == '\t' || *at == '\r')
			continue;
		if (*at == '}' || *at == ']')
			depth++;
		else if (depth == 0)
			return NULL; /* the line does not end as an object does */
		else if (*at == '"' && (at = string_begin(tail.at, at)) == NULL)
			return first;
		else if (*at == '{' || *at == '[')
			depth--;
		else if (*at == ',' && depth == 1 && *behind == '"')
			first = behind;
		behind = at;
	}
	return depth > 0 ? first : NULL;
}

bool json_scan_ends(struct json_scan *scan, const char *line, uint32_t length, struct weir_span tail)
{
	if (tail.length == 0)
		return json_scan_line(scan, line, length);
	struct walk walk = {.scan = scan, .end = tail.at + tail.length, .length = length + tail.length};
	bool whole = scan_line(scan, line, length, walk.length);
	const char *at = !whole && scan->cut ? first_member(tail) : NULL;
	if (at == NULL)
		return whole;
	at = scan_members(&walk, at, ROOT, 1);
	scan->cut = at != NULL && skip_blanks(at, walk.end) == walk.end;
	return false;
}
