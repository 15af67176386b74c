/* SPDX-License-Identifier: Apache-2.0 */
/* Four commands that share most of their options, and what each of them takes. */
#include "deploy/weir/overrides/override_options.h"

#include "collector/record/time_text.h"
#include "common/config/config.h"
#include "common/json/json.h"

#include <string.h>

/* Common to all; then what has a time; then what multiplies. So a place means the same in each command's table. */
enum option { ZONE, KEY_HEX, CONFIG, STATE, BY, REASON, JSON, FOR, UNTIL, RATE, PREFIX, OPTION_COUNT, ALL = FOR };

enum { RATE_LEAST = 1, RATE_MOST = 100000 };

#define COMMON_OPTIONS                                                                                          \
	[ZONE] = {.name = "zone",                                                                                   \
	          .value = "NAME",                                                                                  \
	          .type = WEIR_ARGUMENT_TEXT,                                                                       \
	          .help = "the zone (default: the only one that the values fit)"},                                  \
	[KEY_HEX] = {.name = "key-hex",                                                                             \
	             .value = "HEX",                                                                                \
	             .type = WEIR_ARGUMENT_TEXT,                                                                    \
	             .help = "instead of the values: the joined key, if it is not UTF-8 (key_hex of weir decode)"}, \
	[CONFIG] = {.name = "config",                                                                               \
	            .value = "FILE",                                                                                \
	            .type = WEIR_ARGUMENT_TEXT,                                                                     \
	            .help = "the configuration of a cluster, or of one machine whose state is in the usual place"}, \
	[STATE] = {.name = "state",                                                                                 \
	           .value = "DIR",                                                                                  \
	           .type = WEIR_ARGUMENT_TEXT,                                                                      \
	           .help = "the state directory of a `weir run`; if it runs, the command takes effect at once"},    \
	[BY] = {.name = "by",                                                                                       \
	        .value = "NAME",                                                                                    \
	        .type = WEIR_ARGUMENT_TEXT,                                                                         \
	        .help = "who orders it (default: your login name)",                                                 \
	        .expected = "at most 64 bytes"},                                                                    \
	[REASON] = {.name = "reason",                                                                               \
	            .value = "TEXT",                                                                                \
	            .type = WEIR_ARGUMENT_TEXT,                                                                     \
	            .help = "why; it is published and stored",                                                      \
	            .expected = "at most 256 bytes"},                                                               \
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print what was done as a JSON line"}

#define TIME_OPTIONS                                                                                     \
	[FOR] = {.name = "for",                                                                              \
	         .value = "TIME",                                                                            \
	         .type = WEIR_ARGUMENT_DURATION,                                                             \
	         .help = "end this long from now: 30s, 10m, 2h, 7d"},                                        \
	[UNTIL] = {.name = "until",                                                                          \
	           .value = "TIME",                                                                          \
	           .type = WEIR_ARGUMENT_TEXT,                                                               \
	           .help = "end then: 2026-11-22T10:00:00Z (UTC if no time zone is given), or Unix seconds", \
	           .expected = "a time such as 2026-11-22T10:00:00Z, or Unix seconds"}

static const struct weir_argument_option lift_options[] = {
	COMMON_OPTIONS,
	[ALL] = {.name = "all",
             .type = WEIR_ARGUMENT_FLAG,
             .help = "every key that is blocked now, or with --zone every one of that zone"},
	[ALL + 1] = {.name = NULL},
};

static const struct weir_argument_option timed_options[] = {COMMON_OPTIONS, TIME_OPTIONS, [RATE] = {.name = NULL}};

static const struct weir_argument_option override_options[] = {
	COMMON_OPTIONS,
	TIME_OPTIONS,
	[RATE] = {.name = "rate",
              .value = "R",
              .type = WEIR_ARGUMENT_DECIMAL,
              .help = "0.5 halves the rates, 10 is ten times as much: 0.001 to 100",
              .required = true,
              .digits = OVERRIDE_RATE_DIGITS,
              .least = RATE_LEAST,
              .most = RATE_MOST},
	[PREFIX] = {.name = "prefix",
                .type = WEIR_ARGUMENT_FLAG,
                .help = "every key that begins with these values, in all partitions; the last value may be only its "
                        "beginning. The longest prefix wins, and an exact key beats it"},
	[OPTION_COUNT] = {.name = NULL},
};

