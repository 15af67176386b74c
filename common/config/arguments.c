/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines: one reader for every program and subcommand, so that all of them refuse what they do not know in the
 * same words and suggest what was meant.
 *
 * Numbers are read without floating point: what a command computes from them is the same on every machine.
 */
#include "common/config/arguments.h"

#include "common/base/suggest.h"
#include "common/base/words.h"
#include "common/json/units.h"

#include <stdarg.h>
#include <string.h>

/* Where the reading stands. */
struct reader {
	const struct weir_command_line *line;
	int argc, at;
	char **argv;
	bool operands_only;
	unsigned operand_count;
	bool given[WEIR_ARGUMENTS_OPTIONS_MAX];
	weir_argument_take *take;
	void *context;
};

enum { WORDS_BYTES = 512 };

/* ---- what is wrong ---- */

enum weir_exit weir_arguments_refuse(const struct weir_command_line *line, const char *format, ...)
{
	char words[2 * WORDS_BYTES];
	va_list values;
	va_start(values, format);
	vsnprintf(words, sizeof words, format, values);
	va_end(values);
	weir_words_clean(words);
	fprintf(stderr, "%s: %s\nTry \"%s --help\".\n", line->name, words, line->name);
	return WEIR_EXIT_USAGE;
}

static enum weir_exit refuse_unknown(const struct weir_command_line *line, const char *name, size_t length)
{
	const char *names[WEIR_ARGUMENTS_OPTIONS_MAX + 2];
	char written[64];
	size_t count = 0;
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++)
		names[count++] = option->name;
	names[count++] = "help";
	names[count] = NULL;
	snprintf(written, sizeof written, "%.*s", (int)length, name);
	const char *near = weir_nearest_name(written, names);
	if (near != NULL)
		return weir_arguments_refuse(line, "unknown option --%s (did you mean --%s?)", written, near);
	return weir_arguments_refuse(line, "unknown option --%s", written);
}

/* A bound as a person writes it, in the type's unit. */
static const char *put_bound(const struct weir_argument_option *option, uint64_t bound, char *buffer, size_t bytes)
{
	uint64_t whole = 1;
	switch (option->type) {
	case WEIR_ARGUMENT_DURATION: return weir_format_duration((int64_t)bound, buffer, bytes);
	case WEIR_ARGUMENT_SIZE: return weir_format_size((int64_t)bound, buffer, bytes);
	case WEIR_ARGUMENT_DECIMAL:
		for (unsigned i = 0; i < option->digits; i++)
			whole *= 10;
		if (bound % whole != 0) {
			snprintf(buffer, bytes, "%llu.%0*llu", (unsigned long long)(bound / whole), (int)option->digits,
			         (unsigned long long)(bound % whole));
			return buffer;
		}
		break;
	default: break;
	}
	bound /= whole;
	bool millions = bound > 0 && bound % 1000000 == 0;
	snprintf(buffer, bytes, "%llu%s", (unsigned long long)(millions ? bound / 1000000 : bound), millions ? "M" : "");
	return buffer;
}

static void put_expected(const struct weir_argument_option *option, char *words, size_t bytes)
{
	static const char *const nouns[] = {
		[WEIR_ARGUMENT_FLAG] = "nothing",
		[WEIR_ARGUMENT_TEXT] = "something else",
		[WEIR_ARGUMENT_NUMBER] = "a number",
		[WEIR_ARGUMENT_DECIMAL] = "a number",
		[WEIR_ARGUMENT_SHARE] = "a share such as 0.05 or 5%",
		[WEIR_ARGUMENT_DURATION] = "a duration such as 30s or 10m",
		[WEIR_ARGUMENT_SIZE] = "a size such as 512MiB or 2GiB",
		[WEIR_ARGUMENT_CHOICE] = "one of ",
	};
	char least[32], most[32];
	size_t length = (size_t)snprintf(words, bytes, "%s", nouns[option->type]);
	if (option->type == WEIR_ARGUMENT_CHOICE) {
		weir_list_names(option->choices, "", words + length, bytes - length);
		return;
	}
	put_bound(option, option->least, least, sizeof least);
	put_bound(option, option->most, most, sizeof most);
	if (option->most > 0)
		length += (size_t)snprintf(words + length, bytes - length, ", from %s to %s", least, most);
	else if (option->least > 0)
		length += (size_t)snprintf(words + length, bytes - length, ", at least %s", least);
	if (option->type == WEIR_ARGUMENT_DECIMAL)
		snprintf(words + length, bytes - length, ", with at most %u decimal places", option->digits);
}

