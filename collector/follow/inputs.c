/* SPDX-License-Identifier: Apache-2.0 */
/* One source per configuration entry; one reader, with its own format, per stream. */
#include "collector/follow/inputs.h"

#include "collector/source/kinds/source_kinds.h"
#include "collector/source/source_memory.h"
#include "common/base/alloc.h"
#include "common/bytes/http_address.h"

#include <stdlib.h>
#include <string.h>

/* Asks a source's kind whether a policy's zones take its records for what they are. */
static enum weir_status check_fit(const struct weir_config *config, const struct weir_policy *policy, size_t place,
                                  struct weir_error *error)
{
	struct weir_json source = weir_json_element(&config->sources, place);
	const struct source_ops *kind = source_kind(&source);
	return kind != NULL && kind->fits != NULL ? kind->fits(&source, policy, error) : WEIR_OK;
}

enum weir_status inputs_new(const struct weir_config *config, const struct weir_policy *policy,
                            struct weir_exempt_lists *lists, const struct source_context *context,
                            struct dead_letters *dead, struct inputs **out, struct weir_error *error)
{
	struct inputs *inputs = weir_alloc(1, sizeof *inputs);
	inputs->config = config;
	inputs->lists = lists;
	inputs->context = *context;
	inputs->context.policy = &inputs->policy;
	inputs->policy = policy;
	inputs->context.forgets |= context->memory == NULL && context->once;
	if (context->memory == NULL)
		inputs->context.memory = inputs->own_memory = source_memory_new(context->collector_id);
	inputs->dead = dead;
	pthread_mutex_init(&inputs->lock, NULL);
	inputs->sources = weir_alloc(config->source_count, sizeof(struct source *));
	inputs->ended = weir_alloc(config->source_count, sizeof *inputs->ended);
	weir_field_table_init(&inputs->fields);
	enum weir_status status =
		weir_matcher_new(policy, lists, &inputs->fields, (uint32_t)config->bus.partitions, &inputs->matcher, error);
	while (status == WEIR_OK && inputs->source_count < config->source_count) {
		struct weir_json source = weir_json_element(&config->sources, inputs->source_count);
		status = source_new(&source, &inputs->context, &inputs->sources[inputs->source_count], error);
		if (status != WEIR_OK)
			break;
		inputs->ended[inputs->source_count].kind = inputs->sources[inputs->source_count]->ops;
		inputs->ended[inputs->source_count].counts.counts_records = true; /* so that a 0 is there before a loss is */
		status = source_apart(&config->sources, inputs->source_count++, error);
		if (status == WEIR_OK)
			status = check_fit(config, policy, inputs->source_count - 1, error);
	}
	if (status != WEIR_OK) {
		inputs_free(inputs);
		return status;
	}
	inputs->context.again = true;
	*out = inputs;
	return WEIR_OK;
}

size_t inputs_streams(const struct inputs *inputs, size_t place, struct source_stream ***streams)
{
	struct source *source = inputs->sources[place];
	*streams = NULL;
	return source != NULL ? source->ops->streams(source, streams) : 0;
}

static void keep_count(struct inputs *inputs, const struct record_reader *reader)
{
	inputs->counts = weir_realloc(inputs->counts, inputs->count_count + 1, sizeof *inputs->counts);
	struct inputs_count *kept = &inputs->counts[inputs->count_count++];
	*kept = (struct inputs_count){.position = reader->counted_position, .counts = reader->counts};
	memcpy(kept->id, reader->stream->id, sizeof kept->id);
}

static struct inputs_count *find_count(const struct inputs *inputs, const struct source_stream *stream)
{
	for (size_t i = 0; i < inputs->count_count; i++)
		if (memcmp(inputs->counts[i].id, stream->id, sizeof stream->id) == 0)
			return &inputs->counts[i];
	return NULL;
}

/* A stream that is read again continues from its old counts, so that nothing counts twice and no sum decreases. */
static void take_count(struct inputs *inputs, struct record_reader *reader)
{
	struct inputs_count *kept = find_count(inputs, reader->stream);
	if (kept == NULL)
		return;
	reader->counts = kept->counts;
	reader->counted_position = kept->position;
	*kept = inputs->counts[--inputs->count_count];
}

/* So that a page between the opening and the next publishing shows no 0, which would look like a new count from there. */
static void show_counts(const struct inputs *inputs, struct source *source)
{
	struct source_stream **streams;
	size_t count = source->ops->streams(source, &streams);
	for (size_t i = 0; i < count; i++) {
		const struct inputs_count *kept = find_count(inputs, streams[i]);
		if (kept != NULL)
			atomic_store_explicit(&streams[i]->lines, kept->counts.lines, memory_order_relaxed);
	}
}

static void free_readers(struct inputs *inputs, size_t place)
{
	struct source_stream **streams;
	size_t count = inputs_streams(inputs, place, &streams);
	for (size_t i = 0; i < count; i++) {
		struct record_reader *reader = streams[i]->context;
		if (reader == NULL)
			continue;
		keep_count(inputs, reader);
		record_reader_deinit(reader);
		free(reader);
		streams[i]->context = NULL;
	}
}

