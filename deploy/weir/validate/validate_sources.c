/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources as a run would open them, but with nothing remembered and nothing
 * followed: which files are there, and what the first lines of them come to in
 * the zones. That tells a wrong format or field from a right one better than
 * any rule.
 *
 * Standard input is not touched: what is read from it is gone.
 */
#include "collector/follow/inputs.h"
#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "deploy/weir/validate/validate_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many records must be seen before their lack of something means anything. */
enum { TELLING_RECORDS = 20 };

struct sampling {
	struct validate_report *report;
	struct inputs *inputs;
	bool gives_ip; /* some format may give an ip */
	char word[84]; /* the first value of ip in the source's samples that is no address, or "" */
	uint32_t key_fields[WEIR_ZONES_MAX][WEIR_ZONE_KEY_MAX]; /* their indexes */
};

/* ---- what is configured ---- */

/* As allocated text. */
static char *taken(struct weir_text *text)
{
	weir_text_append(text, "", 1);
	return text->at;
}

static void describe_source(struct validate_source *source, const struct source_ops *kind,
                            const struct weir_json *config)
{
	struct weir_json format = weir_json_member(config, "format"), follow = weir_json_member(config, "follow");
	struct weir_json format_type = weir_json_member(&format, "type");
	struct weir_text place = {0}, manner = {0};
	kind->describe(config, &place, &manner);
	source->type = kind->type;
	source->format = kind->own_format != NULL
	                     ? kind->own_format
	                     : json_string_value(json_is_string(format.value) ? format.value : format_type.value);
	source->follow = json_is_true(follow.value);
	source->guarantee = source_guarantee_text(kind->guarantee);
	source->place = taken(&place);
	source->manner = taken(&manner);
}

static bool is_pattern(const char *path)
{
	return strpbrk(path, "*?[") != NULL;
}

/* ---- what a sample says ---- */

static void count_record(struct sampling *sampling, const struct weir_record *record)
{
	struct weir_matched matched;
	struct validate_report *report = sampling->report;
	report->sampled++;
	if (record->ip == WEIR_RECORD_IP_WORD && sampling->word[0] == '\0')
		snprintf(sampling->word, sizeof sampling->word, "%.*s", (int)record->fields[WEIR_FIELD_IP].length,
		         record->fields[WEIR_FIELD_IP].at);
	for (uint32_t z = 0; z < report->zone_count; z++)
		for (uint32_t k = 0; k < report->zones[z].zone->key_count; k++) {
			struct weir_span value = record->fields[sampling->key_fields[z][k]];
			struct weir_address address;
			report->zones[z].keyed[k] += value.at != NULL;
			report->zones[z].addressed[k] += value.at != NULL && weir_address_read(value, &address);
		}
	weir_matcher_match(sampling->inputs->matcher, record, &matched);
	for (uint32_t e = 0; e < matched.key_count; e++)
		for (uint32_t z = 0; z < matched.events[e].zone_count; z++) {
			uint32_t id = matched.events[e].zones[z].id;
			for (uint32_t i = 0; i < report->zone_count; i++)
				report->zones[i].matched += report->zones[i].zone->id == id;
		}
}

/* Reads a file's first lines. */
static enum weir_status sample(struct sampling *sampling, size_t place, struct source_stream *stream,
                               struct validate_file *file, struct weir_error *error)
{
	struct source *source = sampling->inputs->sources[place];
	struct record_reader *reader;
	enum weir_status status = inputs_reader(sampling->inputs, place, stream, &reader, error);
	if (status != WEIR_OK)
		return status;
	file->sampled = true;
	while (reader->counts.lines + reader->ahead.lines < VALIDATE_SAMPLE_LINES) {
		if (record_reader_next(reader) == WEIR_OK) {
			count_record(sampling, &reader->record);
			record_reader_take(reader, 0);
			continue;
		}
		struct source_chunk chunk;
		struct weir_error why;
		status = source->ops->collect(source, stream, &chunk, &why);
		if (status == WEIR_IO) {
			free(file->problem);
			file->problem = weir_copy(why.text, strlen(why.text));
		}
		if (status != WEIR_OK)
			break;
		record_reader_feed(reader, &chunk);
	}
	record_reader_take(reader, 0);
	file->counts = reader->counts;
	return WEIR_OK;
}

