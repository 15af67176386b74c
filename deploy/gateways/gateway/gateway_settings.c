/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section "gateways": each entry by itself, then that no two keep one list. */
#include "deploy/gateways/gateway/gateway_settings.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/http_client/http_client.h"
#include "common/json/json_shape.h"
#include "deploy/gateways/table/block_table.h"
#include "deploy/gateways/target/kinds/target_kinds.h"

#include <stdlib.h>
#include <string.h>

static enum weir_status read_zones(const struct weir_json *at, const struct weir_policy *policy,
                                   struct gateway_settings *settings, struct weir_error *error)
{
	size_t count = 0;
	if (!weir_json_exists(at))
		return WEIR_OK;
	enum weir_status status = weir_json_list(at, 1, WEIR_ZONES_MAX, &count, error);
	settings->zones = weir_alloc(count > 0 ? count : 1, sizeof *settings->zones);
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json zone = weir_json_element(at, i);
		struct weir_error words;
		status = weir_json_string(&zone, &settings->zones[i], error);
		if (status == WEIR_OK && weir_policy_find_zone(policy, weir_span_of(settings->zones[i]), &words) == NULL)
			status = weir_json_fail(&zone, error, "%s", words.text);
		settings->zone_count += status == WEIR_OK;
	}
	return status;
}

static json_t *to_shape(void)
{
	return weir_shape_name(0);
}

static json_t *zones_shape(void)
{
	return weir_shape_list(1, WEIR_ZONES_MAX, weir_shape_name(WEIR_ZONE_NAME_MAX_BYTES));
}

#define AT(member) offsetof(struct gateway_settings, member)

static const struct weir_json_rule members[] = {
	{.name = "to",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(to),
     .needed = "say where the list is kept, such as \"nft:inet/filter/weir\"",
     .meaning = "the target, as `weir subscribe --to` takes it",
     .shape = to_shape},
	{.name = "zones", .meaning = "only blocks of these zones", .shape = zones_shape},
	{.name = "interval",
     .kind = WEIR_JSON_TIME,
     .offset = AT(interval_ms),
     .most = GATEWAY_INTERVAL_MOST_MS,
     .meaning = "shortest time between two changes"},
	{.name = "reload",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(reload),
     .meaning = "file, nginx-map, nginx-geo: a shell command to run after each change"},
	{.name = "map", .kind = WEIR_JSON_TEXT, .offset = AT(map), .meaning = "haproxy: the map's file"},
	{.name = "max",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(max),
     .least = 1,
     .most = GATEWAY_BLOCKS_MOST,
     .meaning = "most blocks in the list; those that end first are left out"},
	{.name = NULL},
};

json_t *gateway_shape(void)
{
	return weir_shape_either(weir_shape_name(0), weir_shape_object(members));
}

static enum weir_status read_object(const struct weir_json *at, const struct weir_policy *policy,
                                    struct gateway_settings *settings, struct weir_error *error)
{
	struct weir_json zones = weir_json_member(at, "zones");
	enum weir_status status;
	if (!json_is_object(at->value))
		return weir_json_fail(at, error,
		                      "must be a target, such as \"nginx-geo:/etc/nginx/weir.map\", or an object, such "
		                      "as {\"to\": \"nft:inet/filter/weir\", \"zones\": [\"ssh\"]}");
	if ((status = weir_json_known(at, members, error)) != WEIR_OK ||
	    (status = weir_json_read(at, members, settings, error)) != WEIR_OK)
		return status;
	return read_zones(&zones, policy, settings, error);
}

enum weir_status gateway_open(const struct gateway_settings *settings, uint32_t partitions, const struct weir_log *log,
                              const _Atomic bool *stop, struct target **target, struct weir_error *error)
{
	const struct target_options options = {.zones = settings->zones,
	                                       .zone_count = settings->zone_count,
	                                       .partitions = partitions,
	                                       .reload = settings->reload,
	                                       .map = settings->map,
	                                       .log = log,
	                                       .stop = stop};
	return target_open(settings->to, &options, target, error);
}

/* Only its words: what it leads to need not be there yet. */
static enum weir_status check_target(struct gateway_settings *settings, const struct weir_config *config,
                                     struct weir_error *error)
{
	const struct weir_log silent = {.fd = -1, .level = WEIR_LOG_ERROR};
	struct target *target;
	struct weir_error words;
	if (gateway_open(settings, (uint32_t)config->bus.partitions, &silent, NULL, &target, &words) != WEIR_OK)
		return weir_json_fail(&settings->at, error, "%s", words.text);
	if (target->ops->lists != NULL)
		target->ops->lists(target, &settings->lists);
	else
		weir_text_printf(&settings->lists, "%s\n", settings->to);
	(void)!target->ops->close(target, &words);
	return WEIR_OK;
}

