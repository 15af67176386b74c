/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages by the macros of man(7): one for each command line, and one for the configuration. */
#include "deploy/weir/command.h"
#include "deploy/weir/reference/internal.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

/* A character of UTF-8 that is not ASCII, by its number. @return its bytes */
static size_t put_character(const unsigned char *at, size_t length, FILE *out)
{
	size_t bytes = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
	unsigned number = bytes == 4 ? *at & 0x07U : bytes == 3 ? *at & 0x0fU : *at & 0x1fU;
	if (bytes > length)
		return length;
	for (size_t i = 1; i < bytes; i++)
		number = number << 6 | (at[i] & 0x3fU);
	fprintf(out, "\\[u%04X]", number);
	return bytes;
}

/* Text for roff: what it would take for its own is escaped, and what stands between two ` is bold. */
static void put_text(const char *text, size_t length, FILE *out)
{
	bool bold = false;
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)text[i];
		if (c >= 0x80) {
			i += put_character((const unsigned char *)text + i, length - i, out);
			continue;
		}
		switch (c) {
		case '\\': fputs("\\e", out); break;
		case '-': fputs("\\-", out); break;
		case '\'': fputs("\\(aq", out); break;
		case '"': fputs("\\(dq", out); break;
		case '~': fputs("\\(ti", out); break;
		case '^': fputs("\\(ha", out); break;
		case '.': fputs(i == 0 ? "\\&." : ".", out); break;
		case '`':
			bold = !bold;
			fputs(bold ? "\\fB" : "\\fR", out);
			break;
		default: fputc(c, out);
		}
		i++;
	}
}

static void put_string(const char *text, FILE *out)
{
	put_text(text, strlen(text), out);
}

/* Lines that stand as they are. */
static void put_example(const char *lines, FILE *out)
{
	fputs(".EX\n", out);
	for (const char *at = lines; *at != '\0';) {
		size_t length = strcspn(at, "\n");
		put_text(at, length, out);
		fputc('\n', out);
		at += length + (at[length] == '\n');
	}
	fputs(".EE\n", out);
}

/* Paragraphs; a line that begins with a space stands as it is, with those next to it. */
static void put_paragraphs(const char *text, FILE *out)
{
	bool literal = false;
	for (const char *at = text; *at != '\0';) {
		size_t length = strcspn(at, "\n");
		bool own = *at == ' ';
		if (literal && !own)
			fputs(".EE\n", out);
		if (length > 0 && !(literal && own) && at != text)
			fputs(".PP\n", out);
		if (own && !literal)
			fputs(".EX\n", out);
		literal = own;
		if (length > 0) {
			put_text(at, length, out);
			fputc('\n', out);
		}
		at += length + (at[length] == '\n');
	}
	if (literal)
		fputs(".EE\n", out);
}

static void put_heading(const char *macro, const char *words, bool upper, FILE *out)
{
	fprintf(out, "%s \"", macro);
	for (; *words != '\0'; words++) {
		char c = upper && *words >= 'a' && *words <= 'z' ? (char)(*words - 'a' + 'A') : *words;
		put_text(&c, 1, out);
	}
	fputs("\"\n", out);
}