/* Whether a file can be read at all, by its first lines; they are not looked at. */
static void try_file(const struct sampling *sampling, size_t place, struct source_stream *stream,
                     struct validate_file *file)
{
	struct source *source = sampling->inputs->sources[place];
	struct source_chunk chunk;
	struct weir_error why;
	if (source->ops->collect(source, stream, &chunk, &why) == WEIR_IO)
		file->problem = weir_copy(why.text, strlen(why.text));
}

/* ---- the files ---- */

static void warn_source(struct validate_report *report, size_t place, struct weir_text *words)
{
	char path[64];
	snprintf(path, sizeof path, "sources[%zu]", place);
	validate_warn(report, path, words);
}

/* What a shell would have made of a path. */
static void put_shell_words(struct weir_text *words, const char *path)
{
	const char *brace = strchr(path, '{');
	if (path[0] == '~')
		weir_text_puts(words, "; ~ stands for no directory here: write it out");
	else if (path[0] == '$')
		weir_text_puts(words, "; variables are not put in here: write the directory out");
	else if (brace != NULL && strchr(brace, '}') != NULL)
		weir_text_puts(words, "; {} stands for no names here: give a list of paths, or * ? and []");
}

/* What a stream stands for: a file that is there, or a path that names nothing. */
static enum weir_status inspect_file(struct sampling *sampling, size_t place, struct source_stream *stream,
                                     struct weir_error *error)
{
	struct validate_source *source = &sampling->report->sources[place];
	struct stat about;
	struct weir_text words = {0};
	if (stat(stream->name, &about) != 0) {
		int reason = errno;
		if (is_pattern(stream->name) && reason == ENOENT)
			weir_text_printf(&words, "%s matches no file now", stream->name);
		else
			weir_text_printf(&words, "cannot find %s now: %s", stream->name, weir_errno_words(reason));
		put_shell_words(&words, stream->name);
		warn_source(sampling->report, place, &words);
		return WEIR_OK;
	}
	source->files = weir_realloc(source->files, source->file_count + 1, sizeof *source->files);
	struct validate_file *file = &source->files[source->file_count++];
	*file = (struct validate_file){.path = weir_copy(stream->name, strlen(stream->name))};
	file->bytes = S_ISREG(about.st_mode) ? (uint64_t)about.st_size : 0;
	bool unreadable = S_ISREG(about.st_mode) && access(stream->name, R_OK) != 0;
	if (unreadable)
		file->problem = weir_copy(weir_errno_words(errno), strlen(weir_errno_words(errno)));
	enum weir_status status = WEIR_OK;
	/* What is no file is asked for too: its source says why it cannot be read. */
	if (!unreadable && source->file_count <= VALIDATE_SAMPLE_FILES)
		status = sample(sampling, place, stream, file, error);
	else if (!unreadable)
		try_file(sampling, place, stream, file);
	if (file->problem != NULL) {
		weir_text_printf(&words, "cannot read %s: %s", stream->name, file->problem);
		warn_source(sampling->report, place, &words);
	}
	return status;
}

/* What a source that is no file says of itself. */
static void warn_problem(struct validate_report *report, size_t place, struct source *source)
{
	struct source_status status;
	struct weir_text words = {0};
	if (source->ops->status(source, &status, 1) == 0 || status.problem[0] == '\0')
		return;
	weir_text_puts(&words, status.problem);
	warn_source(report, place, &words);
}

