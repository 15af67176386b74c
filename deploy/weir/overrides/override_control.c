/* SPDX-License-Identifier: Apache-2.0 */
/* A command comes as the body that it has in the log, so it is read and refused by the same words. */
#include "deploy/weir/overrides/override_control.h"

#include "common/base/clock.h"
#include "common/json/json.h"
#include "common/json/json_writer.h"

#include <stdlib.h>

enum { APPEND_MS = 20000 };

/* ---- the running process ---- */

static void put_error(struct weir_text *answer, const struct weir_error *error, enum weir_status status)
{
	struct weir_json_writer json = weir_json_writer(answer);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "error", error->text);
	if (status == WEIR_INVALID)
		weir_json_write_bool(&json, "invalid", true);
	weir_json_write_end(&json);
}

/* The body of a request {"command": BODY}. */
static enum weir_status read_request(struct weir_span request, struct override_command *command,
                                     struct weir_error *error)
{
	static const char *const members[] = {"command", NULL};
	struct weir_json_document *document;
	enum weir_status status = weir_json_parse_record("request", request.at, request.length, &document, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json root = weir_json_root(document), body = weir_json_member(&root, "command");
	status = weir_json_only(&root, members, error);
	if (status == WEIR_OK)
		status = weir_json_require(&body, "an operator's command, an object", error);
	if (status == WEIR_OK) {
		char *text = json_dumps(body.value, JSON_COMPACT | JSON_ENCODE_ANY);
		status = override_command_parse(weir_span_of(text != NULL ? text : ""), command, error);
		free(text);
	}
	weir_json_document_free(document);
	return status;
}

void override_control_answer(void *context, struct weir_span request, struct weir_text *answer)
{
	struct override_control *control = context;
	const struct weir_policy *policy =
		policy_registry_policy(control->registry, policy_registry_newest(control->registry));
	struct override_place places[WEIR_PARTITIONS_MAX];
	struct override_command command;
	struct weir_error error;
	uint32_t count = 0;
	enum weir_status status = read_request(request, &command, &error);
	if (status == WEIR_OK)
		status = override_append(control->bus, policy, &command, weir_wall_ms(), APPEND_MS, places, &count, &error);
	if (status != WEIR_OK) {
		put_error(answer, &error, status);
		return;
	}
	weir_log(control->log, WEIR_LOG_INFO, "control", "%s in zone %s by %s: partition %u, offset %llu",
	         override_kind_name(command.kind), command.zone, command.by, places[0].partition,
	         (unsigned long long)places[0].offset);
	struct weir_json_writer json = weir_json_writer(answer);
	weir_json_write_object(&json, NULL);
	override_places_json(&json, places, count);
	weir_json_write_end(&json);
}

/* ---- the command ---- */

static enum weir_status read_answer(struct weir_span answer, struct override_place *places, uint32_t *count,
                                    struct weir_error *error)
{
	json_t *root = json_loadb(answer.at, answer.length, JSON_ALLOW_NUL, NULL);
	const char *words = json_string_value(json_object_get(root, "error"));
	const json_t *placed = json_object_get(root, "placed");
	enum weir_status status = WEIR_OK;
	if (words != NULL)
		status = weir_fail(error, json_is_true(json_object_get(root, "invalid")) ? WEIR_INVALID : WEIR_IO, "%s", words);
	else if (!json_is_array(placed) || json_array_size(placed) > WEIR_PARTITIONS_MAX)
		status = weir_fail(error, WEIR_IO, "the process that uses the state returned a malformed answer");
	for (size_t i = 0; status == WEIR_OK && i < json_array_size(placed); i++) {
		const json_t *place = json_array_get(placed, i);
		places[(*count)++] = (struct override_place){
			.partition = (uint32_t)json_integer_value(json_object_get(place, "partition")),
			.offset = (uint64_t)json_integer_value(json_object_get(place, "offset")),
		};
	}
	json_decref(root);
	return status;
}

enum weir_status override_control_append(const char *directory, const struct override_command *command,
                                         struct override_place *places, uint32_t *count, struct weir_error *error)
{
	struct weir_text request = {0}, answer = {0};
	*count = 0;
	struct weir_json_writer json = weir_json_writer(&request);
	weir_json_write_object(&json, NULL);
	override_command_json(weir_json_write_value(&json, "command"), command);
	weir_json_write_end(&json);
	enum weir_status status =
		control_ask(directory, (struct weir_span){request.at, (uint32_t)request.length}, &answer, error);
	if (status == WEIR_OK)
		status = read_answer((struct weir_span){answer.at, (uint32_t)answer.length}, places, count, error);
	weir_text_deinit(&request);
	weir_text_deinit(&answer);
	return status;
}
