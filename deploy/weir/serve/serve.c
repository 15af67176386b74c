/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir serve`: the archiver's page and API over a state directory, which stays
 * as it is.
 *
 * The state is opened anew for each request, read-only, and left at once: so a
 * `weir run` may hold it, begin or end meanwhile. What it stores is seen by the
 * next request, and nothing that it wants to clean up is held back.
 */
#include "archiver/api/api.h"
#include "archiver/page/page.h"
#include "common/base/stop.h"
#include "common/bytes/listen_address.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/store/sqlite/store_sqlite.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option { STATE, HTTP, CONFIG, OPTION_COUNT };

enum { TICK_US = 50000, RATE_DEFAULT = 50, WORKERS_DEFAULT = 4 };

#define HTTP_DEFAULT "127.0.0.1:8642"

static const struct weir_argument_option options_table[] = {
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help =
                   "the state directory of a `weir run` with \"archiver\", also of one with --once; it may be running "
                   "(default: the usual one)"},
	[HTTP] = {.name = "http",
              .value = "HOST:PORT",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "listen there (default " HTTP_DEFAULT "); port 0: any that is free",
              .expected = "HOST:PORT, such as 127.0.0.1:8642"},
	[CONFIG] =
		{.name = "config",
         .value = "FILE",
         .type = WEIR_ARGUMENT_TEXT,
         .help = "take archiver.tokens, hash_keys, api_certificate, api_key, api_client_ca, api_rate and api_workers "
                 "from this configuration (default: no tokens, so only this machine may ask)"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"What it reads",
     "Nothing in the directory is changed. If a `weir run` holds it, each view shows what that has stored by now, "
     "which lags by archiver.interval. A state that was copied may be served where it is, also read-only."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "it was ended by SIGTERM or SIGINT"},
	{WEIR_EXIT_FAILED, "it cannot listen there, or the state cannot be read"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong, or there is no archive in the state"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir serve",
	.summary = "show the archive of a state directory in a browser",
	.usage = "weir serve [--state DIR] [--http HOST:PORT] [--config FILE]",
	.about = "Serves the archiver's page and API over a state directory, read-only, and prints the address.",
	.operand = {.hint = "name the state directory with --state"},
	.options = options_table,
	.sections = sections,
	.examples = "weir run --once --config weir.json --state last-week\n"
				"weir serve --state last-week\n"
				"weir serve --state /var/lib/weir --http 0.0.0.0:8642 --config weir.json",
	.exits = exits,
};

struct serve {
	const char *state, *config_path;
	char state_default[WEIR_PATH_BYTES];
	char *host; /* owned; NULL: the default */
	uint16_t port;
	struct weir_config *loaded; /* NULL: none is given */
	struct weir_config config;  /* the API's settings; what it owns is loaded's */
	struct weir_key_hash *hash;
	struct weir_log log;
	struct api *api;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct serve *serve = context;
	switch (option) {
	case STATE: serve->state = value->text; break;
	case CONFIG: serve->config_path = value->text; break;
	case HTTP:
		free(serve->host);
		serve->host = NULL;
		if (!weir_listen_address(value->text, &serve->host, &serve->port))
			return weir_arguments_refuse_value(&line, HTTP, value->text);
		break;
	default: break;
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- the state ---- */

static enum weir_status open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	const struct serve *serve = context;
	return weir_store_sqlite_open_read_only(serve->state, store, error);
}

/* One with hashed keys needs their secret. */
static enum weir_status check_state(const struct serve *serve, struct weir_error *error)
{
	struct weir_store *store;
	enum weir_status status = state_directory_open_archive(serve->state, &store, error);
	if (status != WEIR_OK)
		return status;
	status = weir_key_hash_check(serve->hash, store, error);
	store->ops->close(store);
	return status;
}

/* ---- the settings ---- */

static enum weir_status settle(struct serve *serve, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	serve->config.archiver.api_rate = RATE_DEFAULT;
	serve->config.archiver.api_workers = WORKERS_DEFAULT;
	if (serve->config_path != NULL && (status = weir_config_load(serve->config_path, &serve->loaded, error)) == WEIR_OK)
		serve->config.archiver = serve->loaded->archiver;
	if (status != WEIR_OK)
		return status;
	if (serve->host == NULL && !weir_listen_address(HTTP_DEFAULT, &serve->host, &serve->port))
		abort();
	serve->config.archiver.api_host = serve->host;
	serve->config.archiver.api_port = serve->port;
	if (serve->config.archiver.tokens.count == 0 && !weir_listen_is_loopback(serve->host))
		return weir_fail(error, WEIR_INVALID,
		                 "--http: everybody who reaches %s could read everything: give a loopback address such as "
		                 "127.0.0.1:8642, or with --config a configuration that has archiver.tokens",
		                 serve->host);
	if (serve->state == NULL) {
		serve->state = serve->state_default;
		status = state_directory_default(serve->state_default, error);
	}
	return status == WEIR_OK ? weir_key_hash_open(serve->config.archiver.hash_keys, &serve->hash, error) : status;
}

static void announce(const struct serve *serve)
{
	bool every = strcmp(serve->host, "*") == 0 || strcmp(serve->host, "0.0.0.0") == 0;
	bool v6 = strchr(serve->host, ':') != NULL;
	bool held = weir_directory_look(serve->state) == WEIR_DIRECTORY_HELD;
	printf("http%s://%s%s%s:%u/\n", serve->config.archiver.api_tls.certificate != NULL ? "s" : "", v6 ? "[" : "",
	       every ? "127.0.0.1" : serve->host, v6 ? "]" : "", api_port(serve->api));
	fflush(stdout);
	fprintf(stderr, "weir serve: shows %s%s, read-only; Ctrl-C ends it\n", serve->state,
	        held ? ", which a running weir holds: what it stores is seen as it comes" : "");
}

static enum weir_status start(struct serve *serve, struct weir_error *error)
{
	enum weir_status status = settle(serve, error);
	if (status == WEIR_OK)
		status = check_state(serve, error);
	if (status != WEIR_OK)
		return status;
	const struct api_options api = {
		.config = &serve->config,
		.hash = serve->hash,
		.log = &serve->log,
		.open_store = open_store,
		.context = serve,
		.momentary = true,
		.files = page_files,
		.file_count = page_file_count,
	};
	return api_start(&api, &serve->api, error);
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct serve serve = {.log = {.fd = STDERR_FILENO, .level = WEIR_LOG_WARNING}};
	struct weir_error error;
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, &serve);
	if (code == WEIR_EXIT_NOT_YET) {
		weir_stop_install();
		enum weir_status status = start(&serve, &error);
		code = weir_exit_of(status);
		if (status == WEIR_OK)
			announce(&serve);
		else
			fprintf(stderr, "weir serve: %s\n", error.text);
		while (status == WEIR_OK && !*weir_stop_flag())
			usleep(TICK_US);
	}
	api_stop(serve.api);
	weir_key_hash_free(serve.hash);
	weir_config_free(serve.loaded);
	free(serve.host);
	return code;
}

const struct command command_serve = {&line, command_main};
