/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of formats by name, and the words for what can be wrong with a line.
 */
#include "collector/format/format.h"

#include "collector/format/format_kinds.h"
#include "collector/format/format_options.h"
#include "common/base/suggest.h"
#include "common/json/json_shape.h"
#include "common/record/client_ip.h"
#include "common/record/find.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_KIND_LISTED(name) &format_##name,
static const struct format_kind *const kinds[] = {FORMAT_KINDS(FORMAT_KIND_LISTED)};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static_assert((int)KIND_COUNT <= (int)FORMAT_KINDS_MAX, "each kind has a reason");

/* ---- reasons ---- */

enum format_reason format_malformed(const struct format_kind *kind)
{
	size_t place = 0;
	while (place < KIND_COUNT - 1 && strcmp(kinds[place]->malformed, kind->malformed) != 0)
		place++;
	return (enum format_reason)(FORMAT_MALFORMED + place);
}

const char *format_reason_text(enum format_reason reason)
{
	static const char *const texts[FORMAT_MALFORMED] = {
		[FORMAT_OK] = "ok",
		[FORMAT_SKIP] = "skipped",
		[FORMAT_NO_TIME] = "no time",
		[FORMAT_BAD_TIME] = "bad time",
		[FORMAT_TIME_RANGE] = "time out of range",
		[FORMAT_LINE_TOO_LONG] = "line too long",
		[FORMAT_BAD_COST] = "bad cost",
		[FORMAT_NO_CLIENT] = "no client",
		[FORMAT_SEARCH_LIMIT] = "search limit",
		[FORMAT_AMBIGUOUS] = "ambiguous",
		[FORMAT_NO_MESSAGE] = "no message",
		[FORMAT_LEFT_OUT] = "message left out",
	};
	if (reason < FORMAT_MALFORMED)
		return texts[reason];
	size_t place = (size_t)reason - FORMAT_MALFORMED;
	return place < KIND_COUNT && format_malformed(kinds[place]) == reason ? kinds[place]->malformed : NULL;
}

/* ---- kinds ---- */

static struct weir_json type_of(const struct weir_json *config)
{
	return json_is_string(config->value) ? *config : weir_json_member(config, "type");
}

/* The kind of a log that is called by the program that writes it, or by what it looks like. @return NULL: none */
static const char *kind_meant(const char *word)
{
	static const char *const called[] = {"nginx", "apache", "apache2", "httpd", "iis", "cloudfront",
	                                     "csv",   "tsv",    "docker",  "regex", NULL};
	static const char *const meant[] = {"combined", "combined",  "combined",  "combined", "w3c",
	                                    "w3c",      "delimited", "delimited", "wrapped",  "pattern"};
	const char *near = weir_nearest_name(word, called);
	for (size_t i = 0; near != NULL && called[i] != NULL; i++)
		if (called[i] == near)
			return meant[i];
	return NULL;
}

/* The kind that a configuration names. */
static enum weir_status find_kind(const struct weir_json *config, const struct format_kind **found,
                                  struct weir_error *error)
{
	const char *names[KIND_COUNT + 1];
	for (size_t i = 0; i < KIND_COUNT; i++)
		names[i] = kinds[i]->name;
	names[KIND_COUNT] = NULL;

	struct weir_json type = type_of(config);
	if (!json_is_string(type.value)) {
		char known[WEIR_ERROR_TEXT_BYTES * 3 / 4];
		weir_list_names(names, "\"", known, sizeof known);
		if (json_is_object(config->value))
			return weir_json_fail(&type, error, "%s one of %s",
			                      weir_json_exists(&type) ? "must be" : "is missing: give", known);
		return weir_json_fail(config, error, "%s one of %s, or an object with such a \"type\" and options",
		                      weir_json_exists(config) ? "must be" : "is missing: give", known);
	}
	int kind = 0;
	enum weir_status status = weir_json_word(&type, names, &kind, error);
	const char *word = json_string_value(type.value), *meant = status != WEIR_OK ? kind_meant(word) : NULL;
	if (meant != NULL && weir_nearest_name(word, names) == NULL)
		weir_error_append(error, "; did you mean \"%s\"?", meant);
	*found = kinds[kind];
	return status;
}

/* A name alone, of those without needed options, or an object of one kind. */
json_t *format_shape(void)
{
	json_t *names = json_array(), *objects = json_array();
	for (size_t i = 0; i < KIND_COUNT; i++) {
		json_t *object = format_options_shape(kinds[i]);
		if (json_array_size(json_object_get(object, "required")) == 1) /* its "type" */
			json_array_append_new(names, json_string(kinds[i]->name));
		json_array_append_new(objects, object);
	}
	return weir_shape_either(json_pack("{s:o}", "enum", names), weir_shape_one_of(objects));
}

