/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters are read one by one, in order. One that is unknown, given twice,
 * empty or out of range ends the reading with an error for the client.
 */
#include "archiver/api/api_parameters.h"

#include "archiver/api/api_time.h"
#include "common/policy/policy.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
	[API_ZONE] = "zone",   [API_KEY] = "key",     [API_BUCKET] = "bucket", [API_FROM] = "from",     [API_TO] = "to",
	[API_DAY] = "day",     [API_GRAIN] = "grain", [API_BY] = "by",         [API_ACTION] = "action", [API_MODE] = "mode",
	[API_LIMIT] = "limit", [API_AFTER] = "after", [API_FORMAT] = "format", [API_ID] = "id",
};

static const char *const grains[] = {"hour", "day", NULL};
static const char *const bys[] = {"passed", "blocked", "total", NULL};
static const char *const actions[] = {"block", "lift", NULL};
static const char *const modes[] = {"enforce", "shadow", "all", NULL};
static const char *const formats[] = {"json", "csv", "spreadsheet", NULL};

const char *api_parameter_name(enum api_parameter parameter)
{
	return names[parameter];
}

const char *api_by_name(enum api_by by)
{
	return bys[by];
}

const char *api_grain_name(enum api_grain grain)
{
	return grains[grain];
}

bool api_fault_set(struct api_fault *fault, unsigned status, const char *parameter, const char *format, ...)
{
	fault->status = status;
	fault->parameter = parameter;
	va_list args;
	va_start(args, format);
	vsnprintf(fault->message, sizeof fault->message, format, args);
	va_end(args);
	return false;
}

void api_parameters_init(struct api_parameters *parameters)
{
	*parameters =
		(struct api_parameters){.grain = API_HOUR, .by = API_BY_TOTAL, .mode = API_ENFORCE, .format = API_JSON};
}

/* ---- one value ---- */

static bool read_time(enum api_parameter which, struct weir_span value, int64_t *time_ms, struct api_fault *fault)
{
	return api_time_read(value, time_ms) || api_fault_set(fault, 400, names[which], "expected " API_TIME_FORMS);
}

static bool read_word(enum api_parameter which, const char *const *words, struct weir_span value, int *number,
                      struct api_fault *fault)
{
	char list[128];
	size_t used = 0;
	for (*number = 0; words[*number] != NULL; (*number)++) {
		if (weir_span_equal(weir_span_of(words[*number]), value))
			return true;
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", *number > 0 ? ", " : "", words[*number]);
	}
	return api_fault_set(fault, 400, names[which], "expected one of %s", list);
}

static bool read_limit(struct weir_span value, int64_t most, int64_t *limit, struct api_fault *fault)
{
	int64_t number = 0;
	uint32_t at = 0;
	while (at < value.length && at < 10 && value.at[at] >= '0' && value.at[at] <= '9')
		number = number * 10 + (value.at[at++] - '0');
	*limit = number;
	if (at == 0 || at < value.length || number < 1 || number > most)
		return api_fault_set(fault, 400, names[API_LIMIT], "expected a whole number from 1 to %" PRId64, most);
	return true;
}

const char *api_place_write(const struct api_place *place, char *text)
{
	snprintf(text, API_PLACE_BYTES, "%" PRId64 ".%" PRIx64 ".%" PRIx64 ".%" PRIx64, place->at_ms,
	         (uint64_t)place->partition, (uint64_t)place->offset, (uint64_t)place->pair);
	return text;
}

static bool read_place(struct weir_span value, struct api_place *place, struct api_fault *fault)
{
	char text[API_PLACE_BYTES] = "", again[API_PLACE_BYTES];
	uint64_t partition = 0, offset = 0, pair = 0;
	if (value.length < sizeof text)
		memcpy(text, value.at, value.length);
	/* What is read must be what api_place_write() gives: no other form, nothing that overflowed. */
	int read =
		sscanf(text, "%19" SCNd64 ".%16" SCNx64 ".%16" SCNx64 ".%16" SCNx64, &place->at_ms, &partition, &offset, &pair);
	*place = (struct api_place){place->at_ms, (int64_t)partition, (int64_t)offset, (int64_t)pair};
	if (read == 4 && strlen(text) == value.length && strcmp(api_place_write(place, again), text) == 0)
		return true;
	return api_fault_set(fault, 400, names[API_AFTER], "expected the unchanged \"next\" of the previous page");
}

