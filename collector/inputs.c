/* One source object a configuration entry; one reader, with a format of its own, a stream. */
#include "collector/inputs.h"

#include "common/alloc.h"

#include <stdlib.h>

enum weir_status inputs_new(const struct weir_config *config, const struct weir_policy *policy,
                            const struct source_context *context, struct dead_letters *dead, struct inputs **out,
                            struct weir_error *error)
{
	struct inputs *inputs = weir_alloc(1, sizeof *inputs);
	inputs->config = config;
	inputs->dead = dead;
	inputs->sources = weir_alloc(config->source_count, sizeof(struct source *));
	field_table_init(&inputs->fields);
	enum weir_status status =
		matcher_new(policy, &inputs->fields, (uint32_t)config->bus.partitions, &inputs->matcher, error);
	while (status == WEIR_OK && inputs->source_count < config->source_count) {
		struct weir_json source = weir_json_element(&config->sources, inputs->source_count);
		status = source_new(&source, context, &inputs->sources[inputs->source_count], error);
		if (status == WEIR_OK)
			inputs->source_count++;
	}
	if (status != WEIR_OK) {
		inputs_free(inputs);
		return status;
	}
	*out = inputs;
	return WEIR_OK;
}

static void free_readers(struct source *source)
{
	struct source_stream **streams;
	size_t count = source->ops->streams(source, &streams);
	for (size_t i = 0; i < count; i++) {
		if (streams[i]->context == NULL)
			continue;
		record_reader_deinit(streams[i]->context);
		free(streams[i]->context);
		streams[i]->context = NULL;
	}
}

void inputs_free(struct inputs *inputs)
{
	if (inputs == NULL)
		return;
	for (size_t i = 0; i < inputs->source_count; i++) {
		free_readers(inputs->sources[i]);
		inputs->sources[i]->ops->free(inputs->sources[i]);
	}
	free(inputs->sources);
	matcher_free(inputs->matcher);
	field_table_deinit(&inputs->fields);
	free(inputs);
}

static enum weir_status new_format(struct inputs *inputs, size_t place, struct format **format,
                                   struct weir_error *error)
{
	struct weir_json source = weir_json_element(&inputs->config->sources, place);
	struct weir_json config = weir_json_member(&source, "format");
	return format_new(&config, &inputs->fields, format, error);
}

enum weir_status inputs_check(const struct weir_config *config, struct weir_error *error)
{
	struct source_context context = {.once = true, .line_max_bytes = (uint32_t)config->collector.line_max_bytes};
	struct inputs *inputs;
	enum weir_status status = inputs_new(config, config->policy, &context, NULL, &inputs, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; status == WEIR_OK && i < inputs->source_count; i++) {
		struct format *format;
		status = new_format(inputs, i, &format, error);
		if (status == WEIR_OK)
			format_free(format);
	}
	inputs_free(inputs);
	return status;
}

enum weir_status inputs_reader(struct inputs *inputs, size_t place, struct source_stream *stream,
                               struct record_reader **reader, struct weir_error *error)
{
	*reader = stream->context;
	if (*reader != NULL)
		return WEIR_OK;
	struct format *format;
	enum weir_status status = new_format(inputs, place, &format, error);
	if (status != WEIR_OK)
		return status;
	*reader = weir_alloc(1, sizeof **reader);
	record_reader_init(*reader, stream, format, inputs->dead);
	stream->context = *reader;
	return WEIR_OK;
}

/* A policy may want other fields: every reader gets a new format, which knows the header that the old one knew. */
static enum weir_status renew_formats(struct inputs *inputs, size_t place, struct weir_error *error)
{
	struct source_stream **streams;
	size_t count = inputs->sources[place]->ops->streams(inputs->sources[place], &streams);
	for (size_t i = 0; i < count; i++) {
		struct record_reader *reader = streams[i]->context;
		if (reader == NULL)
			continue;
		struct format *format;
		enum weir_status status = new_format(inputs, place, &format, error);
		if (status != WEIR_OK)
			return status;
		format_begin(format, format_header(reader->format));
		format_free(reader->format);
		reader->format = format;
	}
	return WEIR_OK;
}

enum weir_status inputs_set_policy(struct inputs *inputs, const struct weir_policy *policy, struct weir_error *error)
{
	struct matcher *matcher;
	enum weir_status status =
		matcher_new(policy, &inputs->fields, (uint32_t)inputs->config->bus.partitions, &matcher, error);
	if (status != WEIR_OK)
		return status;
	for (size_t i = 0; status == WEIR_OK && i < inputs->source_count; i++)
		status = renew_formats(inputs, i, error);
	if (status != WEIR_OK) {
		matcher_free(matcher);
		return status;
	}
	matcher_free(inputs->matcher);
	inputs->matcher = matcher;
	return WEIR_OK;
}

void inputs_counts(const struct inputs *inputs, struct record_counts *sum)
{
	for (size_t i = 0; i < inputs->source_count; i++) {
		struct source_stream **streams;
		size_t count = inputs->sources[i]->ops->streams(inputs->sources[i], &streams);
		for (size_t j = 0; j < count; j++) {
			const struct record_reader *reader = streams[j]->context;
			if (reader != NULL)
				record_counts_add(sum, &reader->counts);
		}
	}
}

void inputs_progress(const struct inputs *inputs, uint64_t *done_bytes, uint64_t *all_bytes)
{
	struct source_status statuses[64];
	*done_bytes = *all_bytes = 0;
	for (size_t i = 0; i < inputs->source_count; i++) {
		size_t count = inputs->sources[i]->ops->status(inputs->sources[i], statuses, 64);
		for (size_t j = 0; j < count && j < 64; j++) {
			*all_bytes += statuses[j].size_bytes;
			*done_bytes += statuses[j].size_bytes - statuses[j].lag_bytes;
		}
	}
}
