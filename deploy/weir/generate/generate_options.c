/* The command line of `weir generate`, and the page that teaches it. */
#include "deploy/weir/generate/generate_options.h"

#include "collector/record/time_text.h"
#include "common/base/suggest.h"
#include "common/config/arguments.h"
#include "common/json/json.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"
#include "deploy/weir/generate/lines.h"

#include <stdio.h>
#include <time.h>

#define START_DEFAULT_MS INT64_C(1735689600000) /* 2025-01-01T00:00:00Z */
#define LATE_BY_MAX_MS (INT64_C(366) * 86400000)

enum { LINES_DEFAULT = 1000000, USERS_DEFAULT = 200000, EXPONENT_DEFAULT = 1100000, LATE_BY_DEFAULT_MS = 5000 };
enum { RATE_DEFAULT_MILLI = 1000 * 1000 };
#define RATE_MAX_MILLI (UINT64_C(100000000) * 1000)
#define POST_DEFAULT (GENERATE_WHOLE * 8 / 100)

static const char help[] =
	"usage: weir generate [OPTION...] > FILE\n"
	"\n"
	"Writes a synthetic log of an imaginary site: a few users make most of the requests.\n"
	"The same options give the same bytes, on every machine.\n"
	"\n"
	"How much, and where to\n"
	"  --lines N             lines to write (1M); a file's header line is not counted\n"
	"  --bytes SIZE          whole lines up to this size (\"64MiB\") instead\n"
	"  --output FILE         write to a file, not to standard output\n"
	"  --quiet               no progress on the terminal\n"
	"\n"
	"What a line looks like\n"
	"  --format FORMAT       combined (default), common, json, logfmt, delimited, nginx_error, haproxy, sshd\n"
	"  --start TIME          of the first line: 2025-01-01T00:00:00Z (default), Unix seconds, or \"now\"\n"
	"  --rate N              lines in a second of the log's time (1000)\n"
	"  --post SHARE          share of POST requests (0.08); the others are GET\n"
	"  --methods LIST        \"GET=90,POST=8,HEAD=2\": methods and their weights\n"
	"\n"
	"Who comes\n"
	"  --users N             users (200k)\n"
	"  --zipf S              user of rank r comes in proportion to r^-S (1.1; 0: all alike)\n"
	"  --abusers N           users besides, who go over limits: a tenth of all lines is theirs (0)\n"
	"  --bursts SHARE        share of the lines that come in bursts of one user (0)\n"
	"  --ipv6 SHARE          share of the users with IPv6 addresses (0)\n"
	"  --seed N              another seed gives another log of the same kind (1)\n"
	"\n"
	"What goes wrong (SHARE is 0.01 or 1%)\n"
	"  --out-of-order SHARE  lines with a time before their turn (0)\n"
	"  --late-by DURATION    how far before it, at most (5s)\n"
	"  --duplicates SHARE    lines that are written twice (0)\n"
	"  --malformed SHARE     lines that are cut, have an impossible time, or are something else (0)\n"
	"\n"
	"Live, for trying what follows a log\n"
	"  --follow-rate N       N lines a second of real time, appended to FILE, with the clock's times unless\n"
	"                        --start is given; ends with --lines, --bytes, --for, or SIGTERM; SIGHUP opens\n"
	"                        FILE again, as after a rotation\n"
	"  --for DURATION        how long\n"
	"\n"
	"Examples\n"
	"  weir generate --lines 5M > access.log\n"
	"  weir generate --format json --users 1000 --abusers 5 --bytes 10MiB --output api.log\n"
	"  weir generate --lines 100k --out-of-order 5% --late-by 2m --malformed 1% |\n"
	"    weir run --once --format combined --key ip --limit 10/1m -\n"
	"  weir generate --follow-rate 500 --for 1h --output /tmp/access.log\n";

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
};

static const struct weir_argument_option table[] = {
	{"lines", true},        {"bytes", true},   {"output", true},     {"quiet", false},    {"format", true},
	{"start", true},        {"rate", true},    {"post", true},       {"methods", true},   {"users", true},
	{"zipf", true},         {"abusers", true}, {"bursts", true},     {"ipv6", true},      {"seed", true},
	{"out-of-order", true}, {"late-by", true}, {"duplicates", true}, {"malformed", true}, {"follow-rate", true},
	{"for", true},          {NULL, false},
};

/* Which options were given that others depend on. */
struct given {
	bool lines, bytes, start, rate, duration;
};

