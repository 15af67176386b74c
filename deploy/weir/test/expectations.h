/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what came of a case is what it expects; if not, what came instead and why, in words. */
#ifndef DEPLOY_WEIR_TEST_EXPECTATIONS_H
#define DEPLOY_WEIR_TEST_EXPECTATIONS_H

#include "deploy/weir/test/result.h"
#include "deploy/weir/test/subject.h"

/**
 * Runs a case and says what failed.
 *
 * @param folder  that its paths are relative to: "" or ended by a slash
 * @param result  gets the failures, or why the case cannot be run
 */
void expectations_check(const struct subject *subject, const struct test_case *of, const char *folder,
                        struct test_result *result);

#endif
