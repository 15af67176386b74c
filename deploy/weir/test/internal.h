/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `weir test` share. */
#ifndef DEPLOY_WEIR_TEST_INTERNAL_H
#define DEPLOY_WEIR_TEST_INTERNAL_H

#include "deploy/weir/test/require.h"
#include "deploy/weir/test/result.h"

struct test_run {
	struct test_report *reports; /* owned, by file */
	size_t count;
	size_t passed, failed, unusable; /* cases; a file that cannot be used is one */
};

#endif
