/* SPDX-License-Identifier: Apache-2.0 */
/* The words of errors: too few descriptors have a remedy, wherever they are told. */
#include "common/base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define OF_PROCESS " (more are allowed by ulimit -n, or LimitNOFILE= of a service)"
#define OF_SYSTEM " (more are allowed by sysctl fs.file-max)"

static void too_few_descriptors_have_a_remedy(void **state)
{
	(void)state;
	assert_string_equal(weir_errno_words(EMFILE), "Too many open files" OF_PROCESS);
	assert_string_equal(weir_errno_words(ENFILE), "Too many open files in system" OF_SYSTEM);
	assert_string_equal(weir_errno_words(ENOENT), strerror(ENOENT));
	assert_true(strncmp(weir_errno_words(EMFILE), strerror(EMFILE), strlen(strerror(EMFILE))) == 0);
	assert_true(strncmp(weir_errno_words(ENFILE), strerror(ENFILE), strlen(strerror(ENFILE))) == 0);
}

static void a_librarys_words_get_it_too(void **state)
{
	(void)state;
	assert_string_equal(weir_errno_advice("Failed to create socket: Too many open files"), OF_PROCESS);
	assert_string_equal(weir_errno_advice("socket(): Too many open files in system"), OF_SYSTEM);
	assert_string_equal(weir_errno_advice("Connection refused"), "");
}

static void words_of_others_are_as_they_are(void **state)
{
	(void)state;
	struct weir_error error;
	assert_int_equal(weir_fail(&error, WEIR_IO, "a line says: %s", "Too many open files"), WEIR_IO);
	assert_string_equal(error.text, "a line says: Too many open files");
}

static void words_are_put_behind_and_cut(void **state)
{
	(void)state;
	struct weir_error error;
	weir_error_append(NULL, "%d", 1);
	(void)weir_fail(&error, WEIR_IO, "it fails");
	weir_error_append(&error, ": %s", "why\nso");
	assert_string_equal(error.text, "it fails: why so");
	for (int i = 0; i < 200; i++)
		weir_error_append(&error, "%s", "0123456789");
	assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_put_behind_and_cut),
		cmocka_unit_test(too_few_descriptors_have_a_remedy),
		cmocka_unit_test(a_librarys_words_get_it_too),
		cmocka_unit_test(words_of_others_are_as_they_are),
	};
	return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