static enum weir_status read_one(const struct weir_config *config, struct gateway_settings *settings,
                                 struct weir_error *error)
{
	settings->interval_ms = -1;
	settings->max = BLOCK_TABLE_MAX_DEFAULT;
	enum weir_status status = json_is_string(settings->at.value)
	                              ? weir_json_string(&settings->at, &settings->to, error)
	                              : read_object(&settings->at, config->policy, settings, error);
	return status == WEIR_OK ? check_target(settings, config, error) : status;
}

/* ---- which are one list ---- */

static const char *map_of(const char *to, const char *map)
{
	static const char haproxy[] = "haproxy:";
	if (strncmp(to, haproxy, sizeof haproxy - 1) != 0)
		return "";
	return map != NULL ? map : TARGET_MAP_DEFAULT;
}

/* A map may be named by the end of its path. */
static bool name_one_map(const char *one, const char *other)
{
	size_t length = strlen(one), other_length = strlen(other);
	const char *longer = length > other_length ? one : other, *shorter = length > other_length ? other : one;
	const char *end = longer + (length > other_length ? length - other_length : other_length - length);
	return strcmp(end, shorter) == 0 && (end == longer || (end[-1] == '/' && shorter[0] != '/'));
}

bool gateway_keeps(const struct gateway_settings *settings, const char *to, const char *map)
{
	return strcmp(settings->to, to) == 0 && name_one_map(map_of(settings->to, settings->map), map_of(to, map));
}

/* Whether two places of lists are one: some line is in both. */
static bool have_one_place(const struct weir_text *one, const struct weir_text *other)
{
	const char *end = one->at + one->length;
	for (const char *at = one->at, *next; at < end; at = next) {
		next = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
		const char *found = other->at, *last = other->at + other->length;
		while ((found = memmem(found, (size_t)(last - found), at, (size_t)(next - at))) != NULL) {
			if (found == other->at || found[-1] == '\n')
				return true;
			found++;
		}
	}
	return false;
}

static bool keep_one_list(const struct gateway_settings *one, const struct gateway_settings *other)
{
	return have_one_place(&one->lists, &other->lists) &&
	       name_one_map(map_of(one->to, one->map), map_of(other->to, other->map));
}

static enum weir_status refuse_list_twice(const struct gateway_list *list, size_t first, size_t second,
                                          struct weir_error *error)
{
	char *name = gateway_settings_name(&list->at[first]), *other = gateway_settings_name(&list->at[second]);
	enum weir_status status = weir_json_fail(&list->at[second].at, error,
	                                         "gateways[%zu] keeps the same list (%s, and here %s): name it once, with "
	                                         "the zones of both",
	                                         first, name, other);
	free(name);
	free(other);
	return status;
}

enum weir_status gateway_list_read(const struct weir_config *config, struct gateway_list *list,
                                   struct weir_error *error)
{
	list->at = weir_alloc(config->gateway_count > 0 ? config->gateway_count : 1, sizeof *list->at);
	list->count = 0;
	for (size_t i = 0; i < config->gateway_count; i++) {
		struct gateway_settings *settings = &list->at[list->count++];
		settings->at = weir_json_element(&config->gateways, i);
		enum weir_status status = read_one(config, settings, error);
		for (size_t j = 0; status == WEIR_OK && j < i; j++) {
			if (keep_one_list(&list->at[j], settings))
				status = refuse_list_twice(list, j, i, error);
			else if (strcmp(list->at[j].to, settings->to) == 0)
				list->at[j].one_of_several = settings->one_of_several = true;
		}
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

void gateway_list_deinit(struct gateway_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->at[i].zones);
		weir_text_deinit(&list->at[i].lists);
	}
	free(list->at);
	*list = (struct gateway_list){0};
}

/* Of a webhook's address only the host may be seen; two of one host are told apart by a hash of the rest. */
static char *webhook_name(const char *to)
{
	static const char kind[] = "webhook:";
	struct weir_text name = {0};
	weir_text_puts(&name, kind);
	if (!weir_http_address_host(to + sizeof kind - 1, &name))
		weir_text_puts(&name, to + sizeof kind - 1);
	else
		weir_text_printf(&name, "#%04x", weir_crc16(to, strlen(to)));
	weir_text_append(&name, "", 1);
	return name.at;
}

char *gateway_name(const char *to)
{
	static const char command[] = "exec:", webhook[] = "webhook:";
	if (strncmp(to, webhook, sizeof webhook - 1) == 0)
		return webhook_name(to);
	if (strncmp(to, command, sizeof command - 1) == 0)
		return weir_copy(to, strcspn(to, " \t"));
	char *name = weir_copy(to, strlen(to)), *host = strstr(name, "://");
	char *account = host != NULL ? strrchr(host, '@') : NULL;
	if (account != NULL)
		memmove(host + 3, account + 1, strlen(account));
	return name;
}

char *gateway_settings_name(const struct gateway_settings *settings)
{
	char *name = gateway_name(settings->to);
	struct weir_text text = {0};
	if (!settings->one_of_several)
		return name;
	weir_text_printf(&text, "%s %s", name, map_of(settings->to, settings->map));
	weir_text_append(&text, "", 1);
	free(name);
	return text.at;
}
