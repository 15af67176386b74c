/* SPDX-License-Identifier: Apache-2.0 */
/* Reading fail2ban's configuration files. */
#include "deploy/weir/import/ini.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FILES_MAX = 2000,
	INCLUDES_DEEP = 16,
	NAMES_DEEP = 20,
	SECTIONS_MAX = 2000,
	OPTIONS_MAX = 2000,
	VALUE_MAX_BYTES = 256 << 10,
	WORK_MAX = 200000,
};

void ini_deinit(struct ini *ini)
{
	for (size_t i = 0; i < ini->section_count; i++) {
		for (size_t k = 0; k < ini->sections[i].option_count; k++)
			for (struct ini_option *known = ini->sections[i].options[k].known, *next; known != NULL; known = next) {
				next = known->known;
				free(known);
			}
		free(ini->sections[i].options);
	}
	free(ini->sections);
}

static void put_part(struct weir_text *text, const char *part)
{
	weir_text_append(text, part, strlen(part) + 1);
}

uint64_t ini_fingerprint(const struct ini *ini)
{
	struct weir_text text = {0};
	for (size_t i = 0; i < ini->section_count; i++) {
		const struct ini_section *section = &ini->sections[i];
		put_part(&text, section->name);
		for (size_t k = 0; k < section->option_count; k++) {
			put_part(&text, section->options[k].name);
			for (const struct ini_option *one = &section->options[k]; one != NULL; one = one->known)
				put_part(&text, one->value);
		}
	}
	uint64_t fingerprint = weir_hash64(text.at, text.length);
	weir_text_deinit(&text);
	return fingerprint;
}

const struct ini_section *ini_section(const struct ini *ini, const char *name)
{
	for (size_t i = 0; i < ini->section_count; i++)
		if (strcmp(ini->sections[i].name, name) == 0)
			return &ini->sections[i];
	return NULL;
}

static struct ini_option *own_option(const struct ini_section *section, const char *name)
{
	for (size_t i = 0; section != NULL && i < section->option_count; i++)
		if (strcasecmp(section->options[i].name, name) == 0)
			return &section->options[i];
	return NULL;
}

const struct ini_option *ini_option(const struct ini *ini, const char *section, const char *name)
{
	const struct ini_option *option = own_option(ini_section(ini, section), name);
	return option != NULL ? option : own_option(ini_section(ini, "DEFAULT"), name);
}

/* ---- lines ---- */

struct reading {
	struct ini *ini;
	const char *file;
	unsigned line;
	struct ini_section *section;
	struct ini_option *option; /* that a line with blanks before it goes on with */
	struct weir_text value;
};

static struct weir_span trim(const char *at, size_t length)
{
	while (length > 0 && isspace((unsigned char)*at)) {
		at++;
		length--;
	}
	while (length > 0 && isspace((unsigned char)at[length - 1]))
		length--;
	return (struct weir_span){.at = at, .length = (uint32_t)length};
}

/* A remark behind a value begins with a semicolon after a blank. */
static struct weir_span without_remark(struct weir_span line)
{
	for (uint32_t i = 0; i < line.length; i++)
		if (line.at[i] == ';' && (i == 0 || isspace((unsigned char)line.at[i - 1])))
			return trim(line.at, i);
	return line;
}

static enum weir_status refuse(const struct reading *reading, struct weir_error *error, const char *words)
{
	return weir_fail(error, WEIR_INVALID, "%s:%u: %s", reading->file, reading->line, words);
}

static void end_value(struct reading *reading)
{
	if (reading->option != NULL)
		reading->option->value =
			plan_keep(reading->ini->plan, reading->value.at != NULL ? reading->value.at : "", reading->value.length);
	reading->option = NULL;
	weir_text_clear(&reading->value);
}

static enum weir_status begin_section(struct reading *reading, struct weir_span line, struct weir_error *error)
{
	struct ini *ini = reading->ini;
	const char *end = memchr(line.at, ']', line.length);
	if (end == NULL)
		return refuse(reading, error, "a section's name needs a \"]\" at its end, such as [sshd]");
	char *name = plan_keep(ini->plan, line.at + 1, (size_t)(end - line.at) - 1);
	for (size_t i = 0; i < ini->section_count; i++)
		if (strcmp(ini->sections[i].name, name) == 0) {
			reading->section = &ini->sections[i];
			return WEIR_OK;
		}
	if (ini->section_count == SECTIONS_MAX)
		return refuse(reading, error, "there are more sections than an import takes");
	ini->sections = weir_realloc(ini->sections, ini->section_count + 1, sizeof *ini->sections);
	reading->section = &ini->sections[ini->section_count++];
	*reading->section = (struct ini_section){.name = name, .line = reading->line};
	reading->section->file = plan_keep(ini->plan, reading->file, strlen(reading->file));
	return WEIR_OK;
}

