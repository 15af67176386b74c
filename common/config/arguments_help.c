/* SPDX-License-Identifier: Apache-2.0 */
/* The help page of a command line: printed from its table, so that it says what is read. */
#include "common/config/arguments.h"

#include <string.h>

enum { COLUMNS = 80, HELP_INDENT_MAX = 26, GAP = 2 };

static void put_spaces(size_t count, FILE *out)
{
	for (size_t i = 0; i < count; i++)
		fputc(' ', out);
}

/* Words in lines behind `indent` columns, the first of which are already filled up to `column`. Ends the last line. */
static void put_words(const char *text, size_t length, size_t indent, size_t column, FILE *out)
{
	bool first = true;
	const char *end = text + length;
	while (text < end) {
		size_t word = 0;
		while (text + word < end && text[word] != ' ')
			word++;
		if (!first && column + 1 + word > COLUMNS) {
			fputc('\n', out);
			column = 0;
			first = true;
		}
		if (column < indent) {
			put_spaces(indent - column, out);
			column = indent;
		}
		if (!first) {
			fputc(' ', out);
			column++;
		}
		fwrite(text, 1, word, out);
		column += word;
		first = false;
		text += word;
		while (text < end && *text == ' ')
			text++;
	}
	fputc('\n', out);
}

void weir_arguments_wrap(const char *text, unsigned indent, FILE *out)
{
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		if (text[0] == ' ')
			fprintf(out, "%*s%.*s\n", (int)indent, "", (int)length, text);
		else if (length == 0)
			fputc('\n', out);
		else
			put_words(text, length, indent, 0, out);
		text += length + (text[length] == '\n');
	}
}

/* "  -x, --name VALUE", as it is printed. @return its columns */
static size_t put_option_name(const struct weir_argument_option *option, char *buffer, size_t bytes)
{
	char letter[8] = "";
	if (option->letter != 0)
		snprintf(letter, sizeof letter, "-%c, ", option->letter);
	snprintf(buffer, bytes, "  %s--%s%s%s", letter, option->name, option->value != NULL ? " " : "",
	         option->value != NULL ? option->value : "");
	return strlen(buffer);
}

static const struct weir_argument_option help_option = {
	.name = "help", .type = WEIR_ARGUMENT_FLAG, .help = "print this page", .letter = 'h'};

/* Where the explanations begin: behind the longest name that leaves them room. */
static size_t help_indent(const struct weir_command_line *line)
{
	char name[64];
	size_t indent = put_option_name(&help_option, name, sizeof name) + GAP;
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++) {
		size_t own = put_option_name(option, name, sizeof name) + GAP;
		if (own > indent && own <= HELP_INDENT_MAX)
			indent = own;
	}
	return indent;
}

static void put_entry(const char *name, const char *help, size_t indent, FILE *out)
{
	size_t column = strlen(name);
	fputs(name, out);
	if (column + GAP > indent) {
		fputc('\n', out);
		column = 0;
	}
	put_words(help, strlen(help), indent, column, out);
}

static void put_option(const struct weir_argument_option *option, size_t indent, FILE *out)
{
	char name[64], help[512];
	if (option->heading != NULL)
		fprintf(out, "\n%s:\n", option->heading);
	put_option_name(option, name, sizeof name);
	snprintf(help, sizeof help, "%s%s", option->help, option->repeatable ? "; may be repeated" : "");
	put_entry(name, help, indent, out);
}

static void put_options(const struct weir_command_line *line, FILE *out)
{
	size_t indent = help_indent(line);
	char name[64];
	if (line->operand.word != NULL) {
		snprintf(name, sizeof name, "  %s%s", line->operand.word, line->operand.most == 1 ? "" : "...");
		fputs("\nArguments:\n", out);
		put_entry(name, line->operand.help, indent, out);
	}
	if (line->options[0].heading == NULL)
		fputs("\nOptions:\n", out);
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++)
		put_option(option, indent, out);
	put_option(&help_option, indent, out);
}

/* Lines with so many spaces before each but the first. */
static void put_lines(const char *lines, unsigned indent, FILE *out)
{
	for (const char *at = lines; *at != '\0'; at++) {
		fputc(*at, out);
		if (*at == '\n' && at[1] != '\0')
			put_spaces(indent, out);
	}
	if (lines[strlen(lines) - 1] != '\n')
		fputc('\n', out);
}

void weir_arguments_help(const struct weir_command_line *line, FILE *out)
{
	fputs("Usage: ", out);
	put_lines(line->usage, 7, out);
	fputc('\n', out);
	weir_arguments_wrap(line->about, 0, out);
	put_options(line, out);
	for (const struct weir_argument_section *section = line->sections; section != NULL && section->heading != NULL;
	     section++) {
		fprintf(out, "\n%s:\n", section->heading);
		weir_arguments_wrap(section->text, 2, out);
	}
	if (line->examples != NULL) {
		fputs("\nExamples:\n  ", out);
		put_lines(line->examples, 2, out);
	}
	fputs("\nExit codes:\n", out);
	for (const struct weir_argument_exit *end = line->exits; end->meaning != NULL; end++) {
		char code[16];
		snprintf(code, sizeof code, "  %d", (int)end->code);
		put_entry(code, end->meaning, 5, out);
	}
}