static void warn_malformed(struct sampling *sampling, size_t place)
{
	const struct validate_source *source = &sampling->report->sources[place];
	struct record_counts all = {0};
	for (size_t i = 0; i < source->file_count; i++)
		record_counts_add(&all, &source->files[i].counts);
	uint64_t malformed = record_counts_malformed(&all);
	int worst = 0;
	for (int i = 0; i < FORMAT_REASON_COUNT; i++)
		if (all.malformed[i] > all.malformed[worst])
			worst = i;
	if (malformed == 0 || malformed * 10 < all.lines)
		return;
	struct weir_text words = {0};
	weir_text_printf(&words, "%llu of the first %llu lines are malformed, mostly \"%s\": is the format right?",
	                 (unsigned long long)malformed, (unsigned long long)all.lines,
	                 format_reason_text((enum format_reason)worst));
	if (all.unread.help[0] != '\0')
		weir_text_printf(&words, " %s; the first such line is: %s", all.unread.help, all.unread.line);
	warn_source(sampling->report, place, &words);
}

/* Values of ip that are no addresses: names are possible, lists and the wrong field are not meant. */
static void warn_words(struct sampling *sampling, size_t place)
{
	const struct validate_source *source = &sampling->report->sources[place];
	struct record_counts all = {0};
	struct weir_text words = {0};
	for (size_t i = 0; i < source->file_count; i++)
		record_counts_add(&all, &source->files[i].counts);
	if (all.words == 0)
		return;
	weir_text_printf(
		&words,
		"%llu of the first %llu events have an ip that is no address, such as \"%s\", and is counted as it "
		"stands%s",
		(unsigned long long)all.words, (unsigned long long)all.records, sampling->word,
		strchr(sampling->word, ',') != NULL ? "; \"client_ip\" finds the client in a list" : "");
	warn_source(sampling->report, place, &words);
}

/* Records without an ip, where a zone counts by it and the line has a name that may mean it. */
static void warn_no_ip(struct sampling *sampling, size_t place)
{
	const struct validate_source *source = &sampling->report->sources[place];
	struct record_counts all = {0};
	struct weir_text words = {0};
	for (size_t i = 0; i < source->file_count; i++)
		record_counts_add(&all, &source->files[i].counts);
	if (all.no_ip.help[0] == '\0' || !weir_policy_counts_by(sampling->report->policy, "ip"))
		return;
	weir_text_printf(&words, "%s; the first such line is: %s", all.no_ip.help, all.no_ip.line);
	warn_source(sampling->report, place, &words);
}

static void warn_hint(struct sampling *sampling, size_t place, const struct record_hint *hint)
{
	struct weir_text words = {0};
	if (hint->help[0] == '\0')
		return;
	weir_text_printf(&words, "%s; the first such line is: %s", hint->help, hint->line);
	warn_source(sampling->report, place, &words);
}

/* A log whose lines are cut where a client likes, or whose server lets clients write lines of their own. */
static void warn_records(struct sampling *sampling, size_t place)
{
	const struct validate_source *source = &sampling->report->sources[place];
	struct record_counts all = {0};
	for (size_t i = 0; i < source->file_count; i++)
		record_counts_add(&all, &source->files[i].counts);
	warn_hint(sampling, place, &all.cut_off);
	warn_hint(sampling, place, &all.forged);
}

/* Local times that are read as another zone's: the file was written last when its newest line was, but for hours. */
static enum weir_status warn_zone(struct sampling *sampling, size_t place, const char *path, bool *told,
                                  struct weir_error *error)
{
	struct format *format;
	struct weir_text words = {0};
	int64_t behind_ms;
	enum weir_status status = inputs_format(sampling->report->config, &sampling->inputs->fields, place, &format, error);
	if (status != WEIR_OK)
		return status;
	if (clock_watch_file(format, path, &behind_ms)) {
		weir_text_printf(&words, "the newest line of %s is ", path);
		clock_watch_words(&words, behind_ms);
		weir_text_puts(&words, " the file's last change. ");
		clock_watch_advice(&words, format, behind_ms);
		warn_source(sampling->report, place, &words);
		*told = true;
	}
	format_free(format);
	return WEIR_OK;
}

