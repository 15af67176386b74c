/* SPDX-License-Identifier: Apache-2.0 */
/* Results own what they say of a case; its name stays the file's. */
#include "deploy/weir/test/result.h"

#include "common/base/alloc.h"

#include <stdlib.h>

struct test_failure *test_result_fail(struct test_result *result)
{
	if (result->failure_count == RESULT_FAILURES_MAX) {
		result->left_out++;
		return NULL;
	}
	result->failures = weir_realloc(result->failures, result->failure_count + 1, sizeof *result->failures);
	struct test_failure *failure = &result->failures[result->failure_count++];
	*failure = (struct test_failure){.words = ""};
	return failure;
}

void test_report_deinit(struct test_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		for (size_t j = 0; j < report->results[i].failure_count; j++)
			weir_text_deinit(&report->results[i].failures[j].why);
		free(report->results[i].failures);
	}
	free(report->results);
	test_file_free(report->file);
}
