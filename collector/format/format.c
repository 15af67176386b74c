/*
 * The kinds of formats by name, and the words for what can be wrong with a line.
 */
#include "collector/format/format.h"

#include "collector/format/format_options.h"
#include "collector/record/client_ip.h"
#include "common/base/suggest.h"

#include <stdlib.h>

static const struct kind {
	const char *type, *inside; /* inside: the type that serves for it where the head was split off */
	enum weir_status (*create)(const struct weir_json *config, const char *type, const struct field_table *fields,
	                           struct format **format, struct weir_error *error);
} kinds[] = {
	{"combined", "combined", format_combined_new},
	{"common", "common", format_combined_new},
	{"json", "json", format_json_new},
	{"delimited", "delimited", format_delimited_new},
	{"logfmt", "logfmt", format_logfmt_new},
	{"pattern", "pattern", format_pattern_new},
	{"nginx_error", "nginx_error", format_pattern_new},
	{"haproxy", "haproxy", format_pattern_new},
	{"sshd", "sshd_message", format_pattern_new},
	{"syslog", "syslog", format_syslog_new},
	{"journal", "journal", format_journal_new},
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0] };

static struct weir_json type_of(const struct weir_json *config)
{
	return json_is_string(config->value) ? *config : weir_json_member(config, "type");
}

/* The kind that a configuration names. */
static enum weir_status find_kind(const struct weir_json *config, const struct kind **found, struct weir_error *error)
{
	const char *names[KIND_COUNT + 1];
	for (size_t i = 0; i < KIND_COUNT; i++)
		names[i] = kinds[i].type;
	names[KIND_COUNT] = NULL;

	struct weir_json type = type_of(config);
	if (!json_is_string(type.value)) {
		char known[WEIR_ERROR_TEXT_BYTES / 2];
		weir_list_names(names, "\"", known, sizeof known);
		if (json_is_object(config->value))
			return weir_json_fail(&type, error, "%s one of %s",
			                      weir_json_exists(&type) ? "must be" : "is missing:", known);
		return weir_json_fail(config, error, "%s one of %s, or an object with such a \"type\" and options",
		                      weir_json_exists(config) ? "must be" : "is missing:", known);
	}
	int kind = 0;
	enum weir_status status = weir_json_word(&type, names, &kind, error);
	*found = &kinds[kind];
	return status;
}

enum weir_status format_new(const struct weir_json *config, const struct field_table *fields, struct format **format,
                            struct weir_error *error)
{
	const struct kind *kind;
	enum weir_status status = find_kind(config, &kind, error);
	if (status == WEIR_OK)
		status = kind->create(config, kind->type, fields, format, error);
	if (status != WEIR_OK || (*format)->missing_time == NULL)
		return status;
	struct weir_json at = weir_json_member(config, "pattern");
	status = weir_json_fail(&at, error, "has no group (?<%s>...) for the time", (*format)->missing_time);
	format_free(*format);
	*format = NULL;
	return status;
}

enum weir_status format_new_inside(const struct weir_json *config, const struct field_table *fields,
                                   struct format **format, struct weir_error *error)
{
	const struct kind *kind;
	enum weir_status status = find_kind(config, &kind, error);
	return status == WEIR_OK ? kind->create(config, kind->inside, fields, format, error) : status;
}

enum weir_status format_new_for(const struct weir_json *source, const struct field_table *fields,
                                struct format **format, struct weir_error *error)
{
	struct weir_json config = weir_json_member(source, "format"), kind = weir_json_member(source, "type");
	struct weir_json type = type_of(&config);
	const char *head = json_string_value(kind.value), *name = json_string_value(type.value);
	bool has_head = head != NULL && (strcmp(head, "syslog") == 0 || strcmp(head, "journal") == 0);
	if (!has_head || (name != NULL && strcmp(head, name) == 0))
		return format_new(&config, fields, format, error);
	return format_message_new(&kind, &config, fields, format, error);
}

void format_free(struct format *format)
{
	if (format == NULL)
		return;
	client_ip_free(format->client_ip);
	format->free(format);
}

void format_apply_client_ip(const struct format *format, struct record *record)
{
	client_ip_apply(format->client_ip, record);
}

bool format_lacks(const struct format *format, uint32_t field)
{
	bool from_header = field == FIELD_IP && format->client_ip != NULL;
	return format->lacks != NULL && !from_header && format->lacks(format, field);
}
