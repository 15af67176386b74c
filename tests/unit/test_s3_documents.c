/* SPDX-License-Identifier: Apache-2.0 */
/* S3's answers as they are, cut, foreign and hostile: a page is read whole or not at all, and a refusal becomes words. */
#include "collector/source/remote/s3/s3_documents.h"
#include "collector/source/remote/s3/s3_xml.h"
#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD \
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define ENTRY(key)                                                                                                \
	"<Contents><Key>" key "</Key><LastModified>2024-05-17T10:05:03.123Z</LastModified><ETag>&#34;abc&#34;</ETag>" \
	"<Size>57</Size><StorageClass>STANDARD</StorageClass></Contents>"
#define TAIL "</ListBucketResult>"

static enum weir_status read_page(struct s3_page *page, const char *text, struct weir_error *error)
{
	size_t length = strlen(text);
	char *exact = malloc(length + (length == 0)); /* of just its size: a read past it is seen */
	memcpy(exact, text, length);
	enum weir_status status = s3_page_read(page, (struct weir_span){.at = exact, .length = (uint32_t)length}, error);
	free(exact);
	return status;
}

static void assert_refused(const char *text, const char *words)
{
	struct s3_page page = {0};
	struct weir_error error;
	assert_int_equal(read_page(&page, text, &error), WEIR_INVALID);
	assert_non_null(strstr(error.text, words));
	assert_int_equal(page.count, 0);
	s3_page_deinit(&page);
}

static void assert_keys(const char *text, size_t count, const char *const *keys)
{
	struct s3_page page = {0};
	struct weir_error error;
	assert_int_equal(read_page(&page, text, &error), WEIR_OK);
	assert_int_equal(page.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(s3_page_key(&page, &page.entries[i]), keys[i]);
		assert_int_equal(page.entries[i].key_length, strlen(keys[i]));
	}
	s3_page_deinit(&page);
}

static void a_page_gives_its_objects_and_what_comes_behind_it(void **state)
{
	(void)state;
	struct s3_page page = {0};
	struct weir_error error;
	assert_int_equal(read_page(&page,
	                           HEAD "<Name>logs</Name><Prefix/><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>"
	                                "<NextContinuationToken>1/a+b=</NextContinuationToken>" ENTRY("a") ENTRY("b/c")
	                                    TAIL,
	                           &error),
	                 WEIR_OK);
	assert_int_equal(page.count, 2);
	assert_string_equal(s3_page_key(&page, &page.entries[1]), "b/c");
	assert_string_equal(page.entries[0].etag, "\"abc\"");
	assert_int_equal(page.entries[0].size, 57);
	assert_int_equal(page.entries[0].modified_ms, INT64_C(1715940303123));
	assert_true(page.truncated);
	assert_string_equal(page.next.at, "1/a+b=");
	/* The next page has nothing of the one before it. */
	assert_int_equal(read_page(&page, HEAD "<IsTruncated>false</IsTruncated>" TAIL, &error), WEIR_OK);
	assert_int_equal(page.count, 0);
	assert_false(page.truncated);
	assert_int_equal(page.next.length, 0);
	s3_page_deinit(&page);
}

