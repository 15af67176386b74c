/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to batches of the spool, and the spool's answers to acknowledgements.
 *
 * One message is turned into lines at a time. If the spool takes no more, that message waits. A message with a chunk is a
 * batch of its own, or several in a row where it is long: each part has an id, so that after a crash between two parts
 * only the missing ones are stored. Messages without a chunk share a batch.
 */
#include "collector/source/push/forward/server.h"

#include "common/base/alloc.h"
#include "common/base/wake.h"

#include <stdlib.h>

enum {
	OUT_MOST_BYTES = 64 << 10
}; /* of acknowledgements that their sender does not read, besides what the kernel keeps */

/* ---- the spool's answers ---- */

/* @thread the spool's */
static void on_answer(void *context, const struct push_outcome *outcome)
{
	struct part *part = context;
	struct forward_server *server = part->server;
	part->outcome = *outcome;
	pthread_mutex_lock(&server->mutex);
	*server->answered_end = part;
	server->answered_end = &part->next;
	pthread_mutex_unlock(&server->mutex);
	weir_wake_up(server->wake);
}

static void acknowledge(struct forward_server *server, struct forward_connection *connection, struct weir_span chunk)
{
	forward_put_ack(chunk, &connection->out);
	forward_connection_flush(connection);
	if (!connection->failed && connection->out.length > OUT_MOST_BYTES)
		forward_refuse(server, connection, "it does not read its acknowledgements");
}

/* Ends a message all of whose parts are answered. */
static void settle(struct forward_server *server, struct note *note)
{
	if (!note->given || note->parts > 0)
		return;
	struct forward_connection *connection = note->connection;
	connection->waiting--;
	struct weir_span chunk = {.at = note->chunk, .length = note->chunk_length};
	if (!note->failed) {
		acknowledge(server, connection, chunk);
		forward_acks_add(&server->acks, connection, note->tag, chunk, note->all_parts);
	} else if (!connection->failed) {
		forward_refuse(server, connection, note->why.text);
	}
	free(note->chunk);
	free(note);
}

static void take_answer(struct forward_server *server, struct part *part)
{
	bool stored = part->outcome.status == WEIR_OK;
	const char *why = part->outcome.clashes
	                      ? "its \"chunk\" came within the last hour with the same tag and other records: "
	                        "let the sender give each message a chunk of its own"
	                      : part->outcome.why.text;
	if (!stored)
		forward_say(server, "a message was not stored: %s", why);
	if (part->note != NULL) {
		part->note->parts--;
		part->note->failed |= !stored;
		if (!stored)
			weir_fail(&part->note->why, part->outcome.status, "%s", why);
		settle(server, part->note);
	} else if (!stored) {
		forward_add(server, &server->status.lost_lines, part->outcome.lines);
	}
	free(part);
}

void forward_take_answers(struct forward_server *server)
{
	pthread_mutex_lock(&server->mutex);
	struct part *part = server->answered;
	server->answered = NULL;
	server->answered_end = &server->answered;
	pthread_mutex_unlock(&server->mutex);
	while (part != NULL) {
		struct part *next = part->next;
		take_answer(server, part);
		part = next;
	}
}

/* ---- messages to batches ---- */

/* Takes note of whether the spool takes more, and says so for as long as it does not. */
static void set_full(struct forward_server *server, bool full, const struct weir_error *error)
{
	if (full)
		forward_say(server, "senders wait: %s", error->text);
	pthread_mutex_lock(&server->mutex);
	if (server->full && !full)
		server->problem_until_ms = 0;
	server->status.waits = full;
	pthread_mutex_unlock(&server->mutex);
	server->full = full;
}

/*
 * Gives lines to the spool.
 *
 * @param lines  taken, then empty
 * @return WEIR_OK; WEIR_FULL: not now; WEIR_INVALID: never
 */
static enum weir_status give(struct forward_server *server, struct note *note, struct weir_span id,
                             struct weir_text *lines, struct weir_error *error)
{
	struct part *part = weir_alloc(1, sizeof *part);
	part->server = server;
	part->note = note;
	if (note != NULL)
		note->parts++; /* it may be answered before the call returns, but is settled by this thread */
	enum weir_status status = push_spool_append(server->spool, id, lines, on_answer, part, error);
	set_full(server, status != WEIR_OK && status != WEIR_INVALID, error);
	if (status == WEIR_OK)
		return status;
	if (note != NULL)
		note->parts--;
	free(part);
	return server->full ? WEIR_FULL : WEIR_INVALID;
}

/* Gives the lines that nobody waits for. @return WEIR_OK; WEIR_FULL */
enum weir_status forward_give_loose(struct forward_server *server)
{
	struct weir_error error;
	if (server->loose.length == 0)
		return WEIR_OK;
	enum weir_status status = give(server, NULL, (struct weir_span){.at = NULL}, &server->loose, &error);
	if (status == WEIR_FULL)
		return status;
	if (status == WEIR_INVALID) {
		forward_say(server, "lines were lost: %s", error.text);
		forward_add(server, &server->status.lost_lines, server->loose_lines);
		weir_text_clear(&server->loose);
	}
	server->loose_lines = 0;
	return WEIR_OK;
}

