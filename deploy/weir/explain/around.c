/* SPDX-License-Identifier: Apache-2.0 */
/* Networks are few, so what is known of them is a list, the newest decision of each. */
#include "deploy/weir/explain/around.h"

#include "common/base/alloc.h"
#include "common/json/json.h"
#include "limiter/overrides/override_command.h"

#include <stdlib.h>
#include <string.h>

enum { AROUND_MAX = 10000 };

struct around_network {
	struct weir_network network;
	struct question id; /* its place in the log */
	struct weir_text line;
	char *place;
};

void around_init(struct around *around, const struct question *question, const struct weir_zone *zone)
{
	const char *why;
	struct weir_span key = {.at = question->key.at, .length = (uint32_t)question->key.length};
	if (!override_zone_takes_networks(zone) || !weir_network_parse(key, &around->asked, &why))
		return;
	around->lies = true;
	weir_text_printf(&around->head, "\"zone\":\"%s\",\"key\":[\"", zone->name);
}

void around_deinit(struct around *around)
{
	for (size_t i = 0; i < around->count; i++) {
		weir_text_deinit(&around->networks[i].line);
		free(around->networks[i].place);
	}
	free(around->networks);
	weir_text_deinit(&around->head);
}

/* Whether a decision blocks, and until when. @return false: it does not, or no operator made it */
static bool read_line(struct weir_span line, bool *block, int64_t *until_ms)
{
	json_t *json = json_loadb(line.at, line.length, JSON_ALLOW_NUL, NULL);
	const char *action = json_string_value(json_object_get(json, "action"));
	bool good = action != NULL && json_is_string(json_object_get(json, "by"));
	*block = good && strcmp(action, "block") == 0;
	*until_ms = json_integer_value(json_object_get(json, "until"));
	json_decref(json);
	return good;
}

/* What is known of a network, made if it is not known yet; NULL: there are too many. */
static struct around_network *network_at(struct around *around, const struct weir_network *network)
{
	for (size_t i = 0; i < around->count; i++)
		if (memcmp(&around->networks[i].network, network, sizeof *network) == 0)
			return &around->networks[i];
	if (around->count == AROUND_MAX)
		return NULL;
	around->networks = weir_realloc(around->networks, around->count + 1, sizeof *around->networks);
	around->networks[around->count] = (struct around_network){.network = *network};
	return &around->networks[around->count++];
}

void around_consider(struct around *around, struct weir_span line, struct weir_span rest, const struct question *id,
                     const char *place)
{
	struct weir_network network;
	const char *why;
	bool block;
	int64_t until_ms;
	if (!around->lies || rest.length <= around->head.length ||
	    memcmp(rest.at, around->head.at, around->head.length) != 0)
		return;
	struct weir_span text = {.at = rest.at + around->head.length,
	                         .length = rest.length - (uint32_t)around->head.length};
	const char *quote = memchr(text.at, '"', text.length);
	text.length = quote != NULL ? (uint32_t)(quote - text.at) : 0;
	if (text.length == 0 || !weir_network_parse(text, &network, &why) || network.prefix >= around->asked.prefix ||
	    !weir_network_contains(&network, &around->asked.base) || !read_line(line, &block, &until_ms))
		return;
	struct around_network *known = network_at(around, &network);
	if (known == NULL || (known->line.length > 0 && id->offset < known->id.offset))
		return;
	known->id = *id;
	weir_text_clear(&known->line);
	weir_text_append(&known->line, line.at, line.length);
	free(known->place);
	known->place = weir_copy(place, strlen(place));
}

static bool is_in_force(const struct weir_text *line, int64_t now_ms)
{
	bool block;
	int64_t until_ms;
	(void)read_line((struct weir_span){.at = line->at, .length = (uint32_t)line->length}, &block, &until_ms);
	return block && until_ms > now_ms;
}

/* Whether a block of the key itself is in force, whoever made it. */
static bool is_blocked_itself(const struct question *question, int64_t now_ms)
{
	json_t *json = question->published.length > 0
	                   ? json_loadb(question->published.at, question->published.length, JSON_ALLOW_NUL, NULL)
	                   : NULL;
	const char *action = json_string_value(json_object_get(json, "action"));
	bool blocked =
		action != NULL && strcmp(action, "block") == 0 && json_integer_value(json_object_get(json, "until")) > now_ms;
	json_decref(json);
	return blocked;
}

void around_settle(const struct around *around, struct question *question, int64_t now_ms)
{
	const struct around_network *narrowest = NULL;
	char text[WEIR_NETWORK_TEXT_BYTES];
	for (size_t i = 0; i < around->count; i++)
		if ((narrowest == NULL || around->networks[i].network.prefix > narrowest->network.prefix) &&
		    is_in_force(&around->networks[i].line, now_ms))
			narrowest = &around->networks[i];
	if (narrowest == NULL || is_blocked_itself(question, now_ms))
		return;
	question->partition = narrowest->id.partition;
	question->offset = narrowest->id.offset;
	question->index = narrowest->id.index;
	weir_text_clear(&question->key);
	weir_text_puts(&question->key, weir_network_format(&narrowest->network, text));
	weir_text_clear(&question->published);
	weir_text_append(&question->published, narrowest->line.at, narrowest->line.length);
	free(question->published_in);
	question->published_in = weir_copy(narrowest->place, strlen(narrowest->place));
}