static void keys_with_references_are_decoded(void **state)
{
	(void)state;
	static const char *const keys[] = {"a<b>&\"'c", "a<b&amp;c", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82"};
	assert_keys(HEAD ENTRY("a&lt;b&gt;&amp;&quot;&apos;c") ENTRY("<![CDATA[a<b&amp;c]]>")
	                ENTRY("&#233;&#x20ac;&#x1F642;") TAIL,
	            3, keys);
	/* Whether keys are encoded may be said behind them. A '+' is a blank then, and a broken escape stays. */
	static const char *const encoded[] = {"a b/c+d\n", "100%", "%zz"};
	assert_keys(HEAD ENTRY("a+b/c%2Bd%0a") ENTRY("100%") ENTRY("%zz") "<EncodingType>url</EncodingType>" TAIL, 3,
	            encoded);
	static const char *const folders[] = {"a/"};
	assert_keys(HEAD "<Contents><Key>a/</Key></Contents>" TAIL, 1, folders);
	static const char *const plain[] = {"a+b%20c"};
	assert_keys(HEAD ENTRY("a+b%20c") TAIL, 1, plain);
}

static void what_is_no_page_is_refused_in_words(void **state)
{
	(void)state;
	static const struct {
		const char *text, *words;
	} cases[] = {
		{"", "is empty"},
		{"  \n", "is empty"},
		{"hello", "is no XML"},
		{"{\"a\": 1}", "is no XML"},
		{"<!DOCTYPE html><html><body>Login</body></html>", "is HTML"},
		{"<!doctype HTML>", "is HTML"},
		{"<html><body>", "is HTML"},
		{"<HTML>", "is HTML"},
		{"<!DOCTYPE x [<!ENTITY a \"b\">]><x/>", "document type"},
		{"<Error><Code>AccessDenied</Code></Error>", "another document"},
		{HEAD ENTRY("a") TAIL "<x/>", "goes on behind its end"},
		{HEAD ENTRY("a") TAIL "x", "goes on behind its end"},
		{HEAD ENTRY("a"), "is cut off"},
		{HEAD "<Contents><Key>a</Key", "is cut off"},
		{HEAD "<!-- x", "is cut off"},
		{HEAD "<![CDATA[x", "is cut off"},
		{HEAD "<a b='>'", "is cut off"},
		{HEAD "</Other>", "ends nothing"},
		{HEAD "< >", "without a name"},
		{HEAD "&unknown;" TAIL, "stands for nothing"},
		{HEAD "&#0;" TAIL, "stands for nothing"},
		{HEAD "&#xD800;" TAIL, "stands for nothing"},
		{HEAD "&#x110000;" TAIL, "stands for nothing"},
		{HEAD "&#-1;" TAIL, "stands for nothing"},
		{HEAD "&amp" TAIL, "stands for nothing"},
		{HEAD "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "too many elements"},
		{HEAD "<Contents><Key>a</Key><Size>1</Size></Contents>" TAIL, "without its key, size or time"},
		{HEAD "<Contents/>" TAIL, "without its key, size or time"},
		{HEAD "<Contents><Key></Key></Contents>" TAIL, "a key that none can be"},
		{HEAD "<Contents><Key>a</Key><Key>b</Key></Contents>" TAIL, "a key that none can be"},
		{HEAD "<Contents><Size>-1</Size></Contents>" TAIL, "no number"},
		{HEAD "<Contents><Size>99999999999999999999</Size></Contents>" TAIL, "no number"},
		{HEAD "<Contents><LastModified>soon</LastModified></Contents>" TAIL, "a time that is none"},
		{HEAD "<IsTruncated>true</IsTruncated>" TAIL, "not where"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_refused(cases[i].text, cases[i].words);
}

static void a_page_that_is_cut_anywhere_gives_nothing(void **state)
{
	(void)state;
	static const char whole[] = HEAD ENTRY("a") ENTRY("b&amp;c") "<IsTruncated>false</IsTruncated>" TAIL;
	struct s3_page page = {0};
	struct weir_error error;
	for (size_t length = 0; length + 1 < sizeof whole; length++) {
		char *cut = weir_copy(whole, length);
		assert_int_equal(read_page(&page, cut, &error), WEIR_INVALID);
		assert_int_equal(page.count, 0);
		free(cut);
	}
	assert_int_equal(read_page(&page, whole, &error), WEIR_OK);
	s3_page_deinit(&page);
}

static void a_page_may_not_have_any_number_of_objects(void **state)
{
	(void)state;
	struct weir_text text = {0};
	weir_text_puts(&text, HEAD);
	for (int i = 0; i <= S3_PAGE_MOST; i++)
		weir_text_puts(&text, ENTRY("a"));
	weir_text_append(&text, TAIL, sizeof TAIL);
	assert_refused(text.at, "more objects than a page may have");
	weir_text_deinit(&text);
}

static void an_etag_never_breaks_a_header(void **state)
{
	(void)state;
	struct s3_page page = {0};
	struct weir_error error;
	assert_int_equal(read_page(&page,
	                           HEAD "<Contents><Key>a</Key><LastModified>2024-05-17T10:05:03Z</LastModified>"
	                                "<ETag>\"a\"&#13;&#10;X: y</ETag><Size>1</Size></Contents>" TAIL,
	                           &error),
	                 WEIR_OK);
	assert_string_equal(page.entries[0].etag, "");
	s3_page_deinit(&page);
}

static void assert_words(const char *document, long code, const char *words)
{
	struct s3_refusal refusal;
	struct weir_text text = {0};
	s3_refusal_read(&refusal, weir_span_of(document));
	s3_refusal_words(&refusal, code, &text);
	weir_text_append(&text, "", 1);
	if (strstr(text.at, words) == NULL)
		fail_msg("'%s' does not have '%s'", text.at, words);
	weir_text_deinit(&text);
}

#define ERROR(code) "<?xml version='1.0'?><Error><Code>" code "</Code><Message>secret of AKIA</Message></Error>"

static void a_refusal_says_what_helps(void **state)
{
	(void)state;
	assert_words(ERROR("SignatureDoesNotMatch"), 403, "HTTP 403 (SignatureDoesNotMatch): the secret is not that of");
	assert_words(ERROR("ExpiredToken"), 400, "renew what the source's \"session_token\" names");
	assert_words(ERROR("SlowDown"), 503, "fewer requests");
	assert_words(ERROR("Whatever.New"), 403, "HTTP 403 (Whatever.New): ");
	assert_words("<Error><Code>PermanentRedirect</Code><Region>eu-west-3</Region></Error>", 301, "names eu-west-3");
	assert_words("<html>", 403, "the answer is HTML");
	assert_words("", 500, "HTTP 500: weir asks again");
	assert_words("", 301, "elsewhere");
	assert_words("", 404, "no such bucket or path");
	/* What is no word is not shown, nor what the server writes besides. */
	assert_words("<Error><Code>a\nb</Code></Error>", 403, "HTTP 403: the server allows");
	assert_words("<Other><Code>AccessDenied</Code></Other>", 403, "HTTP 403: the server allows");
	struct s3_refusal refusal;
	struct weir_text text = {0};
	s3_refusal_read(&refusal, weir_span_of(ERROR("InvalidAccessKeyId")));
	s3_refusal_words(&refusal, 403, &text);
	assert_null(memmem(text.at, text.length, "AKIA", 4));
	weir_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_gives_its_objects_and_what_comes_behind_it),
		cmocka_unit_test(keys_with_references_are_decoded),
		cmocka_unit_test(what_is_no_page_is_refused_in_words),
		cmocka_unit_test(a_page_that_is_cut_anywhere_gives_nothing),
		cmocka_unit_test(a_page_may_not_have_any_number_of_objects),
		cmocka_unit_test(an_etag_never_breaks_a_header),
		cmocka_unit_test(a_refusal_says_what_helps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
