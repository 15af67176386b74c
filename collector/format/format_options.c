/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what all formats' configurations have in common.
 *
 * The fields that a cost or a trusted proxy's header needs are added after the zones' own: their indexes differ from
 * format to format, which is why they live here and not in the table that all formats share.
 */
#include "collector/format/format_options.h"

#include "common/base/alloc.h"
#include "common/json/json_shape.h"
#include "common/record/client_ip.h"

#include <assert.h>
#include <stdlib.h>

/* A name: a string that is not empty, and of a bounded length. */
static enum weir_status read_name(const struct weir_json *at, const char **name, struct weir_error *error)
{
	enum weir_status status = weir_json_string(at, name, error);
	if (status == WEIR_OK && weir_json_exists(at) && (**name == '\0' || strlen(*name) > FORMAT_NAME_MAX_BYTES))
		status = weir_json_fail(at, error, "must be a name of 1 to %d bytes", FORMAT_NAME_MAX_BYTES);
	return status;
}

json_t *format_name_shape(void)
{
	return weir_shape_name(FORMAT_NAME_MAX_BYTES);
}

json_t *format_message_shape(void)
{
	return weir_shape_named("format");
}

static json_t *time_shape(void)
{
	return weir_shape_either(format_name_shape(), weir_shape_list(2, 2, format_name_shape()));
}

static json_t *year_shape(void)
{
	return weir_shape_either(weir_shape_number(1970, 9998), weir_shape_pattern("^[0-9]{4}-[0-9]{2}$"));
}

static json_t *fields_shape(void)
{
	return weir_shape_map(format_name_shape());
}

static const char *const units[] = {
	[TIME_UNIT_S] = "s", [TIME_UNIT_MS] = "ms", [TIME_UNIT_US] = "us", [TIME_UNIT_NS] = "ns", NULL};

/* The options that formats have in common, and which of FORMAT_TAKES_… makes a format take them; 0: every one does. */
static const struct {
	unsigned takes;
	struct weir_json_rule rule;
} common_options[] = {
	{0, {.name = "type", .meaning = "the kind of format", .shape = weir_shape_text}},
	{FORMAT_TAKES_TIME,
     {.name = "time", .meaning = "the log's name for the time, or two names, joined by a blank", .shape = time_shape}},
	{FORMAT_TAKES_TIME,
     {.name = "unit", .kind = WEIR_JSON_WORD, .words = units, .meaning = "the unit of times that are Unix numbers"}},
	{FORMAT_TAKES_TIME,
     {.name = "time_format", .kind = WEIR_JSON_TEXT, .meaning = "the time's form, such as \"%d.%m.%Y %H:%M:%S\""}},
	{0,
     {.name = "time_zone",
      .kind = WEIR_JSON_TEXT,
      .meaning = "for times without a zone: \"UTC\", \"+02:00\", or a name such as \"Europe/Berlin\""}},
	{FORMAT_TAKES_YEAR, {.name = "year", .meaning = "for times without a year", .shape = year_shape}},
	{FORMAT_TAKES_FIELDS,
     {.name = "fields", .meaning = "the log's names for fields of the zones", .shape = fields_shape}},
	{0, {.name = "cost", .meaning = "the field with a record's cost", .shape = format_name_shape}},
	{0, {.name = "client_ip", .meaning = "finds the client behind trusted proxies", .shape = weir_client_ip_shape}},
};

/* What a format of this kind may say: a table that ends as rules do. */
static void list_options(const struct format_kind *kind, struct weir_json_rule rules[WEIR_JSON_RULES_MAX + 1])
{
	size_t count = 0;
	for (size_t i = 0; i < sizeof common_options / sizeof *common_options; i++)
		if (common_options[i].takes == 0 || (kind->takes & common_options[i].takes) != 0)
			rules[count++] = common_options[i].rule;
	for (const struct weir_json_rule *own = kind->options; own != NULL && own->name != NULL; own++) {
		assert(count < WEIR_JSON_RULES_MAX);
		rules[count++] = *own;
	}
	rules[count] = (struct weir_json_rule){.name = NULL};
}

static enum weir_status check_names(const struct weir_json *config, const struct format_kind *kind,
                                    struct weir_error *error)
{
	struct weir_json_rule rules[WEIR_JSON_RULES_MAX + 1];
	list_options(kind, rules);
	return weir_json_known(config, rules, error);
}

json_t *format_options_shape(const struct format_kind *kind)
{
	struct weir_json_rule rules[WEIR_JSON_RULES_MAX + 1];
	list_options(kind, rules);
	return weir_shape_explained(weir_shape_tagged(weir_shape_object(rules), "type", kind->name), kind->meaning);
}

