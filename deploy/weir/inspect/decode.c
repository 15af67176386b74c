/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir decode`: what lies in the log, as JSON lines. It looks at a state
 * directory's log from beside it, so a weir that runs there continues undisturbed;
 * or at one frame in a file.
 *
 * A damaged message costs one line on standard error and the exit code, never
 * the messages behind it.
 */
#include "common/base/alloc.h"
#include "common/config/arguments.h"
#include "common/files/durable_file.h"
#include "common/frame/frame.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/command.h"
#include "deploy/weir/inspect/decode_json.h"
#include "deploy/weir/inspect/topic_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum option { STATE, CONFIG, TOPIC, PARTITION, FROM, FLAT, OPTION_COUNT };

static const struct weir_argument_option options[] = {
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of a `weir run`; it may be running"},
	[CONFIG] = {.name = "config",
                .value = "FILE",
                .type = WEIR_ARGUMENT_TEXT,
                .help = "the configuration of a cluster"},
	[TOPIC] = {.name = "topic",
               .value = "TOPIC",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "events (default), judged, decisions, shadow, policy or deadletter",
               .expected = "one of events, judged, decisions, shadow, policy, deadletter"},
	[PARTITION] =
		{.name = "partition",
         .value = "P",
         .type = WEIR_ARGUMENT_NUMBER,
         .help = "only this partition (default: all; for a state directory in the order in which they were written, "
                 "for a cluster one after another)",
         .most = WEIR_BUS_PARTITIONS_MAX - 1},
	[FROM] = {.name = "from", .value = "OFFSET", .type = WEIR_ARGUMENT_NUMBER, .help = "only offsets from this one on"},
	[FLAT] = {.name = "flat", .type = WEIR_ARGUMENT_FLAG, .help = "print a line for each event, not for each frame"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Lines", "A frame has its partition and offset, its kind, its sending time, the policy version it was "
              "matched under, its source, and its events. An event has its key (its values joined by |), time "
              "(Unix ms), position in the source, cost, and zones by their ids. A judged frame has each zone's "
              "verdict. A policy is a frame in every partition, with its zones.\n"
              "\n"
              "What cannot be decoded is reported on standard error, with its offset and the reason; the rest is "
              "still printed."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "something could not be read or decoded; the rest was printed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong, or there is no such log"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir decode",
	.summary = "print the messages of the log as JSON lines",
	.usage = "weir decode --state DIR [--topic TOPIC] [--partition P] [--from OFFSET]\n"
			 "            [--flat]\n"
			 "weir decode [--config FILE] [--topic TOPIC] [OPTION...]\n"
			 "weir decode FILE",
	.about = "Prints the messages of a log as JSON lines.\n"
			 "\n"
			 "The log is that of a state directory, or the topics of the cluster that --config names. With FILE "
			 "it is the one frame in that file. The log is only read, up to its current end: the processes that "
			 "use it may be running.",
	.operand = {.word = "FILE",
                .help = "a file with one frame; - is standard input",
                .most = 1,
                .hint = "one file at a time"},
	.options = options,
	.sections = sections,
	.examples = "weir decode --state /var/lib/weir --flat | grep 203.0.113.9\n"
				"weir decode --state /var/lib/weir --topic decisions --partition 3 --from 1841\n"
				"weir decode --state /var/lib/weir --topic judged --flat |\n"
				"  jq -c 'select(.zones[].verdict == \"block\") | [.time, .key]'\n"
				"weir decode --config weir.json --topic deadletter | jq -r .letter.reason\n"
				"kcat -C -t weir.events -p 3 -o 1841 -c 1 -D '' | weir decode -",
	.exits = exits,
};

enum { FLUSH_BYTES = 64 * 1024 };

struct decode {
	const char *state, *config, *file; /* borrowed; one of them is set */
	struct backend backend;
	enum weir_topic topic;
	uint32_t partition;
	uint64_t from;
	bool flat;
	struct decode_json *json;
	struct weir_text text; /* not yet written */
	uint64_t damaged;      /* messages, and stretches of files */
	bool write_failed;     /* other than by a reader that went away */
};

static bool find_topic(const char *name, enum weir_topic *topic)
{
	if (strncmp(name, "weir.", 5) == 0)
		name += 5;
	for (int i = 0; i < WEIR_TOPIC_COUNT; i++)
		if (strcmp(weir_topic_name((enum weir_topic)i) + 5, name) == 0) {
			*topic = (enum weir_topic)i;
			return true;
		}
	if (strcmp(name, "shadow") == 0) {
		*topic = WEIR_TOPIC_SHADOW;
		return true;
	}
	return false;
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct decode *decode = context;
	switch (option) {
	case STATE: decode->state = value->text; break;
	case CONFIG: decode->config = value->text; break;
	case FLAT: decode->flat = true; break;
	case FROM: decode->from = value->number; break;
	case PARTITION: decode->partition = (uint32_t)value->number; break;
	case TOPIC:
		if (!find_topic(value->text, &decode->topic))
			return weir_arguments_refuse_value(&line, TOPIC, value->text);
		break;
	default: decode->file = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit parse(struct decode *decode, int argc, char **argv)
{
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, decode);
	if (code == WEIR_EXIT_NOT_YET && decode->state == NULL && decode->file == NULL)
		(void)weir_config_find(&decode->config);
	int named = (decode->state != NULL) + (decode->config != NULL) + (decode->file != NULL);
	if (code != WEIR_EXIT_NOT_YET || named == 1)
		return code;
	return weir_arguments_refuse(&line, "%s",
	                             named == 0 ? WEIR_CONFIG_MISSING ", or name a --state directory or a file with a frame"
	                                        : "give only one of --state, --config and a file");
}

/* False: standard output takes no more; a reader that went away, such as head, is no failure. */
static bool flush(struct decode *decode)
{
	size_t written;
	bool good = weir_write_all(STDOUT_FILENO, decode->text.at, decode->text.length, &written) == 0;
	if (!good && errno != EPIPE) {
		fprintf(stderr, "weir decode: cannot write: %s\n", weir_errno_words(errno));
		decode->write_failed = true;
	}
	weir_text_clear(&decode->text);
	return good;
}

static enum weir_status open_topic(struct decode *decode, struct topic_read **read, struct weir_error *error)
{
	if (decode->config == NULL)
		return topic_read_open(NULL, decode->state, decode->topic, decode->partition, decode->from, read, error);
	decode->backend.topic = decode->topic;
	enum weir_status status = backend_open(&decode->backend, "weir decode", decode->config, NULL, BACKEND_LOG, error);
	if (status != WEIR_OK)
		return status;
	return topic_read_open(decode->backend.bus, decode->backend.state_path, decode->topic, decode->partition,
	                       decode->from, read, error);
}

/* Says what is damaged and what is trimmed; gives whether the rest can be printed. */
static bool print_topic(struct decode *decode, struct topic_read *read)
{
	struct weir_error error;
	struct weir_message message;
	enum weir_status status;
	bool good = true;
	while (good && (status = topic_read_next(read, &message, &error)) != WEIR_END) {
		if (status == WEIR_OK && decode_json_put(decode->json, &message, true, &decode->text, &error) != WEIR_OK) {
			fprintf(stderr, "weir decode: %s partition %u offset %llu: %s\n", weir_topic_name(message.topic),
			        message.partition, (unsigned long long)message.offset, error.text);
			decode->damaged++;
		} else if (status != WEIR_OK) {
			fprintf(stderr, "weir decode: %s\n", error.text);
			decode->damaged++;
		}
		if (decode->text.length >= FLUSH_BYTES)
			good = flush(decode);
	}
	return good;
}

static enum weir_exit decode_log(struct decode *decode)
{
	struct weir_error error;
	struct topic_read *read;
	enum weir_status status = open_topic(decode, &read, &error);
	if (status != WEIR_OK) {
		fprintf(stderr, "weir decode: %s\n", error.text);
		return status == WEIR_INVALID ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
	}
	if (decode->partition != WEIR_BUS_EVERY_PARTITION && decode->from > 0 &&
	    decode->from < topic_read_first(read, decode->partition))
		fprintf(stderr, "weir decode: partition %u begins at offset %llu: earlier messages were trimmed\n",
		        decode->partition, (unsigned long long)topic_read_first(read, decode->partition));
	if (print_topic(decode, read))
		flush(decode);
	topic_read_free(read);
	return decode->write_failed || decode->damaged > 0 ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
}

/* All bytes of a file or of standard input; NULL: it cannot be read, or is more than a frame may be. */
static char *read_frame(const char *path, size_t *length)
{
	enum { MOST_BYTES = WEIR_FRAME_JUDGED_MAX_BYTES + 1 };
	int fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "weir decode: cannot open %s: %s\n", path, weir_errno_words(errno));
		return NULL;
	}
	char *bytes = weir_alloc(MOST_BYTES, 1);
	ssize_t got;
	*length = 0;
	while ((got = read(fd, bytes + *length, MOST_BYTES - *length)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		*length += (size_t)got;
	}
	int reason = errno;
	if (fd != STDIN_FILENO)
		close(fd);
	if (got == 0 && *length < MOST_BYTES)
		return bytes;
	if (got < 0)
		fprintf(stderr, "weir decode: cannot read %s: %s\n", path, weir_errno_words(reason));
	else
		fprintf(stderr, "weir decode: %s is larger than a frame can be\n", path);
	free(bytes);
	return NULL;
}

static enum weir_exit decode_file(struct decode *decode)
{
	struct weir_error error;
	struct weir_message message = {.topic = WEIR_TOPIC_EVENTS};
	size_t length;
	char *bytes = read_frame(decode->file, &length);
	if (bytes == NULL)
		return WEIR_EXIT_FAILED;
	message.payload = (struct weir_span){.at = bytes, .length = (uint32_t)length};
	enum weir_status status = decode_json_put(decode->json, &message, false, &decode->text, &error);
	if (status != WEIR_OK)
		fprintf(stderr, "weir decode: %s: %s\n", decode->file, error.text);
	flush(decode);
	free(bytes);
	return decode->write_failed || status != WEIR_OK ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct decode decode = {.topic = WEIR_TOPIC_EVENTS, .partition = WEIR_BUS_EVERY_PARTITION};
	enum weir_exit code = parse(&decode, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	decode.json = decode_json_new(decode.flat);
	code = decode.file == NULL ? decode_log(&decode) : decode_file(&decode);
	backend_close(&decode.backend);
	decode_json_free(decode.json);
	weir_text_deinit(&decode.text);
	return code;
}

const struct command command_decode = {&line, command_main};
