/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of policy tests, as it is written: JSON with comments, as configurations are. limiter/tests.md describes it.
 *
 * Here stands all that can be read without a policy; which zones, keys and sources there are is asked when a case runs.
 */
#ifndef DEPLOY_WEIR_TEST_FILE_H
#define DEPLOY_WEIR_TEST_FILE_H

#include "common/json/json.h"
#include "common/policy/policy.h"
#include "limiter/overrides/override_command.h"

enum {
	TEST_CASES_MAX = 10000,
	TEST_GIVEN_MAX = 10000,   /* entries of a case */
	TEST_EXPECTED_MAX = 1000, /* expectations of a kind, of a case */
	TEST_LINES_MAX = 1000000, /* of a case, however they are given */
	TEST_NAME_MAX_BYTES = 256,
};

/* Where nothing is said. */
#define TEST_UNSAID INT64_C(-1)

/* A key's values as they are written. */
struct test_key {
	struct weir_json at;
	const char *values[WEIR_ZONE_KEY_MAX];
	uint32_t count;
};

enum test_given_kind { TEST_GIVES_LINES, TEST_GIVES_FILE, TEST_GIVES_FIELDS, TEST_GIVES_COMMAND };

/* One entry of "given". Strings are borrowed from the document, here and below. */
struct test_given {
	struct weir_json at;
	enum test_given_kind kind;
	struct weir_json what;   /* the lines or fields */
	int64_t at_ms, every_ms; /* of the first record, and from one to the next */
	size_t lines;            /* at least, each time */
	int64_t repeat;          /* how many times; of lines that are not made from a template TEST_UNSAID */
	struct weir_json source; /* a name, or a place in "sources" */
	struct weir_json format; /* of lines that no source has */
	const char *path;        /* of a file */
	int64_t cost;            /* of fields */
	int command;             /* enum override_kind */
	const char *zone, *rate, *by, *reason;
	struct test_key key;
	int64_t for_ms, until_ms;
};

/* A decision. What is TEST_UNSAID or NULL may be anything. */
struct test_decision {
	struct weir_json at;
	const char *zone;
	struct test_key key;
	bool key_given;
	int64_t action, mode; /* places in test_actions, test_modes */
	int64_t line;         /* of the case, from 1 on: which one made it */
	int64_t at_ms, until_ms, for_ms, count;
	struct weir_json counted; /* lines: those that the limit counted */
	struct weir_json says;    /* what its explanation says */
};

/* How many events of a zone, or of one of its keys. */
struct test_count {
	struct weir_json at;
	const char *zone;
	struct test_key key;
	bool key_given;
	int64_t passed, blocked, decisions;
};

struct test_case {
	struct weir_json at;
	const char *name;
	int64_t start_ms;
	struct test_given *given; /* owned, as are the others */
	size_t given_count;
	struct test_decision *decisions; /* in order: these, and no others */
	size_t decision_count;
	bool decisions_given;
	struct test_count *counts;
	size_t count_count;
	int64_t malformed; /* lines that are not of their format */
	int64_t skipped;   /* those that the format was told to skip */
};

struct test_file {
	struct weir_json_document *document;
	const char *schema; /* which nobody looks at, and */
	const char *config; /* as they are written; NULL: not given */
	struct test_case *cases;
	size_t case_count;
};

extern const char *const test_actions[], *const test_modes[];

/** What the document says. @param document  taken, on failure too @param file  returned: test_file_free() */
WEIR_MUST_USE enum weir_status test_file_read(struct weir_json_document *document, struct test_file **file,
                                              struct weir_error *error);
void test_file_free(struct test_file *file);

/** The JSON Schema of such a file, from the tables that it is read by; returned. @param format  a format's shape; taken */
json_t *test_file_schema(json_t *format);

#endif
