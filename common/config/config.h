/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: one JSON file for all roles, parsed once, immutable
 * afterwards, and passed down.
 *
 * Its sections are "zones" and "exempt" (common/policy/policy.h), "sources" (collector/source/source.h),
 * "gateways" (deploy/gateways/gateway/gateway_settings.h) and those of the struct
 * below, under the names that it has. A secret is opened by whoever uses it, and not before: of what a role does not
 * use, nothing need be on its machine. Every setting in them has a default. Name, kind, bounds, default and meaning of each stand in
 * one table (config_settings.c), from which settings are read, checked and
 * documented: weir_config_describe() writes the table of settings.md.
 */
#ifndef WEIR_COMMON_CONFIG_H
#define WEIR_COMMON_CONFIG_H

#include "common/base/text.h"
#include "common/json/json.h"
#include "common/log/log.h"
#include "common/policy/policy.h"
#include "common/store/archive.h"

enum weir_bus_type { WEIR_BUS_LOCAL, WEIR_BUS_KAFKA };
enum weir_store_type { WEIR_STORE_SQLITE, WEIR_STORE_MYSQL };

/* Secrets that were opened. */
struct weir_secrets {
	char **at;
	size_t count;
};

/* Where secrets stand. */
struct weir_secret_list {
	struct weir_json at;
	size_t count;
};

/* Files of a listener that speaks TLS; certificate NULL: it does not, and the others are NULL, too. */
struct weir_config_tls {
	char *certificate, *key, *client_ca;
};

/* Strings are NULL where nothing is set and there is no default. */
struct weir_config {
	struct weir_json_document *document; /* owned: the cursors below point into it */
	char *command_words;                 /* weir_config_words(); owned; NULL: it came from the command line */
	struct weir_policy *policy; /* of "zones", "exempt"; owned, not numbered; NULL: bus.type is kafka without zones */
	struct weir_json sources;   /* "sources": a list of objects, read by the collector */
	size_t source_count;
	struct weir_json gateways; /* "gateways": a list, read by weir run */
	size_t gateway_count;
	struct {
		int type; /* enum weir_bus_type */
		int64_t partitions;
		int64_t linger_ms, max_linger_ms, sync_delay_ms;
		int64_t segment_bytes, retention_bytes, explain_bytes;
		char *brokers;          /* kafka: HOST:PORT[,HOST:PORT...] */
		char *prefix;           /* before each topic's name, and of the consumer group's */
		int64_t replication;    /* of topics that are made */
		int64_t min_insync;     /* likewise */
		int64_t retention_ms;   /* likewise: of events and decisions */
		struct weir_json kafka; /* an object, or without value */
	} bus;
	struct {
		int type; /* enum weir_store_type */
		char *host;
		int64_t port;
		char *socket; /* instead of host and port */
		char *user, *database;
		struct weir_json password; /* a secret: weir_json_secret() */
		char *tls_ca;              /* NULL: no TLS is asked for */
	} store;
	struct {
		struct weir_json url; /* a secret: redis://[:PASSWORD@]HOST:PORT[/DATABASE] */
	} redis;
	struct {
		int64_t max_skew_ms;
		int64_t line_max_bytes;
		int64_t list_interval_ms;
		char *resolver; /* IPv4:PORT; NULL: the system's */
	} collector;
	struct {
		int64_t threads;      /* 1..bus.partitions */
		int64_t memory_bytes; /* > 0 */
		int64_t checkpoint_interval_ms;
		int64_t lateness_ms;
	} limiter;
	struct {
		bool enabled;
		int64_t interval_ms;
		int64_t memory_bytes;
		int64_t threads;                      /* 1..bus.partitions */
		int64_t keep_ms[WEIR_ARCHIVE_TABLES]; /* 0: forever */
		char *hash_keys;                      /* path of the secret; NULL: keys are kept in clear */
		char *api;                            /* NULL: none */
		char *api_host;
		uint16_t api_port;
		struct weir_secret_list tokens; /* weir_config_open_tokens(); none: api_host is of this machine alone */
		int64_t api_rate;               /* requests a second of one client; 0: any */
		int64_t api_workers;
		struct weir_config_tls api_tls;
	} archiver;
	struct {
		char *http;
		char *http_host; /* "*" for every address */
		uint16_t http_port;
		struct weir_config_tls tls;
		char *resp; /* checks by Redis' protocol; NULL: none */
		char *resp_host;
		uint16_t resp_port;
		char *grpc; /* checks by gRPC; NULL: none */
		char *grpc_host;
		uint16_t grpc_port;
		char *check_http; /* checks by HTTP; NULL: none */
		char *check_http_host;
		uint16_t check_http_port;
	} listen;
	struct {
		int on_unavailable; /* enum weir_on_unavailable */
		int fields;         /* enum weir_rate_limit_fields */
		bool durable;
		bool tls;
		bool redirect;
		char *advertise; /* where clients and other limiters reach listen.resp; NULL: where it listens */
		char *advertise_host;
		uint16_t advertise_port;
		char *ca;                   /* whose certificates other limiters show; NULL: the system's */
		int64_t in_flight;          /* of one partition */
		int64_t connections;        /* of one thread */
		struct weir_json client_ip; /* of requests, as in a format (common/record/client_ip.h) */
		struct weir_json password;  /* a secret: weir_json_secret() */
		struct weir_json users;     /* of listen.resp (limiter/check/resp/resp_users.h) */
	} checks;
	struct {
		int level; /* enum weir_log_level */
		int json;  /* 0: text */
	} log;
	struct {
		char *path, *shadow_path;
		int64_t rotate_bytes; /* 0: never */
		int64_t keep;
	} decisions;
	struct {
		char *path;
		int64_t max_bytes;    /* of the file, where it is not rotated */
		int64_t rotate_bytes; /* 0: never */
		int64_t rate_per_second;
		int64_t keep;
	} deadletter;
};

