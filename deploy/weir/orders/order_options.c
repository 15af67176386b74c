/* Four commands with one table: what is not for a command is refused in words. */
#include "deploy/weir/orders/order_options.h"

#include "collector/record/time_text.h"
#include "common/json/json.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"

#include <stdio.h>

static const char common_help[] =
	"  VALUE...        the values of the zone's key, in its order, as the log has them: an address is grouped\n"
	"                  and written as the zone does it. Behind -- one may begin with a dash\n"
	"  --zone NAME     the zone; may be left out where the values fit only one\n"
	"  --key-hex HEX   in place of the values: the joined key, where it is not UTF-8 (key_hex of weir decode)\n"
	"  --config FILE   of the cluster, or of one machine whose state is in the usual place\n"
	"  --state DIR     the state directory of a `weir run`: if it runs, it takes the command at once\n"
	"  --by NAME       who commands; your login name by default\n"
	"  --reason TEXT   why; it is published, and kept\n"
	"  --json          what was done as a JSON line\n"
	"\n"
	"It is done when the log has it, on disk: the partition and the offset are printed.\n"
	"Exit codes: 0 done; 1 a server failed: give it again, twice does no harm; 2 the command line is wrong.\n"
	"\n";

static const char time_help[] =
	"  --for TIME      until so long from now: \"30s\", \"10m\", \"2h\", \"7d\"\n"
	"  --until TIME    until then: \"2026-11-22T10:00:00Z\" (UTC where no zone is named), or Unix seconds\n";

static const char block_help[] =
	"usage: weir block VALUE... (--config FILE | --state DIR) [OPTION...]\n"
	"\n"
	"Blocks a key: a decision is published, and every request of it is blocked until the given time, without one\n"
	"until it is lifted. Limits publish nothing for it meanwhile. An allow ends.\n"
	"\n";

static const char block_examples[] =
	"Examples\n"
	"  weir block 203.0.113.9 --config weir.json --for 1h --reason \"scraping, ticket 1841\"\n"
	"  weir block --zone login 2001:db8::7 ann --state /var/lib/weir\n";

static const char lift_help[] =
	"usage: weir lift VALUE... (--config FILE | --state DIR) [OPTION...]\n"
	"\n"
	"Ends the block of a key, whether a limit or an operator set it, and empties its bucket: it starts afresh. A\n"
	"lift is published in any case. What it is allowed, and an override, go on.\n"
	"\n";

static const char lift_examples[] = "Examples\n"
									"  weir lift 203.0.113.9 --config weir.json --reason \"was our own monitoring\"\n";

static const char allow_help[] =
	"usage: weir allow VALUE... (--config FILE | --state DIR) [OPTION...]\n"
	"\n"
	"Lets a key pass whatever its limits say, and records nothing of it, until the given time, without one for\n"
	"ever. A block that runs is lifted, and that is published. --for 0s ends it; a block ends it too.\n"
	"\n";

static const char allow_examples[] = "Examples\n"
									 "  weir allow 198.51.100.4 --config weir.json --for 2h --reason \"load test\"\n"
									 "  weir allow 198.51.100.4 --config weir.json --for 0s\n";

static const char override_help[] =
	"usage: weir override VALUE... --rate R (--config FILE | --state DIR) [OPTION...]\n"
	"\n"
	"Multiplies the rates of a key's limits until the given time, without one until --rate 1 ends it. What may come\n"
	"in one burst, or wait in a queue, is multiplied too, and an interval divided. A limit that changes by it\n"
	"starts empty, as one that a policy changes. A block that runs goes on: weir lift ends it.\n"
	"\n"
	"  --rate R        \"0.5\" halves them, \"10\" is ten times as much: 0.001 to 100\n"
	"  --prefix        for every key that begins with these values, the last of which may be cut anywhere, in all\n"
	"                  partitions. The longest prefix wins, and an exact key beats it\n";

static const char override_examples[] =
	"Examples\n"
	"  weir override 198.51.100.4 --rate 10 --config weir.json --until 2026-12-01T00:00:00Z\n"
	"  weir override --prefix 10.1. --rate 0.5 --config weir.json --reason \"noisy subnet\"\n"
	"  weir override --prefix 10.1. --rate 1 --config weir.json\n";

enum option { ZONE, KEY_HEX, CONFIG, STATE, FOR, UNTIL, BY, REASON, RATE, PREFIX, JSON };

static const struct weir_argument_option table[] = {
	{"zone", true}, {"key-hex", true}, {"config", true}, {"state", true},   {"for", true},   {"until", true},
	{"by", true},   {"reason", true},  {"rate", true},   {"prefix", false}, {"json", false}, {NULL, false},
};

static const char *const commands[] = {"weir block", "weir lift", "weir allow", "weir override"};

static void print_help(enum order_kind kind)
{
	static const char *const heads[] = {block_help, lift_help, allow_help, override_help};
	static const char *const examples[] = {block_examples, lift_examples, allow_examples, override_examples};
	fputs(heads[kind], stdout);
	fputs(kind != ORDER_LIFT ? time_help : "", stdout);
	fputs(common_help, stdout);
	fputs(examples[kind], stdout);
}

