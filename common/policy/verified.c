/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engines, by the names that their crawlers' hosts have. A domain is left out if others are in it, too: whoever can rent
 * an address there, or have a proxy or a tool there ask for him, would be exempt as the robot. So google.com and yandex.com
 * are none, and no engine whose crawlers have names of a cloud.
 */
#include "common/policy/verified.h"

#include "common/base/alloc.h"
#include "common/base/suggest.h"
#include "common/json/json_shape.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct engine {
	const char *name, *agent;
	const char *hosts[4];
} engines[] = {
	{"googlebot", "googlebot", {"googlebot.com"}},
	{"bingbot", "bingbot", {"search.msn.com"}},
	{"applebot", "applebot", {"applebot.apple.com"}},
	{"yandexbot", "yandexbot", {"spider.yandex.com", "spider-*.yandex.com", "spider.yandex.ru", "spider.yandex.net"}},
	{"baiduspider", "baiduspider", {"crawl.baidu.com", "crawl.baidu.jp"}},
	{"seznambot", "seznambot", {"fulltextrobot-*.seznam.cz"}},
	{"petalbot", "petalbot", {"petalbot-*.petalsearch.com"}},
	{"yahoo", "slurp", {"crawl.yahoo.net"}},
	{"amazonbot", "amazonbot", {"crawl.amazonbot.amazon"}},
};

enum { ENGINES = sizeof engines / sizeof *engines };

static json_t *agent_shape(void)
{
	return weir_shape_name(0);
}

static json_t *hosts_shape(void)
{
	return weir_shape_list(1, WEIR_VERIFIED_HOSTS_MAX,
	                       weir_shape_pattern("^[A-Za-z0-9_-]+(\\*\\.[A-Za-z0-9_-]+)?(\\.[A-Za-z0-9_-]+)+$"));
}

static const struct weir_json_rule members[] = {
	{.name = "agent",
     .kind = WEIR_JSON_TEXT,
     .needed = "a part of the robot's user agent",
     .meaning = "a part of its user agent",
     .shape = agent_shape},
	{.name = "hosts",
     .needed = "the domains of its hosts",
     .meaning = "domains that its hosts' names are in",
     .shape = hosts_shape},
	{.name = NULL},
};

static void add_host(struct weir_verified *verified, const char *host)
{
	verified->hosts[verified->host_count++] = weir_copy(host, strlen(host));
}

static enum weir_status take_engine(const struct weir_json *at, const char *name, struct weir_verified *verified,
                                    struct weir_error *error)
{
	const char *names[ENGINES + 1];
	char list[256];
	for (size_t i = 0; i < ENGINES; i++) {
		names[i] = engines[i].name;
		if (strcmp(engines[i].name, name) != 0)
			continue;
		verified->name = weir_copy(name, strlen(name));
		verified->agent = weir_copy(engines[i].agent, strlen(engines[i].agent));
		for (size_t k = 0; k < sizeof engines[i].hosts / sizeof *engines[i].hosts && engines[i].hosts[k] != NULL; k++)
			add_host(verified, engines[i].hosts[k]);
		return WEIR_OK;
	}
	names[ENGINES] = NULL;
	weir_list_names(names, "\"", list, sizeof list);
	return weir_json_fail(at, error, "must be one of %s, or {\"agent\": \"...\", \"hosts\": [\"...\"]}, not \"%.40s\"",
	                      list, name);
}

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

/* A domain below a top level: below "com" there is everybody. */
static bool is_domain(const char *text)
{
	size_t dots = 0;
	for (const char *label = text;; label++, dots++) {
		size_t length = strspn(label, plain);
		if (length == 0 || label[length] == '\0')
			return length > 0 && dots > 0;
		label += length;
		if (*label != '.')
			return false;
	}
}

/* One, or "crawl-*.DOMAIN": the names in it that begin so. */
static bool is_hosts(const char *text)
{
	size_t prefix = strcspn(text, "*");
	if (strlen(text) > WEIR_HOST_MAX_BYTES)
		return false;
	if (text[prefix] == '\0')
		return is_domain(text);
	return prefix > 0 && strspn(text, plain) == prefix && text[prefix + 1] == '.' && is_domain(text + prefix + 2);
}