static struct ini_option *option_for(struct reading *reading, char *name)
{
	struct ini_section *section = reading->section;
	struct ini_option *option = own_option(section, name);
	if (option == NULL) {
		section->options = weir_realloc(section->options, section->option_count + 1, sizeof *section->options);
		option = &section->options[section->option_count++];
		*option = (struct ini_option){0};
	} else {
		struct ini_option *known = weir_alloc(1, sizeof *known);
		*known = *option;
		option->known = known;
	}
	option->name = name;
	option->file = plan_keep(reading->ini->plan, reading->file, strlen(reading->file));
	option->line = reading->line;
	return option;
}

static enum weir_status begin_option(struct reading *reading, struct weir_span line, struct weir_error *error)
{
	size_t mark = 0;
	while (mark < line.length && line.at[mark] != '=' && line.at[mark] != ':')
		mark++;
	if (mark == line.length || mark == 0)
		return refuse(reading, error, "expected \"[SECTION]\" or \"NAME = VALUE\"");
	if (reading->section == NULL)
		return refuse(reading, error, "an option needs a section before it, such as [Definition]");
	if (reading->section->option_count == OPTIONS_MAX)
		return refuse(reading, error, "the section has more options than an import takes");
	struct weir_span name = trim(line.at, mark), value = trim(line.at + mark + 1, line.length - mark - 1);
	reading->option = option_for(reading, plan_keep(reading->ini->plan, name.at, name.length));
	reading->option->value = plan_keep(reading->ini->plan, "", 0);
	weir_text_append(&reading->value, value.at, value.length);
	return WEIR_OK;
}

static enum weir_status take_line(struct reading *reading, const char *at, size_t length, struct weir_error *error)
{
	struct weir_span line = trim(at, length);
	if (line.length == 0 || line.at[0] == '#' || line.at[0] == ';')
		return WEIR_OK;
	line = without_remark(line);
	if (isspace((unsigned char)at[0]) && reading->option != NULL) {
		if (reading->value.length + line.length > VALUE_MAX_BYTES)
			return refuse(reading, error, "the value is longer than an import takes");
		weir_text_puts(&reading->value, "\n");
		weir_text_append(&reading->value, line.at, line.length);
		return WEIR_OK;
	}
	end_value(reading);
	return line.at[0] == '[' ? begin_section(reading, line, error) : begin_option(reading, line, error);
}

enum weir_status ini_parse(struct ini *ini, const char *file, const char *text, size_t length, struct weir_error *error)
{
	struct reading reading = {.ini = ini, .file = file};
	enum weir_status status = WEIR_OK;
	if (memchr(text, '\0', length) != NULL) {
		reading.line = 1;
		return refuse(&reading, error, "is no text: it has zero bytes");
	}
	for (size_t begin = 0; begin < length && status == WEIR_OK;) {
		const char *end = memchr(text + begin, '\n', length - begin);
		size_t line = end != NULL ? (size_t)(end - text) - begin : length - begin;
		reading.line++;
		if (plan_is_full(ini->plan))
			status = refuse(&reading, error, "the configuration is larger than an import takes");
		else if (line > 0)
			status = take_line(&reading, text + begin, line, error);
		begin += line + 1;
	}
	end_value(&reading);
	weir_text_deinit(&reading.value);
	return status;
}

/* ---- files ---- */

static enum weir_status read_deep(struct ini *ini, const char *path, bool needed, unsigned deep,
                                  struct weir_error *error);

/* The files that an option of [INCLUDES] names, relative to the one that names them. */
static enum weir_status include(struct ini *ini, const struct ini *file, const char *path, const char *option,
                                unsigned deep, struct weir_error *error)
{
	const struct ini_option *names = own_option(ini_section(file, "INCLUDES"), option);
	if (names == NULL)
		return WEIR_OK;
	const char *slash = strrchr(path, '/');
	int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
	char *list = plan_keep(ini->plan, names->value, strlen(names->value));
	enum weir_status status = WEIR_OK;
	char *rest = NULL;
	for (char *name = strtok_r(list, "\n", &rest); name != NULL && status == WEIR_OK;
	     name = strtok_r(NULL, "\n", &rest)) {
		char *full = name[0] == '/' ? name : plan_print(ini->plan, "%.*s%s", folder, path, name);
		status = read_deep(ini, full, false, deep + 1, error);
	}
	return status;
}

static char *local_of(struct plan *plan, const char *path)
{
	size_t length = strlen(path);
	if (length < 5 || strcmp(path + length - 5, ".conf") != 0)
		return NULL;
	return plan_print(plan, "%.*s.local", (int)(length - 5), path);
}