#define OPERAND(networks)                                                                                                     \
	{                                                                                                                         \
		.word = "VALUE",                                                                                                      \
		.help =                                                                                                               \
			"the values of the zone's key, in its order, as the log has them; an address is grouped and written as the zone " \
			"does it. In its place only the name of a host is taken, as logs have it whose server looks names up. " networks  \
			"After --, a value may begin with a dash",                                                                        \
		.most = WEIR_ZONE_KEY_MAX, .hint = "a key has at most four values"                                                    \
	}

/* Of an operand. */
#define MEMBERS "A network (10.0.0.0/8) stands for its members. "
#define NO_NETWORKS \
	"For all keys that begin alike, such as the addresses of a network, give their beginning with --prefix. "

#define NETWORKS                                                                                                    \
	"A network is for its members, in every zone that counts by one address, or in that of --zone. Of a key's own " \
	"command and those of the networks that it is in, the narrowest counts.\n"

#define DONE_WHEN                                                                                                            \
	"The command is done once it is on disk in the log. It prints the partition and the offset. Where no limiter of a "      \
	"cluster is running, or limiters are far behind, it says that it takes effect later. A partition takes 10,000 keys and " \
	"networks, and 4 MiB of them: what is beyond that its limiter refuses, as its log says. Lift some then."

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "a server failed: run it again (running it twice does no harm)"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

const struct weir_command_line override_lines[] = {
	[OVERRIDE_BLOCK] =
		{
			.name = "weir block",
			.summary = "block a key or a network",
			.usage = "weir block VALUE... [--config FILE] [OPTION...]\n"
					 "weir block VALUE... --state DIR [OPTION...]",
			.about = "Blocks a key until the given time, or until it is lifted if none is given.\n"
					 "\n"
					 "A decision is published, and every request of the key is blocked. Meanwhile, its limits publish "
					 "nothing. An allow of the key ends.\n"
					 "\n" NETWORKS "\n" DONE_WHEN,
			.operand = OPERAND(MEMBERS),
			.options = timed_options,
			.examples = "weir block 203.0.113.9 --config weir.json --for 1h --reason scraping\n"
						"weir block 10.0.0.0/8 --config weir.json --reason \"not from here\"\n"
						"weir block --zone login 2001:db8::7 ann --state /var/lib/weir",
			.exits = exits,
		},
	[OVERRIDE_LIFT] =
		{
			.name = "weir lift",
			.summary = "end the block of a key and reset its count",
			.usage = "weir lift VALUE... [--config FILE] [OPTION...]\n"
					 "weir lift VALUE... --state DIR [OPTION...]\n"
					 "weir lift --all [--zone NAME] [OPTION...]",
			.about =
				"Ends the block of a key, whether a limit or an operator set it, and empties its bucket.\n"
				"\n"
				"Without --zone, it does so in every zone whose key takes these values. The key starts from zero. A lift is published in any case. An allow and an override of the key "
				"stay in force. A network's lift ends the network's own block, and no block of a member; nor does a member's lift end that of a network.\n"
				"\n" DONE_WHEN,
			.operand = OPERAND(MEMBERS),
			.options = lift_options,
			.examples = "weir lift 203.0.113.9 --config weir.json --reason \"our own monitoring\"\n"
						"weir lift --all --zone login --reason \"the limit was wrong\"",
			.exits = exits,
		},
	[OVERRIDE_ALLOW] =
		{
			.name = "weir allow",
			.summary = "let a key pass, whatever its limits say",
			.usage = "weir allow VALUE... [--config FILE] [OPTION...]\n"
					 "weir allow VALUE... --state DIR [OPTION...]",
			.about = "Lets a key pass whatever its limits say, until the given time, or forever if none is given.\n"
					 "\n"
					 "Meanwhile, nothing is recorded. A block that is in force is lifted, and the lift is published. "
					 "--for 0s ends an allow; a block ends it too.\n"
					 "\n" NETWORKS
					 "Blocks of members that are in force are not lifted, and a gateway that has one keeps it.\n"
					 "\n" DONE_WHEN,
			.operand = OPERAND(MEMBERS),
			.options = timed_options,
			.examples = "weir allow 198.51.100.4 --config weir.json --for 2h --reason \"load test\"\n"
						"weir allow 198.51.100.4 --config weir.json --for 0s",
			.exits = exits,
		},
	[OVERRIDE_RATE] =
		{
			.name = "weir override",
			.summary = "multiply the rates of a key, or of a prefix of keys",
			.usage = "weir override VALUE... --rate R [--config FILE] [OPTION...]\n"
					 "weir override VALUE... --rate R --state DIR [OPTION...]",
			.about =
				"Multiplies the rates of a key's limits until the given time, or until --rate 1 if none is given.\n"
				"\n"
				"Bursts and queue lengths are multiplied too, and an interval is divided. A limit that changes "
				"starts empty, as with a change of policy. A block that is in force stays: weir lift ends it.\n"
				"\n" DONE_WHEN,
			.operand = OPERAND(NO_NETWORKS),
			.options = override_options,
			.examples = "weir override 198.51.100.4 --rate 10 --config weir.json --for 2d\n"
						"weir override --prefix 10.1. --rate 0.5 --config weir.json\n"
						"weir override --prefix 10.1. --rate 1 --config weir.json",
			.exits = exits,
		},
};