static bool parse_start(const char *text, int64_t *start_ms)
{
	struct time_zone *zone;
	struct time_reader reader;
	if (time_zone_new("UTC", &zone, NULL) != WEIR_OK)
		return false;
	time_reader_init(&reader, zone);
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

static int find_format(const struct weir_arguments *arguments, const char *value)
{
	char all[160];
	for (int i = 0; generate_format_names[i] != NULL; i++)
		if (strcmp(value, generate_format_names[i]) == 0)
			return i;
	const char *near = weir_nearest_name(value, generate_format_names);
	weir_list_names(generate_format_names, "", all, sizeof all);
	return near != NULL ? weir_arguments_refuse(arguments, "there is no format \"%s\"; \"%s\" is meant?", value, near)
	                    : weir_arguments_refuse(arguments, "there is no format \"%s\"; there are %s", value, all);
}

static bool number_between(const char *value, uint64_t least, uint64_t most, uint64_t *number)
{
	return weir_arguments_count(value, number) && *number >= least && *number <= most;
}

static bool decimal_between(const char *value, unsigned digits, uint64_t least, uint64_t most, uint64_t *number)
{
	return weir_arguments_decimal(value, digits, number) && *number >= least && *number <= most;
}

/* What a value must be where take() refuses it. */
static const char *const expected[] = {
	[LINES] = "a number of lines such as 500k or 5M",
	[BYTES] = "a size such as 64MiB",
	[START] = "a time such as 2025-01-01T00:00:00Z, Unix seconds, or \"now\"",
	[RATE] = "a number of lines a second, 0.001 to 100M",
	[POST] = "a share such as 0.08 or 8%",
	[METHODS] = "a list such as GET=90,POST=8,HEAD=2, of GET, POST, HEAD, PUT, PATCH, DELETE, OPTIONS",
	[USERS] = "a number of users from 1 to 100M",
	[ZIPF] = "a number from 0 to 10 with at most six digits behind the point, such as 1.1",
	[ABUSERS] = "a number of users up to 100M",
	[BURSTS] = "a share such as 0.25 or 25%",
	[IPV6] = "a share such as 0.25 or 25%",
	[SEED] = "a whole number",
	[OUT_OF_ORDER] = "a share such as 0.05 or 5%",
	[LATE_BY] = "a duration from 1ms to 366d such as 30s",
	[DUPLICATES] = "a share such as 0.01 or 1%",
	[MALFORMED] = "a share such as 0.01 or 1%",
	[FOLLOW_RATE] = "a number of lines a second, 0.001 to 100M",
	[FOR] = "a duration such as 10m",
};

static bool take(struct generate_options *options, struct given *given, enum option option, const char *value)
{
	struct generate_traffic_options *traffic = &options->traffic;
	int64_t bytes;
	uint64_t number;
	switch (option) {
	case LINES: return given->lines = weir_arguments_count(value, &options->lines);
	case BYTES:
		given->bytes = weir_parse_size(value, &bytes);
		options->bytes = (uint64_t)bytes;
		return given->bytes;
	case START:
		given->start = true;
		options->live_times = strcmp(value, "now") == 0;
		return options->live_times || parse_start(value, &traffic->start_ms);
	case RATE: return given->rate = decimal_between(value, 3, 1, RATE_MAX_MILLI, &traffic->rate_milli);
	case POST:
		memset(traffic->methods, 0, sizeof traffic->methods);
		if (!weir_arguments_share(value, &traffic->methods[GENERATE_POST]))
			return false;
		traffic->methods[GENERATE_GET] = GENERATE_WHOLE - traffic->methods[GENERATE_POST];
		return true;
	case METHODS: return parse_methods(value, traffic->methods);
	case USERS:
		if (!number_between(value, 1, GENERATE_ZIPF_MAX, &number))
			return false;
		traffic->users = (uint32_t)number;
		return true;
	case ZIPF:
		if (!decimal_between(value, 6, 0, GENERATE_EXPONENT_MAX, &number))
			return false;
		traffic->exponent = (uint32_t)number;
		return true;
	case ABUSERS:
		if (!number_between(value, 0, GENERATE_ZIPF_MAX, &number))
			return false;
		traffic->abusers = (uint32_t)number;
		return true;
	case BURSTS: return weir_arguments_share(value, &traffic->bursts);
	case IPV6: return weir_arguments_share(value, &options->ipv6);
	case SEED: return weir_arguments_count(value, &traffic->seed);
	case OUT_OF_ORDER: return weir_arguments_share(value, &traffic->out_of_order);
	case LATE_BY:
		return weir_parse_duration(value, &traffic->late_by_ms) && traffic->late_by_ms >= 1 &&
		       traffic->late_by_ms <= LATE_BY_MAX_MS;
	case DUPLICATES: return weir_arguments_share(value, &traffic->duplicates);
	case MALFORMED: return weir_arguments_share(value, &traffic->malformed);
	case FOLLOW_RATE: return decimal_between(value, 3, 1, RATE_MAX_MILLI, &options->live_milli);
	case FOR: return given->duration = weir_parse_duration(value, &options->live_for_ms);
	default: return false;
	}
}

/* What follows from options left out. */
static enum weir_exit complete(struct generate_options *options, const struct given *given,
                               const struct weir_arguments *arguments)
{
	bool live = options->live_milli > 0;
	if (given->duration && !live)
		return weir_arguments_refuse(arguments, "--for is of use with --follow-rate alone");
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
	struct weir_arguments arguments = {.command = "weir generate", .options = table, .argc = argc, .argv = argv};
	struct given given = {0};
	const char *value;
	for (;;) {
		int option = weir_arguments_next(&arguments, &value);
		switch (option) {
		case WEIR_ARGUMENTS_END:
			return complete(options, &given, &arguments) == WEIR_EXIT_NOT_YET ? WEIR_EXIT_NOT_YET : WEIR_EXIT_USAGE;
		case WEIR_ARGUMENTS_HELP: fputs(help, stdout); return WEIR_EXIT_DONE;
		case WEIR_ARGUMENTS_BAD: return WEIR_EXIT_USAGE;
		case WEIR_ARGUMENTS_WORD:
			weir_arguments_refuse(&arguments, "\"%s\" is no option; a file is written by --output FILE", value);
			return WEIR_EXIT_USAGE;
		case OUTPUT: options->path = strcmp(value, "-") != 0 ? value : NULL; break;
		case QUIET: options->quiet = true; break;
		case FORMAT:
			options->format = find_format(&arguments, value);
			if (options->format < 0)
				return WEIR_EXIT_USAGE;
			break;
		default:
			if (!take(options, &given, (enum option)option, value)) {
				weir_arguments_refuse(&arguments, "--%s must be %s, not \"%s\"", table[option].name, expected[option],
				                      value);
				return WEIR_EXIT_USAGE;
			}
		}
	}
}
