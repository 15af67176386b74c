/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every daemon does alike: its command line, its configuration, its log,
 * its state directory, its pages for operators, and the order of its steps.
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

#define WEIR_DAEMON_OPTIONS(config, state)                                                                            \
	[WEIR_DAEMON_CONFIG] = {.name = "config", .value = "FILE", .type = WEIR_ARGUMENT_TEXT, .help = (config)},         \
	[WEIR_DAEMON_STATE] = {.name = "state", .value = "DIR", .type = WEIR_ARGUMENT_TEXT, .help = (state)},             \
	[WEIR_DAEMON_CHECK] = {.name = "check",                                                                           \
	                       .type = WEIR_ARGUMENT_FLAG,                                                                \
	                       .help =                                                                                    \
	                           "only check whether it can start, and print which topics and tables it would create"}, \
	[WEIR_DAEMON_VERSION] = {.name = "version", .type = WEIR_ARGUMENT_FLAG, .help = "print the version"},             \
	[WEIR_DAEMON_OPTION_COUNT] = {.name = NULL}

extern const struct weir_argument_exit weir_daemon_exits[];

struct weir_daemon_pages;
struct weir_daemon_role;

struct weir_daemon {
	const char *name;                     /* "weir-limiter" */
	const struct weir_daemon_role *role;  /* borrowed */
	const struct weir_command_line *line; /* borrowed */
	struct weir_config *config;           /* owned */
	const char *config_path;              /* borrowed from argv */
	char state[WEIR_PATH_BYTES];
	bool check;     /* only say whether it could start */
	double start_s; /* Unix time */
	struct weir_log log;
	struct weir_directory_lock lock;
	bool locked;
	const struct weir_daemon_pages *pages; /* the role's, once they are served */
	struct weir_http *http;
};

/** What a server of the store refuses, a password or a right, it may grant by the next start: it has failed. */
static inline enum weir_status weir_daemon_of_server(enum weir_status status)
{
	return status == WEIR_INVALID ? WEIR_IO : status;
}

/** The files of the pages' TLS; borrowed from the configuration. */
struct weir_http_tls weir_daemon_tls(const struct weir_config *config);

/**
 * Reads the configuration again (SIGHUP): log.level takes effect; what else has changed waits for a restart, and a file
 * that a start would refuse changes nothing: both are said.
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

/** Ends the pages; before what they look at ends. Of no effect if there are none. */
void weir_daemon_silence(struct weir_daemon *daemon);

/*
 * What a role does at each step of a daemon's life. `self` is what prepare has returned.
 *
 * @thread the program's first
 */
struct weir_daemon_role {
	const char *log_name; /* "limiter": the part that its errors are logged for */
	/** Refuses a configuration that cannot serve, or whose secrets cannot be read. Nothing is made or connected. */
	enum weir_status (*accept)(const struct weir_config *config, const char *name, struct weir_error *error);
	/** Makes what the other steps work on: *self, also on failure. The configuration was accepted. */
	enum weir_status (*prepare)(struct weir_daemon *daemon, void **self, struct weir_error *error);
	/** --check: says on standard output what a start would meet. It only looks. */
	enum weir_status (*check)(void *self, struct weir_error *error);
	/** Opens what lies in the state directory, which is locked; NULL: nothing does. */
	enum weir_status (*open)(void *self, struct weir_error *error);
	/** From here on they are shown, while it waits for its servers too. */
	const struct weir_daemon_pages *(*pages)(void *self);
	/** Connects, waiting for servers that are not there yet, and starts. @return WEIR_END: asked to stop meanwhile */
	enum weir_status (*start)(void *self, struct weir_error *error);
	/** Works until a signal says to stop, or until a part has ended. */
	enum weir_status (*watch)(void *self, struct weir_error *error);
	/** Ends what start began, each part within a bound of time. @return whether all went well; what did not was logged */
	bool (*stop)(void *self);
	/** Frees everything, whatever was opened. NULL: threads of servers' libraries are left, and the process _exit()s. */
	void (*close)(void *self);
};

/**
 * The main function of a daemon: reads its command line and its configuration, opens its log, then checks or works:
 * locks its state directory, serves its pages, starts, watches, stops.
 *
 * @param line  its options are WEIR_DAEMON_OPTIONS
 * @return the exit code, where the role has a close
 */
enum weir_exit weir_daemon_main(const struct weir_command_line *line, const struct weir_daemon_role *role, int argc,
                                char **argv);

#endif
