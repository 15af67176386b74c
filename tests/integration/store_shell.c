/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store's operations, one a line, for scripts that break what is beneath it.
 *
 * usage: store_shell CONFIG
 *
 *   open                                        close
 *   upgrade SCHEMA                              by the steps in that file, beside what is open
 *   missing SCHEMA                              OK WHAT IS MISSING, by the same
 *   take P                                      OK EPOCH CHECKPOINT OFFSET
 *   look P                                      OK EPOCH CHECKPOINT OFFSET
 *   write P EPOCH CHECKPOINT b|d FIRST COUNT BYTES LETTER
 *   commit P EPOCH CHECKPOINT OFFSET [NOTE VALUE]
 *   read P EPOCH FIRST COUNT [AT_LEAST]         OK SEGMENT/CHECKPOINT b|d LETTER*BYTES; …
 *   list P EPOCH CHECKPOINT                     OK SEGMENT DELTAS BASE_BYTES DELTA_BYTES; …
 *   clean P EPOCH
 *   policy VERSION FILE                         policies: OK VERSION…
 *   note NAME                                   OK VALUE
 *
 * Each is answered by a line: the status, and what was asked for or the error's words.
 */
#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "common/base/text.h"
#include "common/store/mysql/internal.h"
#include "common/store/mysql/store_mysql.h"
#include "tests/support/driver_watch.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORDS_MAX = 10, LIMITER = WEIR_STORE_ROLE_LIMITER };

struct shell {
	const struct weir_config *config;
	struct weir_store *store;
	struct weir_text answer;
	struct weir_error error;
};

static const char *const names[] = {"OK", "AGAIN", "END", "FULL", "INVALID", "NEWER", "IO", "FENCED", "LOCKED", "ANEW"};

static uint64_t number(const char *word)
{
	return word != NULL ? strtoull(word, NULL, 10) : 0;
}

static enum weir_status tell_state(struct shell *shell, enum weir_status status,
                                   const struct weir_partition_state *state)
{
	if (status == WEIR_OK)
		weir_text_printf(&shell->answer, "%llu %llu %llu", (unsigned long long)state->epoch,
		                 (unsigned long long)state->checkpoint, (unsigned long long)state->next_offset);
	return status;
}

static enum weir_status run_write(struct shell *shell, char **word)
{
	size_t count = number(word[6]), bytes = number(word[7]);
	struct weir_segment_blob *blobs = weir_alloc(count + 1, sizeof *blobs);
	char *content = weir_alloc(bytes + 1, 1);
	memset(content, *word[8], bytes);
	for (size_t i = 0; i < count; i++)
		blobs[i] = (struct weir_segment_blob){.segment = (uint32_t)(number(word[5]) + i),
		                                      .checkpoint = number(word[3]),
		                                      .base = *word[4] == 'b',
		                                      .bytes = {content, (uint32_t)bytes}};
	enum weir_status status = shell->store->ops->write_segments(shell->store, (uint32_t)number(word[1]),
	                                                            number(word[2]), blobs, count, &shell->error);
	free(content);
	free(blobs);
	return status;
}

static enum weir_status run_commit(struct shell *shell, char **word)
{
	struct weir_partition_state state = {.partition = (uint32_t)number(word[1]),
	                                     .epoch = number(word[2]),
	                                     .checkpoint = number(word[3]),
	                                     .next_offset = number(word[4]),
	                                     .clock_ms = -5};
	const char *const notes[] = {word[5]};
	struct weir_span values[] = {word[5] != NULL ? weir_span_of(word[6]) : (struct weir_span){0}};
	return shell->store->ops->commit(shell->store, LIMITER, &state, 1, notes, values, word[5] != NULL, &shell->error);
}

static enum weir_status tell_blob(void *context, const struct weir_segment_blob *blob)
{
	struct shell *shell = context;
	for (uint32_t i = 1; i < blob->bytes.length; i++)
		if (blob->bytes.at[i] != blob->bytes.at[0])
			return WEIR_INVALID;
	weir_text_printf(&shell->answer, "%u/%llu %c %c*%u; ", blob->segment, (unsigned long long)blob->checkpoint,
	                 blob->base ? 'b' : 'd', blob->bytes.length > 0 ? *blob->bytes.at : '-', blob->bytes.length);
	return WEIR_OK;
}

static enum weir_status run_read(struct shell *shell, char **word)
{
	size_t count = number(word[4]);
	uint32_t *segments = weir_alloc(count + 1, sizeof *segments);
	for (size_t i = 0; i < count; i++)
		segments[i] = (uint32_t)(number(word[3]) + i);
	enum weir_status status =
		shell->store->ops->read_segments(shell->store, (uint32_t)number(word[1]), number(word[2]), number(word[5]),
	                                     segments, count, tell_blob, shell, &shell->error);
	free(segments);
	return status;
}

static void tell_listed(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	struct shell *shell = context;
	weir_text_printf(&shell->answer, "%u %u %llu %llu; ", segment, deltas, (unsigned long long)base_bytes,
	                 (unsigned long long)delta_bytes);
}