/* Replaces a source, under the lock. @return the previous one */
static struct source *exchange(struct inputs *inputs, size_t place, struct source *source)
{
	pthread_mutex_lock(&inputs->lock);
	struct source *before = inputs->sources[place];
	if (before != NULL)
		inputs_metrics_end(before, &inputs->ended[place]);
	inputs->sources[place] = source;
	pthread_mutex_unlock(&inputs->lock);
	return before;
}

bool inputs_replayable(const struct inputs *inputs, size_t place)
{
	const struct source *source = inputs->sources[place];
	return source == NULL || source->ops->replayable;
}

enum weir_status inputs_reopen(struct inputs *inputs, size_t place, struct weir_error *error)
{
	free_readers(inputs, place);
	struct source *source = exchange(inputs, place, NULL);
	if (source != NULL)
		source->ops->free(source);
	struct weir_json config = weir_json_element(&inputs->config->sources, place);
	enum weir_status status = source_new(&config, &inputs->context, &source, error);
	if (status == WEIR_OK) {
		show_counts(inputs, source);
		exchange(inputs, place, source);
	}
	return status;
}

void inputs_free(struct inputs *inputs)
{
	if (inputs == NULL)
		return;
	for (size_t i = 0; i < inputs->source_count; i++) {
		free_readers(inputs, i);
		if (inputs->sources[i] != NULL)
			inputs->sources[i]->ops->free(inputs->sources[i]);
	}
	free(inputs->sources);
	free(inputs->ended);
	source_memory_free(inputs->own_memory);
	free(inputs->counts);
	weir_matcher_free(inputs->matcher);
	weir_field_table_deinit(&inputs->fields);
	pthread_mutex_destroy(&inputs->lock);
	free(inputs);
}

enum weir_status inputs_format(const struct weir_config *config, const struct weir_field_table *fields, size_t place,
                               struct format **format, struct weir_error *error)
{
	struct weir_json source = weir_json_element(&config->sources, place), at = weir_json_member(&source, "format");
	const struct source_ops *kind = source_kind(&source);
	if (kind != NULL && kind->own_format != NULL) {
		json_t *own = json_pack("{s:s, s:s}", "type", kind->own_format, "unit", "ms");
		if (kind->own_fields != NULL)
			json_object_set_new(own, "fields", kind->own_fields(fields));
		at.value = own;
		enum weir_status status = format_new_behind(NULL, &at, fields, format, error);
		json_decref(own);
		return status;
	}
	return format_new_behind(kind != NULL ? kind->head : NULL, &at, fields, format, error);
}

enum weir_status inputs_check_lists(const struct weir_config *config, struct weir_exempt_lists *lists,
                                    struct weir_error *error)
{
	const struct weir_policy *policy = config->policy;
	struct weir_json root = weir_json_root(config->document);
	for (uint32_t z = 0; policy != NULL && z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++) {
			const char *path = policy->zones[z].exempt_lists[i];
			struct weir_exempt_list *list;
			struct weir_error wrong;
			struct weir_json at = weir_exempt_place(&root, z, path);
			if (weir_http_address_has_account(path))
				return weir_json_fail(&at, error,
				                      "must have no account: it would stand in the policy for all who read it");
			if (weir_exempt_list_open(lists, path, &list, &wrong) != WEIR_OK)
				return weir_json_fail(&at, error, "%s", wrong.text);
			weir_exempt_list_close(list);
		}
	return WEIR_OK;
}

enum weir_status inputs_check(const struct weir_config *config, struct weir_exempt_lists *lists,
                              struct weir_error *error)
{
	struct source_context context = {
		.once = true, .looks = true, .line_max_bytes = (uint32_t)config->collector.line_max_bytes};
	static const struct weir_policy no_zones = {0};
	const struct weir_policy *policy = config->policy != NULL ? config->policy : &no_zones;
	struct inputs *inputs;
	enum weir_status status = inputs_check_lists(config, lists, error);
	if (status == WEIR_OK)
		status = inputs_new(config, policy, lists, &context, NULL, &inputs, error);
	if (status != WEIR_OK)
		return status;
	inputs_free(inputs);
	return inputs_check_policy(config, policy, lists, error);
}

enum weir_status inputs_check_policy(const struct weir_config *config, const struct weir_policy *policy,
                                     struct weir_exempt_lists *lists, struct weir_error *error)
{
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	weir_field_table_init(&fields);
	enum weir_status status = weir_exempt_lists_refresh(lists, policy, error);
	if (status == WEIR_OK)
		status = weir_matcher_new(policy, lists, &fields, (uint32_t)config->bus.partitions, &matcher, error);
	if (status == WEIR_OK)
		weir_matcher_free(matcher);
	for (size_t i = 0; status == WEIR_OK && i < config->source_count; i++) {
		struct format *format;
		status = inputs_format(config, &fields, i, &format, error);
		if (status == WEIR_OK)
			format_free(format);
		if (status == WEIR_OK)
			status = check_fit(config, policy, i, error);
	}
	weir_field_table_deinit(&fields);
	return status;
}