static void put_title(const char *name, int section, const char *date, FILE *out)
{
	fputs(".TH ", out);
	for (; *name != '\0'; name++)
		fputc(*name == ' ' ? '-' : *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
	fprintf(out, " %d \"%s\" \"weir " WEIR_VERSION "\"\n", section, date);
}

/* ---- a command line ---- */

static const struct weir_argument_option help_option = {
	.name = "help", .type = WEIR_ARGUMENT_FLAG, .help = "print a help page", .letter = 'h'};

static void put_option(const struct weir_argument_option *option, FILE *out)
{
	if (option->heading != NULL)
		put_heading(".SS", option->heading, false, out);
	fputs(".TP\n", out);
	if (option->letter != 0)
		fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
	fputs("\\fB\\-\\-", out);
	put_string(option->name, out);
	fputs("\\fR", out);
	if (option->value != NULL) {
		fputs(" \\fI", out);
		put_string(option->value, out);
		fputs("\\fR", out);
	}
	fputc('\n', out);
	put_string(option->help, out);
	fputs(option->repeatable ? "; may be repeated\n" : "\n", out);
	if (option->choices == NULL)
		return;
	fputs("(one of", out);
	for (size_t i = 0; option->choices[i] != NULL; i++) {
		fputs(i > 0 ? ", \\fB" : " \\fB", out);
		put_string(option->choices[i], out);
		fputs("\\fR", out);
	}
	fputs(")\n", out);
}

static void put_synopsis(const char *usage, FILE *out)
{
	fputs(".SH SYNOPSIS\n", out);
	bool begun = false;
	for (const char *at = usage; *at != '\0'; begun = true) {
		size_t length = strcspn(at, "\n"), blanks = strspn(at, " ");
		if (begun)
			fputs(".br\n", out);
		put_text(at + blanks, length - blanks, out);
		fputc('\n', out);
		at += length + (at[length] == '\n');
	}
}

static void put_name(const struct weir_command_line *line, FILE *out)
{
	fputs(".SH NAME\n", out);
	for (const char *at = line->name; *at != '\0'; at++)
		put_text(*at == ' ' ? "-" : at, 1, out);
	fputs(" \\- ", out);
	put_string(line->summary, out);
	fputc('\n', out);
}

static void put_commands(FILE *out)
{
	fputs(".SH COMMANDS\n", out);
	for (size_t i = 0; weir_commands[i] != NULL; i++) {
		const char *name = weir_commands[i]->line->name + strlen("weir ");
		fprintf(out, ".TP\n.BR weir\\-%s (1)\n", name);
		put_string(weir_commands[i]->line->summary, out);
		fputc('\n', out);
	}
}

static void put_rest(const struct weir_command_line *line, FILE *out)
{
	for (const struct weir_argument_section *section = line->sections; section != NULL && section->heading != NULL;
	     section++) {
		put_heading(".SH", section->heading, true, out);
		put_paragraphs(section->text, out);
	}
	if (line->examples != NULL) {
		fputs(".SH EXAMPLES\n", out);
		put_example(line->examples, out);
	}
	if (line->exits != NULL)
		fputs(".SH \"EXIT STATUS\"\n", out);
	for (const struct weir_argument_exit *end = line->exits; end != NULL && end->meaning != NULL; end++) {
		fprintf(out, ".TP\n%d\n", (int)end->code);
		put_string(end->meaning, out);
		fputc('\n', out);
	}
}

static void put_see_also(const struct weir_command_line *line, FILE *out)
{
	fputs(
		".SH FILES\n.TP\n.I /etc/weir/weir.json\nthe configuration, where no other is named: see\n.BR weir.json (5)\n",
		out);
	fputs(".SH ENVIRONMENT\n.TP\n.B WEIR_CONFIG\nthe configuration, where\n.B \\-\\-config\nnames none\n", out);
	fputs(".SH \"SEE ALSO\"\n", out);
	if (line != &weir_program)
		fputs(".BR weir (1),\n", out);
	else
		for (size_t i = 0; reference_daemons[i] != NULL; i++) {
			fputs(".BR ", out);
			put_string(reference_daemons[i]->name, out);
			fputs(" (8),\n", out);
		}
	fputs(".BR weir.json (5)\n", out);
}

void reference_man(const struct weir_command_line *line, int section, const char *date, FILE *out)
{
	put_title(line->name, section, date, out);
	put_name(line, out);
	put_synopsis(line->usage, out);
	fputs(".SH DESCRIPTION\n", out);
	put_paragraphs(line->about, out);
	if (line == &weir_program)
		put_commands(out);
	if (line->operand.word != NULL) {
		fputs(".SH ARGUMENTS\n.TP\n.I ", out);
		put_string(line->operand.word, out);
		fputs(line->operand.most == 1 ? "\n" : "\\&...\n", out);
		put_string(line->operand.help, out);
		fputc('\n', out);
	}
	fputs(".SH OPTIONS\n", out);
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++)
		put_option(option, out);
	put_option(&help_option, out);
	put_rest(line, out);
	put_see_also(line, out);
}

/* ---- the configuration ---- */

static void put_members(const json_t *object, FILE *out);

/* What a member may be, as far as a word says it. */
static void put_choices(const json_t *shape, FILE *out)
{
	const json_t *words = json_object_get(shape, "enum"), *fallback = json_object_get(shape, "default");
	for (size_t i = 0; i < json_array_size(words); i++) {
		fputs(i == 0 ? "One of \\fB" : ", \\fB", out);
		put_string(json_string_value(json_array_get(words, i)), out);
		fputs("\\fR", out);
	}
	if (json_array_size(words) > 0)
		fputs(".\n", out);
	if (fallback == NULL)
		return;
	char *dumped = json_dumps(fallback, JSON_ENCODE_ANY);
	fputs("Default: \\fB", out);
	put_string(json_is_string(fallback) ? json_string_value(fallback) : dumped, out);
	fputs("\\fR.\n", out);
	free(dumped);
}