/* Without it every record would cost 1, or every client be the proxy, and no line would show that. */
static enum weir_status check_had(const struct format *format, int field, const struct weir_json *at,
                                  struct weir_error *error)
{
	char known[WEIR_ERROR_TEXT_BYTES / 2];
	const char *name = json_string_value(at->value);
	if (field < 0 || format->lacks == NULL || !format->lacks(format, (uint32_t)field))
		return WEIR_OK;
	if (format->names == NULL)
		return weir_json_fail(at, error,
		                      "no line of this format has the field \"%.80s\": name it in its \"pattern\", \"columns\" "
		                      "or \"fields\"",
		                      name);
	weir_list_names(format->names, "\"", known, sizeof known);
	return weir_json_fail(at, error, "no line of this format has the field \"%.80s\"; known: %s", name, known);
}

static enum weir_status check_needs(const struct format *format, const struct weir_json *config,
                                    struct weir_error *error)
{
	struct weir_json cost = weir_json_member(config, "cost"), client_ip = weir_json_member(config, "client_ip");
	struct weir_json header = weir_json_member(&client_ip, "header");
	enum weir_status status = check_had(format, format->cost, &cost, error);
	if (status == WEIR_OK && format->client_ip != NULL)
		status = check_had(format, weir_client_ip_header(format->client_ip), &header, error);
	return status;
}

/* @param inside  whether a head stood before the lines */
static enum weir_status create(const struct weir_json *config, bool inside, const struct weir_field_table *fields,
                               struct format **format, struct weir_error *error)
{
	const struct format_kind *kind;
	enum weir_status status = find_kind(config, &kind, error);
	if (status == WEIR_OK)
		status = (inside && kind->create_inside != NULL ? kind->create_inside : kind->create)(config, kind, fields,
		                                                                                      format, error);
	if (status != WEIR_OK)
		return status;
	(*format)->escapes = kind->escapes;
	(*format)->type = kind->name;
	(*format)->has_options = json_object_size(config->value) > 1;
	status = check_needs(*format, config, error);
	if (status != WEIR_OK) {
		format_free(*format);
		*format = NULL;
	}
	return status;
}

enum weir_status format_new(const struct weir_json *config, const struct weir_field_table *fields,
                            struct format **format, struct weir_error *error)
{
	enum weir_status status = create(config, false, fields, format, error);
	if (status != WEIR_OK || (*format)->missing_time == NULL)
		return status;
	struct weir_json at = weir_json_member(config, "pattern");
	status = weir_json_fail(&at, error, "has no group (?<%s>...) for the time", (*format)->missing_time);
	format_free(*format);
	*format = NULL;
	return status;
}

enum weir_status format_new_inside(const struct weir_json *config, const struct weir_field_table *fields,
                                   struct format **format, struct weir_error *error)
{
	return create(config, true, fields, format, error);
}

enum weir_status format_new_behind(const char *head, const struct weir_json *config,
                                   const struct weir_field_table *fields, struct format **format,
                                   struct weir_error *error)
{
	const struct format_kind *kind, *heads = NULL;
	if (head == NULL)
		return format_new(config, fields, format, error);
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (strcmp(kinds[i]->name, head) == 0)
			heads = kinds[i];
	assert(heads != NULL && heads->message != NULL);
	enum weir_status status = find_kind(config, &kind, error);
	if (status != WEIR_OK)
		return status;
	if (kind == heads)
		return format_new(config, fields, format, error);
	struct weir_json without_options = *config;
	without_options.value = NULL;
	return format_message_new(heads, &without_options, config, fields, format, error);
}

void format_free(struct format *format)
{
	if (format == NULL)
		return;
	weir_client_ip_free(format->client_ip);
	weir_served_path_room_deinit(&format->path_room);
	unescape_scratch_deinit(&format->escape_room);
	format->free(format);
}

void format_set_reference(struct format *format, int64_t written_ms)
{
	for (; format != NULL; format = format->inner)
		time_reader_set_reference(format->time, written_ms);
}

bool format_time_is_local(const struct format *format, int32_t *offset_s)
{
	for (const struct format *at = format; at != NULL; at = at->inner)
		if (at->time != NULL && at->time->local) {
			*offset_s = at->time->span.offset_s;
			return true;
		}
	return false;
}

bool format_time_is_twice(const struct format *format)
{
	for (const struct format *at = format; at != NULL; at = at->inner)
		if (at->time != NULL && at->time->local)
			return at->time->span.twice;
	return false;
}

/* ---- what is the same in every format ---- */

