/* SPDX-License-Identifier: Apache-2.0 */
/* Which kinds of source there are. */
#include "collector/source/kinds/source_kinds.h"

#include "collector/source/amqp/source_amqp.h"
#include "collector/source/decisions/source_decisions.h"
#include "collector/source/file/source_file.h"
#include "collector/source/file/source_stdin.h"
#include "collector/source/journal/source_journal.h"
#include "collector/source/kafka/source_kafka.h"
#include "collector/source/nats/source_nats.h"
#include "collector/source/push/forward/source_forward.h"
#include "collector/source/push/http/source_http.h"
#include "collector/source/redis/source_redis.h"
#include "collector/source/remote/s3/source_s3.h"
#include "collector/source/remote/webhdfs/source_webhdfs.h"
#include "collector/source/syslog/source_syslog.h"
#include "common/base/suggest.h"
#include "common/json/json_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which errors list them. */
static const struct source_ops *const kinds[] = {
	&source_file_ops,      /* files, through their rotations */
	&source_stdin_ops,     /* standard input */
	&source_syslog_ops,    /* what is sent by syslog */
	&source_journal_ops,   /* systemd's journal */
	&source_kafka_ops,     /* Kafka's topics */
	&source_nats_ops,      /* streams of NATS */
	&source_amqp_ops,      /* queues of RabbitMQ */
	&source_redis_ops,     /* streams of Redis */
	&source_webhdfs_ops,   /* files of an HDFS */
	&source_s3_ops,        /* objects of a bucket */
	&source_http_ops,      /* what is pushed by HTTP */
	&source_forward_ops,   /* what Fluentd, Fluent Bit and Docker send */
	&source_decisions_ops, /* what weir decides */
};

enum { KIND_COUNT = sizeof kinds / sizeof kinds[0], SHOWN_MAX = 100 };

static enum weir_status find_kind(const struct weir_json *config, const struct source_ops **found,
                                  struct weir_error *error)
{
	const char *types[KIND_COUNT + 1] = {NULL};
	for (size_t i = 0; i < KIND_COUNT; i++)
		types[i] = kinds[i]->type;
	char known[WEIR_ERROR_TEXT_BYTES / 2], words[WEIR_ERROR_TEXT_BYTES];
	weir_list_names(types, "\"", known, sizeof known);
	snprintf(words, sizeof words, "give one of %s", known);
	struct weir_json type = weir_json_member(config, "type");
	int kind = 0;
	enum weir_status status = weir_json_require(&type, words, error);
	if (status == WEIR_OK)
		status = weir_json_word(&type, types, &kind, error);
	*found = status == WEIR_OK ? kinds[kind] : NULL;
	return status;
}

/* The options of a format are not its source's: whoever puts one there hears where it belongs. */
static enum weir_status check_places(const struct weir_json *config, const struct weir_json_rule *members,
                                     struct weir_error *error)
{
	static const char *const of_format[] = {"time",    "unit",    "time_format", "time_zone", "year",
	                                        "cost",    "fields",  "client_ip",   "columns",   "separator",
	                                        "pattern", "message", NULL};
	struct weir_json format = weir_json_member(config, "format"), type = weir_json_member(&format, "type");
	const char *name = json_string_value(json_is_object(format.value) ? type.value : format.value);
	for (const char *const *option = of_format; *option != NULL; option++) {
		struct weir_json member = weir_json_member(config, *option);
		const struct weir_json_rule *own = members;
		while (own->name != NULL && strcmp(own->name, *option) != 0)
			own++;
		if (member.value == NULL || own->name != NULL)
			continue;
		char *value = json_dumps(member.value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
		bool brief = value != NULL && strlen(value) <= SHOWN_MAX;
		enum weir_status status =
			weir_json_fail(&member, error, "belongs into the source's \"format\": {\"type\": %s%.40s%s%s, \"%s\": %s}",
		                   name != NULL ? "\"" : "", name != NULL ? name : "...", name != NULL ? "\"" : "",
		                   json_object_size(format.value) > 1 ? ", ..." : "", *option, brief ? value : "...");
		free(value);
		return status;
	}
	return WEIR_OK;
}

/* No other source may have the name of one that is known by it. */
static enum weir_status check_name(const struct weir_json *config, struct weir_error *error)
{
	struct weir_json name = weir_json_member(config, "name");
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (json_is_string(name.value) && kinds[i]->own_name != NULL &&
		    strcmp(json_string_value(name.value), kinds[i]->own_name) == 0)
			return weir_json_fail(&name, error, "is the name of the source of type \"%s\"; choose another",
			                      kinds[i]->type);
	return WEIR_OK;
}

const struct source_ops *const *source_kinds(size_t *count)
{
	*count = KIND_COUNT;
	return kinds;
}

json_t *source_shape(void)
{
	json_t *shapes = json_array();
	for (size_t i = 0; i < KIND_COUNT; i++) {
		json_t *shape = weir_shape_tagged(weir_shape_object(kinds[i]->members), "type", kinds[i]->type);
		json_array_append_new(shapes, kinds[i]->own_format == NULL ? weir_shape_needs(shape, "format") : shape);
	}
	return weir_shape_one_of(shapes);
}

const struct source_ops *source_kind(const struct weir_json *config)
{
	const struct source_ops *kind;
	struct weir_error ignored;
	return find_kind(config, &kind, &ignored) == WEIR_OK ? kind : NULL;
}

const char *source_zones_name(const struct weir_json *config)
{
	const struct source_ops *kind = source_kind(config);
	struct weir_json name = weir_json_member(config, "name");
	return kind != NULL && kind->own_name != NULL ? kind->own_name : json_string_value(name.value);
}

/* Once a run. */
static void tell_doubt(const struct weir_json *config, const struct source_context *context,
                       const struct source *source)
{
	struct weir_text words = {0};
	if (context->tell == NULL || context->again || source->ops->doubt == NULL)
		return;
	source->ops->doubt(source, &words);
	weir_text_append(&words, "", 1);
	if (words.at[0] != '\0')
		context->tell(context->tell_context, config->path, words.at);
	weir_text_deinit(&words);
}

enum weir_status source_new(const struct weir_json *config, const struct source_context *context,
                            struct source **source, struct weir_error *error)
{
	const struct source_ops *kind;
	enum weir_status status = find_kind(config, &kind, error);
	if (status == WEIR_OK)
		status = check_places(config, kind->members, error);
	if (status == WEIR_OK)
		status = weir_json_known(config, kind->members, error);
	if (status == WEIR_OK)
		status = check_name(config, error);
	if (status == WEIR_OK)
		status = kind->create(config, context, source, error);
	if (status == WEIR_OK)
		tell_doubt(config, context, *source);
	return status;
}

enum weir_status source_apart(const struct weir_json *sources, size_t place, struct weir_error *error)
{
	struct weir_json own = weir_json_element(sources, place);
	const struct source_ops *kind = source_kind(&own);
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < place && kind != NULL && kind->apart != NULL && status == WEIR_OK; i++) {
		struct weir_json other = weir_json_element(sources, i);
		if (source_kind(&other) == kind)
			status = kind->apart(&own, &other, error);
	}
	return status;
}
