/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `weir generate`, and the page that teaches it. */
#include "deploy/weir/generate/generate_options.h"

#include "collector/record/time_text.h"
#include "common/config/arguments.h"
#include "deploy/weir/generate/lines.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define START_DEFAULT_MS INT64_C(1735689600000) /* 2025-01-01T00:00:00Z */
#define LATE_BY_MAX_MS (INT64_C(366) * 86400000)

enum { LINES_DEFAULT = 1000000, USERS_DEFAULT = 200000, EXPONENT_DEFAULT = 1100000, LATE_BY_DEFAULT_MS = 5000 };
enum { RATE_DEFAULT_MILLI = 1000 * 1000 };
#define RATE_MAX_MILLI (UINT64_C(100000000) * 1000)
#define POST_DEFAULT (GENERATE_WHOLE * 8 / 100)

enum option {
	LINES,
	BYTES,
	OUTPUT,
	QUIET,
	FORMAT,
	START,
	RATE,
	POST,
	METHODS,
	USERS,
	ZIPF,
	ABUSERS,
	BURSTS,
	IPV6,
	SEED,
	OUT_OF_ORDER,
	LATE_BY,
	DUPLICATES,
	MALFORMED,
	FOLLOW_RATE,
	FOR,
	OPTION_COUNT,
};