/* An address becomes canonical; anything else stays, and is told. */
static void settle_ip(struct format *format, struct weir_record *record)
{
	struct weir_span *ip = &record->fields[WEIR_FIELD_IP];
	struct weir_address address;
	if (ip->at == NULL || record->ip != WEIR_RECORD_IP_UNTOLD)
		return;
	if (weir_find_ipv4(ip->at, ip->length, ip->at + ip->length)) {
		record->ip = WEIR_RECORD_IP_PLAIN;
		return;
	}
	if (!weir_address_read(*ip, &address)) {
		record->ip = WEIR_RECORD_IP_WORD;
		return;
	}
	record->ip = WEIR_RECORD_IP_PLAIN;
	uint32_t length = weir_address_format(&address, format->ip_text);
	struct weir_span canonical = {.at = format->ip_text, .length = length};
	if (!weir_span_equal(canonical, *ip))
		*ip = canonical;
}

/* ---- what a server has escaped ---- */

enum { ESCAPED_FIELDS = 3 };

/*
 * What a client wrote, without what the server made of it: a byte that a log escapes and that a client may encode, such as
 * those of "é", is the same in both. So a file has one path. A client's own "\x2F" is escaped itself, and no slash. It is
 * done in the target, as which the path is read, and in the header of the proxies.
 */
static __attribute__((noinline, cold)) void take_escapes_off(struct format *format, struct weir_record *record)
{
	const int fields[ESCAPED_FIELDS] = {format->settles_path ? (int)WEIR_FIELD_PATH : -1, format->target,
	                                    format->client_ip != NULL ? weir_client_ip_header(format->client_ip) : -1};
	uint32_t room = 0;
	for (int i = 0; i < ESCAPED_FIELDS; i++)
		room += fields[i] >= 0 && record->fields[fields[i]].at != NULL ? record->fields[fields[i]].length : 0;
	unescape_scratch_clear(&format->escape_room);
	for (int i = 0; i < ESCAPED_FIELDS; i++) {
		struct weir_span *value = fields[i] >= 0 ? &record->fields[fields[i]] : NULL;
		if (value == NULL || value->at == NULL)
			continue;
		*value = format->escapes == FORMAT_ESCAPES_HASHES ? unescape_hashes(&format->escape_room, *value, room)
		                                                  : unescape_log(&format->escape_room, *value, room);
	}
}

/* ---- the other fields ---- */

/* The target is the path as it is written, unless the line has one of its own. */
static void settle_path(struct format *format, struct weir_record *record, bool escaped)
{
	struct weir_span *path = &record->fields[WEIR_FIELD_PATH];
	if (path->at == NULL)
		return;
	if (format->target >= 0 && record->fields[format->target].at == NULL)
		record->fields[format->target] = *path;
	struct weir_span served;
	if (!weir_served_path_stands(*path, &served)) {
		if (escaped)
			take_escapes_off(format, record);
		served = weir_served_path(*path, &format->path_room);
	}
	*path = served;
}

static void settle_host(struct format *format, struct weir_record *record)
{
	struct weir_span *host = &record->fields[WEIR_FIELD_HOST];
	if (host->at != NULL && host->length > 0)
		*host = weir_served_host(*host, format->host_text);
}

static void settle_method(struct weir_record *record)
{
	struct weir_span *method = &record->fields[WEIR_FIELD_METHOD];
	if (method->at != NULL)
		*method = weir_served_method(*method);
}

static bool settle_client(struct format *format, struct weir_record *record)
{
	struct weir_span header = record->fields[weir_client_ip_header(format->client_ip)];
	return weir_client_ip_apply(format->client_ip, header, record);
}

enum format_reason format_settle(struct format *format, struct weir_record *record)
{
	/* A path is looked at for escapes where it is looked at anyway. */
	bool escaped = format->escapes != FORMAT_ESCAPES_NONE;
	if (escaped && (format->target >= 0 || format->client_ip != NULL)) {
		take_escapes_off(format, record);
		escaped = false;
	}
	if (format->client_ip != NULL && !settle_client(format, record))
		return FORMAT_NO_CLIENT;
	if (format->settles_ip)
		settle_ip(format, record);
	if (format->settles_path)
		settle_path(format, record, escaped);
	if (format->settles_host)
		settle_host(format, record);
	if (format->settles_method)
		settle_method(record);
	return FORMAT_OK;
}

bool format_lacks(const struct format *format, uint32_t field)
{
	bool from_header = field == WEIR_FIELD_IP && format->client_ip != NULL;
	bool from_path = format->target >= 0 && field == (uint32_t)format->target;
	if (format->lacks == NULL || from_header)
		return false;
	return format->lacks(format, field) && !(from_path && !format->lacks(format, WEIR_FIELD_PATH));
}