static enum weir_status take_own(const struct weir_json *at, struct weir_verified *verified, struct weir_error *error)
{
	struct weir_json hosts = weir_json_member(at, "hosts"), agent = weir_json_member(at, "agent");
	const char *text = NULL;
	size_t count = 0;
	enum weir_status status;
	if ((status = weir_json_known(at, members, error)) != WEIR_OK ||
	    (status = weir_json_read(at, members, &text, error)) != WEIR_OK ||
	    (status = weir_json_require(&hosts, "the domains of its hosts, such as [\"crawl.example.org\"]", error)) !=
	        WEIR_OK ||
	    (status = weir_json_list(&hosts, 1, WEIR_VERIFIED_HOSTS_MAX, &count, error)) != WEIR_OK)
		return status;
	if (*text == '\0')
		return weir_json_fail(&agent, error, "must not be empty: every client would be asked for by name");
	verified->agent = weir_copy(text, strlen(text));
	for (size_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json host = weir_json_element(&hosts, i);
		if ((status = weir_json_string(&host, &text, error)) != WEIR_OK)
			return status;
		if (!is_hosts(text))
			return weir_json_fail(&host, error, "must be a domain such as \"crawl.example.org\", not \"%.80s\"", text);
		add_host(verified, text);
	}
	return status;
}

static bool is_engine(const struct weir_verified *verified, const struct engine *engine)
{
	const uint32_t most = sizeof engine->hosts / sizeof *engine->hosts;
	bool same = strcmp(verified->agent, engine->agent) == 0 && verified->host_count <= most;
	for (uint32_t i = 0; same && i < most && (i < verified->host_count || engine->hosts[i] != NULL); i++)
		same =
			i < verified->host_count && engine->hosts[i] != NULL && strcmp(verified->hosts[i], engine->hosts[i]) == 0;
	return same;
}

enum weir_status weir_verified_parse(const struct weir_json *at, struct weir_verified *verified,
                                     struct weir_error *error)
{
	const char *name = NULL;
	enum weir_status status;
	if (json_is_object(at->value)) {
		status = take_own(at, verified, error);
		for (size_t i = 0; i < ENGINES && status == WEIR_OK && verified->name == NULL; i++)
			if (is_engine(verified, &engines[i]))
				verified->name = weir_copy(engines[i].name, strlen(engines[i].name));
		return status;
	}
	status = weir_json_string(at, &name, error);
	return status == WEIR_OK ? take_engine(at, name, verified, error) : status;
}

void weir_verified_free(struct weir_verified *verified)
{
	for (uint32_t i = 0; i < verified->host_count; i++)
		free(verified->hosts[i]);
	free(verified->name);
	free(verified->agent);
	*verified = (struct weir_verified){0};
}

json_t *weir_verified_json(const struct weir_verified *verified)
{
	json_t *hosts = json_array();
	for (uint32_t i = 0; i < verified->host_count; i++)
		json_array_append_new(hosts, json_string(verified->hosts[i]));
	return json_pack("{s:s, s:o}", "agent", verified->agent, "hosts", hosts);
}

json_t *weir_verified_shape(void)
{
	json_t *names = json_array();
	for (size_t i = 0; i < ENGINES; i++)
		json_array_append_new(names, json_string(engines[i].name));
	return weir_shape_either(json_pack("{s:o}", "enum", names), weir_shape_object(members));
}

bool weir_verified_claims(const struct weir_verified *verified, struct weir_span agent)
{
	size_t length = strlen(verified->agent);
	for (size_t i = 0; i + length <= agent.length; i++)
		if (strncasecmp(agent.at + i, verified->agent, length) == 0)
			return true;
	return false;
}

/* Whether a name is equal to a domain, or below it. */
static bool is_in(const char *name, const char *domain)
{
	size_t length = strlen(name), tail = strlen(domain);
	return length >= tail && strcasecmp(name + length - tail, domain) == 0 &&
	       (length == tail || name[length - tail - 1] == '.');
}

bool weir_verified_host(const char *hosts, const char *name)
{
	size_t prefix = strcspn(hosts, "*");
	if (hosts[prefix] == '\0')
		return is_in(name, hosts);
	return strncasecmp(name, hosts, prefix) == 0 && strcasecmp(name + strcspn(name, "."), hosts + prefix + 1) == 0;
}

bool weir_verified_is_host(const struct weir_verified *verified, const char *name)
{
	for (uint32_t i = 0; i < verified->host_count; i++)
		if (weir_verified_host(verified->hosts[i], name))
			return true;
	return false;
}