/* Of one file: the others are most likely like it. */
static enum weir_status warn_zones_of_times(struct sampling *sampling, size_t place, struct weir_error *error)
{
	const struct validate_source *source = &sampling->report->sources[place];
	enum weir_status status = WEIR_OK;
	bool told = false;
	for (size_t i = 0; i < source->file_count && i < VALIDATE_SAMPLE_FILES && !told && status == WEIR_OK; i++)
		if (source->files[i].sampled)
			status = warn_zone(sampling, place, source->files[i].path, &told, error);
	return status;
}

/* Of the format, or of the message within it. */
static void warn_trusted(struct sampling *sampling, size_t place, const struct weir_json *format)
{
	struct weir_json message = weir_json_member(format, "message"), rule = weir_json_member(format, "client_ip");
	struct weir_text words = {0};
	if (json_is_object(message.value))
		warn_trusted(sampling, place, &message);
	if (validate_trusts_everybody(&rule, &words))
		warn_source(sampling->report, place, &words);
}

static enum weir_status inspect_source(struct sampling *sampling, size_t place, struct weir_error *error)
{
	struct validate_report *report = sampling->report;
	struct weir_json config = weir_json_element(&report->config->sources, place);
	struct format *format;
	/* A run makes the format when a file is found; what is wrong with it is to be said now. */
	enum weir_status status = inputs_format(report->config, &sampling->inputs->fields, place, &format, error);
	if (status != WEIR_OK)
		return status;
	sampling->gives_ip |= !format_lacks(format, WEIR_FIELD_IP);
	sampling->word[0] = '\0';
	format_free(format);
	struct source *source = sampling->inputs->sources[place];
	describe_source(&report->sources[place], source->ops, &config);
	struct weir_json format_config = weir_json_member(&config, "format");
	warn_trusted(sampling, place, &format_config);
	if (!source->ops->names_files) {
		warn_problem(report, place, source);
		return WEIR_OK;
	}
	struct source_stream **streams;
	size_t count = source->ops->streams(source, &streams);
	for (size_t i = 0; status == WEIR_OK && i < count; i++)
		status = inspect_file(sampling, place, streams[i], error);
	if (status == WEIR_OK) {
		warn_malformed(sampling, place);
		warn_words(sampling, place);
		warn_no_ip(sampling, place);
		warn_records(sampling, place);
		status = warn_zones_of_times(sampling, place, error);
	}
	return status;
}

/* Exempt networks that no record can be in, as none has an address. */
static void warn_networks(const struct sampling *sampling)
{
	struct validate_report *report = sampling->report;
	for (uint32_t z = 0; z < report->zone_count && report->config->source_count > 0; z++) {
		const struct weir_zone *zone = report->zones[z].zone;
		bool address = false;
		for (uint32_t k = 0; k < zone->key_count; k++)
			address |= zone->key[k].grouped || strcmp(zone->key[k].field, "ip") == 0;
		uint64_t networks = zone->exempt_network_count;
		for (uint32_t i = 0; i < zone->exempt_list_count; i++)
			networks += weir_exempt_lists_facts(report->lists, zone->exempt_lists[i]).networks;
		if (networks == 0 || address || sampling->gives_ip)
			continue;
		struct weir_text words = {0};
		char path[64];
		snprintf(path, sizeof path, "zones[%u].exempt", z);
		weir_text_puts(&words,
		               "has networks, but no field of the key is an address, and no source has the field \"ip\"");
		validate_warn(report, path, &words);
	}
}

