/* SPDX-License-Identifier: Apache-2.0 */
/* When certificates end: of files with one, with several, with none; and which files a configuration names. */
#include "common/daemon/certificate_metrics.h"
#include "common/tls/certificate.h"
#include "tests/unit/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#define FIRST_S INT64_C(2054930128)
#define SECOND_S INT64_C(2573330129)

/* Self-signed, of EC keys that are gone. */
static const char first[] = "-----BEGIN CERTIFICATE-----\n"
							"MIIBcTCCARegAwIBAgIUb/fTX2CwBgSRIEcMr+8yiSVdYOEwCgYIKoZIzj0EAwIw\n"
							"DjEMMAoGA1UEAwwDb25lMB4XDTI2MTEyNjIxNTUyOFoXDTM1MDIxMjIxNTUyOFow\n"
							"DjEMMAoGA1UEAwwDb25lMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYLHJNnbt\n"
							"71ucHSKOJyYPKsFTArWpiu/MYLD86IuNxZbDuUqNDoUbDDGe4+t6Mc66/kM8GVDG\n"
							"A6MuVfowqRNAR6NTMFEwHQYDVR0OBBYEFLdOSm6295J5xTQfr6zfPqk4KATlMB8G\n"
							"A1UdIwQYMBaAFLdOSm6295J5xTQfr6zfPqk4KATlMA8GA1UdEwEB/wQFMAMBAf8w\n"
							"CgYIKoZIzj0EAwIDSAAwRQIhAISdEwI7YqoBIN3ktUk4M7rCYezwslO/69iKMMYm\n"
							"+VsTAiBl5D7O0lR6A2ccCPFz+ItlqsO9qyFreHjAmWz1J3OloA==\n"
							"-----END CERTIFICATE-----\n";

static const char second[] = "-----BEGIN CERTIFICATE-----\n"
							 "MIIBczCCARmgAwIBAgIUbZ6wyLSZIKCwZWGxJqO6BkvIcqMwCgYIKoZIzj0EAwIw\n"
							 "DjEMMAoGA1UEAwwDdHdvMCAXDTI2MTEyNjIxNTUyOVoYDzIwNTEwNzE4MjE1NTI5\n"
							 "WjAOMQwwCgYDVQQDDAN0d28wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQJm8Kx\n"
							 "QJcYpvVwtTmK1tO9doHznNicS5sqC4I1JA4xxzIx0UF9kRRVE1N4XeHjpz1oPVQY\n"
							 "ck5rwZLDST6U4fxCo1MwUTAdBgNVHQ4EFgQUDNeL/XEkWA/H/oA3oqO6wAE68oQw\n"
							 "HwYDVR0jBBgwFoAUDNeL/XEkWA/H/oA3oqO6wAE68oQwDwYDVR0TAQH/BAUwAwEB\n"
							 "/zAKBggqhkjOPQQDAgNIADBFAiEAmPzuN6TTK5Io9O7JGki3JXnmmQDfCxzocuvI\n"
							 "g6VnCC0CIAn7sIoZEVPVDpCOyy8cwAUlrKitQ4QaLhdrADifLBIT\n"
							 "-----END CERTIFICATE-----\n";

/* What a file of a certificate may have before it; it is read over. */
static const char noise[] = "what it is for\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";

static void write_file(const char *folder, const char *name, const char *a, const char *b, char *path)
{
	snprintf(path, 512, "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s%s", a, b);
	fclose(file);
}

static void test_the_first_one_is_shown_and_the_last_one_trusted(void **state)
{
	char path[512];
	write_file(*state, "both", second, first, path);
	assert_int_equal(SECOND_S, weir_certificate_file_ends_s(path, false));
	assert_int_equal(SECOND_S, weir_certificate_file_ends_s(path, true));
	write_file(*state, "both", first, second, path);
	assert_int_equal(FIRST_S, weir_certificate_file_ends_s(path, false));
	assert_int_equal(SECOND_S, weir_certificate_file_ends_s(path, true));
	write_file(*state, "key", noise, first, path);
	assert_int_equal(FIRST_S, weir_certificate_file_ends_s(path, false));
}