static enum weir_status run_policy(struct shell *shell, char **word)
{
	char *text = NULL;
	size_t length = 0;
	enum weir_status status = weir_read_file(word[2], 1 << 20, &text, &length, &shell->error);
	struct weir_span span = {.at = text, .length = (uint32_t)length};
	if (status == WEIR_OK)
		status = shell->store->ops->policy_put(shell->store, number(word[1]), span, &shell->error);
	free(text);
	return status;
}

static enum weir_status log_policy(void *context, uint64_t version, struct weir_span text)
{
	(void)text;
	weir_text_printf(&((struct shell *)context)->answer, "%llu ", (unsigned long long)version);
	return WEIR_OK;
}

static enum weir_status run_note(struct shell *shell, char **word)
{
	char *value;
	size_t length;
	enum weir_status status = shell->store->ops->note_get(shell->store, word[1], &value, &length, &shell->error);
	if (status == WEIR_OK && value != NULL)
		weir_text_append(&shell->answer, value, length);
	free(value);
	return status;
}

/* By another schema than this program's: what is missing is made, or only told. */
static enum weir_status run_schema(struct shell *shell, const char *file, bool make)
{
	char *text = NULL;
	size_t length = 0;
	enum weir_status status = weir_read_file(file, 1 << 20, &text, &length, &shell->error);
	struct weir_span schema = {.at = text, .length = (uint32_t)length};
	struct weir_mysql *mysql = weir_mysql_new(shell->config, weir_mysql_statements, WEIR_MYSQL_STATEMENTS);
	if (status == WEIR_OK)
		status = weir_mysql_connect(mysql, true, &shell->error);
	if (status == WEIR_OK)
		status = make ? weir_mysql_schema_upgrade(mysql, schema, &shell->error)
		              : weir_mysql_schema_inspect(mysql, schema, &shell->answer, &shell->error);
	weir_mysql_free(mysql);
	free(text);
	return status;
}

static enum weir_status run_close(struct shell *shell)
{
	if (shell->store != NULL)
		shell->store->ops->close(shell->store);
	shell->store = NULL;
	return WEIR_OK;
}

static enum weir_status run(struct shell *shell, char **word)
{
	struct weir_partition_state state;
	struct weir_store *store = shell->store;
	const char *what = word[0];
	uint32_t partition = (uint32_t)number(word[1]);
	if (strcmp(what, "open") == 0)
		return weir_store_mysql_open(shell->config, &shell->store, &shell->error);
	if (strcmp(what, "upgrade") == 0 || strcmp(what, "missing") == 0)
		return run_schema(shell, word[1], what[0] == 'u');
	if (strcmp(what, "close") == 0)
		return run_close(shell);
	if (store == NULL)
		return weir_fail(&shell->error, WEIR_LOCKED, "not open");
	if (strcmp(what, "take") == 0)
		return tell_state(shell, store->ops->take(store, LIMITER, partition, &state, &shell->error), &state);
	if (strcmp(what, "look") == 0)
		return tell_state(shell, store->ops->inspect(store, LIMITER, partition, &state, &shell->error), &state);
	if (strcmp(what, "write") == 0)
		return run_write(shell, word);
	if (strcmp(what, "commit") == 0)
		return run_commit(shell, word);
	if (strcmp(what, "read") == 0)
		return run_read(shell, word);
	if (strcmp(what, "list") == 0)
		return store->ops->list_segments(store, partition, number(word[2]), number(word[3]), tell_listed, shell,
		                                 &shell->error);
	if (strcmp(what, "clean") == 0)
		return store->ops->clean(store, partition, number(word[2]), &shell->error);
	if (strcmp(what, "policy") == 0)
		return run_policy(shell, word);
	if (strcmp(what, "policies") == 0)
		return store->ops->policy_each(store, 0, log_policy, shell, &shell->error);
	if (strcmp(what, "note") == 0)
		return run_note(shell, word);
	return weir_fail(&shell->error, WEIR_LOCKED, "no such operation");
}

static void serve_line(struct shell *shell, char *line)
{
	char *word[WORDS_MAX + 1] = {NULL}, *rest = NULL;
	size_t count = 0;
	for (char *at = strtok_r(line, " \n", &rest); at != NULL && count < WORDS_MAX; at = strtok_r(NULL, " \n", &rest))
		word[count++] = at;
	if (count == 0)
		return;
	weir_text_clear(&shell->answer);
	driver_watch(word[0]);
	enum weir_status status = run(shell, word);
	driver_watch_over();
	if (status == WEIR_OK)
		printf("OK %.*s\n", (int)shell->answer.length, shell->answer.at != NULL ? shell->answer.at : "");
	else
		printf("%s %s\n", names[status], shell->error.text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct weir_error error;
	struct weir_config *config = NULL;
	if (argc != 2 || weir_config_load(argv[1], &config, &error) != WEIR_OK) {
		fprintf(stderr, "usage: store_shell CONFIG%s%s\n", argc == 2 ? ": " : "", argc == 2 ? error.text : "");
		return 2;
	}
	struct shell shell = {.config = config};
	char *line = NULL;
	size_t room = 0;
	while (getline(&line, &room, stdin) > 0)
		serve_line(&shell, line);
	free(line);
	run_close(&shell);
	weir_text_deinit(&shell.answer);
	weir_config_free(config);
	return 0;
}
