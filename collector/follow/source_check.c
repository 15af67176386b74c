/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory that cannot be read looks, to a pattern, like one without files: so it is asked for by itself. Of each
 * source the file that was written last is sampled at its end, where a change of format shows first.
 */
#include "collector/follow/source_check.h"

#include "collector/follow/inputs.h"
#include "collector/follow/spools_left.h"
#include "collector/follow/state_check.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/shell.h"
#include "common/base/words.h"
#include "common/files/durable_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SAMPLE_LINES = 1000,
	TAIL_BYTES = 1 << 20, /* in which the last lines are looked for */
	HEAD_BYTES = 1 << 14, /* in which a header line is */
	TELLING_LINES = 20,   /* fewer say nothing about the format */
	SHOWN_BYTES = 120,
	TELLING_MS = 5000,
};

static const char wildcards[] = "*?[";
static const char sources_check[] = "sources";

struct looking {
	const struct weir_check *check;
	const char *user; /* as of source_check() */
};

struct sample {
	uint64_t lines, unfit;
	char first[SHOWN_BYTES + 4];    /* that does not fit */
	char forged[FORMAT_HELP_BYTES]; /* why lines may be forged as a whole; "": nothing is known */
	char cut[FORMAT_HELP_BYTES];    /* who cut lines, and what helps; "": the same */
};

/* ---- the last lines ---- */