static void test_what_is_no_certificate_has_no_end(void **state)
{
	char path[512];
	write_file(*state, "key", noise, "", path);
	assert_int_equal(0, weir_certificate_file_ends_s(path, false));
	write_file(*state, "cut", "-----BEGIN CERTIFICATE-----\nMIIBdDCCARugAwIBAgIU\n", "", path);
	assert_int_equal(0, weir_certificate_file_ends_s(path, true));
	assert_int_equal(0, weir_certificate_file_ends_s(*state, true)); /* a directory */
	snprintf(path, sizeof path, "%s/pipe", (char *)*state);
	assert_int_equal(0, mkfifo(path, 0600));
	assert_int_equal(0, weir_certificate_file_ends_s(path, true)); /* and does not wait for a writer */
	assert_int_equal(0, weir_certificate_ends_s((struct weir_span){"\x30\x03\x02\x01\x01", 5}));
}

/* @return the page, the caller frees */
static struct weir_text page_of(const char *json)
{
	struct weir_text page = {0};
	struct weir_error error;
	struct weir_config config = {0};
	assert_int_equal(WEIR_OK, weir_json_parse("test", json, strlen(json), &config.document, &error));
	weir_certificate_metrics(&config, NULL, &page);
	weir_json_document_free(config.document);
	weir_text_append(&page, "", 1);
	return page;
}

static void test_no_configuration_names_no_file(void **state)
{
	(void)state;
	struct weir_text page = {0};
	weir_certificate_metrics(NULL, NULL, &page);
	weir_text_append(&page, "", 1);
	assert_non_null(strstr(page.at, "# TYPE weir_certificate_file_expires_timestamp_seconds gauge"));
	assert_null(strstr(page.at, "weir_certificate_file_expires_timestamp_seconds{"));
	weir_text_deinit(&page);
}

static void test_an_address_of_the_command_line_names_a_file(void **state)
{
	char path[512], address[600], sample[700];
	write_file(*state, "my ca.pem", first, second, path);
	struct weir_text page = {0};
	snprintf(address, sizeof address, "rediss://weir:hu?sh@h:1/0?key=/k&certificate=/absent&ca=%s/my%%20ca.pem",
	         (char *)*state);
	weir_certificate_metrics(NULL, address, &page);
	weir_text_append(&page, "", 1);
	snprintf(sample, sizeof sample, "{file=\"%s\"} %lld\n", path, (long long)SECOND_S);
	assert_non_null(strstr(page.at, sample));
	weir_text_deinit(&page);
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;
	for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
		count++;
	return count;
}

static void test_a_metric_for_each_file_of_a_configuration(void **state)
{
	char one[512], all[512], json[4096], sample[1024];
	write_file(*state, "one.pem", first, second, one);
	write_file(*state, "all.pem", first, second, all);
	snprintf(json, sizeof json,
	         "{\"bus\":{\"kafka\":{\"ssl.ca.location\":\"%s\",\"ssl.certificate.location\":\"%s\"}},"
	         "\"store\":{\"tls_ca\":\"%s\"},\"sources\":[{\"tls\":{\"certificate\":\"%s\",\"key\":\"%s.key\"}},"
	         "{\"ca\":\"/absent\"}],\"gateways\":[{\"to\":\"rediss://h:1/0?ca=%s.redis\"}]}",
	         all, one, all, one, one, one);
	char redis[512];
	write_file(*state, "one.pem.redis", first, "", redis);
	struct weir_text page = page_of(json);
	assert_int_equal(3, count_of(page.at, "\nweir_certificate_file_expires_timestamp_seconds{")); /* each once */
	snprintf(sample, sizeof sample, "{file=\"%s\"} %lld\n", one, (long long)FIRST_S);
	assert_non_null(strstr(page.at, sample));
	snprintf(sample, sizeof sample, "{file=\"%s\"} %lld\n", all, (long long)SECOND_S);
	assert_non_null(strstr(page.at, sample));
	snprintf(sample, sizeof sample, "{file=\"%s\"} %lld\n", redis, (long long)FIRST_S);
	assert_non_null(strstr(page.at, sample));
	weir_text_deinit(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_first_one_is_shown_and_the_last_one_trusted, scratch_setup,
	                                    scratch_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_no_certificate_has_no_end, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_no_configuration_names_no_file),
		cmocka_unit_test_setup_teardown(test_an_address_of_the_command_line_names_a_file, scratch_setup,
	                                    scratch_teardown),
		cmocka_unit_test_setup_teardown(test_a_metric_for_each_file_of_a_configuration, scratch_setup,
	                                    scratch_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