static bool is_needed(const json_t *object, const char *name)
{
	const json_t *needed = json_object_get(object, "required");
	for (size_t i = 0; i < json_array_size(needed); i++)
		if (strcmp(json_string_value(json_array_get(needed, i)), name) == 0)
			return true;
	return false;
}

static void put_members(const json_t *object, FILE *out)
{
	const char *name;
	json_t *shape;
	json_object_foreach(json_object_get(object, "properties"), name, shape)
	{
		const char *meaning = json_string_value(json_object_get(shape, "description"));
		/* The tag of a kind is its heading, and a section of settings has one of its own. */
		if (json_object_get(shape, "const") != NULL || json_object_get(shape, "properties") != NULL)
			continue;
		fputs(".TP\n.B ", out);
		put_string(name, out);
		fputc('\n', out);
		if (meaning != NULL) {
			put_string(meaning, out);
			fputs(is_needed(object, name) ? " (needed)" : "", out);
			fputs(".\n", out);
		}
		put_choices(shape, out);
	}
}

/* The kinds of a source, a format or a limit, by the name that a member of them is. */
static void put_kinds(const json_t *kinds, const char *member, const char *title, FILE *out)
{
	size_t i;
	json_t *kind;
	json_array_foreach(kinds, i, kind)
	{
		const json_t *tag = json_object_get(json_object_get(kind, "properties"), member);
		char heading[128];
		snprintf(heading, sizeof heading, "%s %s", title, json_string_value(json_object_get(tag, "const")));
		put_heading(".SS", heading, false, out);
		const char *meaning = json_string_value(json_object_get(kind, "description"));
		if (meaning != NULL) {
			put_string(meaning, out);
			fputs(".\n", out);
		}
		put_members(kind, out);
	}
}

static void put_sections(const json_t *schema, FILE *out)
{
	const char *name;
	json_t *section;
	fputs(".SH SETTINGS\nTimes look like \\fB250ms\\fR, \\fB10s\\fR, \\fB1m\\fR, \\fB1h\\fR, \\fB1d\\fR; sizes like "
	      "\\fB64KiB\\fR, \\fB2GiB\\fR.\n",
	      out);
	json_object_foreach(json_object_get(schema, "properties"), name, section)
	{
		if (json_object_get(section, "properties") == NULL)
			continue;
		put_heading(".SS", name, false, out);
		put_members(section, out);
	}
}

void reference_man_config(const json_t *schema, const char *date, FILE *out)
{
	const json_t *parts = json_object_get(schema, "$defs");
	const json_t *formats = json_array_get(json_object_get(json_object_get(parts, "format"), "anyOf"), 1);
	const json_t *gateway = json_array_get(json_object_get(json_object_get(parts, "gateway"), "anyOf"), 1);
	put_title("weir.json", 5, date, out);
	fputs(".SH NAME\nweir.json \\- the configuration of weir\n.SH DESCRIPTION\n"
	      "One JSON object, for\n.BR weir (1)\nand its daemons. What it may hold says also the JSON Schema "
	      "that \\fBweir reference schema\\fR prints; \\fBweir validate\\fR explains a configuration.\n",
	      out);
	fputs(".SH SECTIONS\n", out);
	put_members(schema, out);
	fputs(".SH ZONES\nA zone says which records it covers, what it counts by, and how many it allows.\n", out);
	put_members(json_object_get(parts, "zone"), out);
	put_kinds(json_object_get(json_object_get(parts, "limit"), "oneOf"), "algorithm", "Limit:", out);
	fputs(".SH SOURCES\nEach names its \\fBtype\\fR.\n", out);
	put_kinds(json_object_get(json_object_get(parts, "source"), "oneOf"), "type", "Source:", out);
	fputs(".SH FORMATS\nA name, or an object with its \\fBtype\\fR and options.\n", out);
	put_kinds(json_object_get(formats, "oneOf"), "type", "Format:", out);
	fputs(".SH GATEWAYS\nA target, or an object.\n", out);
	put_members(gateway, out);
	put_sections(schema, out);
	fputs(".SH FILES\n.TP\n.I /etc/weir/weir.json\nthe usual configuration\n.TP\n.I /usr/share/weir/weir.schema.json\n"
	      "the schema\n.SH \"SEE ALSO\"\n.BR weir (1),\n.BR weir\\-validate (1)\n",
	      out);
}
