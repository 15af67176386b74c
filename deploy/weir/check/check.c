/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir check`: asks a running weir whether a key may go on, as a gateway would, and says the answer in words.
 *
 * It speaks the protocol that gateways speak, so what it is told is what they are told.
 */
#include "common/base/alloc.h"
#include "common/bytes/listen_address.h"
#include "common/config/arguments.h"
#include "common/config/config.h"
#include "common/files/durable_file.h"
#include "common/frame/frame.h"
#include "common/json/json_writer.h"
#include "common/json/units.h"
#include "common/redis/redis.h"
#include "deploy/weir/command.h"
#include "deploy/weir/overrides/override_options.h"
#include "limiter/overrides/override_command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum option { ZONE, COST, PEEK, DURABLE, AT_ADDRESS, CONFIG, CERTIFICATE, KEY, JSON, OPTION_COUNT };

enum { TIMEOUT_MS = 5000, NUMBERS = 5, WORDS_MAX = 5 };

static const struct weir_argument_option options_table[] = {
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .required = true,
              .help = "the zone whose limits are asked"},
	[COST] = {.name = "cost",
              .value = "N",
              .type = WEIR_ARGUMENT_NUMBER,
              .help = "how much it costs (default 1)",
              .most = WEIR_COST_MAX},
	[PEEK] = {.name = "peek", .type = WEIR_ARGUMENT_FLAG, .help = "ask without counting"},
	[DURABLE] = {.name = "durable",
                 .type = WEIR_ARGUMENT_FLAG,
                 .help = "wait until the log has it, so that no crash forgets it"},
	[AT_ADDRESS] = {.name = "at",
                    .value = "HOST:PORT",
                    .type = WEIR_ARGUMENT_TEXT,
                    .help = "where checks are answered (default: listen.resp of the configuration)"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration, for the address, the password and TLS"},
	[CERTIFICATE] = {.name = "certificate",
                     .value = "FILE",
                     .type = WEIR_ARGUMENT_TEXT,
                     .help = "the client's certificate to show (default: listen.certificate)"},
	[KEY] = {.name = "key", .value = "FILE", .type = WEIR_ARGUMENT_TEXT, .help = "its private key"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print the answer as one JSON object"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"What it counts",
     "It is a check like that of a gateway. It counts in the key's bucket, and may block the key. With --peek nothing "
     "is counted, and the answer is that of a check that came now. A key that is exempt passes and is not counted: the "
     "answer says so, in JSON by \"counted\": false."},
	{"What it is told while nothing can be judged",
     "With checks.on_unavailable allow or deny it passes or is blocked then, and the answer says that no limit was asked: "
     "in JSON \"unavailable\" is true, and there are no numbers."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "it passed"},
	{WEIR_EXIT_FAILED, "it was blocked"},
	{WEIR_EXIT_USAGE, "nobody answered, or the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir check",
	.summary = "ask whether a key may go on now, and what it has left",
	.usage = "weir check VALUE... --zone NAME [--cost N] [--peek | --durable] [--json]\n"
			 "           [--config FILE] [--at HOST:PORT]\n"
			 "           [--certificate FILE --key FILE]",
	.about =
		"Asks a running weir whether a key may go on, as a gateway would.\n"
		"\n"
		"It asks at listen.resp, where `weir run` and limiters answer checks. It says whether the key passes, what "
		"is left, and when more would pass.",
	.operand = {.word = "VALUE",
                .help = "the values of the key, in its order, as the log has them",
                .most = WEIR_ZONE_KEY_MAX,
                .hint = "a key has at most four values"},
	.options = options_table,
	.sections = sections,
	.examples = "weir check 203.0.113.9 --zone site --config /etc/weir.json\n"
				"weir check ann --zone tokens --cost 500 --peek --at 127.0.0.1:6390",
	.exits = exits,
};

struct check {
	const char *zone, *at, *config_path, *certificate, *key;
	uint64_t cost;
	bool peek, durable, json;
	struct weir_span values[WEIR_ZONE_KEY_MAX];
	uint32_t value_count;
	struct override_command joined; /* its key alone is used, of several values */
	struct weir_redis_url url;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct check *check = context;
	switch (option) {
	case ZONE: check->zone = value->text; break;
	case COST: check->cost = value->number; break;
	case PEEK: check->peek = true; break;
	case DURABLE: check->durable = true; break;
	case AT_ADDRESS: check->at = value->text; break;
	case CONFIG: check->config_path = value->text; break;
	case CERTIFICATE: check->certificate = value->text; break;
	case KEY: check->key = value->text; break;
	case JSON: check->json = true; break;
	default:
		if (value->text[0] == '\0')
			return weir_arguments_refuse(&line, OVERRIDE_EMPTY_VALUE);
		check->values[check->value_count++] = weir_span_of(value->text);
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- the key ---- */

/* @return WEIR_EXIT_NOT_YET; WEIR_EXIT_USAGE: it is refused */
static enum weir_exit join_values(struct check *check)
{
	for (uint32_t i = 0; check->value_count > 1 && i < check->value_count; i++)
		if (!override_key_add(&check->joined, check->values[i]))
			return weir_arguments_refuse(&line, "a key of several values has at most %d bytes", WEIR_KEY_MAX_BYTES);
	return WEIR_EXIT_NOT_YET;
}

/* The key as checks take it: one value as it is, several joined. */
static struct weir_span key_of(const struct check *check)
{
	if (check->value_count > 1)
		return override_key(&check->joined);
	return check->value_count == 1 ? check->values[0] : weir_span_of("");
}

/* ---- where to ask ---- */

static char *host_of(const char *listens)
{
	bool any = strcmp(listens, "*") == 0 || strcmp(listens, "0.0.0.0") == 0 || strcmp(listens, "::") == 0;
	const char *host = any ? "127.0.0.1" : listens;
	return weir_copy(host, strlen(host));
}

static char *copy_path(const char *path)
{
	return weir_copy(path, strlen(path));
}

static void take_tls(struct check *check, const struct weir_config_tls *tls)
{
	bool given = check->certificate != NULL;
	check->url.tls = true;
	check->url.ca = copy_path(tls->certificate);
	if (given || tls->client_ca != NULL) {
		check->url.certificate = copy_path(given ? check->certificate : tls->certificate);
		check->url.key = copy_path(given ? check->key : tls->key);
	}
}

static enum weir_status take_config(struct check *check, struct weir_error *error)
{
	struct weir_config *config;
	enum weir_status status = weir_config_load(check->config_path, &config, error);
	if (status != WEIR_OK)
		return status;
	if (check->at == NULL && config->listen.resp == NULL)
		status =
			weir_fail(error, WEIR_INVALID, "%s has no listen.resp: nobody answers checks there", check->config_path);
	if (status == WEIR_OK && check->at == NULL) {
		check->url.host = host_of(config->listen.resp_host);
		check->url.port = config->listen.resp_port;
	}
	if (status == WEIR_OK && config->checks.password.value != NULL)
		status = weir_json_secret(&config->checks.password, &check->url.password, error);
	if (status == WEIR_OK && config->checks.tls)
		take_tls(check, &config->listen.tls);
	weir_config_free(config);
	return status;
}

static enum weir_status find_place(struct check *check, struct weir_error *error)
{
	char *host;
	if (check->at != NULL) {
		if (!weir_listen_address(check->at, &host, &check->url.port))
			return weir_fail(error, WEIR_INVALID, "--at must be HOST:PORT, such as 127.0.0.1:6390, not \"%.80s\"",
			                 check->at);
		check->url.host = host;
	}
	return check->config_path != NULL ? take_config(check, error) : WEIR_OK;
}

/* ---- asking ---- */

/* @param numbers  limited, limit, remaining, retry and reset in ms */
static enum weir_status read_numbers(const struct weir_redis_answer *answer, int64_t numbers[NUMBERS],
                                     struct weir_error *error)
{
	bool whole = weir_redis_answer_count(answer) == NUMBERS;
	for (size_t i = 0; whole && i < NUMBERS; i++)
		whole = weir_redis_answer_number(weir_redis_answer_element(answer, i), &numbers[i]);
	return whole ? WEIR_OK : weir_fail(error, WEIR_INVALID, "the answer is not that of weir: is another server there?");
}

static enum weir_status ask(struct check *check, int64_t numbers[NUMBERS], struct weir_error *error)
{
	struct weir_redis *link = NULL;
	struct weir_redis_answer *answer = NULL;
	char cost[24];
	int length = snprintf(cost, sizeof cost, "%llu", (unsigned long long)check->cost);
	const struct weir_span words[WORDS_MAX] = {
		weir_span_of(check->peek ? "WEIR.PEEK" : "WEIR.CHECK"),
		key_of(check),
		weir_span_of(check->zone),
		{.at = cost, .length = (uint32_t)length},
		weir_span_of("DURABLE"),
	};
	enum weir_status status = weir_redis_open(&check->url, NULL, TIMEOUT_MS, &link, error);
	if (status == WEIR_OK) {
		weir_redis_send(link, words, WORDS_MAX - !check->durable);
		status = weir_redis_receive(link, &answer, error);
	}
	if (status == WEIR_OK)
		status = read_numbers(answer, numbers, error);
	weir_redis_answer_free(answer);
	weir_redis_close(link);
	return status;
}

/* ---- the answer ---- */

static void put_time(struct weir_text *text, int64_t ms)
{
	char buffer[32];
	weir_text_puts(text, weir_format_duration(ms, buffer, sizeof buffer));
}

/* Whether no limit was asked, and the configuration alone says what the answer is: every limit is at least 1. */
static bool is_unavailable(const int64_t numbers[NUMBERS])
{
	return numbers[1] == 0;
}

/*
 * What passed and left the limit as if nothing had come is in no count: the key is exempt, or an operator allows it. What is
 * counted takes at least 1, which is free again later.
 */
static bool is_passed_over(const struct check *check, const int64_t numbers[NUMBERS])
{
	return !check->peek && check->cost > 0 && numbers[0] == 0 && numbers[2] == numbers[1] && numbers[4] == 0;
}

static void put_words(struct weir_text *text, const struct check *check, const int64_t numbers[NUMBERS])
{
	struct weir_span key = key_of(check);
	bool blocked = numbers[0] != 0;
	if (is_unavailable(numbers)) {
		weir_text_printf(text, "%.*s cannot be judged in zone %s now: checks.on_unavailable %s\n", (int)key.length,
		                 key.at, check->zone, blocked ? "blocks it" : "lets it pass");
		return;
	}
	weir_text_printf(text, "%.*s %s in zone %s: %lld of %lld left", (int)key.length, key.at,
	                 blocked       ? "is blocked"
	                 : check->peek ? "would pass"
	                               : "passed",
	                 check->zone, (long long)numbers[2], (long long)numbers[1]);
	if (blocked && numbers[3] >= 0) {
		weir_text_puts(text, "; the same passes in ");
		put_time(text, numbers[3]);
	} else if (blocked) {
		weir_text_puts(text, "; the same can never pass");
	}
	if (numbers[4] > 0) {
		weir_text_puts(text, "; all of it is free in ");
		put_time(text, numbers[4]);
	}
	if (is_passed_over(check, numbers))
		weir_text_puts(text, "; it is not counted, as the key is exempt or allowed");
	weir_text_puts(text, "\n");
}

static void put_json(struct weir_text *text, const struct check *check, const int64_t numbers[NUMBERS])
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_string(&json, "key", key_of(check));
	weir_json_write_words(&json, "zone", check->zone);
	weir_json_write_words(&json, "answer", numbers[0] != 0 ? "block" : "pass");
	weir_json_write_int(&json, "cost", (int64_t)check->cost);
	if (is_unavailable(numbers)) {
		weir_json_write_bool(&json, "unavailable", true);
	} else {
		weir_json_write_bool(&json, "counted", !check->peek && check->cost > 0 && !is_passed_over(check, numbers));
		weir_json_write_int(&json, "limit", numbers[1]);
		weir_json_write_int(&json, "remaining", numbers[2]);
		weir_json_write_int(&json, "retry_after_ms", numbers[3]);
		weir_json_write_int(&json, "reset_after_ms", numbers[4]);
	}
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}

static enum weir_exit say(const struct check *check, const int64_t numbers[NUMBERS])
{
	struct weir_text text = {0};
	size_t written;
	(check->json ? put_json : put_words)(&text, check, numbers);
	enum weir_exit code = numbers[0] != 0 ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0) {
		perror("weir check: cannot write");
		code = WEIR_EXIT_USAGE;
	}
	weir_text_deinit(&text);
	return code;
}

/* What the client says of Redis is about weir here. */
static const char *without_place(const char *words)
{
	const char *behind = strncmp(words, "Redis at ", 9) == 0 ? strstr(words, ": ") : NULL;
	return behind != NULL ? behind + 2 : words;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct check check = {.cost = 1};
	struct weir_error error;
	int64_t numbers[NUMBERS];
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, &check);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (check.peek && check.durable)
		return weir_arguments_refuse(&line, "--peek counts nothing that could be durable");
	if ((check.certificate == NULL) != (check.key == NULL))
		return weir_arguments_refuse(&line, "--certificate and --key go together");
	code = join_values(&check);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (!weir_config_find(&check.config_path) && check.at == NULL)
		return weir_arguments_refuse(&line, WEIR_CONFIG_MISSING ", or name an address with --at");
	if (find_place(&check, &error) != WEIR_OK) {
		fprintf(stderr, "weir check: %s\n", error.text);
		code = WEIR_EXIT_USAGE;
	} else if (check.certificate != NULL && !check.url.tls) {
		code = weir_arguments_refuse(&line, "--certificate needs --config, with checks.tls true in it");
	} else if (ask(&check, numbers, &error) != WEIR_OK) {
		fprintf(stderr, "weir check: weir at %s:%u: %s\n", check.url.host, check.url.port, without_place(error.text));
		code = WEIR_EXIT_USAGE;
	} else {
		code = say(&check, numbers);
	}
	weir_redis_url_deinit(&check.url);
	return code;
}

const struct command command_check = {&line, command_main};
