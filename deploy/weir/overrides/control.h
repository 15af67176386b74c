/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket of a running `weir run`, through which commands reach its
 * log.
 *
 * STATE/control, a Unix socket that only its owner may use. One request a
 * connection: a line of JSON in, a line of JSON out. Sizes and times are bounded,
 * and requests are answered one after the other.
 *
 *   in    {"command": BODY}     an operator's command (limiter/overrides/override_command.h)
 *   out   {"placed":[{"partition":3,"offset":1841}]}   it is durable there
 *         {"error":"words","invalid":true}   it cannot be done; without invalid: it may work later
 */
#ifndef DEPLOY_WEIR_OVERRIDES_CONTROL_H
#define DEPLOY_WEIR_OVERRIDES_CONTROL_H

#include "common/base/span.h"
#include "common/base/text.h"
#include "common/log/log.h"

enum {
	CONTROL_REQUEST_MAX_BYTES = 64 * 1024,
	CONTROL_ANSWER_MAX_BYTES = 256 * 1024, /* a place for each partition, with room to spare */
	CONTROL_READ_MS = 5000,                /* for a request, or an answer, to be written */
	CONTROL_ANSWER_MS = 30000,             /* for the answer to be found */
};

struct control;

/** Answers one request; the answer is appended without its newline. @thread the control's own */
typedef void control_answer(void *context, struct weir_span request, struct weir_text *answer);

/**
 * Listens in a directory. What a crash left there is replaced: the directory is the caller's alone.
 *
 * @param context  borrowed until control_stop
 * @return WEIR_OK; WEIR_IO
 */
WEIR_MUST_USE enum weir_status control_start(const char *directory, control_answer *answer, void *context,
                                             const struct weir_log *log, struct control **control,
                                             struct weir_error *error);
/** Ends it after the request at work, and removes the socket. NULL is allowed. */
void control_stop(struct control *control);

/**
 * Asks whoever listens in a directory.
 *
 * @param answer  the line, without its newline
 * @return WEIR_OK; WEIR_IO: nobody listens there, or no answer came in time
 */
WEIR_MUST_USE enum weir_status control_ask(const char *directory, struct weir_span request, struct weir_text *answer,
                                           struct weir_error *error);

#endif
