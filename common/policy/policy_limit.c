/*
 * Limits: each algorithm's parameters and bounds, as the configuration writes
 * them, and what the rest of weir asks about a limit.
 */
#include "common/base/suggest.h"
#include "common/policy/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const algorithm_names[] = {[WEIR_SLIDING_WINDOW] = "sliding_window",
                                              [WEIR_FIXED_WINDOW] = "fixed_window",
                                              [WEIR_UNIFORM] = "uniform",
                                              [WEIR_TOKEN_BUCKET] = "token_bucket",
                                              [WEIR_GCRA] = "gcra",
                                              [WEIR_QUEUE] = "queue",
                                              [WEIR_ALGORITHM_COUNT] = NULL};

/* What each takes; and all names together, to tell a misplaced one from a mistyped one. */
static const char *const parameter_names[WEIR_ALGORITHM_COUNT][8] = {
	[WEIR_SLIDING_WINDOW] = {"algorithm", "rate", "window", "precision"},
	[WEIR_FIXED_WINDOW] = {"algorithm", "rate", "window", "offset"},
	[WEIR_UNIFORM] = {"algorithm", "interval"},
	[WEIR_TOKEN_BUCKET] = {"algorithm", "rate", "window", "burst", "penalize"},
	[WEIR_GCRA] = {"algorithm", "burst", "rate", "window"},
	[WEIR_QUEUE] = {"algorithm", "length", "hold", "done"}};
static const char *const all_names[] = {"algorithm", "rate",     "window", "precision", "offset", "interval",
                                        "burst",     "penalize", "length", "hold",      "done",   NULL};

const char *weir_algorithm_name(enum weir_algorithm algorithm)
{
	return algorithm_names[algorithm];
}

