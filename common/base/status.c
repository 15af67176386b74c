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
static void say_remedy(char text[WEIR_ERROR_TEXT_BYTES])
{
	static const char remedy[] = " (more are allowed by ulimit -n, or LimitNOFILE= of a service)";
	size_t length = strlen(text);
	if (strstr(text, strerror(EMFILE)) != NULL && strstr(text, "ulimit -n") == NULL &&
	    length + sizeof remedy <= WEIR_ERROR_TEXT_BYTES)
		memcpy(text + length, remedy, sizeof remedy);
}

enum weir_status(weir_fail)(struct weir_error *error, enum weir_status status, const char *format, ...)
{
	if (error == NULL)
		return status;
	va_list args;
	va_start(args, format);
	vsnprintf(error->text, sizeof error->text, format, args);
	va_end(args);
	say_remedy(error->text);
	weir_words_clean(error->text);
	error->status = status;
	return status;
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
