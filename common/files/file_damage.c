/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words are one sentence after another in the error's text, so that whoever passes it up or logs it needs to know
 * nothing of them. A command that has no room whole is left out: half of one must not be typed.
 */
#include "common/files/file_damage.h"

#include "common/base/shell.h"
#include "common/files/durable_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MOST = 99 };

static const char to_start[] = ". To start: ";

static enum weir_status append(struct weir_error *error, const char *format, ...) WEIR_PRINTF(2, 3);

static enum weir_status append(struct weir_error *error, const char *format, ...)
{
	size_t used = strlen(error->text);
	va_list args;
	va_start(args, format);
	int length = vsnprintf(error->text + used, sizeof error->text - used, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof error->text - used)
		error->text[used] = '\0';
	return error->status;
}

enum weir_status weir_damage_without(struct weir_error *error, const char *lost, const char *format, ...)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	if (error == NULL || weir_damage_find_remedy(error->text, NULL) != NULL)
		return error != NULL ? error->status : WEIR_INVALID;
	va_list args;
	va_start(args, format);
	int length = vsnprintf(words, sizeof words, format, args);
	va_end(args);
	return length > 0 && (size_t)length < sizeof words ? append(error, ". Without it, %s%s%s", lost, to_start, words)
	                                                   : error->status;
}

enum weir_status weir_damage_move(struct weir_error *error, const char *path, const char *lost)
{
	return weir_damage_move_then(error, path, lost, "");
}

/* A name beside the file that nothing has: what was moved away before stays. @return WEIR_INVALID: there is none */
static enum weir_status free_name(const char *path, char moved[WEIR_PATH_BYTES])
{
	char directory[WEIR_PATH_BYTES];
	struct stat about;
	const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
	enum weir_status status = weir_directory_of(path, directory, NULL);
	if (status == WEIR_OK)
		status = weir_path_format(moved, NULL, "%s/damaged-%s", directory, name);
	for (int i = 2; status == WEIR_OK && lstat(moved, &about) == 0; i++)
		status = i <= NAMES_MOST ? weir_path_format(moved, NULL, "%s/damaged-%s.%d", directory, name, i) : WEIR_INVALID;
	return status;
}

enum weir_status weir_damage_move_then(struct weir_error *error, const char *path, const char *lost, const char *then)
{
	char moved[WEIR_PATH_BYTES];
	if (error == NULL || weir_damage_find_remedy(error->text, NULL) != NULL || free_name(path, moved) != WEIR_OK)
		return error != NULL ? error->status : WEIR_INVALID;
	return weir_damage_without(error, lost, "mv %s %s%s%s (runbook: state-file-damaged)", weir_shell_word(path).text,
	                           weir_shell_word(moved).text, then[0] != '\0' ? " && " : "", then);
}

enum weir_status weir_damage_remedy(struct weir_error *error, const char *format, ...)
{
	char words[WEIR_ERROR_TEXT_BYTES];
	if (error == NULL || weir_damage_find_remedy(error->text, NULL) != NULL)
		return error != NULL ? error->status : WEIR_INVALID;
	va_list args;
	va_start(args, format);
	vsnprintf(words, sizeof words, format, args);
	va_end(args);
	return append(error, "%s%s", to_start, words);
}

const char *weir_damage_find_remedy(const char *text, size_t *what)
{
	const char *found = strstr(text, to_start);
	if (found != NULL && what != NULL)
		*what = (size_t)(found - text);
	return found != NULL ? found + sizeof to_start - 1 : NULL;
}