static enum weir_exit refuse_choice(const struct weir_command_line *line, const char *what, const char *expected,
                                    const char *const *choices, const char *text)
{
	const char *near = choices != NULL ? weir_nearest_name(text, choices) : NULL;
	if (near != NULL)
		return weir_arguments_refuse(line, "%s must be %s, not \"%s\" (did you mean \"%s\"?)", what, expected, text,
		                             near);
	return weir_arguments_refuse(line, "%s must be %s, not \"%s\"", what, expected, text);
}

enum weir_exit weir_arguments_refuse_value(const struct weir_command_line *line, int option, const char *text)
{
	const struct weir_argument_option *wrong = &line->options[option];
	char words[WORDS_BYTES], what[64];
	put_expected(wrong, words, sizeof words);
	snprintf(what, sizeof what, "--%s", wrong->name);
	return refuse_choice(line, what, wrong->expected != NULL ? wrong->expected : words, wrong->choices, text);
}

static enum weir_exit check_operand(struct reader *reader, const char *word)
{
	const struct weir_argument_operand *operand = &reader->line->operand;
	char words[WORDS_BYTES] = "one of ";
	if (operand->word == NULL || (operand->most > 0 && reader->operand_count >= operand->most))
		return weir_arguments_refuse(reader->line, "unexpected argument \"%s\"%s%s", word,
		                             operand->hint != NULL ? "; " : "", operand->hint != NULL ? operand->hint : "");
	reader->operand_count++;
	if (operand->choices == NULL)
		return WEIR_EXIT_NOT_YET;
	for (size_t i = 0; operand->choices[i] != NULL; i++)
		if (strcmp(operand->choices[i], word) == 0)
			return WEIR_EXIT_NOT_YET;
	weir_list_names(operand->choices, "", words + strlen(words), sizeof words - strlen(words));
	return refuse_choice(reader->line, operand->word, words, operand->choices, word);
}

