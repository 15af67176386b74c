/* SPDX-License-Identifier: Apache-2.0 */
/* What became of the cases: for people, for harnesses of TAP, for programs that read JUnit's XML, and as JSON. */
#include "common/json/json_writer.h"
#include "deploy/weir/terminal/readable.h"
#include "deploy/weir/test/internal.h"

#include <string.h>

/* Calls for each case, and for each file that cannot be used with case NULL. */
typedef void each_case(void *context, const struct test_report *report, const struct test_result *result);

static void each(const struct test_run *run, each_case *call, void *context)
{
	for (size_t i = 0; i < run->count; i++) {
		const struct test_report *report = &run->reports[i];
		if (report->unusable[0] != '\0')
			call(context, report, NULL);
		for (size_t j = 0; report->unusable[0] == '\0' && j < report->count; j++)
			call(context, report, &report->results[j]);
	}
}

/* Appends each line of a text with something before it. */
static void put_indented(struct weir_text *text, const char *before, const char *at, size_t length)
{
	for (const char *end = at + length, *stop; at < end; at = stop + 1) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		stop = newline != NULL ? newline : end;
		if (stop == at)
			continue;
		weir_text_puts(text, before);
		weir_text_append(text, at, (size_t)(stop - at));
		weir_text_puts(text, "\n");
	}
}

/* What is wrong with a case or a file, line by line. */
static void put_reasons(struct weir_text *text, const char *before, const char *deeper,
                        const struct test_report *report, const struct test_result *result)
{
	const char *unusable = result != NULL ? result->unusable : report->unusable;
	put_indented(text, before, unusable, strlen(unusable));
	for (size_t i = 0; result != NULL && i < result->failure_count; i++) {
		const struct test_failure *failure = &result->failures[i];
		put_indented(text, before, failure->words, strlen(failure->words));
		put_indented(text, deeper, failure->why.at, failure->why.length);
	}
	if (result != NULL && result->left_out > 0)
		weir_text_printf(text, "%s… and %zu more failures\n", before, result->left_out);
}

/* ---- for people ---- */

struct words {
	struct weir_text *text;
	const struct test_report *report; /* whose heading was written last */
	bool coloured;
};

static void put_case(void *context, const struct test_report *report, const struct test_result *result)
{
	struct words *words = context;
	struct weir_text *text = words->text;
	const char *red = words->coloured ? "\033[31m" : "", *green = words->coloured ? "\033[32m" : "",
			   *plain = words->coloured ? "\033[0m" : "";
	if (words->report != report) {
		words_text(text, report->path);
		if (report->config[0] != '\0') {
			weir_text_puts(text, ", the policy of ");
			words_text(text, report->config);
		}
		weir_text_puts(text, "\n");
	}
	words->report = report;
	bool passed = result != NULL && test_result_passed(result);
	bool unusable = result == NULL || result->unusable[0] != '\0';
	weir_text_printf(text, "  %s%s%s  ", passed ? green : red,
	                 passed     ? "ok    "
	                 : unusable ? "ERROR "
	                            : "FAILED",
	                 plain);
	words_text(text, result != NULL ? result->name : "the file cannot be used");
	weir_text_puts(text, "\n");
	put_reasons(text, "          ", "            ", report, result);
}

void test_run_words(struct weir_text *text, const struct test_run *run, bool coloured)
{
	struct words words = {.text = text, .coloured = coloured};
	each(run, put_case, &words);
	weir_text_puts(text, "\n");
	words_count(text, run->passed);
	weir_text_puts(text, " passed, ");
	words_count(text, run->failed);
	weir_text_puts(text, " failed");
	if (run->unusable > 0) {
		weir_text_puts(text, ", ");
		words_count(text, run->unusable);
		weir_text_puts(text, " could not be run");
	}
	weir_text_puts(text, "\n");
}

/* ---- TAP ---- */

struct tap {
	struct weir_text *text;
	size_t number;
};

/* A '#' would begin a directive, and a backslash escapes it. */
static void put_tap_text(struct weir_text *text, const char *words)
{
	struct weir_text shown = {0};
	words_text(&shown, words);
	for (size_t i = 0; i < shown.length; i++) {
		if (shown.at[i] == '#' || shown.at[i] == '\\')
			weir_text_puts(text, "\\");
		weir_text_append(text, shown.at + i, 1);
	}
	weir_text_deinit(&shown);
}

static void put_tap(void *context, const struct test_report *report, const struct test_result *result)
{
	struct tap *tap = context;
	bool passed = result != NULL && test_result_passed(result);
	weir_text_printf(tap->text, "%sok %zu - ", passed ? "" : "not ", ++tap->number);
	put_tap_text(tap->text, report->path);
	weir_text_puts(tap->text, result != NULL ? ": " : "");
	put_tap_text(tap->text, result != NULL ? result->name : "");
	weir_text_puts(tap->text, "\n");
	put_reasons(tap->text, "# ", "#   ", report, result);
}

void test_run_tap(struct weir_text *text, const struct test_run *run)
{
	struct tap tap = {.text = text};
	weir_text_printf(text, "TAP version 13\n1..%zu\n", run->passed + run->failed + run->unusable);
	each(run, put_tap, &tap);
}

/* ---- JUnit ---- */