static bool read_value(struct api_parameters *parameters, enum api_parameter which, int64_t limit_max,
                       struct weir_span value, struct api_fault *fault)
{
	int number = 0;
	bool good = true;
	switch (which) {
	case API_ZONE:
		parameters->zone = value;
		return value.length <= WEIR_ZONE_NAME_MAX_BYTES ||
		       api_fault_set(fault, 400, names[which], "expected a zone name of at most %d bytes",
		                     WEIR_ZONE_NAME_MAX_BYTES);
	case API_KEY:
	case API_BUCKET:
		parameters->key = value;
		parameters->given |= API_BIT(API_KEY);
		return value.length <= WEIR_KEY_MAX_BYTES ||
		       api_fault_set(fault, 400, names[which], "expected a key of at most %d bytes", WEIR_KEY_MAX_BYTES);
	case API_FROM: return read_time(which, value, &parameters->from_ms, fault);
	case API_TO: return read_time(which, value, &parameters->to_ms, fault);
	case API_DAY: return read_time(which, value, &parameters->day_ms, fault);
	case API_GRAIN:
		good = read_word(which, grains, value, &number, fault);
		parameters->grain = (enum api_grain)number;
		return good;
	case API_BY:
		good = read_word(which, bys, value, &number, fault);
		parameters->by = (enum api_by)number;
		return good;
	case API_ACTION:
		good = read_word(which, actions, value, &number, fault);
		parameters->action = actions[number];
		return good;
	case API_MODE:
		good = read_word(which, modes, value, &number, fault);
		parameters->mode = (enum api_mode)number;
		return good;
	case API_LIMIT: return read_limit(value, limit_max, &parameters->limit, fault);
	case API_AFTER: return read_place(value, &parameters->after, fault);
	case API_FORMAT:
		good = read_word(which, formats, value, &number, fault);
		parameters->format = (enum api_format)number;
		return good;
	case API_ID:
		parameters->id = value;
		return value.length < API_ID_BYTES ||
		       api_fault_set(fault, 400, names[which], "expected a decision's id, such as 3-1841-0");
	case API_PARAMETER_COUNT: break;
	}
	abort();
}

/* ---- whichever comes ---- */

static bool refuse_unknown(unsigned allowed, struct weir_span name, struct api_fault *fault)
{
	char list[160] = "";
	size_t used = 0;
	for (int i = 0; i < API_PARAMETER_COUNT; i++)
		if ((allowed & API_BIT(i)) != 0)
			used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", names[i]);
	size_t length = name.length < sizeof fault->name - 1 ? name.length : sizeof fault->name - 1;
	memcpy(fault->name, name.at, length);
	fault->name[length] = '\0';
	if (used == 0)
		return api_fault_set(fault, 400, fault->name, "unknown parameter: none is expected here");
	return api_fault_set(fault, 400, fault->name, "unknown parameter: expected one of %s", list);
}

bool api_parameter_read(struct api_parameters *parameters, unsigned allowed, int64_t limit_max, struct weir_span name,
                        struct weir_span value, struct api_fault *fault)
{
	int which = 0;
	while (which < API_PARAMETER_COUNT && !weir_span_equal(weir_span_of(names[which]), name))
		which++;
	if (which == API_PARAMETER_COUNT || (allowed & API_BIT(which)) == 0)
		return refuse_unknown(allowed, name, fault);
	const unsigned both = API_BIT(API_KEY) | API_BIT(API_BUCKET), named = parameters->given & both;
	if ((API_BIT(which) & both) != 0 && named != 0 && (named == both) == (which == API_KEY))
		return api_fault_set(fault, 400, names[which], "expected either \"key\" or \"bucket\"");
	if ((parameters->given & API_BIT(which)) != 0)
		return api_fault_set(fault, 400, names[which], "given twice: expected once");
	if (value.length == 0 && (API_BIT(which) & both) == 0) /* a zone's only bucket has an empty key */
		return api_fault_set(fault, 400, names[which], "empty: expected a value, or no such parameter");
	if (value.at == NULL)
		value.at = "";
	parameters->given |= API_BIT(which);
	return read_value(parameters, (enum api_parameter)which, limit_max, value, fault);
}
