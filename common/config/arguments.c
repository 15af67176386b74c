/*
 * Command lines: one loop for every subcommand, so that all of them refuse what
 * they do not know in the same words and suggest what was meant.
 *
 * Numbers are read without floating point: what a command computes from them
 * is the same on every machine.
 */
#include "common/config/arguments.h"

#include "common/base/suggest.h"
#include "common/base/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int weir_arguments_refuse(const struct weir_arguments *arguments, const char *format, ...)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	va_list values;
	va_start(values, format);
	vsnprintf(words, sizeof words, format, values);
	va_end(values);
	weir_words_clean(words);
	fprintf(stderr, "%s: %s\nTry \"%s --help\".\n", arguments->command, words, arguments->command);
	return WEIR_ARGUMENTS_BAD;
}

static int refuse_unknown(const struct weir_arguments *arguments, const char *name, size_t length)
{
	const char *names[WEIR_ARGUMENTS_OPTIONS_MAX + 2];
	char written[64];
	size_t count = 0;
	for (const struct weir_argument_option *option = arguments->options; option->name != NULL; option++)
		names[count++] = option->name;
	names[count++] = "help";
	names[count] = NULL;
	snprintf(written, sizeof written, "%.*s", (int)length, name);
	const char *near = weir_nearest_name(written, names);
	if (near != NULL)
		return weir_arguments_refuse(arguments, "there is no option --%s; --%s is meant?", written, near);
	return weir_arguments_refuse(arguments, "there is no option --%s", written);
}

int weir_arguments_next(struct weir_arguments *arguments, const char **value)
{
	*value = NULL;
	if (++arguments->at >= arguments->argc)
		return WEIR_ARGUMENTS_END;
	const char *word = arguments->argv[arguments->at];
	if (arguments->words_only || word[0] != '-' || word[1] == '\0') {
		*value = word;
		return WEIR_ARGUMENTS_WORD;
	}
	if (strcmp(word, "--") == 0) {
		arguments->words_only = true;
		return weir_arguments_next(arguments, value);
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return WEIR_ARGUMENTS_HELP;
	if (word[1] != '-')
		return weir_arguments_refuse(arguments, "there is no option %s; options begin with two dashes", word);
	const char *name = word + 2, *equals = strchr(name, '=');
	size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
	for (int i = 0; arguments->options[i].name != NULL; i++) {
		const struct weir_argument_option *option = &arguments->options[i];
		if (strlen(option->name) != length || memcmp(option->name, name, length) != 0)
			continue;
		if (!option->takes_value)
			return equals == NULL ? i : weir_arguments_refuse(arguments, "--%s takes no value", option->name);
		if (equals != NULL)
			*value = equals + 1;
		else if (arguments->at + 1 < arguments->argc)
			*value = arguments->argv[++arguments->at];
		else
			return weir_arguments_refuse(arguments, "--%s needs a value", option->name);
		return i;
	}
	return refuse_unknown(arguments, name, length);
}

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
