/*
 * `weir forget`: removes a key from live state, counts and histories, and says
 * where it still lies. What fails in the middle is done by giving it again.
 */
#include "deploy/weir/forget/forget.h"

#include "common/files/durable_file.h"
#include "common/json/units.h"
#include "deploy/weir/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
	"usage: weir forget VALUE... (--config FILE | --state DIR) [--zone NAME] [OPTION...]\n"
	"\n"
	"Removes a key everywhere, as its owner may ask for: its bucket is emptied and its block lifted, so that\n"
	"gateways let it in; what operators allowed it, and an override of its rates, ends; then its rows go from\n"
	"count_hourly, count_daily, decision_history and zone_txn, and from zone_bucket_lock where check_velocity is\n"
	"used. A request that comes later counts from one again.\n"
	"\n"
	"  VALUE...        the values of the key, in its order, as the log has them (weir lift --help)\n"
	"  --zone NAME     only in this zone; without, in all that ever had a key of so many values\n"
	"  --key-hex HEX   in place of the values: the joined key, where it is not UTF-8\n"
	"  --config FILE   of the cluster, or of one machine whose state is in the usual place; needed where keys are\n"
	"                  hashed, as archiver.hash_keys names the secret\n"
	"  --state DIR     the state directory of a `weir run`, which may run\n"
	"  --timeout TIME  how long to wait for limiters and archivers (60s)\n"
	"  --by NAME       who commands; your login name by default\n"
	"  --json          what was done as a JSON line\n"
	"\n"
	"It gives the commands of `weir allow --for 0s`, `weir override --rate 1` and `weir lift`, then waits until a\n"
	"limiter's checkpoint is behind them and the archiver has stored what came before, and removes the rows. So it\n"
	"takes some limiter.checkpoint_interval and archiver.interval. An override of a --prefix is of many keys, and\n"
	"stays. Of the state of a --once run only the rows go.\n"
	"\n"
	"What it cannot take back it names: topics keep their messages until their retention ends, the log of one\n"
	"machine until its readers have passed them, and files of decisions and dead letters are yours. What people\n"
	"wrote as a --reason stays in the rows of other keys. Sums of a zone stay, and buckets in the store: they have no\n"
	"keys, the latter hashes of them.\n"
	"\n"
	"Exit codes: 0 all is done; 1 something is not, as is said: give it again, twice does no harm; 2 the command\n"
	"line is wrong.\n"
	"\n"
	"Examples\n"
	"  weir forget 203.0.113.9 --config /etc/weir.json\n"
	"  weir forget ann 2001:db8::7 --zone login --state /var/lib/weir --json\n";

enum option { ZONE, KEY_HEX, CONFIG, STATE, TIMEOUT, BY, JSON };

static const struct weir_argument_option table[] = {
	{"zone", true},    {"key-hex", true}, {"config", true}, {"state", true},
	{"timeout", true}, {"by", true},      {"json", false},  {NULL, false},
};

enum { TIMEOUT_DEFAULT_MS = 60000, TIMEOUT_MOST_MS = 86400000 };

/* ---- the command line ---- */

static enum weir_exit refuse(const struct forget *forget, const char *words, const char *value)
{
	weir_arguments_refuse(&forget->options.arguments, words, value);
	return WEIR_EXIT_USAGE;
}

static enum weir_exit take_option(struct forget *forget, int option, const char *value)
{
	struct order_options *options = &forget->options;
	switch (option) {
	case ZONE: options->zone = value; return WEIR_EXIT_NOT_YET;
	case KEY_HEX: options->key_hex = value; return WEIR_EXIT_NOT_YET;
	case CONFIG: options->config_path = value; return WEIR_EXIT_NOT_YET;
	case STATE: options->state_path = value; return WEIR_EXIT_NOT_YET;
	case JSON: options->json = true; return WEIR_EXIT_NOT_YET;
	case BY:
		options->by = value;
		return strlen(value) <= ORDER_BY_MAX_BYTES ? WEIR_EXIT_NOT_YET
		                                           : refuse(forget, "--by takes at most 64 bytes, not \"%s\"", value);
	case TIMEOUT:
		if (weir_parse_duration(value, &forget->timeout_ms) && forget->timeout_ms <= TIMEOUT_MOST_MS)
			return WEIR_EXIT_NOT_YET;
		return refuse(forget, "--timeout must be a duration such as 30s or 5m, at most 1d, not \"%s\"", value);
	case WEIR_ARGUMENTS_WORD:
		if (options->value_count == WEIR_ZONE_KEY_MAX)
			return refuse(forget, "a key has at most four values: \"%s\" is too many", value);
		options->values[options->value_count++] = value;
		return WEIR_EXIT_NOT_YET;
	default: return WEIR_EXIT_USAGE;
	}
}

