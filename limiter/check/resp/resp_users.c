/* SPDX-License-Identifier: Apache-2.0 */
/* Users as the configuration has them: looked at without their passwords, which may be on another machine, and with them. */
#include "limiter/check/resp/resp_users.h"

#include "common/base/alloc.h"
#include "common/json/json_rules.h"

#include <stdlib.h>
#include <string.h>

static const struct weir_json_rule members[] = {{.name = "password"}, {.name = "zones"}, {.name = NULL}};

static bool is_name(const char *name)
{
	size_t length = strlen(name), plain = 0;
	while (plain < length && name[plain] > ' ' && name[plain] < 0x7f)
		plain++;
	return length > 0 && length <= RESP_USER_NAME_MAX_BYTES && plain == length;
}

static enum weir_status check_zones(const struct weir_json *zones, struct weir_error *error)
{
	size_t count = json_array_size(zones->value);
	if (!weir_json_exists(zones))
		return WEIR_OK;
	if (!json_is_array(zones->value) || count == 0 || count > RESP_USER_ZONES_MAX)
		return weir_json_fail(zones, error, "must list 1 to %d names of zones; without it, the user may ask in all",
		                      RESP_USER_ZONES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct weir_json zone = weir_json_element(zones, i);
		const char *name = json_string_value(zone.value);
		if (name == NULL || *name == '\0' || strlen(name) > WEIR_ZONE_NAME_MAX_BYTES)
			return weir_json_fail(&zone, error, "must be the name of a zone");
	}
	return WEIR_OK;
}

static enum weir_status check_user(const struct weir_json *user, const char *name, struct weir_error *error)
{
	if (!is_name(name))
		return weir_json_fail(user, error, "is no name: 1 to %d printable characters of ASCII without blanks",
		                      RESP_USER_NAME_MAX_BYTES);
	if (strcmp(name, "default") == 0)
		return weir_json_fail(user, error, "is the user whose password is checks.password");
	if (!json_is_object(user->value))
		return weir_json_fail(user, error,
		                      "must be an object such as {\"password\": {\"env\": \"SHOP\"}, \"zones\": [\"api\"]}");
	enum weir_status status = weir_json_known(user, members, error);
	struct weir_json password = weir_json_member(user, "password"), zones = weir_json_member(user, "zones");
	if (status == WEIR_OK)
		status = weir_json_require(&password, "say what the user must give", error);
	if (status == WEIR_OK)
		status = weir_json_check_secret(&password, error);
	return status == WEIR_OK ? check_zones(&zones, error) : status;
}

enum weir_status resp_users_check(const struct weir_json *named, struct weir_error *error)
{
	const char *name;
	json_t *value;
	if (!weir_json_exists(named))
		return WEIR_OK;
	size_t count = json_object_size(named->value);
	if (count == 0 || count > RESP_USERS_MAX)
		return weir_json_fail(named, error, "must have 1 to %d users", RESP_USERS_MAX);
	json_object_foreach(named->value, name, value)
	{
		struct weir_json user = weir_json_member(named, name);
		enum weir_status status = check_user(&user, name, error);
		if (status != WEIR_OK)
			return status;
	}
	return WEIR_OK;
}

static char *copy(const char *text)
{
	return weir_copy(text, strlen(text));
}

static enum weir_status open_user(const struct weir_json *json, const char *name, struct resp_user *user,
                                  struct weir_error *error)
{
	struct weir_json at = weir_json_member(json, "password"), zones = weir_json_member(json, "zones");
	size_t count = json_array_size(zones.value);
	char *password = NULL, **names = count > 0 ? weir_alloc(count, sizeof *names) : NULL;
	for (size_t i = 0; i < count; i++)
		names[i] = copy(json_string_value(json_array_get(zones.value, i)));
	enum weir_status status = weir_json_password(&at, &password, error);
	*user = (struct resp_user){
		.name = copy(name), .password = password, .zones = (const char *const *)names, .zone_count = (uint32_t)count};
	return status;
}

enum weir_status resp_users_open(const char *password, const struct weir_json *named, struct resp_users *users,
                                 struct weir_error *error)
{
	const char *name;
	json_t *value;
	enum weir_status status = WEIR_OK;
	users->at = weir_alloc(1 + json_object_size(named->value), sizeof *users->at);
	if (password != NULL)
		users->at[users->count++] = (struct resp_user){.name = copy("default"), .password = copy(password)};
	json_object_foreach(named->value, name, value)
	{
		struct weir_json user = weir_json_member(named, name);
		status = open_user(&user, name, &users->at[users->count++], error);
		if (status != WEIR_OK)
			break;
	}
	return status;
}

void resp_users_deinit(struct resp_users *users)
{
	for (uint32_t i = 0; i < users->count; i++) {
		struct resp_user *user = &users->at[i];
		for (uint32_t j = 0; j < user->zone_count; j++)
			free((void *)(uintptr_t)user->zones[j]);
		free((void *)(uintptr_t)user->zones);
		free((void *)(uintptr_t)user->name);
		free((void *)(uintptr_t)user->password);
	}
	free(users->at);
	*users = (struct resp_users){0};
}

bool resp_user_may_ask(const struct resp_user *user, const struct weir_zone *zone)
{
	if (user == NULL || user->zone_count == 0)
		return true;
	for (uint32_t i = 0; i < user->zone_count; i++)
		if (strcmp(user->zones[i], zone->name) == 0)
			return true;
	return false;
}