/* Writes the job's next lines. */
static void write_lines(struct forward_server *server, struct job *job)
{
	struct weir_text *text = job->note != NULL ? &job->text : &server->loose;
	size_t entries = (size_t)(job->lines.rest.end - job->lines.rest.at), likely = entries + entries / 4;
	if (text->capacity == 0) /* the spool has taken the one before */
		(void)weir_text_reserve(text, likely < PART_BYTES ? likely : PART_BYTES);
	uint32_t count = job->note != NULL ? 0 : server->loose_lines;
	job->state = forward_lines_next(&job->lines, PART_BYTES, PART_LINES, text, &count, &job->why);
	if (job->note == NULL)
		server->loose_lines = count;
}

/* Gives the job's next part. A part of a message that cannot be read to its end is not worth an answer. */
static enum weir_status give_part(struct forward_server *server, struct job *job)
{
	if (job->note == NULL)
		return server->loose.length >= PART_BYTES || server->loose_lines >= PART_LINES ? forward_give_loose(server)
		                                                                               : WEIR_OK;
	if (job->text.length == 0)
		return WEIR_OK;
	struct weir_text id = {0};
	forward_put_id(&id, job->number, job->note->tag, (struct weir_span){job->note->chunk, job->note->chunk_length});
	enum weir_status status = give(server, job->note, weir_text_span(&id), &job->text, &job->why);
	weir_text_deinit(&id);
	if (status == WEIR_OK)
		job->number++;
	if (status == WEIR_INVALID)
		job->state = WEIR_INVALID;
	return status == WEIR_FULL ? status : WEIR_OK;
}

/* Ends the job. What could not be read of its message is said, and not acknowledged. */
static void end_job(struct forward_server *server, struct job *job)
{
	if (job->state == WEIR_INVALID)
		forward_refuse(server, job->connection, job->why.text);
	if (job->note != NULL) {
		job->note->given = true;
		job->note->all_parts = job->number;
		job->note->failed |= job->state == WEIR_INVALID;
		settle(server, job->note);
	}
	forward_lines_deinit(&job->lines);
	weir_text_clear(&job->text);
	job->connection = NULL;
}

/* @return WEIR_OK: the message is done; WEIR_FULL: it waits for the spool */
enum weir_status forward_work(struct forward_server *server)
{
	struct job *job = &server->job;
	if (job->note != NULL && forward_give_loose(server) == WEIR_FULL) /* what came before it goes first */
		return WEIR_FULL;
	for (;;) {
		if (job->note != NULL ? job->text.length > 0 : server->loose.length >= PART_BYTES)
			if (give_part(server, job) == WEIR_FULL)
				return WEIR_FULL;
		if (job->state != WEIR_OK)
			break;
		write_lines(server, job);
		if (job->state == WEIR_INVALID && job->note != NULL)
			weir_text_clear(&job->text);
		if (give_part(server, job) == WEIR_FULL)
			return WEIR_FULL;
	}
	end_job(server, job);
	return WEIR_OK;
}

static struct note *note_of(struct forward_connection *connection, struct weir_span tag, struct weir_span chunk)
{
	struct note *note = weir_alloc(1, sizeof *note);
	note->connection = connection;
	note->chunk = weir_copy(chunk.at, chunk.length);
	note->chunk_length = chunk.length;
	forward_hash_tag(tag, note->tag);
	connection->waiting++;
	return note;
}

/* A message with entries. @return as forward_work() */
enum weir_status forward_take_entries(struct forward_server *server, struct forward_connection *connection,
                                      const struct forward_frame *frame)
{
	bool chunk = frame->chunk.at != NULL;
	forward_add(server, &server->status.received, 1);
	forward_add(server, &server->status.nameless, !chunk);
	if (frame->other_signal || !forward_takes_tag(server->config, frame->tag)) {
		forward_add(server, &server->status.skipped, 1);
		if (frame->other_signal)
			forward_say(server, "%s sends metrics or traces, which are not read: let it send logs alone",
			            connection->peer);
		if (chunk)
			acknowledge(server, connection, frame->chunk);
		return WEIR_OK;
	}
	if (chunk)
		forward_acks_match(&server->acks, server->spool, frame->tag, frame->chunk);
	struct job *job = &server->job;
	job->connection = connection;
	job->frame = *frame;
	job->number = 0;
	job->state = WEIR_OK;
	job->note = chunk ? note_of(connection, frame->tag, frame->chunk) : NULL;
	forward_lines_init(&job->lines, &job->frame, &server->limits);
	return forward_work(server);
}