/* checks.on_unavailable */
enum weir_on_unavailable { WEIR_ON_UNAVAILABLE_ERROR, WEIR_ON_UNAVAILABLE_ALLOW, WEIR_ON_UNAVAILABLE_DENY };

/* checks.rate_limit_fields */
enum weir_rate_limit_fields { WEIR_FIELDS_DRAFT, WEIR_FIELDS_X, WEIR_FIELDS_OFF };

/* What a program asks of a configuration beyond what the loader does. */
struct weir_config_check {
	enum weir_status (*check)(void *context, struct weir_config *config, struct weir_error *error);
	void *context;
};

/* A place of `listen`, each for another protocol. */
struct weir_config_place {
	const char *setting; /* its name in `listen` */
	const char *host;    /* NULL: nobody listens */
	uint16_t port;
};

/* The pages' first, and those of checks. */
enum { WEIR_CONFIG_CHECKS_FIRST = 1, WEIR_CONFIG_PLACES = 4 };

/** All of them, borrowed. */
void weir_config_places(const struct weir_config *config, struct weir_config_place places[WEIR_CONFIG_PLACES]);

/** Refuses two listeners at one port: pages, checks, the archiver's API and sources. For the loader. */
WEIR_MUST_USE enum weir_status weir_config_check_addresses(const struct weir_json *root,
                                                           const struct weir_config *config, struct weir_error *error);

/** Whether checks are taken, by whatever protocol. */
static inline bool weir_config_takes_checks(const struct weir_config *config)
{
	return config->listen.resp_host != NULL || config->listen.grpc_host != NULL ||
	       config->listen.check_http_host != NULL;
}

#define WEIR_CONFIG_USUAL "/etc/weir/weir.json"
#define WEIR_CONFIG_MISSING "no configuration: give --config FILE, set WEIR_CONFIG, or write " WEIR_CONFIG_USUAL

/**
 * Puts the usual configuration where none is named: that of $WEIR_CONFIG, or WEIR_CONFIG_USUAL where that file is. Never
 * one of the working directory, which may be anyone's.
 *
 * @param path  NULL: none is named; borrowed
 * @return whether there is one now; else WEIR_CONFIG_MISSING says what to do
 */
bool weir_config_find(const char **path);