static enum weir_exit refuse(const struct order_options *options, const char *words, const char *value)
{
	weir_arguments_refuse(&options->arguments, words, value);
	return WEIR_EXIT_USAGE;
}

static bool parse_time(const char *text, int64_t *time_ms)
{
	struct time_reader reader;
	struct time_zone *zone;
	if (time_zone_new("UTC", &zone, NULL) != WEIR_OK)
		return false;
	time_reader_init(&reader, zone);
	enum format_reason reason = time_read(&reader, weir_span_of(text), time_ms);
	time_reader_deinit(&reader);
	return reason == FORMAT_OK;
}

static enum weir_exit take_word(struct order_options *options, const char *value)
{
	if (options->value_count == WEIR_ZONE_KEY_MAX)
		return refuse(options, "a key has at most four values: \"%s\" is too many", value);
	options->values[options->value_count++] = value;
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit take_option(struct order_options *options, int option, const char *value)
{
	switch (option) {
	case ZONE: options->zone = value; return WEIR_EXIT_NOT_YET;
	case KEY_HEX: options->key_hex = value; return WEIR_EXIT_NOT_YET;
	case CONFIG: options->config_path = value; return WEIR_EXIT_NOT_YET;
	case STATE: options->state_path = value; return WEIR_EXIT_NOT_YET;
	case PREFIX: options->prefix = true; return WEIR_EXIT_NOT_YET;
	case JSON: options->json = true; return WEIR_EXIT_NOT_YET;
	case WEIR_ARGUMENTS_WORD: return take_word(options, value);
	case BY:
		options->by = value;
		return strlen(value) <= ORDER_BY_MAX_BYTES ? WEIR_EXIT_NOT_YET
		                                           : refuse(options, "--by takes at most 64 bytes, not \"%s\"", value);
	case REASON:
		options->reason = value;
		return strlen(value) <= ORDER_REASON_MAX_BYTES ? WEIR_EXIT_NOT_YET
		                                               : refuse(options, "%s", "--reason takes at most 256 bytes");
	case FOR:
		if (weir_parse_duration(value, &options->for_ms))
			return WEIR_EXIT_NOT_YET;
		return refuse(options, "--for must be a duration such as 30s, 10m, 2h or 7d, not \"%s\"", value);
	case UNTIL:
		if (parse_time(value, &options->until_ms))
			return WEIR_EXIT_NOT_YET;
		return refuse(options, "--until must be a time such as 2026-11-22T10:00:00Z, or Unix seconds, not \"%s\"",
		              value);
	case RATE:
		if (order_rate_parse(value, &options->thousandths))
			return WEIR_EXIT_NOT_YET;
		return refuse(
			options, "--rate must be from 0.001 to 100, with at most three digits behind the point, not \"%s\"", value);
	default: return WEIR_EXIT_USAGE;
	}
}

static enum weir_exit check(const struct order_options *options)
{
	bool is_override = options->kind == ORDER_OVERRIDE;
	if (options->kind == ORDER_LIFT && (options->for_ms >= 0 || options->until_ms < ORDER_NO_END))
		return refuse(options, "%s", "a lift is done at once: --for and --until are for block, allow and override");
	if (options->for_ms >= 0 && options->until_ms < ORDER_NO_END)
		return refuse(options, "%s", "either --for or --until, not both");
	if (!is_override && (options->thousandths > 0 || options->prefix))
		return refuse(options, "%s", "--rate and --prefix are for weir override");
	if (is_override && options->thousandths == 0)
		return refuse(options, "%s",
		              "say what rates are multiplied by: --rate 0.5, --rate 10; --rate 1 ends an override");
	if (options->key_hex != NULL && options->value_count > 0)
		return refuse(options, "either values or --key-hex: \"%s\" is too many", options->values[0]);
	if (options->config_path == NULL && options->state_path == NULL)
		return refuse(options, "%s", "name the cluster's configuration by --config, or a --state directory");
	return WEIR_EXIT_NOT_YET;
}

enum weir_exit order_options_parse(enum order_kind kind, int argc, char **argv, struct order_options *options)
{
	*options = (struct order_options){.kind = kind, .for_ms = -1, .until_ms = ORDER_NO_END, .reason = ""};
	options->arguments =
		(struct weir_arguments){.command = commands[kind], .options = table, .argc = argc, .argv = argv};
	enum weir_exit code = WEIR_EXIT_NOT_YET;
	int option;
	const char *value;
	while (code == WEIR_EXIT_NOT_YET &&
	       (option = weir_arguments_next(&options->arguments, &value)) != WEIR_ARGUMENTS_END) {
		if (option == WEIR_ARGUMENTS_HELP) {
			print_help(kind);
			return WEIR_EXIT_DONE;
		}
		code = take_option(options, option, value);
	}
	return code == WEIR_EXIT_NOT_YET ? check(options) : code;
}
