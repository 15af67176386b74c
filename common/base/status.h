/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results and errors, shared by all roles.
 *
 * A function that can fail returns an enum weir_status and takes a struct
 * weir_error for words that a person can act on. An error is logged once,
 * where it is handled; whoever passes it up adds nothing but context.
 */
#ifndef WEIR_COMMON_STATUS_H
#define WEIR_COMMON_STATUS_H

#include <stdarg.h>

enum weir_status {
	WEIR_OK = 0,
	WEIR_AGAIN,   /* nothing there yet; the same call may succeed later */
	WEIR_END,     /* no more will come */
	WEIR_FULL,    /* a stated bound is reached; nothing was taken */
	WEIR_INVALID, /* the input breaks its format; another try gives the same */
	WEIR_NEWER,   /* written by a newer version than this program reads */
	WEIR_IO,      /* the operating system or a server failed; a retry may help */
	WEIR_FENCED,  /* another owner took over; drop the state and rejoin */
	WEIR_LOCKED,  /* another process holds it */
	WEIR_ANEW,    /* what was read before was replaced by another of that name: a stored position means nothing in it */
};

enum { WEIR_ERROR_TEXT_BYTES = 1024 };

struct weir_error {
	enum weir_status status;
	char text[WEIR_ERROR_TEXT_BYTES]; /* one sentence, no control characters, always terminated */
};

#define WEIR_MUST_USE __attribute__((warn_unused_result))
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/**
 * Fills the error and gives back its status, so that a failure is one line:
 * `return weir_fail(error, WEIR_IO, "cannot open %s: %s", path, weir_errno_words(errno));`
 *
 * @param error  may be NULL: only the status is passed on
 */
enum weir_status weir_fail(struct weir_error *error, enum weir_status status, const char *format, ...)
	WEIR_PRINTF(3, 4);

#ifdef __clang_analyzer__
/* The analyzer reads one file at a time: it is told here that a failure does not give back WEIR_OK. */
#define weir_fail(error, status, ...) ((weir_fail)(error, status, __VA_ARGS__), (status))
#endif

/** The system's words for a value of errno; of too few file descriptors also how more are allowed. @thread as strerror() */
const char *weir_errno_words(int code);
/** What stands behind a library's words that have those of errno in them, as weir_errno_words() has it; "": nothing. */
const char *weir_errno_advice(const char *words);

/** Puts words behind the error's text; cuts at the end where too long. */
void weir_error_append(struct weir_error *error, const char *format, ...) WEIR_PRINTF(2, 3);

/** Puts "context: " before the error's text; cuts at the end where too long. */
void weir_error_prefix(struct weir_error *error, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