static enum weir_status read_deep(struct ini *ini, const char *path, bool needed, unsigned deep,
                                  struct weir_error *error)
{
	if (access(path, F_OK) != 0 && !needed)
		return WEIR_OK;
	if (deep > INCLUDES_DEEP || ++ini->files > FILES_MAX)
		return weir_fail(error, WEIR_INVALID, "%s: files include one another more than %d deep, or are too many", path,
		                 INCLUDES_DEEP);
	char *text = NULL;
	size_t length = 0;
	enum weir_status status = plan_read_file(ini->plan, path, &text, &length, error);
	if (status != WEIR_OK)
		return status;
	struct ini alone = {.plan = ini->plan}; /* what it includes goes before or behind it */
	status = ini_parse(&alone, path, text, length, error);
	if (status == WEIR_OK)
		status = include(ini, &alone, path, "before", deep, error);
	if (status == WEIR_OK)
		status = ini_parse(ini, path, text, length, error);
	if (status == WEIR_OK)
		status = include(ini, &alone, path, "after", deep, error);
	char *local = local_of(ini->plan, path);
	if (status == WEIR_OK && local != NULL && deep > 0)
		status = read_deep(ini, local, false, deep + 1, error);
	ini_deinit(&alone);
	free(text);
	return status;
}

enum weir_status ini_read(struct ini *ini, const char *path, bool needed, struct weir_error *error)
{
	return read_deep(ini, path, needed, 0, error);
}

/* ---- %(name)s ---- */

/* What is being expanded: an option of a section, and the level of "known" of it. */
struct expansion {
	struct ini *ini;
	const char *section;
	const struct ini_option *of;
	struct weir_text *out;
	unsigned deep;
};

static const struct ini_option *given_option(const struct ini *ini, const char *name)
{
	for (size_t i = 0; i < ini->given_count; i++)
		if (strcasecmp(ini->given[i].name, name) == 0)
			return &ini->given[i];
	return NULL;
}

/* What a name within a value means: of the section, "known/NAME", or "SECTION/NAME". */
static const struct ini_option *find_named(const struct expansion *at, char *name)
{
	char *slash = strchr(name, '/');
	if (slash != NULL && strncmp(name, "known/", 6) == 0) {
		const struct ini_option *option = ini_option(at->ini, at->section, name + 6);
		if (at->of == NULL || strcasecmp(at->of->name, name + 6) != 0)
			return option;
		const struct ini_option *usual = own_option(ini_section(at->ini, "DEFAULT"), name + 6);
		return at->of->known != NULL ? at->of->known : usual != at->of ? usual : NULL;
	}
	if (slash != NULL) {
		*slash = '\0';
		const char *section = strcasecmp(name, "default") == 0 ? "DEFAULT" : name;
		const struct ini_option *option = ini_option(at->ini, section, slash + 1);
		*slash = '/';
		return option;
	}
	const struct ini_option *given = given_option(at->ini, name);
	const struct ini_option *option = given != NULL ? given : ini_option(at->ini, at->section, name);
	return option != NULL ? option : own_option(ini_section(at->ini, "Init"), name);
}

static enum weir_status expand(const struct expansion *at, const char *value, struct weir_error *error);

static enum weir_status expand_name(const struct expansion *at, char *name, struct weir_error *error)
{
	if (strcmp(name, "__name__") == 0) {
		weir_text_puts(at->out, at->section);
		return WEIR_OK;
	}
	if (strcmp(name, "fail2ban_version") == 0 || strcmp(name, "fail2ban_confpath") == 0)
		return WEIR_OK;
	const struct ini_option *option = find_named(at, name);
	if (option == NULL)
		return weir_fail(error, WEIR_INVALID, "%%(%.80s)s is not defined", name);
	if (at->deep >= NAMES_DEEP || ++at->ini->work > WORK_MAX || at->out->length > VALUE_MAX_BYTES ||
	    plan_is_full(at->ini->plan))
		return weir_fail(error, WEIR_INVALID, "%%(%.80s)s refers to itself, or becomes too long", name);
	struct expansion inner = *at;
	inner.of = option;
	inner.deep++;
	return expand(&inner, option->value, error);
}

static enum weir_status expand(const struct expansion *at, const char *value, struct weir_error *error)
{
	while (*value != '\0') {
		const char *end;
		if (value[0] == '%' && value[1] == '%') {
			weir_text_puts(at->out, "%");
			value += 2;
		} else if (value[0] == '%' && value[1] == '(' && (end = strstr(value, ")s")) != NULL) {
			char *name = weir_copy(value + 2, (size_t)(end - value) - 2);
			enum weir_status status = expand_name(at, name, error);
			free(name);
			if (status != WEIR_OK)
				return status;
			value = end + 2;
		} else {
			weir_text_append(at->out, value++, 1);
		}
	}
	return WEIR_OK;
}

enum weir_status ini_value(struct ini *ini, const char *section, const char *name, const char **value,
                           struct weir_error *error)
{
	*value = NULL;
	const struct ini_option *given = given_option(ini, name);
	const struct ini_option *option = given != NULL ? given : ini_option(ini, section, name);
	if (option == NULL)
		return WEIR_OK;
	struct weir_text out = {0};
	struct expansion at = {.ini = ini, .section = section, .of = option, .out = &out};
	enum weir_status status = expand(&at, option->value, error);
	if (status == WEIR_OK)
		*value = plan_keep(ini->plan, out.at != NULL ? out.at : "", out.length);
	weir_text_deinit(&out);
	return status;
}
