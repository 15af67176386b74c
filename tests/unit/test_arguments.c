/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: what is taken, what is refused and with which code, numbers at their bounds, and the help page. */
#include "common/config/arguments.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILE_NAME, COUNT, RATE, SHARE, TIME, SIZE, FORM, FLAG, OPTION_COUNT };

static const char *const forms[] = {"plain", "json", NULL};

static const struct weir_argument_option options[] = {
	[FILE_NAME] = {.name = "file",
                   .value = "FILE",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "a file",
                   .letter = 'f',
                   .required = true},
	[COUNT] = {.name = "count",
               .value = "N",
               .type = WEIR_ARGUMENT_NUMBER,
               .help = "a count",
               .repeatable = true,
               .least = 1,
               .most = 2000000},
	[RATE] = {.name = "rate",
              .value = "R",
              .type = WEIR_ARGUMENT_DECIMAL,
              .help = "a rate",
              .digits = 3,
              .least = 1,
              .most = 100000},
	[SHARE] = {.name = "share", .value = "SHARE", .type = WEIR_ARGUMENT_SHARE, .help = "a share"},
	[TIME] = {.name = "time", .value = "TIME", .type = WEIR_ARGUMENT_DURATION, .help = "a time", .least = 100},
	[SIZE] = {.name = "size", .value = "SIZE", .type = WEIR_ARGUMENT_SIZE, .help = "a size"},
	[FORM] = {.name = "form",
              .value = "FORM",
              .type = WEIR_ARGUMENT_CHOICE,
              .help = "a form",
              .choices = forms,
              .heading = "Forms"},
	[FLAG] = {.name = "flag", .type = WEIR_ARGUMENT_FLAG, .help = "a flag", .letter = 'x'},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_exit exits[] = {{WEIR_EXIT_DONE, "done"}, {WEIR_EXIT_DONE, NULL}};

static const struct weir_command_line line = {
	.name = "weir try",
	.summary = "try it",
	.usage = "weir try --file FILE\nweir try WORD...",
	.about = "Tries what there is, in a sentence that is far too long for one line of a terminal of eighty columns.",
	.operand = {.word = "WORD", .help = "some words", .most = 2, .hint = "two are enough"},
	.options = options,
	.examples = "weir try --file x",
	.exits = exits,
};

enum { TAKEN_MAX = 8 };

struct taken {
	int option[TAKEN_MAX];
	struct weir_argument value[TAKEN_MAX];
	size_t count;
};

static enum weir_exit take(void *context, int option, const struct weir_argument *value)
{
	struct taken *taken = context;
	assert_true(taken->count < TAKEN_MAX);
	taken->option[taken->count] = option;
	taken->value[taken->count++] = *value;
	return WEIR_EXIT_NOT_YET;
}

/* Reads a command line of words with spaces between; gives what was said on standard error. */
static enum weir_exit read_line(const char *words, struct taken *taken, char *said, size_t bytes)
{
	static char buffer[512];
	char *argv[16] = {(char *)(uintptr_t) "try"}, *rest;
	char path[] = "/tmp/test_arguments.XXXXXX";
	int argc = 1, kept = dup(STDERR_FILENO), file = mkstemp(path);
	snprintf(buffer, sizeof buffer, "%s", words);
	for (char *word = strtok_r(buffer, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	*taken = (struct taken){.count = 0};
	assert_true(kept >= 0 && file >= 0 && unlink(path) == 0);
	dup2(file, STDERR_FILENO);
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take, taken);
	dup2(kept, STDERR_FILENO);
	close(kept);
	ssize_t length = pread(file, said, bytes - 1, 0);
	close(file);
	assert_true(length >= 0);
	said[length] = '\0';
	return code;
}

static void options_and_operands_are_taken_in_their_order(void **state)
{
	(void)state;
	struct taken taken;
	char said[1024];
	assert_int_equal(read_line("-fa --file=b --file c one -x --count 2k -- --two", &taken, said, sizeof said),
	                 WEIR_EXIT_NOT_YET);
	static const int expected[] = {
		FILE_NAME, FILE_NAME, FILE_NAME, WEIR_ARGUMENT_OPERAND, FLAG, COUNT, WEIR_ARGUMENT_OPERAND};
	assert_int_equal(taken.count, 7);
	assert_memory_equal(taken.option, expected, sizeof expected);
	assert_string_equal(taken.value[0].text, "a");
	assert_string_equal(taken.value[1].text, "b");
	assert_string_equal(taken.value[2].text, "c");
	assert_null(taken.value[4].text);
	assert_int_equal(taken.value[5].number, 2000);
	assert_string_equal(taken.value[6].text, "--two");
	assert_string_equal(said, "");
}

static void values_are_numbers_in_their_units(void **state)
{
	(void)state;
	struct taken taken;
	char said[1024];
	assert_int_equal(read_line("-f - --rate 1.25 --share 50% --time 2s --size 1KiB --form json --count 2M", &taken,
	                           said, sizeof said),
	                 WEIR_EXIT_NOT_YET);
	static const uint64_t expected[] = {0, 1250, UINT64_C(1) << 31, 2000, 1024, 1, 2000000};
	assert_int_equal(taken.count, sizeof expected / sizeof *expected);
	for (size_t i = 0; i < taken.count; i++)
		assert_int_equal(taken.value[i].number, expected[i]);
}

static void what_is_wrong_is_said_in_the_same_words(void **state)
{
	(void)state;
	static const struct {
		const char *words, *said;
	} cases[] = {
		{"--fiel x", "unknown option --fiel (did you mean --file?)"},
		{"--fiel=x", "unknown option --fiel (did you mean --file?)"},
		{"--nothing", "unknown option --nothing"},
		{"-q", "unknown option -q"},
		{"--file", "--file needs a value"},
		{"-f", "--file needs a value"},
		{"--flag=yes", "--flag takes no value"},
		{"-xy", "--flag takes no value"},
		{"--flag", "missing --file FILE"},
		{"one two three", "unexpected argument \"three\"; two are enough"},
		{"--count 0", "--count must be a number, from 1 to 2M, not \"0\""},
		{"--count 2000001", "--count must be a number, from 1 to 2M, not \"2000001\""},
		{"--count 99999999999999999999", "--count must be a number, from 1 to 2M, not \"99999999999999999999\""},
		{"--rate 0.0001", "--rate must be a number, from 0.001 to 100, with at most 3 decimal places, not \"0.0001\""},
		{"--share 101%", "--share must be a share such as 0.05 or 5%, not \"101%\""},
		{"--time 99ms", "--time must be a duration such as 30s or 10m, at least 100ms, not \"99ms\""},
		{"--size big", "--size must be a size such as 512MiB or 2GiB, not \"big\""},
		{"--form jsn", "--form must be one of plain, json, not \"jsn\" (did you mean \"json\"?)"},
		{"--form xml", "--form must be one of plain, json, not \"xml\""},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct taken taken;
		char said[1024], expected[1024];
		snprintf(expected, sizeof expected, "weir try: %s\nTry \"weir try --help\".\n", cases[i].said);
		assert_int_equal(read_line(cases[i].words, &taken, said, sizeof said), WEIR_EXIT_USAGE);
		assert_string_equal(said, expected);
	}
}

static void the_help_page_comes_from_the_table(void **state)
{
	(void)state;
	char *page = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&page, &length);
	assert_non_null(out);
	weir_arguments_help(&line, out);
	fclose(out);
	assert_string_equal(page, "Usage: weir try --file FILE\n"
	                          "       weir try WORD...\n"
	                          "\n"
	                          "Tries what there is, in a sentence that is far too long for one line of a\n"
	                          "terminal of eighty columns.\n"
	                          "\n"
	                          "Arguments:\n"
	                          "  WORD...          some words\n"
	                          "\n"
	                          "Options:\n"
	                          "  -f, --file FILE  a file\n"
	                          "  --count N        a count; may be repeated\n"
	                          "  --rate R         a rate\n"
	                          "  --share SHARE    a share\n"
	                          "  --time TIME      a time\n"
	                          "  --size SIZE      a size\n"
	                          "\n"
	                          "Forms:\n"
	                          "  --form FORM      a form\n"
	                          "  -x, --flag       a flag\n"
	                          "  -h, --help       print this page\n"
	                          "\n"
	                          "Examples:\n"
	                          "  weir try --file x\n"
	                          "\n"
	                          "Exit codes:\n"
	                          "  0  done\n");
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_and_operands_are_taken_in_their_order),
		cmocka_unit_test(values_are_numbers_in_their_units),
		cmocka_unit_test(what_is_wrong_is_said_in_the_same_words),
		cmocka_unit_test(the_help_page_comes_from_the_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
