/* SPDX-License-Identifier: Apache-2.0 */
/* `weir policy show` and `history`: one version, or what each changed, when and by whom. */
#include "archiver/arming/waiting.h"
#include "common/cluster/policy_note.h"
#include "common/cluster/shadow_note.h"
#include "common/json/json_writer.h"
#include "deploy/weir/policy/internal.h"
#include "deploy/weir/policy/policy_changes.h"
#include "deploy/weir/terminal/readable.h"

static void put_state(struct weir_text *text, uint64_t version, uint64_t appended)
{
	weir_text_puts(text, version > appended ? "not in the whole log: apply it again" : "");
}

struct weir_policy *policy_find(const struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	for (size_t i = history->count; i-- > 0;)
		if (command->version == 0 || history->policies[i]->version == command->version)
			return history->policies[i];
	weir_fail(error, WEIR_INVALID, "there is no policy %llu; the newest is %llu", (unsigned long long)command->version,
	          history->count > 0 ? (unsigned long long)history->policies[history->count - 1]->version : 0);
	return NULL;
}

/* Why zones stay in shadow, of the newest policy: what the archiver has found since they wait as they do. */
static enum weir_status put_waiting(struct policy_command *command, const struct weir_policy *policy,
                                    struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	struct waiting waiting = {0};
	enum weir_status status = WEIR_OK;
	if (policy != history->policies[history->count - 1])
		return WEIR_OK;
	for (size_t i = 0; i < history->count; i++)
		waiting_take(&waiting, history->policies[i]);
	for (size_t i = 0; status == WEIR_OK && i < waiting.count; i++) {
		const struct waiting_zone *zone = &waiting.zones[i];
		struct weir_shadow_note note;
		status = weir_shadow_note_get(command->backend.store, zone->id, &note, error);
		if (status != WEIR_OK)
			break;
		weir_text_printf(&command->text, "zone \"%s\" stays in shadow: ", zone->name);
		words_text(&command->text, note.version == zone->version ? note.words : WEIR_SHADOW_NOT_LOOKED);
		weir_text_puts(&command->text, "\n");
	}
	waiting_deinit(&waiting);
	return status;
}

enum weir_status policy_show(struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy *policy = policy_find(command, error);
	struct weir_text *text = &command->text;
	uint64_t appended;
	if (policy == NULL)
		return WEIR_INVALID;
	enum weir_status status = weir_policy_appended(command->backend.store, NULL, &appended, error);
	if (status != WEIR_OK)
		return status;
	if (command->json) {
		/* The canonical text is an object. */
		struct weir_json_writer json = weir_json_writer(text);
		weir_json_write_object(&json, NULL);
		weir_json_write_uint(&json, "version", policy->version);
		weir_json_write_members(&json, weir_span_of(policy->text));
		weir_json_write_end(&json);
		weir_json_write_newline(&json);
		return WEIR_OK;
	}
	weir_text_printf(text, "policy %llu", (unsigned long long)policy->version);
	weir_text_puts(text, policy->version > appended ? ", " : "");
	put_state(text, policy->version, appended);
	weir_text_puts(text, "\n");
	policy_words_zones(text, policy);
	return put_waiting(command, policy, error);
}

/* What a line of the history says. */
struct version_line {
	const struct weir_policy *policy, *before;
	uint64_t appended;
	struct weir_policy_note note;
};

static void put_version_json(struct weir_text *text, const struct version_line *line)
{
	struct weir_json_writer json = weir_json_writer(text);
	struct weir_text changes = {0};
	policy_words_changes(&changes, line->before, line->policy);
	weir_json_write_object(&json, NULL);
	weir_json_write_uint(&json, "version", line->policy->version);
	weir_json_write_uint(&json, "zones", line->policy->zone_count);
	weir_json_write_bool(&json, "in_log", line->policy->version <= line->appended);
	if (line->note.at_ms != 0) {
		weir_json_write_int(&json, "at", line->note.at_ms);
		weir_json_write_words(&json, "by", line->note.by);
	}
	weir_json_write_string(&json, "changes", weir_text_span(&changes));
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
	weir_text_deinit(&changes);
}

static void put_version(struct weir_text *text, const struct version_line *line)
{
	uint32_t zones = line->policy->zone_count;
	weir_text_printf(text, "%llu  ", (unsigned long long)line->policy->version);
	if (line->note.at_ms != 0) {
		words_time(text, line->note.at_ms);
		weir_text_puts(text, "  ");
		words_text(text, line->note.by);
		weir_text_puts(text, "  ");
	}
	weir_text_printf(text, "%u zone%s: ", zones, zones == 1 ? "" : "s");
	policy_words_changes(text, line->before, line->policy);
	weir_text_puts(text, line->policy->version > line->appended ? "; " : "");
	put_state(text, line->policy->version, line->appended);
	weir_text_puts(text, "\n");
}

enum weir_status policy_show_history(struct policy_command *command, struct weir_error *error)
{
	const struct weir_policy_history *history = &command->history;
	struct weir_store *store = command->backend.store;
	uint64_t appended;
	enum weir_status status = weir_policy_appended(store, NULL, &appended, error);
	for (size_t i = 0; status == WEIR_OK && i < history->count; i++) {
		struct version_line line = {
			.policy = history->policies[i], .before = i > 0 ? history->policies[i - 1] : NULL, .appended = appended};
		status = weir_policy_note_get(store, line.policy->version, &line.note, error);
		if (status == WEIR_OK)
			(command->json ? put_version_json : put_version)(&command->text, &line);
	}
	return status;
}
