/* SPDX-License-Identifier: Apache-2.0 */
/* Any names and values behind the ? of a request: read within their bounds, or refused in words. */
#include "archiver/api/api_parameters.h"
#include "archiver/api/api_time.h"
#include "common/policy/policy.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT_MAX = 1000 };

static void check_time(const struct api_parameters *parameters, enum api_parameter which, int64_t time_ms)
{
	if ((parameters->given & API_BIT(which)) != 0)
		assert(time_ms >= API_TIME_LEAST_MS && time_ms <= API_TIME_MOST_MS);
}

static void check_good(const struct api_parameters *parameters)
{
	check_time(parameters, API_FROM, parameters->from_ms);
	check_time(parameters, API_TO, parameters->to_ms);
	check_time(parameters, API_DAY, parameters->day_ms);
	assert(parameters->zone.length <= WEIR_ZONE_NAME_MAX_BYTES && parameters->key.length <= WEIR_KEY_MAX_BYTES);
	assert(parameters->limit >= 0 && parameters->limit <= LIMIT_MAX);
	assert(parameters->action == NULL || (parameters->given & API_BIT(API_ACTION)) != 0);
	if ((parameters->given & API_BIT(API_AFTER)) != 0) {
		char text[API_PLACE_BYTES];
		struct api_parameters again;
		struct api_fault fault;
		api_parameters_init(&again);
		bool good = api_parameter_read(&again, API_BIT(API_AFTER), LIMIT_MAX, weir_span_of("after"),
		                               weir_span_of(api_place_write(&parameters->after, text)), &fault);
		assert(good && memcmp(&again.after, &parameters->after, sizeof again.after) == 0);
		(void)good;
	}
}

/* A line is NAME=VALUE, or a name alone. */
static bool read_line(struct api_parameters *parameters, unsigned allowed, struct weir_span line,
                      struct api_fault *fault)
{
	const char *mark = line.length > 0 ? memchr(line.at, '=', line.length) : NULL;
	struct weir_span name = line, value = {.at = NULL};
	if (mark != NULL) {
		name.length = (uint32_t)(mark - line.at);
		value = (struct weir_span){mark + 1, line.length - name.length - 1};
	}
	return api_parameter_read(parameters, allowed, LIMIT_MAX, name, value, fault);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct api_parameters parameters;
	struct api_fault fault = {.status = 0};
	const char *at = (const char *)data, *end = at + size;
	api_parameters_init(&parameters);
	unsigned allowed =
		size > 0 && *at == '!' ? API_BIT(API_ZONE) | API_BIT(API_LIMIT) : API_BIT(API_PARAMETER_COUNT) - 1;
	bool good = true;
	while (good && at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		if (line_end == NULL)
			line_end = end;
		good = read_line(&parameters, allowed, (struct weir_span){at, (uint32_t)(line_end - at)}, &fault);
		at = line_end < end ? line_end + 1 : end;
	}
	if (good)
		check_good(&parameters);
	else
		assert(fault.status == 400 && fault.parameter != NULL && fault.message[0] != '\0');
	return 0;
}
