/*
 * What every daemon does alike: its command line, its configuration, its log,
 * its state directory, its pages for operators, and when it is to stop.
 *
 *   weir-ROLE --config FILE [--state DIR] [--check]
 */
#ifndef WEIR_COMMON_DAEMON_H
#define WEIR_COMMON_DAEMON_H

#include "common/config/arguments.h"
#include "common/config/config.h"
#include "common/files/durable_file.h"
#include "common/http/http.h"

/* The options of every daemon; a role has its own words for --config and --state. */
enum weir_daemon_option {
	WEIR_DAEMON_CONFIG,
	WEIR_DAEMON_STATE,
	WEIR_DAEMON_CHECK,
	WEIR_DAEMON_VERSION,
	WEIR_DAEMON_OPTION_COUNT
};

#define WEIR_DAEMON_OPTIONS(config, state)                                                                \
	[WEIR_DAEMON_CONFIG] = {"config", "FILE", WEIR_ARGUMENT_TEXT, config, .required = true},              \
	[WEIR_DAEMON_STATE] = {"state", "DIR", WEIR_ARGUMENT_TEXT, state},                                    \
	[WEIR_DAEMON_CHECK] = {"check", NULL, WEIR_ARGUMENT_FLAG,                                             \
	                       "only say whether it could start, and which topics and tables it would make"}, \
	[WEIR_DAEMON_VERSION] = {"version", NULL, WEIR_ARGUMENT_FLAG, "print the version"},                   \
	[WEIR_DAEMON_OPTION_COUNT] = {.name = NULL}

struct weir_daemon {
	const char *name;                     /* "weir-limiter" */
	const struct weir_command_line *line; /* borrowed */
	struct weir_config *config;           /* owned */
	const char *config_path;              /* borrowed from argv */
	char state[WEIR_PATH_BYTES];
	bool check; /* only say whether it could start */
	struct weir_log log;
	struct weir_directory_lock lock;
	bool locked;
	struct weir_http *http;
};

/** What a server of the store refuses, a password or a right, it may grant by the next start: it has failed. */
static inline enum weir_status weir_daemon_of_server(enum weir_status status)
{
	return status == WEIR_INVALID ? WEIR_IO : status;
}

/**
 * Reads the command line and the configuration, prints help or what is wrong.
 *
 * @param line  its options are WEIR_DAEMON_OPTIONS, its name is the daemon's; borrowed
 * @return WEIR_EXIT_NOT_YET: go on; else the exit code
 */
WEIR_MUST_USE enum weir_exit weir_daemon_begin(struct weir_daemon *daemon, const struct weir_command_line *line,
                                               int argc, char **argv);

/** Makes and locks the state directory, and lets signals set the flags of common/base/stop.h. */
WEIR_MUST_USE enum weir_status weir_daemon_open(struct weir_daemon *daemon, struct weir_error *error);

/**
 * Reads the configuration again (SIGHUP): log.level takes effect; what else has changed waits for a restart, and a bad
 * file changes nothing: both are said.
 */
void weir_daemon_reload(struct weir_daemon *daemon);

/* The three pages; each runs on the HTTP server's thread and must not wait. */
struct weir_daemon_pages {
	void *context;
	void (*metrics)(void *context, struct weir_text *page);
	/** Whether it is healthy, ready; else why not, in a line. */
	bool (*healthy)(void *context, struct weir_text *why);
	bool (*ready)(void *context, struct weir_text *why);
};

/** Serves the pages where listen.http is configured. @param pages  borrowed while it runs */
WEIR_MUST_USE enum weir_status weir_daemon_serve(struct weir_daemon *daemon, const struct weir_daemon_pages *pages,
                                                 struct weir_error *error);

/** Ends the pages; before what they look at ends. */
void weir_daemon_silence(struct weir_daemon *daemon);
void weir_daemon_end(struct weir_daemon *daemon);

#endif