static enum weir_exit check_required(const struct reader *reader)
{
	for (size_t i = 0; reader->line->options[i].name != NULL; i++) {
		const struct weir_argument_option *option = &reader->line->options[i];
		if (option->required && !reader->given[i])
			return weir_arguments_refuse(reader->line, "missing --%s%s%s", option->name,
			                             option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- reading ---- */

static bool read_number(const struct weir_argument_option *option, struct weir_argument *value)
{
	int64_t number = 0;
	bool good = true;
	switch (option->type) {
	case WEIR_ARGUMENT_FLAG:
	case WEIR_ARGUMENT_TEXT: return true;
	case WEIR_ARGUMENT_NUMBER: good = weir_arguments_count(value->text, &value->number); break;
	case WEIR_ARGUMENT_DECIMAL: good = weir_arguments_decimal(value->text, option->digits, &value->number); break;
	case WEIR_ARGUMENT_SHARE: good = weir_arguments_share(value->text, &value->number); break;
	case WEIR_ARGUMENT_DURATION:
		good = weir_parse_duration(value->text, &number) && number >= 0;
		value->number = (uint64_t)number;
		break;
	case WEIR_ARGUMENT_SIZE:
		good = weir_parse_size(value->text, &number) && number >= 0;
		value->number = (uint64_t)number;
		break;
	case WEIR_ARGUMENT_CHOICE:
		while (option->choices[value->number] != NULL && strcmp(option->choices[value->number], value->text) != 0)
			value->number++;
		return option->choices[value->number] != NULL;
	}
	return good && value->number >= option->least && (option->most == 0 || value->number <= option->most);
}

static enum weir_exit take_option(struct reader *reader, int at, const char *text)
{
	const struct weir_argument_option *option = &reader->line->options[at];
	struct weir_argument value = {.text = text};
	if (!read_number(option, &value))
		return weir_arguments_refuse_value(reader->line, at, text);
	reader->given[at] = true;
	return reader->take(reader->context, at, &value);
}

/* @param attached  what stands in the same word, as in --name=VALUE; NULL: nothing */
static enum weir_exit read_value(struct reader *reader, int at, const char *attached)
{
	const struct weir_argument_option *option = &reader->line->options[at];
	if (option->type == WEIR_ARGUMENT_FLAG)
		return attached == NULL ? take_option(reader, at, NULL)
		                        : weir_arguments_refuse(reader->line, "--%s takes no value", option->name);
	if (attached != NULL)
		return take_option(reader, at, attached);
	if (reader->at + 1 >= reader->argc)
		return weir_arguments_refuse(reader->line, "--%s needs a value", option->name);
	return take_option(reader, at, reader->argv[++reader->at]);
}

static enum weir_exit read_letter(struct reader *reader, const char *word)
{
	for (int i = 0; reader->line->options[i].name != NULL; i++)
		if (reader->line->options[i].letter == word[1])
			return read_value(reader, i, word[2] != '\0' ? word + 2 : NULL);
	return weir_arguments_refuse(reader->line, "unknown option %s", word);
}

static enum weir_exit read_name(struct reader *reader, const char *name)
{
	const char *equals = strchr(name, '=');
	size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
	for (int i = 0; reader->line->options[i].name != NULL; i++) {
		const char *known = reader->line->options[i].name;
		if (strlen(known) == length && memcmp(known, name, length) == 0)
			return read_value(reader, i, equals != NULL ? equals + 1 : NULL);
	}
	return refuse_unknown(reader->line, name, length);
}

static enum weir_exit read_word(struct reader *reader)
{
	const char *word = reader->argv[reader->at];
	if (reader->operands_only || word[0] != '-' || word[1] == '\0') {
		const struct weir_argument operand = {.text = word};
		enum weir_exit code = check_operand(reader, word);
		return code == WEIR_EXIT_NOT_YET ? reader->take(reader->context, WEIR_ARGUMENT_OPERAND, &operand) : code;
	}
	if (strcmp(word, "--") == 0) {
		reader->operands_only = true;
		return WEIR_EXIT_NOT_YET;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
		weir_arguments_help(reader->line, stdout);
		return WEIR_EXIT_DONE;
	}
	return word[1] == '-' ? read_name(reader, word + 2) : read_letter(reader, word);
}

enum weir_exit weir_arguments_read(const struct weir_command_line *line, int argc, char **argv,
                                   weir_argument_take *take, void *context)
{
	struct reader reader = {.line = line, .argc = argc, .argv = argv, .take = take, .context = context};
	enum weir_exit code = WEIR_EXIT_NOT_YET;
	for (reader.at = 1; code == WEIR_EXIT_NOT_YET && reader.at < argc; reader.at++)
		code = read_word(&reader);
	return code == WEIR_EXIT_NOT_YET ? check_required(&reader) : code;
}

/* ---- values ---- */

/* Digits up to the first byte that is none; NULL where there is none, or too
 * many. */
static const char *read_digits(const char *text, uint64_t *number)
{
	const char *at = text;
	*number = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, (uint64_t)(*at - '0'), number))
			return NULL;
	return at == text ? NULL : at;
}

bool weir_arguments_count(const char *text, uint64_t *count)
{
	const char *at = read_digits(text, count);
	if (at == NULL)
		return false;
	uint64_t factor = 1;
	switch (*at) {
	case '\0': return true;
	case 'k': factor = 1000; break;
	case 'M': factor = 1000000; break;
	case 'G': factor = 1000000000; break;
	default: return false;
	}
	return at[1] == '\0' && !__builtin_mul_overflow(*count, factor, count);
}

/* As weir_arguments_decimal, up to the first byte that is not part of it. */
static const char *read_decimal(const char *text, unsigned digits, uint64_t *number)
{
	const char *at = read_digits(text, number);
	if (at == NULL)
		return NULL;
	bool fraction = *at == '.';
	const char *first = at += fraction;
	for (unsigned i = 0; i < digits; i++) {
		uint64_t digit = 0;
		if (fraction && *at >= '0' && *at <= '9')
			digit = (uint64_t)(*at++ - '0');
		if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, digit, number))
			return NULL;
	}
	return fraction && at == first ? NULL : at;
}

bool weir_arguments_decimal(const char *text, unsigned digits, uint64_t *number)
{
	const char *at = read_decimal(text, digits, number);
	return at != NULL && *at == '\0';
}

bool weir_arguments_share(const char *text, uint64_t *share)
{
	enum { DIGITS = 9 };
	uint64_t whole = 1000000000, number;
	const char *at = read_decimal(text, DIGITS, &number);
	if (at == NULL)
		return false;
	if (*at == '%') {
		whole *= 100;
		at++;
	}
	if (*at != '\0' || number > whole)
		return false;
	*share = (uint64_t)(((unsigned __int128)number << 32) / whole);
	return true;
}
