/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The findings of `weir validate` about a configuration, before they are written as
 * text or JSON.
 */
#ifndef DEPLOY_WEIR_VALIDATE_VALIDATE_REPORT_H
#define DEPLOY_WEIR_VALIDATE_VALIDATE_REPORT_H

#include "collector/follow/record_reader.h"
#include "common/base/text.h"
#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "deploy/gateways/gateway/gateway_settings.h"
#include "limiter/bucket/footprint.h"

enum {
	VALIDATE_SAMPLE_LINES = 1000, /* read from a file's beginning */
	VALIDATE_SAMPLE_FILES = 8,    /* of a source */
	VALIDATE_WARNINGS_MAX = 256,
};

struct validate_zone {
	const struct weir_zone *zone; /* borrowed from the configuration */
	char *sentence;
	struct footprint footprint;
	bool unmatched;                        /* no source can match it, and that is told */
	uint64_t matched;                      /* events of the samples that are in the zone */
	uint64_t keyed[WEIR_ZONE_KEY_MAX];     /* records of the samples that have this field of the key */
	uint64_t addressed[WEIR_ZONE_KEY_MAX]; /* and in which it is an address */
};

struct validate_file {
	char *path;
	uint64_t bytes;
	bool sampled;
	struct record_counts counts; /* of the sample */
	char *problem;               /* why it cannot be read; NULL: it can */
};

struct validate_source {
	const char *type, *format; /* borrowed; the format's name */
	char *place;               /* as configured: "/var/log/nginx/access*.log"; "-" is standard input */
	char *manner;              /* how it is read: "read to its end" */
	const char *guarantee;     /* "exactly once" */
	bool follow;
	struct validate_file *files; /* that are there now */
	size_t file_count;
};

struct validate_warning {
	char path[WEIR_JSON_PATH_BYTES]; /* "zones[0].limits[1]"; "" for the whole */
	char *words;
};

struct validate_report {
	const struct weir_config *config;     /* borrowed, as all here that the caller sets */
	const char *config_path, *state_path; /* NULL, the state: that of weir run */
	const struct weir_policy *policy;     /* its zones; none of a cluster's configuration that leaves them to the log */
	struct weir_exempt_lists *lists;      /* of its "exempt" */
	struct validate_zone *zones;
	uint32_t zone_count;
	struct validate_source *sources;
	size_t source_count;
	struct gateway_list gateways;
	uint64_t in_force; /* the policy that the state, or the cluster, has in force; 0: none, or nobody was asked */
	bool differs;      /* these zones from it */
	struct weir_text changes; /* how */
	struct weir_text secrets; /* of a cluster's configuration: lines that say which role opens which */
	uint64_t sampled;         /* records of all samples */
	struct validate_warning *warnings;
	size_t warning_count;
	size_t warnings_left_out;
};

/**
 * Begins a report, and reads the lists that the zones name.
 *
 * @param config, config_path, state_path  borrowed for as long as the report is used; as in the report
 * @return WEIR_OK; WEIR_INVALID: the configuration cannot be run; WEIR_IO
 */
WEIR_MUST_USE enum weir_status validate_report_begin(const struct weir_config *config, const char *config_path,
                                                     const char *state_path, struct validate_report *report,
                                                     struct weir_error *error);
/** Looks at everything that a run would use: zones, formats, files. @return as validate_report_begin() */
WEIR_MUST_USE enum weir_status validate_report_make(struct validate_report *report, struct weir_error *error);
/** Warns of hosts of `listen` that this machine does not have. A name is looked up. */
void validate_places(struct validate_report *report);
/** Says anew what each zone means: its id has changed. */
void validate_report_name_zones(struct validate_report *report);
void validate_report_deinit(struct validate_report *report);

/** Adds a warning; path by printf, words taken (an allocated text). */
void validate_warn(struct validate_report *report, const char *path, struct weir_text *words);

/**
 * validate_secrets.c: of a cluster's configuration, warns of properties of Kafka whose secret is not on this machine, and
 * removes them from the configuration, so that the rest is looked at. On one machine they are mistakes.
 */
void validate_set_secrets_aside(struct validate_report *report);
/** validate_sources.c: fills the report's sources, and what their samples say of the zones. */
WEIR_MUST_USE enum weir_status validate_sources(struct validate_report *report, struct weir_error *error);

/** validate_limits.c: warnings about limits that contradict or outdo each other. */
void validate_limits(struct validate_report *report);

/** validate_checks.c: warnings about checks that count twice, that nobody asks, or that name no zone. */
void validate_checks(struct validate_report *report);

/** validate_clients.c: warnings about clients that are counted one by one, and values that nothing has. */
void validate_clients(struct validate_report *report);
/**
 * validate_clients.c: whether a rule `client_ip` trusts an eighth of all addresses or more.
 *
 * @param rule   of a format, or of checks; may have no value
 * @param words  then the warning is added
 */
bool validate_trusts_everybody(const struct weir_json *rule, struct weir_text *words);

/**
 * validate_secrets.c: secrets that cannot be opened here. `weir run` would not start; in a cluster they are warnings, as
 * nobody knows which roles this machine has.
 */
WEIR_MUST_USE enum weir_status validate_secrets(struct validate_report *report, struct weir_error *error);

/** validate_words.c, validate_json.c: the report for people, and for programs. */
void validate_words(struct weir_text *text, const char *name, const struct validate_report *report);
void validate_json(struct weir_text *text, const struct validate_report *report);

#endif
