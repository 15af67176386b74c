/* SPDX-License-Identifier: Apache-2.0 */
/* Members by their rules: the getters of json.h, called by a table. */
#include "common/json/json_rules.h"

#include <assert.h>

enum weir_status weir_json_known(const struct weir_json *object, const struct weir_json_rule *rules,
                                 struct weir_error *error)
{
	const char *names[WEIR_JSON_RULES_MAX + 1];
	size_t count = 0;
	for (; rules[count].name != NULL; count++) {
		assert(count < WEIR_JSON_RULES_MAX);
		names[count] = rules[count].name;
	}
	names[count] = NULL;
	return weir_json_only(object, names, error);
}

static enum weir_status read_member(const struct weir_json *at, const struct weir_json_rule *rule, void *place,
                                    struct weir_error *error)
{
	switch (rule->kind) {
	case WEIR_JSON_READ_ELSEWHERE: return WEIR_OK;
	case WEIR_JSON_FLAG: return weir_json_bool(at, place, error);
	case WEIR_JSON_TEXT: return weir_json_string(at, place, error);
	case WEIR_JSON_WORD: return weir_json_word(at, rule->words, place, error);
	case WEIR_JSON_NUMBER: return weir_json_int(at, rule->least, rule->most, place, error);
	case WEIR_JSON_SIZE: return weir_json_size(at, rule->least, rule->most, place, error);
	case WEIR_JSON_TIME: return weir_json_duration(at, rule->least, rule->most, place, error);
	}
	return WEIR_OK;
}

enum weir_status weir_json_read(const struct weir_json *object, const struct weir_json_rule *rules, void *into,
                                struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (; rules->name != NULL && status == WEIR_OK; rules++) {
		struct weir_json at = weir_json_member(object, rules->name);
		if (rules->needed != NULL)
			status = weir_json_require(&at, rules->needed, error);
		if (status == WEIR_OK)
			status = read_member(&at, rules, (char *)into + rules->offset, error);
	}
	return status;
}
