/* SPDX-License-Identifier: Apache-2.0 */
/* Runs files of policy tests: what `weir test` and `weir policy apply --require` have in common. */
#ifndef DEPLOY_WEIR_TEST_REQUIRE_H
#define DEPLOY_WEIR_TEST_REQUIRE_H

#include "common/base/exit.h"
#include "common/base/text.h"
#include "common/config/config.h"

struct test_run;

/**
 * Reads all files, then runs their cases.
 *
 * @param paths        borrowed, as long as the run
 * @param config       that of all files; NULL: each names its own
 * @param config_path  of that, or of one to be read for all files; NULL: each names its own
 * @param run          returned: test_run_free()
 * @return WEIR_EXIT_DONE: all cases passed; FAILED: some did not; USAGE: some file or case cannot be used
 */
enum weir_exit test_run_new(const char *const *paths, size_t count, const struct weir_config *config,
                            const char *config_path, struct test_run **run);
void test_run_free(struct test_run *run);

/** Appends what became of all cases, for people: failures with their reasons, then a line that sums up. */
void test_run_words(struct weir_text *text, const struct test_run *run, bool coloured);
/** The same in other forms: the Test Anything Protocol, JUnit's XML, and one object of JSON in a line. */
void test_run_tap(struct weir_text *text, const struct test_run *run);
void test_run_junit(struct weir_text *text, const struct test_run *run);
void test_run_json(struct weir_text *text, const struct test_run *run);

#endif