/* 2024, or "2024-11" for the twelve months from November on. */
static enum weir_status read_year(const struct weir_json *at, struct time_reader *time, struct weir_error *error)
{
	if (!weir_json_exists(at))
		return WEIR_OK;
	int64_t year = 0, month = 1;
	if (json_is_integer(at->value)) {
		year = json_integer_value(at->value);
	} else if (json_is_string(at->value)) {
		const char *text = json_string_value(at->value);
		char *rest = NULL;
		if (strlen(text) == 7 && text[4] == '-' && strspn(text, "0123456789") == 4 &&
		    strspn(text + 5, "0123456789") == 2) {
			year = strtoll(text, &rest, 10);
			month = strtoll(text + 5, &rest, 10);
		}
	}
	if (year < 1970 || year > 9998 || month < 1 || month > 12)
		return weir_json_fail(at, error,
		                      "must be the year for times without one, such as 2024, or the month in which "
		                      "that year begins, such as \"2024-11\"");
	time->first_year = (int32_t)year;
	time->first_month = (int32_t)month;
	return WEIR_OK;
}

/* A name, or a list of two of which the parts are joined. */
static enum weir_status read_time_names(struct format_options *options, const struct weir_json *at,
                                        struct weir_error *error)
{
	const char *name = "time", *second = NULL;
	struct weir_json element = weir_json_element(at, 0), other = weir_json_element(at, 1);
	enum weir_status status;
	if (!json_is_array(at->value))
		status = read_name(at, &name, error);
	else if (json_array_size(at->value) != 2)
		status = weir_json_fail(at, error, "must be a name, or a list of two, such as [\"date\", \"time\"]");
	else if ((status = read_name(&element, &name, error)) == WEIR_OK)
		status = read_name(&other, &second, error);
	if (status != WEIR_OK)
		return status;
	options->time_name = weir_copy(name, strlen(name));
	options->time_second = second != NULL ? weir_copy(second, strlen(second)) : NULL;
	return WEIR_OK;
}

static enum weir_status read_time_format(struct format_options *options, const struct weir_json *at,
                                         struct weir_error *error)
{
	const char *text = NULL;
	struct weir_error why = {0};
	enum weir_status status = weir_json_string(at, &text, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	if (time_form_new(text, &options->time.form, &why) != WEIR_OK)
		return weir_json_fail(at, error, "%s", why.text);
	return WEIR_OK;
}

static enum weir_status read_time(struct format_options *options, const struct weir_json *config, unsigned takes,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, "time_zone"), none = {0};
	const char *zone_name = "UTC";
	enum weir_status status = weir_json_string(&at, &zone_name, error);
	if (status != WEIR_OK)
		return status;
	struct time_zone *zone;
	struct weir_error why = {0};
	status = time_zone_new(zone_name, &zone, &why);
	if (status != WEIR_OK)
		return weir_json_fail(&at, error, "%s", why.text);
	time_reader_init(&options->time, zone);

	int unit = TIME_UNIT_S;
	bool takes_time = (takes & FORMAT_TAKES_TIME) != 0;
	options->time.takes_form = takes_time;
	options->time.takes_year = (takes & FORMAT_TAKES_YEAR) != 0;
	at = takes_time ? weir_json_member(config, "time") : none;
	if ((status = read_time_names(options, &at, error)) != WEIR_OK)
		return status;
	if (takes_time) {
		at = weir_json_member(config, "unit");
		options->time.unit_given = weir_json_exists(&at);
		if ((status = weir_json_word(&at, units, &unit, error)) != WEIR_OK)
			return status;
		at = weir_json_member(config, "time_format");
		if ((status = read_time_format(options, &at, error)) != WEIR_OK)
			return status;
	}
	options->time.unit = (enum time_unit)unit;
	at = weir_json_member(config, "year");
	return (takes & FORMAT_TAKES_YEAR) != 0 ? read_year(&at, &options->time, error) : WEIR_OK;
}

static void copy_table(struct weir_field_table *copy, const struct weir_field_table *fields)
{
	*copy = *fields;
	for (uint32_t i = 0; i < fields->count; i++)
		copy->names[i] = weir_copy(fields->names[i], strlen(fields->names[i]));
}

/* Which fields the record is to be settled in; the target is had from the path. */
static void settle_fields(struct format_options *options, struct format *format)
{
	format->target = weir_field_table_find(&options->fields, weir_span_of("target"));
	if (format->target >= 0 && !format_wants(options, (uint32_t)format->target))
		format->target = -1;
	if (format->target >= 0)
		options->fields.wanted |= UINT64_C(1) << WEIR_FIELD_PATH;
	format->settles_path = format_wants(options, WEIR_FIELD_PATH);
	format->settles_ip = format_wants(options, WEIR_FIELD_IP);
	format->settles_host = format_wants(options, WEIR_FIELD_HOST);
	format->settles_method = format_wants(options, WEIR_FIELD_METHOD);
	format->settles = format->settles_ip || format->settles_path || format->settles_host || format->settles_method ||
	                  format->client_ip != NULL;
}

static enum weir_status read_cost(struct format_options *options, const struct weir_json *config,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(config, "cost");
	const char *name = NULL;
	options->cost_field = -1;
	enum weir_status status = read_name(&at, &name, error);
	if (status != WEIR_OK || name == NULL)
		return status;
	options->cost_field = weir_field_table_want(&options->fields, name);
	if (options->cost_field < 0)
		return weir_json_fail(&at, error, "is one field too many: zones and formats can use %d", WEIR_FIELD_MAX);
	return WEIR_OK;
}

