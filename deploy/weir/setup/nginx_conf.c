/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nginx's grammar is words up to a ; or a block's {. Only http and what it includes matter; of all else the braces are
 * counted. A block of Lua is what is left to its own braces.
 */
#include "deploy/weir/setup/nginx_conf.h"

#include <fnmatch.h>
#include <glob.h>
#include <string.h>

enum { DEPTH_MAX = 64, INCLUDES_MAX = 16, WORDS_MAX = 2 };

enum context { MAIN, HTTP, SERVER, OTHER };

struct reader {
	struct setup_files *files;
	struct nginx_conf *conf;
	const char *const *strips;
	struct weir_error *error;
	unsigned includes; /* within one another */
};

/* Within one file; the bytes are the file's, which nobody changes meanwhile. */
struct cursor {
	struct setup_file *file;
	const char *text;
	size_t at, length;
};

struct directive {
	char words[WORDS_MAX][WEIR_PATH_BYTES];
	size_t count;
	char end; /* ';' '{' '}', or 0: the file's end */
};

static enum weir_status refuse(const struct reader *reader, const struct cursor *cursor, const char *words)
{
	size_t line = 1;
	for (size_t i = 0; i < cursor->at && i < cursor->length; i++)
		line += cursor->text[i] == '\n';
	return weir_fail(reader->error, WEIR_INVALID, "%s:%zu: %s", cursor->file->path, line, words);
}

static void skip_space(struct cursor *cursor)
{
	while (cursor->at < cursor->length) {
		char byte = cursor->text[cursor->at];
		if (byte == '#')
			while (cursor->at < cursor->length && cursor->text[cursor->at] != '\n')
				cursor->at++;
		else if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n')
			cursor->at++;
		else
			return;
	}
}

static void add_byte(struct directive *directive, size_t *bytes, char byte)
{
	if (directive->count < WORDS_MAX && *bytes + 1 < WEIR_PATH_BYTES)
		directive->words[directive->count][(*bytes)++] = byte;
}

/* @return false: the file ends within quotes */
static bool read_word(struct cursor *cursor, struct directive *directive)
{
	size_t bytes = 0;
	char quote = cursor->text[cursor->at];
	bool quoted = quote == '"' || quote == '\'', closed = !quoted;
	cursor->at += quoted;
	for (; cursor->at < cursor->length; cursor->at++) {
		char byte = cursor->text[cursor->at];
		if (byte == '\\' && cursor->at + 1 < cursor->length) {
			add_byte(directive, &bytes, cursor->text[++cursor->at]);
			continue;
		}
		if (quoted && byte == quote) {
			cursor->at++;
			closed = true;
			break;
		}
		bool variable = byte == '{' && cursor->text[cursor->at - 1] == '$';
		if (!quoted && !variable && strchr(" \t\r\n;{", byte) != NULL)
			break;
		add_byte(directive, &bytes, byte);
	}
	if (directive->count < WORDS_MAX)
		directive->words[directive->count][bytes] = '\0';
	directive->count++;
	return closed;
}

static enum weir_status read_directive(const struct reader *reader, struct cursor *cursor, struct directive *directive)
{
	directive->count = 0;
	directive->words[0][0] = directive->words[1][0] = '\0';
	for (;;) {
		skip_space(cursor);
		directive->end = cursor->at < cursor->length ? cursor->text[cursor->at] : '\0';
		if (directive->end == '\0' && cursor->at < cursor->length)
			return refuse(reader, cursor, "has a zero byte");
		if (directive->end == '\0')
			return directive->count == 0 ? WEIR_OK : refuse(reader, cursor, "ends within a directive");
		if (strchr(";{}", directive->end) != NULL) {
			cursor->at++;
			return WEIR_OK;
		}
		if (!read_word(cursor, directive))
			return refuse(reader, cursor, "ends within quotes");
	}
}

static enum weir_status skip_lua(const struct reader *reader, struct cursor *cursor)
{
	for (unsigned depth = 1; cursor->at < cursor->length; cursor->at++) {
		depth += cursor->text[cursor->at] == '{';
		depth -= cursor->text[cursor->at] == '}';
		if (depth == 0) {
			cursor->at++;
			return WEIR_OK;
		}
	}
	return refuse(reader, cursor, "ends within a block of Lua");
}

static bool ends_with(const char *word, const char *end)
{
	size_t length = strlen(word), bytes = strlen(end);
	return length >= bytes && strcmp(word + length - bytes, end) == 0;
}

static enum weir_status read_file(struct reader *reader, const char *path, enum context context);

/* Whether it is a folder's *.conf or so: then a file of weir's own is included where it is put there. */
static void note_folder(struct nginx_conf *conf, const char *pattern)
{
	char directory[WEIR_PATH_BYTES], own[WEIR_PATH_BYTES];
	struct weir_error ignored;
	if (conf->included[0] == '\0' && weir_directory_of(pattern, directory, &ignored) == WEIR_OK &&
	    weir_path_format(own, &ignored, "%s/weir.conf", directory) == WEIR_OK && strcmp(own, pattern) != 0 &&
	    ends_with(pattern, ".conf") && fnmatch(pattern, own, FNM_PATHNAME | FNM_PERIOD) == 0)
		memcpy(conf->included, directory, sizeof directory);
}

static enum weir_status include(struct reader *reader, const struct cursor *cursor, const char *name,
                                enum context context)
{
	char pattern[WEIR_PATH_BYTES];
	glob_t found;
	enum weir_status status =
		weir_path_format(pattern, reader->error, "%s%s%s", name[0] == '/' ? "" : reader->conf->directory,
	                     name[0] == '/' ? "" : "/", name);
	if (status != WEIR_OK)
		return status;
	if (reader->includes >= INCLUDES_MAX)
		return refuse(reader, cursor, "includes files within files too deeply");
	if (context == HTTP)
		note_folder(reader->conf, pattern);
	if (glob(pattern, 0, NULL, &found) != 0)
		return WEIR_OK; /* nginx itself will say that there is none, where it minds */
	reader->includes++;
	for (size_t i = 0; i < found.gl_pathc && status == WEIR_OK; i++)
		status = read_file(reader, found.gl_pathv[i], context);
	reader->includes--;
	globfree(&found);
	return status;
}

static enum weir_status add_server(const struct reader *reader, const struct cursor *cursor)
{
	struct nginx_conf *conf = reader->conf;
	if (conf->server_count == NGINX_CONF_SERVERS_MAX)
		return refuse(reader, cursor, "has more servers than can be read");
	for (size_t i = 0; i < conf->server_count; i++)
		if (conf->servers[i].file == cursor->file && conf->servers[i].at == cursor->at)
			return WEIR_OK; /* its file is included twice */
	conf->servers[conf->server_count++] = (struct nginx_place){cursor->file, cursor->at};
	return WEIR_OK;
}

static enum weir_status enter(struct reader *reader, struct cursor *cursor, const char *name, enum context *context)
{
	if (ends_with(name, "_by_lua_block"))
		return skip_lua(reader, cursor);
	if (*context == MAIN && strcmp(name, "http") == 0) {
		reader->conf->http = (struct nginx_place){cursor->file, cursor->at};
		*context = HTTP;
	} else if (*context == HTTP && strcmp(name, "server") == 0) {
		*context = SERVER;
		return add_server(reader, cursor);
	} else {
		*context = OTHER;
	}
	return WEIR_OK;
}

static enum weir_status read_file(struct reader *reader, const char *path, enum context context)
{
	enum context stack[DEPTH_MAX];
	unsigned depth = 0;
	struct setup_file *file;
	struct directive directive;
	enum weir_status status = setup_files_read(reader->files, path, &file, reader->error);
	if (status != WEIR_OK)
		return status;
	if (file->before == NULL)
		return weir_fail(reader->error, WEIR_IO, "there is no %s: name nginx's configuration with --file", path);
	for (size_t i = 0; reader->strips[i] != NULL; i++)
		setup_file_strip(file, SETUP_LINE_BEGINS, reader->strips[i]);
	struct cursor cursor = {.file = file, .text = file->after.at, .length = file->after.length};
	while ((status = read_directive(reader, &cursor, &directive)) == WEIR_OK) {
		bool lua = ends_with(directive.words[0], "_by_lua_block");
		if (directive.end == '\0')
			return depth == 0 ? WEIR_OK : refuse(reader, &cursor, "ends within a block: a } is missing");
		if (directive.end == '}' && depth == 0)
			return refuse(reader, &cursor, "has a } too many");
		if (directive.end == '}')
			context = stack[--depth];
		else if (directive.end == '{' && depth == DEPTH_MAX)
			return refuse(reader, &cursor, "has blocks within blocks too deeply");
		else if (directive.end == '{' && !lua)
			stack[depth++] = context;
		if (directive.end == ';' && context == MAIN && strcmp(directive.words[0], "worker_shutdown_timeout") == 0)
			reader->conf->ends_workers = strpbrk(directive.words[1], "123456789") != NULL; /* 0: none */
		if (directive.end == '{')
			status = enter(reader, &cursor, directive.words[0], &context);
		else if (directive.end == ';' && context <= HTTP && strcmp(directive.words[0], "include") == 0)
			status = include(reader, &cursor, directive.words[1], context);
		if (status != WEIR_OK)
			return status;
	}
	return status;
}

enum weir_status nginx_conf_read(struct setup_files *files, const char *path, const char *const *strips,
                                 struct nginx_conf *conf, struct weir_error *error)
{
	struct reader reader = {.files = files, .conf = conf, .strips = strips, .error = error};
	*conf = (struct nginx_conf){0};
	enum weir_status status = weir_directory_of(path, conf->directory, error);
	if (status == WEIR_OK)
		status = read_file(&reader, path, MAIN);
	if (status == WEIR_OK && conf->http.file == NULL)
		status = weir_fail(error, WEIR_INVALID, "%s has no http block", path);
	return status;
}