static const struct weir_argument_option options_table[] = {
	[LINES] = {.name = "lines",
               .value = "N",
               .type = WEIR_ARGUMENT_NUMBER,
               .help = "lines to write (default 1M); a file's header line is not counted",
               .heading = "Output"},
	[BYTES] = {.name = "bytes",
               .value = "SIZE",
               .type = WEIR_ARGUMENT_SIZE,
               .help = "write whole lines up to this size instead: 64MiB"},
	[OUTPUT] = {.name = "output",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "write to a file (default: standard output)"},
	[QUIET] = {.name = "quiet", .type = WEIR_ARGUMENT_FLAG, .help = "show no progress on the terminal"},
	[FORMAT] = {.name = "format",
                .value = "FORMAT",
                .type = WEIR_ARGUMENT_CHOICE,
                .help = "combined (default), common, json, logfmt, delimited, nginx_error, haproxy, sshd",
                .choices = generate_format_names,
                .heading = "Lines"},
	[START] = {.name = "start",
               .value = "TIME",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "time of the first line: 2025-01-01T00:00:00Z (default), Unix seconds, or \"now\"",
               .expected = "a time such as 2025-01-01T00:00:00Z, Unix seconds, or \"now\""},
	[RATE] = {.name = "rate",
              .value = "N",
              .type = WEIR_ARGUMENT_DECIMAL,
              .help = "lines per second of the log's time (default 1000)",
              .digits = 3,
              .least = 1,
              .most = RATE_MAX_MILLI},
	[POST] = {.name = "post",
              .value = "SHARE",
              .type = WEIR_ARGUMENT_SHARE,
              .help = "share of POST requests (default 0.08); the others are GET"},
	[METHODS] = {.name = "methods",
                 .value = "LIST",
                 .type = WEIR_ARGUMENT_TEXT,
                 .help = "methods and their weights: GET=90,POST=8,HEAD=2",
                 .expected = "a list such as GET=90,POST=8,HEAD=2 of GET, POST, HEAD, PUT, PATCH, DELETE, OPTIONS"},
	[USERS] = {.name = "users",
               .value = "N",
               .type = WEIR_ARGUMENT_NUMBER,
               .help = "users (default 200k)",
               .least = 1,
               .most = GENERATE_ZIPF_MAX,
               .heading = "Users"},
	[ZIPF] = {.name = "zipf",
              .value = "S",
              .type = WEIR_ARGUMENT_DECIMAL,
              .help = "the user of rank r makes requests in proportion to r^-S (default 1.1; 0: all the same)",
              .digits = 6,
              .most = GENERATE_EXPONENT_MAX},
	[ABUSERS] = {.name = "abusers",
                 .value = "N",
                 .type = WEIR_ARGUMENT_NUMBER,
                 .help = "additional users who exceed limits; they make a tenth of all lines (default 0)",
                 .most = GENERATE_ZIPF_MAX},
	[BURSTS] = {.name = "bursts",
                .value = "SHARE",
                .type = WEIR_ARGUMENT_SHARE,
                .help = "share of the lines that come in bursts of one user (default 0)"},
	[IPV6] = {.name = "ipv6",
              .value = "SHARE",
              .type = WEIR_ARGUMENT_SHARE,
              .help = "share of the users with IPv6 addresses (default 0)"},
	[SEED] = {.name = "seed",
              .value = "N",
              .type = WEIR_ARGUMENT_NUMBER,
              .help = "another seed gives another log of the same kind (default 1)"},
	[OUT_OF_ORDER] = {.name = "out-of-order",
                      .value = "SHARE",
                      .type = WEIR_ARGUMENT_SHARE,
                      .help = "share of lines whose time is out of order: 0.01 or 1% (default 0)",
                      .heading = "Faults"},
	[LATE_BY] = {.name = "late-by",
                 .value = "DURATION",
                 .type = WEIR_ARGUMENT_DURATION,
                 .help = "how far out of order, at most (default 5s)",
                 .least = 1,
                 .most = LATE_BY_MAX_MS},
	[DUPLICATES] = {.name = "duplicates",
                    .value = "SHARE",
                    .type = WEIR_ARGUMENT_SHARE,
                    .help = "share of lines that are written twice (default 0)"},
	[MALFORMED] = {.name = "malformed",
                   .value = "SHARE",
                   .type = WEIR_ARGUMENT_SHARE,
                   .help = "share of lines that are cut, have an impossible time, or are something else (default 0)"},
	[FOLLOW_RATE] =
		{.name = "follow-rate",
         .value = "N",
         .type = WEIR_ARGUMENT_DECIMAL,
         .help = "append N lines per second of real time to FILE, with the clock's times unless --start is given. "
                 "It ends with --lines, --bytes, --for or SIGTERM. SIGHUP reopens FILE, as after a rotation",
         .digits = 3,
         .least = 1,
         .most = RATE_MAX_MILLI,
         .heading = "Live, to test a follower of a log"},
	[FOR] = {.name = "for",
             .value = "DURATION",
             .type = WEIR_ARGUMENT_DURATION,
             .help = "with --follow-rate: how long"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "the output could not be written"},
	{WEIR_EXIT_USAGE, "the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

const struct weir_command_line generate_line = {
	.name = "weir generate",
	.summary = "write a synthetic log",
	.usage = "weir generate [OPTION...] > FILE",
	.about = "Writes a synthetic log of an imaginary site, where a few users make most of the requests.\n"
			 "\n"
			 "The same options give the same bytes, on every machine.",
	.operand = {.hint = "write to a file with --output FILE"},
	.options = options_table,
	.examples = "weir generate --lines 5M > access.log\n"
				"weir generate --format json --abusers 5 --bytes 10MiB --output api.log\n"
				"weir generate --lines 100k --out-of-order 5% --malformed 1% |\n"
				"  weir run --once --format combined --key ip --limit 10/1m -\n"
				"weir generate --follow-rate 500 --for 1h --output /tmp/access.log",
	.exits = exits,
};

/* Which options were given that others depend on. */
struct given {
	struct generate_options *options;
	bool lines, bytes, start, rate, duration;
};

static bool parse_start(const char *text, int64_t *start_ms)
{
	struct time_zone *zone;
	struct time_reader reader;
	if (time_zone_new("UTC", &zone, NULL) != WEIR_OK)
		return false;
	time_reader_init(&reader, zone);
	reader.unit_given = true;
	bool good = time_read(&reader, weir_span_of(text), start_ms) == FORMAT_OK;
	time_reader_deinit(&reader);
	return good;
}

/* "GET=90,POST=10" */
static bool parse_methods(const char *text, uint64_t *weights)
{
	uint64_t total = 0;
	memset(weights, 0, GENERATE_METHOD_COUNT * sizeof *weights);
	while (*text != '\0') {
		size_t name = strcspn(text, "="), all = strcspn(text, ",");
		char number[16];
		int method = 0;
		while (generate_method_names[method] != NULL && (strlen(generate_method_names[method]) != name ||
		                                                 memcmp(text, generate_method_names[method], name) != 0))
			method++;
		if (generate_method_names[method] == NULL || all < name + 2 || all - name - 1 >= sizeof number)
			return false;
		snprintf(number, sizeof number, "%.*s", (int)(all - name - 1), text + name + 1);
		if (!weir_arguments_count(number, &weights[method]) || weights[method] > GENERATE_WHOLE)
			return false;
		total += weights[method];
		text += all + (text[all] == ',');
	}
	return total > 0;
}

/* Whether it is what it must be, for what the reader does not check. */
static bool take_text(struct generate_options *options, enum option option, const char *text)
{
	struct generate_traffic_options *traffic = &options->traffic;
	if (option == METHODS)
		return parse_methods(text, traffic->methods);
	options->live_times = strcmp(text, "now") == 0;
	return options->live_times || parse_start(text, &traffic->start_ms);
}

static void take_number(struct generate_options *options, enum option option, uint64_t number)
{
	struct generate_traffic_options *traffic = &options->traffic;
	switch (option) {
	case LINES: options->lines = number; break;
	case BYTES: options->bytes = number; break;
	case FORMAT: options->format = (int)number; break;
	case RATE: traffic->rate_milli = number; break;
	case POST:
		memset(traffic->methods, 0, sizeof traffic->methods);
		traffic->methods[GENERATE_POST] = number;
		traffic->methods[GENERATE_GET] = GENERATE_WHOLE - number;
		break;
	case USERS: traffic->users = (uint32_t)number; break;
	case ZIPF: traffic->exponent = (uint32_t)number; break;
	case ABUSERS: traffic->abusers = (uint32_t)number; break;
	case BURSTS: traffic->bursts = number; break;
	case IPV6: options->ipv6 = number; break;
	case SEED: traffic->seed = number; break;
	case OUT_OF_ORDER: traffic->out_of_order = number; break;
	case LATE_BY: traffic->late_by_ms = (int64_t)number; break;
	case DUPLICATES: traffic->duplicates = number; break;
	case MALFORMED: traffic->malformed = number; break;
	case FOLLOW_RATE: options->live_milli = number; break;
	case FOR: options->live_for_ms = (int64_t)number; break;
	default: break;
	}
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct given *given = context;
	struct generate_options *options = given->options;
	given->lines = given->lines || option == LINES;
	given->bytes = given->bytes || option == BYTES;
	given->start = given->start || option == START;
	given->rate = given->rate || option == RATE;
	given->duration = given->duration || option == FOR;
	switch (option) {
	case OUTPUT: options->path = strcmp(value->text, "-") != 0 ? value->text : NULL; break;
	case QUIET: options->quiet = true; break;
	case START:
	case METHODS:
		if (!take_text(options, (enum option)option, value->text))
			return weir_arguments_refuse_value(&generate_line, option, value->text);
		break;
	default: take_number(options, (enum option)option, value->number); break;
	}
	return WEIR_EXIT_NOT_YET;
}

/* What follows from options left out. */
static enum weir_exit complete(struct generate_options *options, const struct given *given)
{
	bool live = options->live_milli > 0;
	if (given->duration && !live)
		return weir_arguments_refuse(&generate_line, "--for needs --follow-rate");
	if (!given->lines)
		options->lines = given->bytes || live ? UINT64_MAX : LINES_DEFAULT;
	if (live && !given->rate)
		options->traffic.rate_milli = options->live_milli;
	if (live && !given->start)
		options->live_times = true;
	if (!live && options->live_times) {
		options->live_times = false;
		options->traffic.start_ms = (int64_t)time(NULL) * 1000;
	}
	return WEIR_EXIT_NOT_YET;
}

enum weir_exit generate_options_parse(int argc, char **argv, struct generate_options *options)
{
	*options = (struct generate_options){.bytes = UINT64_MAX, .live_for_ms = -1};
	options->traffic = (struct generate_traffic_options){
		.seed = 1,
		.users = USERS_DEFAULT,
		.exponent = EXPONENT_DEFAULT,
		.methods = {[GENERATE_GET] = GENERATE_WHOLE - POST_DEFAULT, [GENERATE_POST] = POST_DEFAULT},
		.late_by_ms = LATE_BY_DEFAULT_MS,
		.start_ms = START_DEFAULT_MS,
		.rate_milli = RATE_DEFAULT_MILLI,
	};
	struct given given = {.options = options};
	enum weir_exit code = weir_arguments_read(&generate_line, argc, argv, take_option, &given);
	return code == WEIR_EXIT_NOT_YET ? complete(options, &given) : code;
}