/* The log's own name of each wanted field: what "fields" says, else the field's name. */
static enum weir_status read_sources(struct format_options *options, const struct weir_json *config,
                                     struct weir_error *error)
{
	struct weir_json map = weir_json_member(config, "fields");
	if (weir_json_exists(&map) && !json_is_object(map.value))
		return weir_json_fail(&map, error,
		                      "must be an object that maps fields to the log's names, such as {\"ip\": \"client\"}");
	const char *field;
	json_t *value;
	json_object_foreach(map.value, field, value)
	{
		struct weir_json at = weir_json_member(&map, field);
		const char *name;
		enum weir_status status = read_name(&at, &name, error);
		if (status != WEIR_OK)
			return status;
	}
	for (uint32_t i = 0; i < options->fields.count; i++) {
		if (!format_wants(options, i))
			continue;
		const char *name = json_string_value(json_object_get(map.value, options->fields.names[i]));
		if (name == NULL)
			name = options->fields.names[i];
		if (strlen(name) > FORMAT_NAME_MAX_BYTES)
			return weir_json_fail(config, error, "the field \"%.40s...\" has a name of more than %d bytes", name,
			                      FORMAT_NAME_MAX_BYTES);
		options->sources[i] = weir_copy(name, strlen(name));
	}
	return WEIR_OK;
}

enum weir_status format_options_init(struct format_options *options, const struct weir_json *config,
                                     const struct weir_field_table *fields, const struct format_kind *kind,
                                     struct format *format, struct weir_error *error)
{
	*options = (struct format_options){.cost_field = -1};
	format->malformed = format_malformed(kind);
	format->time = &options->time;
	format->target = -1;
	format->cost = -1;
	copy_table(&options->fields, fields);
	if ((kind->takes & FORMAT_NEEDS_IP) != 0)
		options->fields.wanted |= UINT64_C(1) << WEIR_FIELD_IP;
	enum weir_status status;
	if (json_is_object(config->value) && (status = check_names(config, kind, error)) != WEIR_OK)
		return status;
	if ((status = read_time(options, config, kind->takes, error)) != WEIR_OK)
		return status;
	if ((status = read_cost(options, config, error)) != WEIR_OK)
		return status;
	format->cost = options->cost_field;
	struct weir_json at = weir_json_member(config, "client_ip");
	if ((status = weir_client_ip_new(&at, &options->fields, &format->client_ip, error)) != WEIR_OK)
		return status;
	settle_fields(options, format);
	status = read_sources(options, config, error);
	options->time.name = options->time_name;
	format->ip_name =
		(kind->takes & FORMAT_TAKES_FIELDS) != 0 && kind->places == NULL ? options->sources[WEIR_FIELD_IP] : NULL;
	if (status == WEIR_OK && kind->options != NULL)
		status = weir_json_read(config, kind->options, format, error);
	return status;
}

void format_options_set_time(struct format_options *options, const char *name, enum time_unit unit)
{
	free(options->time_name);
	options->time_name = weir_copy(name, strlen(name));
	options->time.name = options->time_name;
	options->time.unit = unit;
	options->time.unit_given = true;
}

void format_options_deinit(struct format_options *options)
{
	for (uint32_t i = 0; i < WEIR_FIELD_MAX; i++)
		free((char *)options->sources[i]);
	free(options->time_name);
	free(options->time_second);
	time_reader_deinit(&options->time);
	weir_field_table_deinit(&options->fields);
}

/* Digits, at most WEIR_COST_MAX. */
static bool parse_cost(struct weir_span text, int64_t *cost)
{
	int64_t value = 0;
	for (uint32_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		value = value * 10 + (text.at[i] - '0');
		if (value > WEIR_COST_MAX)
			return false;
	}
	*cost = value;
	return true;
}

enum format_reason format_finish_cost(const struct format_options *options, struct weir_record *record)
{
	record->cost = 1;
	if (options->cost_field < 0 || record->fields[options->cost_field].at == NULL)
		return FORMAT_OK;
	return parse_cost(record->fields[options->cost_field], &record->cost) ? FORMAT_OK : FORMAT_BAD_COST;
}

struct weir_span format_join_time(struct format_options *options, struct weir_span first, struct weir_span second)
{
	if (first.length == 0 || second.length == 0)
		return (struct weir_span){0};
	if (first.length + second.length >= sizeof options->joined)
		return first; /* which is no time: it is too long, or lacks what follows */
	memcpy(options->joined, first.at, first.length);
	options->joined[first.length] = ' ';
	memcpy(options->joined + first.length + 1, second.at, second.length);
	return (struct weir_span){.at = options->joined, .length = first.length + 1 + second.length};
}

enum format_reason format_finish(struct format_options *options, struct weir_span time, struct weir_record *record)
{
	enum format_reason reason = time_read(&options->time, time, &record->time_ms);
	return reason == FORMAT_OK ? format_finish_cost(options, record) : reason;
}