static bool is_among(const char *name, const char *const *names)
{
	while (*names != NULL && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

/* Refuses what is no limit's parameter, and what is another algorithm's. */
static enum weir_status check_names(const struct weir_json *at, enum weir_algorithm algorithm, struct weir_error *error)
{
	enum weir_status status = weir_json_only(at, all_names, error);
	if (status != WEIR_OK)
		return status;
	const char *name;
	json_t *value;
	json_object_foreach(at->value, name, value)
	{
		if (is_among(name, parameter_names[algorithm]))
			continue;
		struct weir_json member = weir_json_member(at, name);
		char known[128];
		weir_list_names(parameter_names[algorithm] + 1, "", known, sizeof known);
		return weir_json_fail(&member, error, "does not belong to %s, which takes %s", algorithm_names[algorithm],
		                      known);
	}
	return WEIR_OK;
}

static enum weir_status required_int(const struct weir_json *limit, const char *name, const char *words, int64_t least,
                                     int64_t *out, struct weir_error *error)
{
	struct weir_json at = weir_json_member(limit, name);
	enum weir_status status = weir_json_require(&at, words, error);
	return status != WEIR_OK ? status : weir_json_int(&at, least, WEIR_RATE_MAX, out, error);
}

static enum weir_status required_time(const struct weir_json *limit, const char *name, const char *words, int64_t *out,
                                      struct weir_error *error)
{
	struct weir_json at = weir_json_member(limit, name);
	enum weir_status status = weir_json_require(&at, words, error);
	return status != WEIR_OK ? status : weir_json_duration(&at, 1, WEIR_WINDOW_MAX_MS, out, error);
}

/* "rate" events in each "window". */
static enum weir_status parse_rate(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	enum weir_status status =
		required_int(at, "rate", "how many events a window may hold, such as 10", 1, &limit->rate, error);
	if (status != WEIR_OK)
		return status;
	return required_time(at, "window", "the time that \"rate\" is about, such as \"1m\"", &limit->window_ms, error);
}

static enum weir_status parse_sliding_window(const struct weir_json *at, struct weir_limit *limit,
                                             struct weir_error *error)
{
	enum weir_status status = parse_rate(at, limit, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json precision = weir_json_member(at, "precision");
	status = weir_json_duration(&precision, 1, limit->window_ms, &limit->precision_ms, error);
	if (limit->precision_ms == 1) /* times are whole milliseconds as they are */
		limit->precision_ms = 0;
	return status;
}

static enum weir_status parse_fixed_window(const struct weir_json *at, struct weir_limit *limit,
                                           struct weir_error *error)
{
	enum weir_status status = parse_rate(at, limit, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json offset = weir_json_member(at, "offset");
	return weir_json_duration(&offset, 0, limit->window_ms - 1, &limit->offset_ms, error);
}

static enum weir_status parse_uniform(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	limit->rate = 1;
	return required_time(at, "interval", "the least time between two events, such as \"500ms\"", &limit->window_ms,
	                     error);
}

/* A full bucket has to fit into 64 bits. */
static enum weir_status check_capacity(const struct weir_json *at, int64_t burst, int64_t window_ms,
                                       struct weir_error *error)
{
	if (burst <= WEIR_BURST_WINDOW_MAX / window_ms)
		return WEIR_OK;
	return weir_json_fail(at, error, "burst times window, in ms, must be at most %lld",
	                      (long long)WEIR_BURST_WINDOW_MAX);
}

static enum weir_status parse_token_bucket(const struct weir_json *at, struct weir_limit *limit,
                                           struct weir_error *error)
{
	enum weir_status status = parse_rate(at, limit, error);
	if (status != WEIR_OK)
		return status;
	limit->burst = limit->rate;
	struct weir_json burst = weir_json_member(at, "burst"), penalize = weir_json_member(at, "penalize");
	if ((status = weir_json_int(&burst, 1, WEIR_RATE_MAX, &limit->burst, error)) != WEIR_OK ||
	    (status = weir_json_bool(&penalize, &limit->penalize, error)) != WEIR_OK)
		return status;
	return check_capacity(at, limit->burst, limit->window_ms, error);
}

static enum weir_status parse_gcra(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	enum weir_status status = parse_rate(at, limit, error);
	if (status == WEIR_OK)
		status = required_int(at, "burst", "how many events may come at once beyond the first, such as 5, or 0", 0,
		                      &limit->burst, error);
	return status != WEIR_OK ? status : check_capacity(at, limit->burst + 1, limit->window_ms, error);
}

static enum weir_status parse_queue(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	struct weir_json done = weir_json_member(at, "done");
	enum weir_status status =
		required_int(at, "length", "how many may be in the queue, such as 5", 1, &limit->length, error);
	if (status == WEIR_OK)
		status =
			required_time(at, "hold", "how long an entry stays at the most, such as \"30s\"", &limit->hold_ms, error);
	if (status == WEIR_OK)
		status = weir_match_parse(&done, &limit->done, error);
	if (status == WEIR_OK && weir_json_exists(&done) && limit->done.field_count == 0)
		status = weir_json_fail(&done, error, "must name at least one field: it would match every record");
	return status;
}

enum weir_status weir_limit_parse(const struct weir_json *at, struct weir_limit *limit, struct weir_error *error)
{
	enum weir_status status = weir_json_only(at, all_names, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json name = weir_json_member(at, "algorithm");
	int algorithm = 0;
	if ((status = weir_json_require(&name, "one of sliding_window, fixed_window, uniform, token_bucket, gcra, queue",
	                                error)) != WEIR_OK ||
	    (status = weir_json_word(&name, algorithm_names, &algorithm, error)) != WEIR_OK)
		return status;
	limit->algorithm = (enum weir_algorithm)algorithm;
	if ((status = check_names(at, limit->algorithm, error)) != WEIR_OK)
		return status;
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW: return parse_sliding_window(at, limit, error);
	case WEIR_FIXED_WINDOW: return parse_fixed_window(at, limit, error);
	case WEIR_UNIFORM: return parse_uniform(at, limit, error);
	case WEIR_TOKEN_BUCKET: return parse_token_bucket(at, limit, error);
	case WEIR_GCRA: return parse_gcra(at, limit, error);
	case WEIR_QUEUE: return parse_queue(at, limit, error);
	case WEIR_ALGORITHM_COUNT: break;
	}
	abort();
}

bool weir_limit_equal(const struct weir_limit *a, const struct weir_limit *b)
{
	return a->algorithm == b->algorithm && a->rate == b->rate && a->window_ms == b->window_ms &&
	       a->precision_ms == b->precision_ms && a->offset_ms == b->offset_ms && a->burst == b->burst &&
	       a->penalize == b->penalize && a->length == b->length && a->hold_ms == b->hold_ms;
}

static int64_t divide_up(int64_t dividend, int64_t divisor)
{
	return dividend / divisor + (dividend % divisor != 0);
}

int64_t weir_limit_memory_ms(const struct weir_limit *limit)
{
	switch (limit->algorithm) {
	case WEIR_SLIDING_WINDOW: return limit->window_ms + limit->precision_ms;
	case WEIR_FIXED_WINDOW:
	case WEIR_UNIFORM: return limit->window_ms;
	case WEIR_TOKEN_BUCKET: return divide_up(limit->burst * limit->window_ms, limit->rate);
	case WEIR_GCRA: return divide_up((limit->burst + 1) * limit->window_ms, limit->rate);
	case WEIR_QUEUE: return limit->hold_ms;
	case WEIR_ALGORITHM_COUNT: break;
	}
	abort();
}
