/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration as JSON: jansson underneath, with what a person needs to mend
 * a mistake: the path of the value, its line in the file, and what would be
 * accepted there.
 *
 * A weir_json is a cursor: a value, the document that it is in, and its path.
 * It is passed by value or const pointer and lives as long as its document.
 */
#ifndef WEIR_COMMON_JSON_H
#define WEIR_COMMON_JSON_H

#include <jansson.h>

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { WEIR_JSON_PATH_BYTES = 256 };

/* A parsed file: the tree and the text (kept to find the line of a path). */
struct weir_json_document;

struct weir_json {
	const struct weir_json_document *document; /* borrowed */
	json_t *value;                             /* borrowed from the document */
	char path[WEIR_JSON_PATH_BYTES];           /* "zones[0].limits[1].rate"; "" is the root */
};

/* A document of this name, or of an option's ("--format"), was never a file: its errors name no lines. */
#define WEIR_JSON_COMMAND_LINE "command line"

/**
 * Reads a file of at most 16 MiB, or a text. A file may have comments, as in C, and a comma behind the last element.
 *
 * @param name  shown in errors: the file's path, or where else the text comes from
 */
WEIR_MUST_USE enum weir_status weir_json_load(const char *path, struct weir_json_document **document,
                                              struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_json_parse(const char *name, const char *text, size_t length,
                                               struct weir_json_document **document, struct weir_error *error);
/** The text of a file, with what such a text may have. */
WEIR_MUST_USE enum weir_status weir_json_parse_file(const char *name, const char *text, size_t length,
                                                    struct weir_json_document **document, struct weir_error *error);
/** A text that weir itself saved, of any size: whoever reads it bounds it. */
WEIR_MUST_USE enum weir_status weir_json_parse_saved(const char *name, const char *text, size_t length,
                                                     struct weir_json_document **document, struct weir_error *error);
/** What weir itself wrote: keys, which are any bytes, may have zero bytes in it. */
WEIR_MUST_USE enum weir_status weir_json_parse_record(const char *name, const char *text, size_t length,
                                                      struct weir_json_document **document, struct weir_error *error);
void weir_json_document_free(struct weir_json_document *document);

/**
 * Leaves out what was refused last, so that reading the document again from its root shows the next mistake. Lines and
 * paths stay those of the text.
 *
 * @param error        of that refusal
 * @param new_mistake  returned; false: the refusal comes of what was left out before, and tells a person nothing
 * @return whether anything could be left out; false: reading again would give the same
 */
bool weir_json_read_on(struct weir_json_document *document, const struct weir_error *error, bool *new_mistake);

/**
 * Puts a value where a member of the root is gone. What mentions its name from then on comes of that.
 *
 * @param value  taken
 * @return false: the member is there, or there is no object to put it in
 */
bool weir_json_stand_in(struct weir_json_document *document, const char *member, json_t *value, const char *name);

/** The root cursor. */
struct weir_json weir_json_root(const struct weir_json_document *document);

/** "FILE:LINE: PATH: words": the error that every refusal of a configuration gives. */
enum weir_status weir_json_fail(const struct weir_json *at, struct weir_error *error, const char *format, ...)
	WEIR_PRINTF(3, 4);
#ifdef __clang_analyzer__
#define weir_json_fail(at, error, ...) ((weir_json_fail)(at, error, __VA_ARGS__), WEIR_INVALID) /* as weir_fail */
#endif

/** Member or element; value is NULL if there is none (the path is set anyway). */
struct weir_json weir_json_member(const struct weir_json *object, const char *name);
struct weir_json weir_json_element(const struct weir_json *array, size_t index);

static inline bool weir_json_exists(const struct weir_json *at)
{
	return at->value != NULL;
}

/** Whether two objects have the same value as a member, or neither has one. */
bool weir_json_same(const struct weir_json *one, const struct weir_json *other, const char *name);

/**
 * Refuses members that are not listed, suggesting the nearest name.
 *
 * @param names  NULL-terminated
 */
WEIR_MUST_USE enum weir_status weir_json_only(const struct weir_json *object, const char *const *names,
                                              struct weir_error *error);

/** Refuses an absent value: "is missing; " and words on what to put there. */
WEIR_MUST_USE enum weir_status weir_json_require(const struct weir_json *at, const char *words,
                                                 struct weir_error *error);

/* Each getter: an absent value leaves *out as it is and gives WEIR_OK; a wrong type or range is refused in words. */
/** 1.0 and 1e0 are 1. */
WEIR_MUST_USE enum weir_status weir_json_int(const struct weir_json *at, int64_t least, int64_t most, int64_t *out,
                                             struct weir_error *error);
WEIR_MUST_USE enum weir_status weir_json_bool(const struct weir_json *at, bool *out, struct weir_error *error);
/** *out borrowed from the document; without zero bytes. */
WEIR_MUST_USE enum weir_status weir_json_string(const struct weir_json *at, const char **out, struct weir_error *error);
/** "250ms" "10s" "1m" "1h" "1d", whole numbers, in ms. */
WEIR_MUST_USE enum weir_status weir_json_duration(const struct weir_json *at, int64_t least_ms, int64_t most_ms,
                                                  int64_t *out_ms, struct weir_error *error);
/** "4096", "64KiB", "10MiB", "2GiB" or a number of bytes. */
WEIR_MUST_USE enum weir_status weir_json_size(const struct weir_json *at, int64_t least, int64_t most,
                                              int64_t *out_bytes, struct weir_error *error);
/** A list of `least` to `most` elements; *out is how many it has. */
WEIR_MUST_USE enum weir_status weir_json_list(const struct weir_json *at, size_t least, size_t most, size_t *out,
                                              struct weir_error *error);
/** One value, or a list of 1 to `most` of them: *out is how many there are, also 1 where nothing is given. */
WEIR_MUST_USE enum weir_status weir_json_one_or_more(const struct weir_json *at, size_t most, size_t *out,
                                                     struct weir_error *error);
/** Its i-th value, below the count of weir_json_one_or_more(). */
struct weir_json weir_json_one_of(const struct weir_json *at, size_t i);
/** One of the NULL-terminated words; *out is its index. */
WEIR_MUST_USE enum weir_status weir_json_word(const struct weir_json *at, const char *const *words, int *out,
                                              struct weir_error *error);
/**
 * Whether a value says what a secret is, or where: a string, {"file": PATH} or {"env": NAME}. What it names is not looked
 * at: it need not be on this machine.
 */
WEIR_MUST_USE enum weir_status weir_json_check_secret(const struct weir_json *at, struct weir_error *error);
/** Opens such a secret, of a file the first line; *out is returned, the caller frees. */
WEIR_MUST_USE enum weir_status weir_json_secret(const struct weir_json *at, char **out, struct weir_error *error);
/** The same, of what keeps strangers out: it must not be empty, also where a file or the environment has it. */
WEIR_MUST_USE enum weir_status weir_json_password(const struct weir_json *at, char **out, struct weir_error *error);

#endif
