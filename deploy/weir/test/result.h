/* SPDX-License-Identifier: Apache-2.0 */
/* What became of cases, and of the files that have them. */
#ifndef DEPLOY_WEIR_TEST_RESULT_H
#define DEPLOY_WEIR_TEST_RESULT_H

#include "common/base/text.h"
#include "common/files/durable_file.h"
#include "deploy/weir/test/test_file.h"

enum { RESULT_FAILURES_MAX = 10 }; /* of a case; more are only counted */

struct test_failure {
	char words[WEIR_ERROR_TEXT_BYTES]; /* "FILE:LINE: PATH: what was expected, and what came" */
	struct weir_text why;              /* the decision's explanation, in lines; or empty */
};

struct test_result {
	const char *name;                     /* borrowed from the file's document */
	char unusable[WEIR_ERROR_TEXT_BYTES]; /* why the case could not be run; "": it was */
	struct test_failure *failures;        /* owned */
	size_t failure_count, left_out;
	uint64_t lines;
	double seconds;
};

/* One file on the command line. */
struct test_report {
	const char *path;                     /* borrowed */
	char config[WEIR_PATH_BYTES];         /* what it was tested against */
	char unusable[WEIR_ERROR_TEXT_BYTES]; /* why none of it could be run; "" */
	struct test_file *file;               /* owned; NULL: unusable */
	struct test_result *results;          /* owned, by case */
	size_t count;
};

/** Whether it passed. */
static inline bool test_result_passed(const struct test_result *result)
{
	return result->unusable[0] == '\0' && result->failure_count == 0;
}

/** Room for one more failure. @return NULL: there are enough, and it is counted */
struct test_failure *test_result_fail(struct test_result *result);

void test_report_deinit(struct test_report *report);

#endif