/* As XML has it: its own characters as entities, and control characters, which it cannot have, as U+FFFD. */
static void put_xml(struct weir_text *text, const char *at, size_t length)
{
	struct weir_text utf8 = {0};
	weir_text_utf8(&utf8, (struct weir_span){.at = at, .length = (uint32_t)length});
	for (size_t i = 0; i < utf8.length; i++) {
		char c = utf8.at[i];
		switch (c) {
		case '<': weir_text_puts(text, "&lt;"); break;
		case '>': weir_text_puts(text, "&gt;"); break;
		case '&': weir_text_puts(text, "&amp;"); break;
		case '"': weir_text_puts(text, "&quot;"); break;
		default:
			if ((unsigned char)c < ' ' && c != '\n' && c != '\t')
				weir_text_puts(text, "\xef\xbf\xbd");
			else
				weir_text_append(text, &c, 1);
		}
	}
	weir_text_deinit(&utf8);
}

static void put_attribute(struct weir_text *text, const char *name, const char *value)
{
	weir_text_printf(text, " %s=\"", name);
	put_xml(text, value, strlen(value));
	weir_text_puts(text, "\"");
}

static void put_problem(struct weir_text *text, const struct test_report *report, const struct test_result *result)
{
	bool unusable = result == NULL || result->unusable[0] != '\0';
	const char *element = unusable ? "error" : "failure";
	struct weir_text reasons = {0};
	weir_text_printf(text, ">\n      <%s", element);
	put_attribute(text, "type", unusable ? "unusable" : "expectation");
	put_attribute(text, "message",
	              result == NULL ? report->unusable
	              : unusable     ? result->unusable
	                             : result->failures[0].words);
	weir_text_puts(text, ">");
	put_reasons(&reasons, "", "  ", report, result);
	put_xml(text, reasons.at, reasons.length);
	weir_text_printf(text, "</%s>\n    </testcase>\n", element);
	weir_text_deinit(&reasons);
}

static void put_testcase(struct weir_text *text, const struct test_report *report, const struct test_result *result)
{
	weir_text_puts(text, "    <testcase");
	put_attribute(text, "name", result != NULL ? result->name : "the file can be used");
	put_attribute(text, "classname", report->path);
	weir_text_printf(text, " time=\"%.3f\"", result != NULL ? result->seconds : 0.0);
	if (result != NULL && test_result_passed(result))
		weir_text_puts(text, "/>\n");
	else
		put_problem(text, report, result);
}

static void put_testsuite(struct weir_text *text, const struct test_report *report)
{
	bool unusable = report->unusable[0] != '\0';
	size_t count = unusable ? 1 : report->count, failures = 0, errors = unusable;
	double seconds = 0;
	for (size_t i = 0; !unusable && i < report->count; i++) {
		errors += report->results[i].unusable[0] != '\0';
		failures += report->results[i].unusable[0] == '\0' && report->results[i].failure_count > 0;
		seconds += report->results[i].seconds;
	}
	weir_text_puts(text, "  <testsuite");
	put_attribute(text, "name", report->path);
	weir_text_printf(text, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\" time=\"%.3f\">\n", count,
	                 failures, errors, seconds);
	if (unusable)
		put_testcase(text, report, NULL);
	for (size_t i = 0; !unusable && i < report->count; i++)
		put_testcase(text, report, &report->results[i]);
	weir_text_puts(text, "  </testsuite>\n");
}

void test_run_junit(struct weir_text *text, const struct test_run *run)
{
	weir_text_printf(text,
	                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	                 "<testsuites name=\"weir test\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
	                 run->passed + run->failed + run->unusable, run->failed, run->unusable);
	for (size_t i = 0; i < run->count; i++)
		put_testsuite(text, &run->reports[i]);
	weir_text_puts(text, "</testsuites>\n");
}

/* ---- JSON ---- */

static void put_json_case(struct weir_json_writer *json, const struct test_result *result)
{
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "name", result->name);
	weir_json_write_bool(json, "passed", test_result_passed(result));
	weir_json_write_uint(json, "lines", result->lines);
	if (result->unusable[0] != '\0')
		weir_json_write_words(json, "error", result->unusable);
	weir_json_write_array(json, "failures");
	for (size_t i = 0; i < result->failure_count; i++) {
		weir_json_write_object(json, NULL);
		weir_json_write_words(json, "words", result->failures[i].words);
		weir_json_write_string(json, "why", weir_text_span(&result->failures[i].why));
		weir_json_write_end(json);
	}
	weir_json_write_end(json);
	weir_json_write_end(json);
}

void test_run_json(struct weir_text *text, const struct test_run *run)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "passed", run->passed);
	weir_json_write_uint(&json, "failed", run->failed);
	weir_json_write_uint(&json, "unusable", run->unusable);
	weir_json_write_array(&json, "files");
	for (size_t i = 0; i < run->count; i++) {
		const struct test_report *report = &run->reports[i];
		weir_json_write_object(&json, NULL);
		weir_json_write_words(&json, "file", report->path);
		weir_json_write_words(&json, "config", report->config);
		if (report->unusable[0] != '\0')
			weir_json_write_words(&json, "error", report->unusable);
		weir_json_write_array(&json, "cases");
		for (size_t j = 0; report->unusable[0] == '\0' && j < report->count; j++)
			put_json_case(&json, &report->results[j]);
		weir_json_write_end(&json);
		weir_json_write_end(&json);
	}
	weir_json_write_end(&json);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