static bool is_compressed(const char *bytes, size_t length)
{
	static const char *const marks[] = {"\x1f\x8b", "\3757zXZ", "BZh", "\x28\xb5\x2f\xfd"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (length >= strlen(marks[i]) && memcmp(bytes, marks[i], strlen(marks[i])) == 0)
			return true;
	return false;
}

static void try_line(struct format *format, const char *line, size_t length, struct sample *sample)
{
	struct weir_record record;
	if (length > 0 && line[length - 1] == '\r')
		length--;
	enum format_reason reason = format_parse(format, line, (uint32_t)length, &record);
	sample->lines += reason != FORMAT_SKIP;
	if (reason == FORMAT_OK && record.cut && sample->cut[0] == '\0')
		format_help_cut(format, sample->cut);
	if (reason == FORMAT_OK && sample->forged[0] == '\0')
		format_help_forged((struct weir_span){.at = line, .length = (uint32_t)length}, sample->forged);
	if (reason == FORMAT_OK || reason == FORMAT_SKIP)
		return;
	if (sample->unfit++ == 0) {
		snprintf(sample->first, sizeof sample->first, "%.*s%s", (int)(length < SHOWN_BYTES ? length : SHOWN_BYTES),
		         line, length > SHOWN_BYTES ? "..." : "");
		weir_words_clean(sample->first);
	}
}

/* Whole lines, the last so many of them. @param begins  whether the bytes begin with a line */
static void try_lines(struct format *format, const char *bytes, size_t length, bool begins, struct sample *sample)
{
	const char *line = bytes, *end = bytes + length, *next;
	size_t count = 0;
	for (const char *at = bytes; (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
		count++;
	if (!begins && (next = memchr(line, '\n', length)) != NULL)
		line = next + 1;
	size_t skipped = count > SAMPLE_LINES ? count - SAMPLE_LINES : 0;
	for (size_t number = 0; (next = memchr(line, '\n', (size_t)(end - line))) != NULL; line = next + 1)
		if (number++ >= skipped)
			try_line(format, line, (size_t)(next - line), sample);
}

static void sample_file(struct format *format, int fd, size_t size, struct sample *sample)
{
	struct sample header = {0};
	size_t length = size < TAIL_BYTES ? size : TAIL_BYTES;
	char *bytes = weir_alloc(length + 1, 1);
	ssize_t got = pread(fd, bytes, size < HEAD_BYTES ? size : HEAD_BYTES, 0);
	if (got > 0 && !is_compressed(bytes, (size_t)got)) {
		if (size > TAIL_BYTES) /* what names the columns stands before the lines that are looked at */
			try_lines(format, bytes, (size_t)got, true, &header);
		got = pread(fd, bytes, length, (off_t)(size - length));
		if (got > 0)
			try_lines(format, bytes, (size_t)got, size == length, sample);
	}
	free(bytes);
}

static void tell_unfit(const struct weir_check *check, const char *path, const char *format,
                       const struct sample *sample)
{
	if (sample->lines < TELLING_LINES || sample->unfit * 10 < sample->lines)
		return;
	bool most = sample->unfit * 2 > sample->lines;
	weir_findings_add(
		check->findings, most ? WEIR_SEVERITY_PAGE : WEIR_SEVERITY_TICKET, sources_check,
		"%llu of the last %llu lines of %s are not of its format \"%s\"; the first: %s\nThese lines are not "
		"judged: whoever stands in them is not blocked\nset the source's \"format\" to what the log has now, "
		"or the service back; then restart the collector (runbook: format-changed)",
		(unsigned long long)sample->unfit, (unsigned long long)sample->lines, path, format, sample->first);
}

/* @param help  what lines have shown; "": nothing @param costs  and what to do */
static void tell_help(const struct weir_check *check, const char *path, const char *help, const char *costs)
{
	if (help[0] != '\0')
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, sources_check, "%s: %s\n%s (runbook: format-changed)",
		                  path, help, costs);
}

static const char *format_name(const struct weir_config *config, size_t place)
{
	struct weir_json source = weir_json_element(&config->sources, place);
	struct weir_json format = weir_json_member(&source, "format"), type = weir_json_member(&format, "type");
	const char *name = json_string_value(json_is_string(format.value) ? format.value : type.value);
	return name != NULL ? name : "combined";
}

/* Local times that are read as another zone's. */
static void tell_zone(const struct weir_check *check, struct inputs *inputs, size_t place, const char *path)
{
	struct format *format;
	struct weir_text behind = {0}, advice = {0};
	struct weir_error error;
	int64_t behind_ms;
	if (inputs_format(check->config, &inputs->fields, place, &format, &error) != WEIR_OK)
		return;
	if (clock_watch_file(format, path, &behind_ms)) {
		clock_watch_words(&behind, behind_ms);
		clock_watch_advice(&advice, format, behind_ms);
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, sources_check,
			"the newest line of %s is %.*s the file's last change\nLines that are more than an hour behind as they are "
			"written block nobody\n%.*s; then restart the collector (runbook: clock)",
			path, (int)behind.length, behind.at, (int)advice.length, advice.at);
	}
	weir_text_deinit(&behind);
	weir_text_deinit(&advice);
	format_free(format);
}

static void check_lines(const struct weir_check *check, struct inputs *inputs, size_t place, const char *path, int fd,
                        const struct stat *about)
{
	struct format *format;
	struct sample sample = {0};
	struct weir_error error;
	if (inputs_format(check->config, &inputs->fields, place, &format, &error) != WEIR_OK)
		return; /* the configuration's check says it */
	format_set_reference(format, weir_wall_ms());
	sample_file(format, fd, (size_t)about->st_size, &sample);
	tell_unfit(check, path, format_name(check->config, place), &sample);
	tell_help(
		check, path, sample.forged,
		"Who sends such a request blocks whom he likes\nset the service's log and the source's \"format\" so; then "
		"restart the collector");
	tell_help(check, path, sample.cut,
	          "Zones that match on what is missing do not count such requests\nlet the server write longer lines");
	format_free(format);
	tell_zone(check, inputs, place, path);
}

/* ---- the files ---- */

static void add_unreadable(const struct looking *looking, const char *kind, const char *path, int reason)
{
	unsigned user = (unsigned)geteuid();
	if (looking->user == NULL)
		weir_findings_add(looking->check->findings, WEIR_SEVERITY_PAGE, sources_check,
		                  "cannot read %s %s: %s (as uid %u)\nNo line of it is judged\ngive the collector's user the "
		                  "right to read it: setfacl -m u:%u:rX %s (runbook: source-unreadable)",
		                  kind, path, weir_errno_words(reason), user, user, weir_shell_word(path).text);
	else
		weir_findings_add(
			looking->check->findings, WEIR_SEVERITY_TICKET, sources_check,
			"cannot read %s %s: %s, as the user who runs this command (uid %u)\nIf the collector cannot "
			"either, no line of it is judged\nrun this command as %s, in the groups that the collector has "
			"(runbook: source-unreadable)",
			kind, path, weir_errno_words(reason), user, looking->user);
}

/* The last directory of a pattern whose name has no wildcard. */
static void find_directory(const char *pattern, char path[WEIR_PATH_BYTES])
{
	char *slash;
	if (snprintf(path, WEIR_PATH_BYTES, "%.*s", (int)strcspn(pattern, wildcards), pattern) >= WEIR_PATH_BYTES ||
	    (slash = strrchr(path, '/')) == NULL)
		memcpy(path, ".", sizeof ".");
	else
		slash[slash == path] = '\0';
}

/* @return whether the directory of a pattern can be listed, or is not there */
static bool check_directory(const struct looking *looking, const char *pattern)
{
	char path[WEIR_PATH_BYTES];
	bool wild = strpbrk(pattern, wildcards) != NULL;
	int needed = wild ? R_OK | X_OK : X_OK;
	find_directory(pattern, path);
	if (faccessat(AT_FDCWD, path, needed, AT_EACCESS) == 0 || errno == ENOENT || errno == ENOTDIR)
		return true;
	add_unreadable(looking, "directory", path, errno);
	return false;
}

/* Looks at one file. @return whether it is there */
static bool check_file(const struct looking *looking, struct inputs *inputs, size_t place, const char *path,
                       bool newest)
{
	struct stat about;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return false;
	if (fd < 0) {
		add_unreadable(looking, "file", path, errno);
		return true;
	}
	if (newest && fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
		check_lines(looking->check, inputs, place, path, fd, &about);
	close(fd);
	return true;
}

/* The stream whose file was written last. */
static size_t find_newest(struct source_stream *const *streams, size_t count)
{
	struct timespec latest = {0};
	size_t newest = 0;
	for (size_t i = 0; i < count; i++) {
		struct stat about;
		if (stat(streams[i]->name, &about) != 0 || about.st_mtim.tv_sec < latest.tv_sec ||
		    (about.st_mtim.tv_sec == latest.tv_sec && about.st_mtim.tv_nsec < latest.tv_nsec))
			continue;
		latest = about.st_mtim;
		newest = i;
	}
	return newest;
}

static void check_files(const struct looking *looking, struct inputs *inputs, size_t place)
{
	const struct weir_check *check = looking->check;
	struct weir_json config = weir_json_element(&check->config->sources, place);
	struct weir_json path = weir_json_member(&config, "path");
	const char *pattern = json_string_value(path.value);
	char directory[WEIR_PATH_BYTES];
	struct source_stream **streams;
	size_t count = inputs_streams(inputs, place, &streams), there = 0, newest = find_newest(streams, count);
	if (pattern == NULL || strcmp(pattern, "-") == 0 || !check_directory(looking, pattern))
		return;
	for (size_t i = 0; i < count && weir_monotonic_ms() < check->end_ms; i++)
		there += check_file(looking, inputs, place, streams[i]->name, i == newest);
	find_directory(pattern, directory);
	if (there == 0)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, sources_check,
			"%s names no file\nNo line of it is judged until there is one\nls -l %s/, and set the source's "
			"\"path\" to where the service logs (runbook: source-unreadable)",
			pattern, weir_shell_word(directory).text);
}

/* What a source that is no file says of itself. */
static void check_other(const struct weir_check *check, size_t place, struct source *source)
{
	struct source_status status = {0};
	struct source_chunk chunk;
	struct weir_error error = {.text = ""};
	int64_t end_ms = weir_monotonic_ms() + TELLING_MS;
	enum weir_status read = source->ops->tells_at_once ? WEIR_AGAIN : WEIR_OK;
	while (read == WEIR_AGAIN && status.problem[0] == '\0' && !status.well && weir_monotonic_ms() < end_ms &&
	       weir_monotonic_ms() < check->end_ms) {
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		read = source->ops->collect(source, NULL, &chunk, &error);
		(void)source->ops->status(source, &status, 1);
	}
	if (source->ops->status(source, &status, 1) == 0 || status.problem[0] == '\0')
		return;
	weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, sources_check,
	                  "source %zu (%s): %s\nNo line of it is judged\nmend what it says, then restart the collector "
	                  "(runbook: source-unreadable)",
	                  place, source->ops->type, status.problem);
}