/* Fields of a key that are to be networks, and have no addresses. */
static void warn_prefixes(struct validate_report *report)
{
	for (uint32_t z = 0; z < report->zone_count; z++)
		for (uint32_t k = 0; k < report->zones[z].zone->key_count; k++) {
			const struct validate_zone *zone = &report->zones[z];
			const struct weir_key_field *field = &zone->zone->key[k];
			if (!field->grouped || zone->keyed[k] < TELLING_RECORDS || zone->addressed[k] > 0)
				continue;
			struct weir_text words = {0};
			char path[64];
			snprintf(path, sizeof path, "zones[%u].key[%u]", z, k);
			weir_text_printf(
				&words,
				"groups addresses, and none of the first %llu values of \"%s\" is one: each counts by itself, as "
				"with the field's name alone",
				(unsigned long long)zone->keyed[k], field->field);
			validate_warn(report, path, &words);
		}
}

/* Zones that the records seen cannot be in. */
static void warn_zones(const struct sampling *sampling)
{
	struct validate_report *report = sampling->report;
	if (report->sampled < TELLING_RECORDS)
		return;
	for (uint32_t z = 0; z < report->zone_count; z++) {
		const struct validate_zone *zone = &report->zones[z];
		struct weir_text words = {0};
		char path[64];
		if (zone->unmatched)
			continue;
		snprintf(path, sizeof path, "zones[%u]", z);
		for (uint32_t k = 0; k < zone->zone->key_count && words.length == 0; k++)
			if (zone->keyed[k] == 0) {
				weir_text_printf(&words, "none of the first %llu events has the field \"%s\" of the key",
				                 (unsigned long long)report->sampled, zone->zone->key[k].field);
				snprintf(path, sizeof path, "zones[%u].key[%u]", z, k);
			}
		uint64_t records;
		const char *absent = inputs_absent_field(sampling->inputs, zone->zone, &records);
		if (words.length == 0 && zone->matched == 0 && absent != NULL && records >= TELLING_RECORDS)
			weir_text_printf(
				&words,
				"none of the first %llu events has the field \"%s\", which the zone's match asks for: does the log "
				"write it where the format expects it?",
				(unsigned long long)records, absent);
		else if (words.length == 0 && zone->matched == 0)
			weir_text_printf(&words, "none of the first %llu events is in this zone",
			                 (unsigned long long)report->sampled);
		if (words.length > 0)
			validate_warn(report, path, &words);
	}
}

static void find_key_fields(struct sampling *sampling)
{
	for (uint32_t z = 0; z < sampling->report->zone_count; z++) {
		const struct weir_zone *zone = sampling->report->zones[z].zone;
		for (uint32_t k = 0; k < zone->key_count; k++)
			sampling->key_fields[z][k] =
				(uint32_t)weir_field_table_find(&sampling->inputs->fields, weir_span_of(zone->key[k].field));
	}
}

/* A source_tell. */
static void warn_told(void *context, const char *place, const char *said)
{
	struct weir_text words = {0};
	weir_text_puts(&words, said);
	validate_warn(context, place, &words);
}

enum weir_status validate_sources(struct validate_report *report, struct weir_error *error)
{
	const struct weir_config *config = report->config;
	struct source_context context = {.once = true,
	                                 .line_max_bytes = (uint32_t)config->collector.line_max_bytes,
	                                 .tell = warn_told,
	                                 .tell_context = report};
	struct sampling *sampling = weir_alloc(1, sizeof *sampling);
	sampling->report = report;
	report->sources = weir_alloc(config->source_count, sizeof *report->sources);
	enum weir_status status =
		inputs_new(config, report->policy, report->lists, &context, NULL, &sampling->inputs, error);
	if (status == WEIR_OK)
		find_key_fields(sampling);
	for (; status == WEIR_OK && report->source_count < config->source_count; report->source_count++)
		status = inspect_source(sampling, report->source_count, error);
	if (status == WEIR_OK) {
		warn_zones(sampling);
		warn_prefixes(report);
		warn_networks(sampling);
	}
	inputs_free(sampling->inputs);
	free(sampling);
	return status;
}