enum weir_status inputs_reader(struct inputs *inputs, size_t place, struct source_stream *stream,
                               struct record_reader **reader, struct weir_error *error)
{
	*reader = stream->context;
	if (*reader != NULL)
		return WEIR_OK;
	struct format *format;
	enum weir_status status = inputs_format(inputs->config, &inputs->fields, place, &format, error);
	if (status != WEIR_OK)
		return status;
	*reader = weir_alloc(1, sizeof **reader);
	record_reader_init(*reader, stream, format, inputs->dead);
	struct weir_json source = weir_json_element(&inputs->config->sources, place);
	const struct source_ops *kind = source_kind(&source);
	(*reader)->by_name = kind != NULL && kind->own_name != NULL;
	(*reader)->source_name = source_zones_name(&source);
	take_count(inputs, *reader);
	stream->context = *reader;
	return WEIR_OK;
}

/* A new format for a reader, to replace its present one. */
struct renewed {
	struct record_reader *reader;
	struct format *format;
};

/* Makes a new format for every reader of a source, as a policy may need other fields, and adds them to the list. */
static enum weir_status make_formats(const struct inputs *inputs, const struct weir_field_table *fields, size_t place,
                                     struct renewed **list, size_t *made, struct weir_error *error)
{
	struct source_stream **streams;
	size_t count = inputs_streams(inputs, place, &streams);
	*list = weir_realloc(*list, *made + count, sizeof **list);
	for (size_t i = 0; i < count; i++) {
		if (streams[i]->context == NULL)
			continue;
		struct renewed *renewed = &(*list)[*made];
		renewed->reader = streams[i]->context;
		enum weir_status status = inputs_format(inputs->config, fields, place, &renewed->format, error);
		if (status != WEIR_OK)
			return status;
		++*made;
	}
	return WEIR_OK;
}

/* Replaces a reader's format. The new one takes over the header line that the old one knew, and what is not whole yet. */
static void put_format(const struct renewed *renewed)
{
	struct record_reader *reader = renewed->reader;
	format_begin(renewed->format, format_header(reader->format));
	format_take_over(renewed->format, reader->format);
	format_free(reader->format);
	reader->format = renewed->format;
	reader->looked_records = 0; /* the fields have other numbers */
	reader->looked_fields = 0;
}

/*
 * The fields are those of the new policy alone, so their number does not grow from policy to policy. Everything is
 * created before anything is replaced: the field indexes of a matcher and of the formats that fill its records belong
 * together.
 */
enum weir_status inputs_set_policy(struct inputs *inputs, const struct weir_policy *policy, struct weir_error *error)
{
	struct weir_field_table fields;
	struct weir_matcher *matcher;
	struct renewed *list = NULL;
	size_t made = 0;
	weir_field_table_init(&fields);
	enum weir_status status =
		weir_matcher_new(policy, inputs->lists, &fields, (uint32_t)inputs->config->bus.partitions, &matcher, error);
	if (status != WEIR_OK) {
		weir_field_table_deinit(&fields);
		return status;
	}
	for (size_t i = 0; status == WEIR_OK && i < inputs->source_count; i++)
		status = make_formats(inputs, &fields, i, &list, &made, error);
	if (status != WEIR_OK) {
		for (size_t i = 0; i < made; i++)
			format_free(list[i].format);
		weir_matcher_free(matcher);
		weir_field_table_deinit(&fields);
	} else {
		for (size_t i = 0; i < made; i++)
			put_format(&list[i]);
		weir_matcher_free(inputs->matcher);
		weir_field_table_deinit(&inputs->fields);
		inputs->matcher = matcher;
		inputs->fields = fields;
		inputs->policy = policy;
	}
	free(list);
	return status;
}

void inputs_renew_lists(struct inputs *inputs)
{
	if (inputs->lists != NULL)
		weir_matcher_renew_lists(inputs->matcher, inputs->lists);
}

void inputs_counts(const struct inputs *inputs, struct record_counts *sum)
{
	for (size_t i = 0; i < inputs->count_count; i++)
		record_counts_add(sum, &inputs->counts[i].counts);
	for (size_t i = 0; i < inputs->source_count; i++) {
		struct source_stream **streams;
		size_t count = inputs_streams(inputs, i, &streams);
		for (size_t j = 0; j < count; j++) {
			const struct record_reader *reader = streams[j]->context;
			if (reader != NULL)
				record_counts_add(sum, &reader->counts);
		}
	}
}

void inputs_progress(const struct inputs *inputs, uint64_t *done_bytes, uint64_t *all_bytes)
{
	*done_bytes = *all_bytes = 0;
	for (size_t i = 0; i < inputs->source_count; i++) {
		struct source *source = inputs->sources[i];
		size_t count = source->ops->status(source, NULL, 0);
		struct source_status *statuses = weir_alloc(count, sizeof *statuses);
		size_t got = source->ops->status(source, statuses, count);
		for (size_t j = 0; j < got && j < count; j++) {
			*all_bytes += statuses[j].size_bytes;
			*done_bytes += statuses[j].size_bytes - statuses[j].lag_bytes;
		}
		free(statuses);
	}
}