/* What is dangerous in a source's configuration. */
static void check_doubt(const struct weir_check *check, size_t place, const struct source *source)
{
	struct weir_text words = {0};
	if (source->ops->doubt == NULL)
		return;
	source->ops->doubt(source, &words);
	if (words.length > 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, sources_check,
		                  "source %zu (%s) %.*s\nVerdicts are only as good as the lines that they are made of\nname "
		                  "its senders, then restart the collector",
		                  place, source->ops->type, (int)words.length, words.at);
	weir_text_deinit(&words);
}

static void take_left(void *context, bool waits, const char *words)
{
	const struct weir_check *check = context;
	weir_findings_add(check->findings, waits ? WEIR_SEVERITY_TICKET : WEIR_SEVERITY_NOTE, sources_check, "%s", words);
}

/* Without positions there, no collector has worked in it. */
static void check_left(struct weir_check *check, const char *state)
{
	char path[WEIR_PATH_BYTES];
	struct weir_error error;
	if (state != NULL && weir_path_format(path, &error, "%s/sources.json", state) == WEIR_OK && access(path, R_OK) == 0)
		spools_left(state, check->config, NULL, take_left, check);
}

static void take_damaged(void *context, const struct weir_error *error)
{
	const struct weir_check *check = context;
	weir_findings_damaged(check->findings, sources_check, error, "No line is read when the collector starts");
}