/* WEIR_EXIT_NOT_YET: go on. */
static enum weir_exit parse(struct forget *forget, int argc, char **argv)
{
	struct order_options *options = &forget->options;
	*options = (struct order_options){.kind = ORDER_LIFT, .for_ms = -1, .until_ms = ORDER_NO_END, .reason = ""};
	options->arguments =
		(struct weir_arguments){.command = "weir forget", .options = table, .argc = argc, .argv = argv};
	enum weir_exit code = WEIR_EXIT_NOT_YET;
	int option;
	const char *value;
	while (code == WEIR_EXIT_NOT_YET &&
	       (option = weir_arguments_next(&options->arguments, &value)) != WEIR_ARGUMENTS_END) {
		if (option == WEIR_ARGUMENTS_HELP) {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		}
		code = take_option(forget, option, value);
	}
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (options->key_hex != NULL && options->value_count > 0)
		return refuse(forget, "either values or --key-hex: \"%s\" is too many", options->values[0]);
	if (options->key_hex == NULL && options->value_count == 0)
		return refuse(forget, "%s", "say which key: its values, or --key-hex");
	if (options->config_path == NULL && options->state_path == NULL)
		return refuse(forget, "%s", "name the cluster's configuration by --config, or a --state directory");
	return WEIR_EXIT_NOT_YET;
}

/* ---- the steps ---- */

static enum weir_status open_all(struct forget *forget, struct weir_error *error)
{
	struct realm *realm = &forget->realm;
	enum weir_status status =
		realm_open(realm, "weir forget", forget->options.config_path, forget->options.state_path, REALM_ALL, error);
	if (status == WEIR_OK && realm->config != NULL)
		status = weir_key_hash_open(realm->config->archiver.hash_keys, &forget->hash, error);
	if (status == WEIR_OK)
		status = weir_key_hash_check(forget->hash, realm->store, error);
	return status == WEIR_OK ? weir_policy_history_load(realm->store, &forget->history, error) : status;
}

enum weir_status forget_rows(struct forget *forget, struct weir_error *error)
{
	struct weir_store *store = forget->realm.store;
	char digits[WEIR_KEY_HASH_BYTES];
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < forget->zone_count; i++) {
		const struct forget_zone *zone = &forget->zones[i];
		const struct weir_archive_bucket bucket = {
			zone->id, zone->name, weir_key_hash(zone->velocity ? NULL : forget->hash, forget_key(zone), digits)};
		for (bool more = true; status == WEIR_OK && more;)
			status = store->ops->forget(store, &bucket, &forget->removed, &more, error);
	}
	return status;
}

static enum weir_status run(struct forget *forget, struct weir_error *error)
{
	enum weir_status status = open_all(forget, error);
	if (status == WEIR_OK)
		status = forget_find_zones(forget, error);
	if (status == WEIR_OK)
		status = forget_command(forget, error);
	if (status == WEIR_OK)
		status = forget_await(forget, error);
	return status == WEIR_OK ? forget_rows(forget, error) : status;
}

enum weir_exit command_forget(int argc, char **argv)
{
	struct forget forget = {.timeout_ms = TIMEOUT_DEFAULT_MS};
	struct weir_text text = {0};
	struct weir_error error;
	size_t written;
	enum weir_exit code = parse(&forget, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	enum weir_status status = run(&forget, &error);
	if (status == WEIR_OK) {
		code = forget.left.length == 0 ? WEIR_EXIT_DONE : WEIR_EXIT_FAILED;
		(forget.options.json ? forget_report_json : forget_report)(&forget, &text);
	} else {
		code = status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
		fprintf(stderr, "weir forget: %s%s\n", error.text,
		        code == WEIR_EXIT_FAILED ? "; not all is done: give it again, twice does no harm" : "");
	}
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0) {
		fprintf(stderr, "weir forget: standard output takes no words: %s\n", strerror(errno));
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
	weir_text_deinit(&forget.left);
	weir_policy_history_deinit(&forget.history);
	weir_key_hash_free(forget.hash);
	free(forget.zones);
	realm_close(&forget.realm);
	return code;
}