/**
 * Reads a configuration.
 *
 * @param config  returned: weir_config_free()
 * @return WEIR_OK; WEIR_INVALID with the path, the line and what would be accepted; WEIR_IO: it cannot be read
 */
WEIR_MUST_USE enum weir_status weir_config_load(const char *path, struct weir_config **config,
                                                struct weir_error *error);
/**
 * Prints what is wrong with a configuration that was refused: a line on standard error for each mistake, those behind
 * the first one too.
 *
 * @param prefix  before each line: "weir: "
 * @param path    of the file; NULL: it came from the command line, and `first` is all
 * @param check   what else refuses a configuration that was read; NULL: nothing
 * @param first   the refusal
 */
void weir_config_print_mistakes(const char *prefix, const char *path, const struct weir_config_check *check,
                                const struct weir_error *first);
/** The same, a call of `tell` for each. */
void weir_config_mistakes(const char *path, const struct weir_config_check *check, const struct weir_error *first,
                          void (*tell)(void *context, const char *words), void *context);

/** An option and its path as a shell takes them, from any directory: "--config /etc/weir/weir.json"; the caller frees. */
char *weir_command_words(const char *option, const char *path);
/**
 * How a command that is printed names what this process works with, so that it runs as printed: "--config FILE" with the
 * path of its file, or "--state DIR" of `weir run`.
 *
 * @param config  NULL: there is none
 */
const char *weir_config_words(const struct weir_config *config);
/** Likewise for `weir policy apply`: of a file without zones, "--config FILE", as the file that has them is not known. */
const char *weir_config_zones_words(const struct weir_config *config);

/**
 * Whether zones that stay in shadow until something holds can ever leave it here: the archive must be made, and keep the
 * days. `weir run --once` does not ask: it takes such zones for shadow.
 *
 * @return WEIR_OK; WEIR_INVALID: with the path
 */
WEIR_MUST_USE enum weir_status weir_config_check_waiting(const struct weir_config *config, struct weir_error *error);

/** The text of such a file. @param name  as for weir_json_parse() */
WEIR_MUST_USE enum weir_status weir_config_parse(const char *name, const char *text, size_t length,
                                                 struct weir_config **config, struct weir_error *error);
void weir_config_free(struct weir_config *config);

/**
 * Opens archiver.tokens.
 *
 * @param tokens  returned, on failure too: weir_secrets_deinit()
 * @return WEIR_OK; WEIR_INVALID: one is not there, or cannot be a token
 */
WEIR_MUST_USE enum weir_status weir_config_open_tokens(const struct weir_config *config, struct weir_secrets *tokens,
                                                       struct weir_error *error);
void weir_secrets_deinit(struct weir_secrets *secrets);

/** What `weir run` takes instead of a file. */
struct weir_shorthand {
	const char *format;      /* --format: a name, or an object of JSON; NULL: combined */
	const char *const *keys; /* --key a,b: each makes a zone with all the limits; none: ip */
	size_t key_count;
	const char *const *limits; /* --limit N/W[:ALGORITHM] */
	size_t limit_count;
	const char *const *logs; /* paths or globs; "-" is standard input */
	size_t log_count;
	bool follow;
};

/**
 * Turns a shorthand into the configuration that it stands for, for weir_config_parse(WEIR_JSON_COMMAND_LINE, …) and
 * for people who continue from there with a file.
 *
 * A window below 1h is sliding, a longer one fixed, where no algorithm is named; what N/W means to one that is, its own
 * file says (common/algorithm/).
 *
 * @param text  returned, the caller frees
 * @return WEIR_OK; WEIR_INVALID: the words name the option
 */
WEIR_MUST_USE enum weir_status weir_config_shorthand(const struct weir_shorthand *shorthand, char **text,
                                                     struct weir_error *error);

/* The shapes that the roles give, which read these parts (common/json/json_shape.h). */
struct weir_config_shapes {
	json_t *source, *format, *gateway; /* taken */
};

/** The JSON Schema of a configuration, from the tables that it is read by; returned, the caller frees. */
json_t *weir_config_schema(const struct weir_config_shapes *shapes);

/** Appends the settings as a Markdown table: that of settings.md. */
void weir_config_describe(struct weir_text *text);

#endif
