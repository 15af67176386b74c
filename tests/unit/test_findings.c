/* SPDX-License-Identifier: Apache-2.0 */
/* A finding's parts, and the order of several. */
#include "common/diagnosis/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <cmocka.h>

static void a_finding_is_cut_into_its_parts(void **state)
{
	(void)state;
	struct weir_findings findings = {0};
	weir_findings_add(&findings, WEIR_SEVERITY_PAGE, "topics",
	                  "topic %s is gone\nno decision\nweir policy apply "
	                  "--config '/a (b)' (runbook: topic-deleted)",
	                  "x (runbook: no)");
	const struct weir_finding *finding = &findings.at[0];
	assert_string_equal(finding->what, "topic x is gone");
	assert_string_equal(finding->means, "no decision");
	assert_string_equal(finding->remedy, "weir policy apply --config '/a (b)'");
	assert_string_equal(finding->runbook, "topic-deleted");
	weir_findings_add(&findings, WEIR_SEVERITY_NOTE, "configuration", "only this");
	assert_string_equal(findings.at[1].what, "only this");
	assert_string_equal(findings.at[1].means, "");
	assert_string_equal(findings.at[1].remedy, "");
	assert_string_equal(findings.at[1].runbook, "");
	weir_findings_deinit(&findings);
}

/* A server's words, or a certificate's doubts: none of them is taken for the next part. */
static void line_breaks_of_parameters_are_none(void **state)
{
	(void)state;
	struct weir_findings findings = {0};
	weir_findings_add(&findings, WEIR_SEVERITY_PAGE, "certificates",
	                  "%.*s\n%s of %zu%%\nrenew %s (runbook: certificates)", 7, "one\ntwo\nthree", "a\r\nb", (size_t)3,
	                  "it\n");
	assert_string_equal(findings.at[0].what, "one; two");
	assert_string_equal(findings.at[0].means, "a; b of 3%");
	assert_string_equal(findings.at[0].remedy, "renew it; ");
	assert_string_equal(findings.at[0].runbook, "certificates");
	weir_findings_add(&findings, WEIR_SEVERITY_NOTE, "certificates", "%s\n\n", "");
	assert_string_equal(findings.at[1].what, "");
	weir_findings_good(&findings, "fine: %s", "1\n2");
	assert_int_equal(findings.good.length, strlen("fine: 1; 2\n"));
	assert_memory_equal(findings.good.at, "fine: 1; 2\n", findings.good.length);
	weir_findings_deinit(&findings);
}

static void the_worst_stands_first(void **state)
{
	(void)state;
	struct weir_findings findings = {0}, more = {0};
	weir_findings_add(&findings, WEIR_SEVERITY_NOTE, "a", "1\n\n");
	weir_findings_add(&findings, WEIR_SEVERITY_TICKET, "a", "2\n\n");
	weir_findings_add(&more, WEIR_SEVERITY_PAGE, "b", "3\n\n");
	weir_findings_add(&more, WEIR_SEVERITY_TICKET, "b", "4\n\n");
	weir_findings_good(&more, "well");
	weir_findings_take(&findings, &more);
	weir_findings_sort(&findings);
	char order[5] = "";
	for (size_t i = 0; i < findings.count; i++)
		order[i] = findings.at[i].what[0];
	assert_string_equal(order, "3241");
	assert_int_equal(weir_findings_count(&findings, WEIR_SEVERITY_PAGE), 1);
	assert_int_equal(weir_findings_count(&findings, WEIR_SEVERITY_TICKET), 3);
	assert_int_equal(findings.good.length, 5);
	assert_int_equal(more.count, 0);
	weir_findings_deinit(&findings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_finding_is_cut_into_its_parts),
		cmocka_unit_test(line_breaks_of_parameters_are_none),
		cmocka_unit_test(the_worst_stands_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
