/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors carry their words with them; nothing here allocates, so that an
 * out-of-memory path can use it too. The words are cleaned where they are made:
 * whoever shows them may do so anywhere.
 */
#include "common/base/status.h"

#include "common/base/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What a person does about it, wherever it happens: the system's words alone do not say. */
#define TOO_MANY "Too many open files"
#define MORE_OF_PROCESS " (more are allowed by ulimit -n, or LimitNOFILE= of a service)"
#define MORE_OF_SYSTEM " (more are allowed by sysctl fs.file-max)"

const char *weir_errno_words(int code)
{
	switch (code) {
	case EMFILE: return TOO_MANY MORE_OF_PROCESS;
	case ENFILE: return TOO_MANY " in system" MORE_OF_SYSTEM;
	default: return strerror(code);
	}
}

const char *weir_errno_advice(const char *words)
{
	const char *found = strstr(words, TOO_MANY);
	if (found == NULL)
		return "";
	return strncmp(found, TOO_MANY " in system", sizeof TOO_MANY " in system" - 1) == 0 ? MORE_OF_SYSTEM
	                                                                                    : MORE_OF_PROCESS;
}

enum weir_status(weir_fail)(struct weir_error *error, enum weir_status status, const char *format, ...)
{
	if (error == NULL)
		return status;
	va_list args;
	va_start(args, format);
	vsnprintf(error->text, sizeof error->text, format, args);
	va_end(args);
	weir_words_clean(error->text);
	error->status = status;
	return status;
}

void weir_error_append(struct weir_error *error, const char *format, ...)
{
	if (error == NULL)
		return;
	size_t used = strlen(error->text);
	va_list args;
	va_start(args, format);
	vsnprintf(error->text + used, sizeof error->text - used, format, args);
	va_end(args);
	weir_words_clean(error->text);
}

void weir_error_prefix(struct weir_error *error, const char *format, ...)
{
	if (error == NULL)
		return;
	char text[WEIR_ERROR_TEXT_BYTES];
	va_list args;
	va_start(args, format);
	int length = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (length < 0)
		return;
	size_t used = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
	snprintf(text + used, sizeof text - used, ": %.*s", (int)(sizeof text - used), error->text);
	weir_words_clean(text);
	memcpy(error->text, text, sizeof text);
}
