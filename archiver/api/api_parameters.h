/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The query parameters of a request: names, forms and bounds in one table, so that
 * every error says what is expected.
 */
#ifndef ARCHIVER_API_PARAMETERS_H
#define ARCHIVER_API_PARAMETERS_H

#include "common/base/span.h"
#include "common/base/status.h"

enum api_parameter {
	API_ZONE,
	API_KEY,
	API_BUCKET, /* a key as it is stored, which is how lists have it; it takes the place of API_KEY */
	API_FROM,
	API_TO,
	API_DAY,
	API_GRAIN,
	API_BY,
	API_ACTION,
	API_MODE,
	API_LIMIT,
	API_AFTER,
	API_FORMAT,
	API_ID,
	API_PARAMETER_COUNT,
};

#define API_BIT(parameter) (1u << (parameter))

enum api_grain { API_HOUR, API_DAILY };
enum api_by { API_BY_PASSED, API_BY_BLOCKED, API_BY_TOTAL };
enum api_mode { API_ENFORCE, API_SHADOW, API_BOTH_MODES };
enum api_format { API_JSON, API_CSV, API_SPREADSHEET };

/* A place in rows that are sorted by these, the newest first. */
struct api_place {
	int64_t at_ms, partition, offset, pair;
};

enum { API_PLACE_BYTES = 96, API_ID_BYTES = 64 /* with its end */ };

struct api_parameters {
	unsigned given;             /* API_BIT of each; the rest is as after api_parameters_init() */
	struct weir_span zone, key; /* borrowed; where API_BUCKET was given, API_KEY is too, and this is that */
	int64_t from_ms, to_ms, day_ms;
	enum api_grain grain;
	enum api_by by;
	const char *action; /* a word that needs no quoting, or NULL */
	enum api_mode mode;
	int64_t limit;
	struct api_place after;
	enum api_format format;
	struct weir_span id; /* borrowed; at NULL: not given */
};

/* Why a request is refused. */
struct api_fault {
	unsigned status;
	const char *parameter; /* NULL: none; else one of ours, or `name` */
	char name[64];         /* of one that is not */
	char message[320];
};

/** Always false, for `return`. */
bool api_fault_set(struct api_fault *fault, unsigned status, const char *parameter, const char *format, ...)
	WEIR_PRINTF(4, 5);

const char *api_parameter_name(enum api_parameter parameter);
const char *api_by_name(enum api_by by);
const char *api_grain_name(enum api_grain grain);

/** grain hour, by total, mode enforce, format JSON; limit 0. */
void api_parameters_init(struct api_parameters *parameters);

/**
 * Reads one.
 *
 * @param allowed    API_BIT of those that the resource has
 * @param limit_max  of API_LIMIT
 * @param value      absent where there was no =
 * @return false: fault is set
 */
bool api_parameter_read(struct api_parameters *parameters, unsigned allowed, int64_t limit_max, struct weir_span name,
                        struct weir_span value, struct api_fault *fault);

/** A place as `after` takes it: at least API_PLACE_BYTES. */
const char *api_place_write(const struct api_place *place, char *text);

#endif