static bool parse_time(const char *text, int64_t *time_ms)
{
	struct time_reader reader;
	struct time_zone *zone;
	if (time_zone_new("UTC", &zone, NULL) != WEIR_OK)
		return false;
	time_reader_init(&reader, zone);
	reader.unit_given = true;
	enum format_reason reason = time_read(&reader, weir_span_of(text), time_ms);
	time_reader_deinit(&reader);
	return reason == FORMAT_OK;
}

/* A text of at most so many bytes. */
static enum weir_exit take_text(const struct override_options *options, int option, const char *text, size_t most,
                                const char **place)
{
	if (strlen(text) > most)
		return weir_arguments_refuse_value(options->line, option, text);
	*place = text;
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct override_options *options = context;
	if (option == ALL && options->kind == OVERRIDE_LIFT) {
		options->all = true;
		return WEIR_EXIT_NOT_YET;
	}
	switch (option) {
	case ZONE: options->zone = value->text; break;
	case KEY_HEX: options->key_hex = value->text; break;
	case CONFIG: options->config_path = value->text; break;
	case STATE: options->state_path = value->text; break;
	case PREFIX: options->prefix = true; break;
	case JSON: options->json = true; break;
	case FOR: options->for_ms = (int64_t)value->number; break;
	case RATE: options->thousandths = (uint32_t)value->number; break;
	case BY: return take_text(options, BY, value->text, OVERRIDE_BY_MAX_BYTES, &options->by);
	case REASON: return take_text(options, REASON, value->text, OVERRIDE_REASON_MAX_BYTES, &options->reason);
	case UNTIL:
		if (!parse_time(value->text, &options->until_ms))
			return weir_arguments_refuse_value(options->line, UNTIL, value->text);
		break;
	default:
		if (value->text[0] == '\0')
			return weir_arguments_refuse(options->line, OVERRIDE_EMPTY_VALUE OVERRIDE_EMPTY_HINT);
		options->values[options->value_count++] = value->text;
		break;
	}
	return WEIR_EXIT_NOT_YET;
}

enum weir_exit override_options_parse(enum override_kind kind, int argc, char **argv, struct override_options *options)
{
	const struct weir_command_line *line = &override_lines[kind];
	*options =
		(struct override_options){.line = line, .kind = kind, .for_ms = -1, .until_ms = OVERRIDE_NO_END, .reason = ""};
	enum weir_exit code = weir_arguments_read(line, argc, argv, take_option, options);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (options->for_ms >= 0 && options->until_ms < OVERRIDE_NO_END)
		return weir_arguments_refuse(line, "either --for or --until, not both");
	if (options->key_hex != NULL && options->value_count > 0)
		return weir_arguments_refuse(line, "either values or --key-hex, not both");
	if (options->all && (options->key_hex != NULL || options->value_count > 0))
		return weir_arguments_refuse(line, "either a key or --all, not both");
	if (options->state_path == NULL && !weir_config_find(&options->config_path))
		return weir_arguments_refuse(line, WEIR_CONFIG_MISSING ", or name a directory with --state");
	return WEIR_EXIT_NOT_YET;
}