void source_check(const struct weir_check *check, const char *user, const char *state)
{
	struct weir_check left = *check;
	const struct looking looking = {check, user};
	static const struct weir_policy no_zones = {0};
	const struct weir_config *config = check->config;
	struct source_context context = {.once = true, .line_max_bytes = (uint32_t)config->collector.line_max_bytes};
	struct inputs *inputs;
	struct weir_error error;
	size_t before = weir_findings_count(check->findings, WEIR_SEVERITY_NOTE);
	if (state != NULL)
		state_check(state, config, take_damaged, &left);
	check_left(&left, state);
	if (config->source_count == 0)
		return;
	if (inputs_new(config, &no_zones, NULL, &context, NULL, &inputs, &error) != WEIR_OK) {
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, sources_check,
		                  "%s\nA collector with this configuration does not start\nweir validate %s says what would be "
		                  "accepted (runbook: source-unreadable)",
		                  error.text, check->config_words);
		return;
	}
	size_t files = 0;
	for (size_t i = 0; i < inputs->source_count; i++) {
		check_doubt(check, i, inputs->sources[i]);
		files += inputs->sources[i]->ops->names_files;
		if (inputs->sources[i]->ops->names_files)
			check_files(&looking, inputs, i);
		else
			check_other(check, i, inputs->sources[i]);
	}
	inputs_free(inputs);
	if (files > 0 && weir_findings_count(check->findings, WEIR_SEVERITY_NOTE) == before)
		weir_findings_good(check->findings, "sources: this user can read the files of %zu", files);
}
