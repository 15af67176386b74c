/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration as a whole: its sections, and what depends on more than one
 * setting. Zones are read by policy_zone.c, settings by config_settings.c; what
 * is inside "sources" is the collector's to read.
 */
#include "common/config/config.h"

#include "common/base/alloc.h"
#include "common/base/machine.h"
#include "common/bytes/listen_address.h"
#include "common/config/config_settings.h"
#include "common/json/json_shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SOURCES_MAX = 1024,
	GATEWAYS_MAX = 64,
	MEMORY_LEAST_BYTES = 64 << 20,
	TOKEN_LEAST_BYTES = 16,
	TOKEN_MAX_BYTES = 1024,
	MISTAKES_TOLD = 20,
	ARCHIVER_THREADS = 4, /* more do not help a server much whose processors have other work, too */
};

void weir_config_free(struct weir_config *config)
{
	if (config == NULL)
		return;
	weir_settings_free(config);
	free(config->listen.http_host);
	free(config->listen.resp_host);
	free(config->checks.advertise_host);
	free(config->listen.grpc_host);
	free(config->listen.check_http_host);
	free(config->archiver.api_host);
	free(config->command_words);
	weir_policy_free(config->policy);
	weir_json_document_free(config->document);
	free(config);
}

/* A certificate and its key, together, or neither. @param prefix  of their names */
static enum weir_status check_tls(const struct weir_json *root, const char *section, const char *prefix,
                                  const struct weir_config_tls *tls, struct weir_error *error)
{
	char name[64];
	const char *lacking = tls->certificate == NULL ? "certificate" : "key";
	bool asked = tls->certificate != NULL || tls->key != NULL || tls->client_ca != NULL;
	if (!asked || (tls->certificate != NULL && tls->key != NULL))
		return WEIR_OK;
	snprintf(name, sizeof name, "%s%s", prefix, lacking);
	struct weir_json object = weir_json_member(root, section), at = weir_json_member(&object, name);
	return weir_json_require(&at, "TLS needs a certificate and its key, each a file in PEM form", error);
}

/* Reads where to listen. @param text  NULL: nowhere @param port  one that is an example */
static enum weir_status read_place(const struct weir_json *at, const char *text, int example, char **host,
                                   uint16_t *port, struct weir_error *error)
{
	if (text == NULL || weir_listen_address(text, host, port))
		return WEIR_OK;
	return weir_json_fail(at, error,
	                      "must be HOST:PORT, such as \"127.0.0.1:%d\", \"[::1]:%d\" or \"*:%d\", not \"%.80s\"",
	                      example, example, example, text);
}

/* Where others reach this one: a place that they can name. */
static enum weir_status read_advertised(const struct weir_json *checks, struct weir_config *config,
                                        struct weir_error *error)
{
	struct weir_json at = weir_json_member(checks, "advertise");
	enum weir_status status = read_place(&at, config->checks.advertise, 6390, &config->checks.advertise_host,
	                                     &config->checks.advertise_port, error);
	if (status != WEIR_OK || config->checks.advertise == NULL)
		return status;
	if (strcmp(config->checks.advertise_host, "*") == 0 || config->checks.advertise_port == 0)
		return weir_json_fail(&at, error, "must name a host and a port, such as \"limiter-1.example.com:6390\"");
	return WEIR_OK;
}

/* Where checks are taken. @param guarded  nobody asks there who does not know a password */
static enum weir_status read_checks_place(const struct weir_json *at, const char *text, int example, char **host,
                                          uint16_t *port, bool guarded, struct weir_error *error)
{
	enum weir_status status = read_place(at, text, example, host, port, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	if (!guarded && !weir_listen_is_loopback(*host))
		return weir_json_fail(at, error,
		                      "must be a loopback address such as \"127.0.0.1:%d\" unless checks.password is set: "
		                      "anyone who can reach it can use up everyone's limits",
		                      example);
	return WEIR_OK;
}

void weir_config_places(const struct weir_config *config, struct weir_config_place places[WEIR_CONFIG_PLACES])
{
	const struct weir_config_place all[WEIR_CONFIG_PLACES] = {
		{"http", config->listen.http_host, config->listen.http_port},
		{"resp", config->listen.resp_host, config->listen.resp_port},
		{"grpc", config->listen.grpc_host, config->listen.grpc_port},
		{"check_http", config->listen.check_http_host, config->listen.check_http_port},
	};
	memcpy(places, all, sizeof all);
}

static enum weir_status read_listen(const struct weir_json *root, struct weir_config *config, struct weir_error *error)
{
	struct weir_json listen = weir_json_member(root, "listen"), checks = weir_json_member(root, "checks");
	struct weir_json http = weir_json_member(&listen, "http"), resp = weir_json_member(&listen, "resp");
	struct weir_json grpc = weir_json_member(&listen, "grpc");
	struct weir_json check_http = weir_json_member(&listen, "check_http");
	bool has_password = config->checks.password.value != NULL;
	enum weir_status status =
		read_place(&http, config->listen.http, 9464, &config->listen.http_host, &config->listen.http_port, error);
	if (status == WEIR_OK)
		status =
			read_checks_place(&resp, config->listen.resp, 6390, &config->listen.resp_host, &config->listen.resp_port,
		                      has_password || config->checks.users.value != NULL, error);
	if (status == WEIR_OK)
		status = read_checks_place(&grpc, config->listen.grpc, 8081, &config->listen.grpc_host,
		                           &config->listen.grpc_port, has_password, error);
	if (status == WEIR_OK)
		status = read_checks_place(&check_http, config->listen.check_http, 8082, &config->listen.check_http_host,
		                           &config->listen.check_http_port, has_password, error);
	if (status == WEIR_OK)
		status = read_advertised(&checks, config, error);
	if (status != WEIR_OK || !weir_config_takes_checks(config) || !config->checks.tls ||
	    config->listen.tls.certificate != NULL)
		return status;
	struct weir_json tls = weir_json_member(&checks, "tls");
	return weir_json_fail(&tls, error, "needs listen.certificate and listen.key");
}

/* A token is sent as one word of a header field, and must be beyond guessing. */
static enum weir_status check_token(const struct weir_json *at, const char *token, struct weir_error *error)
{
	size_t length = strlen(token), plain = 0;
	while (plain < length && token[plain] > ' ' && token[plain] < 0x7f)
		plain++;
	if (plain < length || length < TOKEN_LEAST_BYTES || length > TOKEN_MAX_BYTES)
		return weir_json_fail(at, error, "a token must be %d to %d printable ASCII characters without spaces",
		                      TOKEN_LEAST_BYTES, TOKEN_MAX_BYTES);
	return WEIR_OK;
}

static enum weir_status check_resolver(const struct weir_json *root, const struct weir_config *config,
                                       struct weir_error *error)
{
	struct weir_json collector = weir_json_member(root, "collector"), at = weir_json_member(&collector, "resolver");
	struct weir_address address;
	char *host = NULL;
	uint16_t port;
	if (config->collector.resolver == NULL)
		return WEIR_OK;
	bool good = weir_listen_address(config->collector.resolver, &host, &port) &&
	            weir_address_parse(weir_span_of(host), &address) && weir_address_is_v4(&address);
	free(host);
	return good ? WEIR_OK
	            : weir_json_fail(&at, error, "must be IPv4:PORT, such as \"127.0.0.1:53\", not \"%.80s\"",
	                             config->collector.resolver);
}

static enum weir_status read_api(const struct weir_json *root, struct weir_config *config, struct weir_error *error)
{
	struct weir_json archiver = weir_json_member(root, "archiver");
	struct weir_json api = weir_json_member(&archiver, "api"), tokens = weir_json_member(&archiver, "tokens");
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < config->archiver.tokens.count && status == WEIR_OK; i++) {
		struct weir_json token = weir_json_element(&tokens, i);
		if (json_is_string(token.value))
			status = check_token(&token, json_string_value(token.value), error);
	}
	if (status != WEIR_OK || config->archiver.api == NULL)
		return status;
	if (!weir_listen_address(config->archiver.api, &config->archiver.api_host, &config->archiver.api_port))
		return weir_json_fail(&api, error, "must be HOST:PORT, such as \"127.0.0.1:8642\", not \"%.80s\"",
		                      config->archiver.api);
	if (config->archiver.tokens.count == 0 && !weir_listen_is_loopback(config->archiver.api_host))
		return weir_json_fail(
			&api, error,
			"must be a loopback address such as \"127.0.0.1:8642\" unless \"tokens\" is set: anyone who can "
			"reach the API can read everything");
	return WEIR_OK;
}

enum weir_status weir_config_open_tokens(const struct weir_config *config, struct weir_secrets *tokens,
                                         struct weir_error *error)
{
	const struct weir_secret_list *list = &config->archiver.tokens;
	enum weir_status status = WEIR_OK;
	*tokens = (struct weir_secrets){.at = weir_alloc(list->count > 0 ? list->count : 1, sizeof *tokens->at)};
	while (tokens->count < list->count && status == WEIR_OK) {
		struct weir_json at = weir_json_element(&list->at, tokens->count);
		status = weir_json_secret(&at, &tokens->at[tokens->count], error);
		if (status == WEIR_OK)
			status = check_token(&at, tokens->at[tokens->count++], error);
	}
	return status;
}

void weir_secrets_deinit(struct weir_secrets *secrets)
{
	for (size_t i = 0; i < secrets->count; i++)
		free(secrets->at[i]);
	free(secrets->at);
	*secrets = (struct weir_secrets){0};
}

static enum weir_status read_sources(const struct weir_json *root, struct weir_config *config, struct weir_error *error)
{
	config->sources = weir_json_member(root, "sources");
	enum weir_status status = weir_json_list(&config->sources, 0, SOURCES_MAX, &config->source_count, error);
	for (size_t i = 0; i < config->source_count && status == WEIR_OK; i++) {
		struct weir_json source = weir_json_element(&config->sources, i);
		if (!json_is_object(source.value))
			status = weir_json_fail(
				&source, error,
				"must be an object, such as {\"type\": \"file\", \"path\": \"/var/log/nginx/access.log\", "
				"\"format\": \"combined\"}");
	}
	return status;
}

/* In a cluster limiters ask each other at listen.resp, whatever gateways ask by. */
static enum weir_status check_cluster_checks(const struct weir_json *root, const struct weir_config *config,
                                             struct weir_error *error)
{
	struct weir_json listen = weir_json_member(root, "listen"), resp = weir_json_member(&listen, "resp");
	if (config->bus.type != WEIR_BUS_KAFKA || !weir_config_takes_checks(config))
		return WEIR_OK;
	if (config->listen.resp_host == NULL)
		return weir_json_require(&resp, "in a cluster limiters ask each other there: HOST:PORT", error);
	if (config->listen.resp_port == 0 && config->checks.advertise_host == NULL)
		return weir_json_fail(&resp, error,
		                      "needs a port, or \"checks.advertise\": in a cluster limiters ask each other there");
	return WEIR_OK;
}

/* What a server's address must be, once it is known that one is asked for. */
static enum weir_status check_servers(const struct weir_json *root, const struct weir_config *config,
                                      struct weir_error *error)
{
	struct weir_json bus = weir_json_member(root, "bus");
	if (config->bus.type == WEIR_BUS_KAFKA && config->bus.brokers == NULL) {
		struct weir_json brokers = weir_json_member(&bus, "brokers");
		return weir_json_require(&brokers, "give HOST:PORT of one or more brokers, such as \"127.0.0.1:9092\"", error);
	}
	if (config->bus.type == WEIR_BUS_KAFKA && config->gateway_count > 0)
		return weir_json_fail(
			&config->gateways, error,
			"is for `weir run`: in a cluster, start `weir subscribe --to TARGET` for each, where it is");
	if (config->bus.min_insync > config->bus.replication) {
		struct weir_json min_insync = weir_json_member(&bus, "min_insync");
		if (weir_json_exists(&min_insync))
			return weir_json_fail(&min_insync, error, "must not be above \"replication\" (%lld)",
			                      (long long)config->bus.replication);
	}
	return check_cluster_checks(root, config, error);
}

/* Threads and memory that were left to the machine. */
static void fit_to_machine(struct weir_config *config)
{
	if (config->limiter.threads == 0)
		config->limiter.threads = weir_machine_processors();
	if (config->limiter.threads > config->bus.partitions)
		config->limiter.threads = config->bus.partitions; /* each partition has one thread */
	if (config->archiver.threads == 0) {
		int64_t processors = weir_machine_processors();
		config->archiver.threads = processors < ARCHIVER_THREADS ? processors : ARCHIVER_THREADS;
	}
	if (config->archiver.threads > config->bus.partitions)
		config->archiver.threads = config->bus.partitions;
	if (config->limiter.memory_bytes == 0) {
		int64_t half = weir_machine_memory_bytes() / 2;
		config->limiter.memory_bytes = half > MEMORY_LEAST_BYTES ? half : MEMORY_LEAST_BYTES;
	}
}

static json_t *zones_shape(void)
{
	return weir_shape_list(1, WEIR_ZONES_MAX, weir_shape_named("zone"));
}

static json_t *sources_shape(void)
{
	return weir_shape_list(0, SOURCES_MAX, weir_shape_named("source"));
}

static json_t *gateways_shape(void)
{
	return weir_shape_list(0, GATEWAYS_MAX, weir_shape_named("gateway"));
}

/* What a configuration holds beside the sections of settings. */
static const struct weir_json_rule members[] = {
	{.name = "$schema",
     .meaning = "where an editor finds this schema; weir does not look at it",
     .shape = weir_shape_text},
	{.name = "zones", .meaning = "what to count, by which key, against which limits", .shape = zones_shape},
	{.name = "sources", .meaning = "where lines come from, and which format they have", .shape = sources_shape},
	{.name = "exempt",
     .meaning =
         "who is counted in no zone, beside each zone's own \"exempt\": networks, ranges, records by their fields, "
         "or lists of these",
     .shape = weir_exempt_shared_shape},
	{.name = "gateways", .meaning = "block lists that `weir run` keeps", .shape = gateways_shape},
	{.name = NULL},
};

static enum weir_status check_sections(const struct weir_json *root, struct weir_error *error)
{
	const char *names[WEIR_JSON_RULES_MAX], *schema = NULL;
	size_t count = 0;
	for (const struct weir_json_rule *member = members; member->name != NULL; member++)
		names[count++] = member->name;
	for (size_t i = 0; weir_config_sections[i] != NULL; i++)
		names[count++] = weir_config_sections[i];
	names[count] = NULL;
	struct weir_json at = weir_json_member(root, "$schema");
	enum weir_status status = weir_json_only(root, names, error);
	return status == WEIR_OK ? weir_json_string(&at, &schema, error) : status;
}

json_t *weir_config_schema(const struct weir_config_shapes *shapes)
{
	json_t *schema = json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
	                           "configuration of weir");
	json_t *object = weir_shape_object(members), *sections = json_object_get(object, "properties");
	for (size_t i = 0; weir_config_sections[i] != NULL; i++)
		json_object_set_new(sections, weir_config_sections[i], weir_settings_shape(weir_config_sections[i]));
	json_object_update_new(schema, object);
	/* Without brokers, the zones are the configuration's. */
	json_object_set_new(schema, "if",
	                    json_pack("{s:{s:{s:{s:{s:s}}, s:[s]}}, s:[s]}", "properties", "bus", "properties", "type",
	                              "const", "kafka", "required", "type", "required", "bus"));
	json_object_set_new(schema, "then",
	                    json_pack("{s:{s:{s:[s], s:{s:o}}, s:{s:i}}}", "properties", "bus", "required", "brokers",
	                              "properties", "kafka", weir_shape_properties(), "gateways", "maxItems", 0));
	json_object_set_new(schema, "else", json_pack("{s:[s]}", "required", "zones"));
	json_object_set_new(schema, "$defs",
	                    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "zone", weir_zone_shape(), "match",
	                              weir_match_shape(), "limit", weir_limit_json_shape(), "source", shapes->source,
	                              "format", shapes->format, "gateway", shapes->gateway));
	return schema;
}

static enum weir_status read_all(const struct weir_json *root, struct weir_config *config, struct weir_error *error)
{
	struct weir_json zones = weir_json_member(root, "zones"), exempt = weir_json_member(root, "exempt");
	enum weir_status status = check_sections(root, error);
	if (status != WEIR_OK || (status = read_sources(root, config, error)) != WEIR_OK)
		return status;
	config->gateways = weir_json_member(root, "gateways");
	if ((status = weir_json_list(&config->gateways, 0, GATEWAYS_MAX, &config->gateway_count, error)) != WEIR_OK)
		return status;
	for (size_t i = 0; weir_config_sections[i] != NULL && status == WEIR_OK; i++)
		status = weir_settings_read(root, weir_config_sections[i], config, error);
	/* In a cluster the zones in force are the log's: `weir policy apply` puts them there. */
	if (status == WEIR_OK && (weir_json_exists(&zones) || config->bus.type == WEIR_BUS_LOCAL))
		status = weir_policy_parse(&zones, &exempt, &config->policy, error);
	else if (status == WEIR_OK && weir_json_exists(&exempt))
		status = weir_json_fail(&exempt, error,
		                        "is about the zones beside it, and there are none: in a cluster, give it to the "
		                        "configuration of `weir policy apply`");
	if (status != WEIR_OK || (status = read_listen(root, config, error)) != WEIR_OK ||
	    (status = check_resolver(root, config, error)) != WEIR_OK ||
	    (status = read_api(root, config, error)) != WEIR_OK ||
	    (status = weir_config_check_addresses(root, config, error)) != WEIR_OK ||
	    (status = check_tls(root, "listen", "", &config->listen.tls, error)) != WEIR_OK ||
	    (status = check_tls(root, "archiver", "api_", &config->archiver.api_tls, error)) != WEIR_OK ||
	    (status = check_servers(root, config, error)) != WEIR_OK)
		return status;
	if (config->bus.min_insync > config->bus.replication)
		config->bus.min_insync = config->bus.replication; /* the default of one, beside a configured other */
	if (config->bus.max_linger_ms < config->bus.linger_ms) {
		struct weir_json bus = weir_json_member(root, "bus");
		struct weir_json max_linger = weir_json_member(&bus, "max_linger");
		return weir_json_fail(&max_linger, error, "must not be below \"linger\"");
	}
	config->archiver.keep_ms[WEIR_ARCHIVE_SHADOW] = config->archiver.keep_ms[WEIR_ARCHIVE_DECISIONS];
	fit_to_machine(config);
	return WEIR_OK;
}

static struct weir_config *config_of(struct weir_json_document *document)
{
	struct weir_config *made = weir_alloc(1, sizeof *made);
	made->document = document;
	weir_settings_default(made);
	return made;
}

/* Takes the document, on failure too. */
static enum weir_status read_document(struct weir_json_document *document, struct weir_config **config,
                                      struct weir_error *error)
{
	struct weir_config *made = config_of(document);
	struct weir_json root = weir_json_root(document);
	enum weir_status status = read_all(&root, made, error);
	if (status != WEIR_OK) {
		weir_config_free(made);
		return status;
	}
	*config = made;
	return WEIR_OK;
}

/* One reading of a document that stays. */
static enum weir_status read_again(struct weir_json_document *document, const struct weir_config_check *check,
                                   struct weir_error *error)
{
	struct weir_config *config = config_of(document);
	struct weir_json root = weir_json_root(document);
	enum weir_status status = read_all(&root, config, error);
	if (status == WEIR_OK && check != NULL)
		status = check->check(check->context, config, error);
	config->document = NULL;
	weir_config_free(config);
	return status;
}

/* Zones of which nothing is left hide no mistake of the other sections: others stand in for them. */
static bool stand_in(struct weir_json_document *document)
{
	static const char name[] = "-";
	return weir_json_stand_in(document, "zones",
	                          json_pack("[{s:s, s:[], s:[{s:s, s:i, s:s}]}]", "name", name, "key", "limits",
	                                    "algorithm", "fixed_window", "rate", 1, "window", "1m"),
	                          name);
}

void weir_config_mistakes(const char *path, const struct weir_config_check *check, const struct weir_error *first,
                          void (*tell)(void *context, const char *words), void *context)
{
	struct weir_json_document *document = NULL;
	struct weir_error error;
	size_t told = 0;
	if (path != NULL && weir_json_load(path, &document, &error) == WEIR_OK) {
		bool new_mistake, more = true, stood_in = false;
		while (more && told < MISTAKES_TOLD && read_again(document, check, &error) != WEIR_OK) {
			more = weir_json_read_on(document, &error, &new_mistake);
			if (!more && !stood_in) /* once: what refuses those, too, is no mistake of the zones */
				more = stood_in = stand_in(document);
			if (new_mistake) {
				tell(context, error.text);
				told++;
			}
		}
	}
	if (told == 0) /* it is no document, or has changed since */
		tell(context, first->text);
	weir_json_document_free(document);
}

static void print_mistake(void *context, const char *words)
{
	fprintf(stderr, "%s%s\n", (const char *)context, words);
}

void weir_config_print_mistakes(const char *prefix, const char *path, const struct weir_config_check *check,
                                const struct weir_error *first)
{
	weir_config_mistakes(path, check, first, print_mistake, (char *)(uintptr_t)prefix);
}

enum weir_status weir_config_check_waiting(const struct weir_config *config, struct weir_error *error)
{
	/* As far back as days are looked at; and the day that is not over, and what comes late. */
	static const int64_t day_ms = INT64_C(86400000), patience = 4, around = 2;
	int64_t keep_ms = config->archiver.keep_ms[WEIR_ARCHIVE_DAILY];
	struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
	for (uint32_t i = 0; config->policy != NULL && i < config->policy->zone_count; i++) {
		const struct weir_zone *zone = &config->policy->zones[i];
		struct weir_json at = weir_json_element(&zones, i), mode = weir_json_member(&at, "mode"),
						 terms = weir_json_member(&mode, "shadow_until"), span = weir_json_member(&terms, "for");
		if (!weir_zone_waits(zone))
			continue;
		if (zone->key_count == 0)
			return weir_json_fail(&terms, error, "needs a zone with a key: all requests of this one have the same");
		if (!config->archiver.enabled)
			return weir_json_fail(
				&terms, error,
				"needs \"archiver\": {\"enabled\": true}, whose counts of each day decide; without an "
				"archive, write \"mode\": \"shadow\"");
		if (keep_ms > 0 && keep_ms < patience * zone->arming.span_ms + around * day_ms)
			return weir_json_fail(
				&span, error,
				"is too long for what the archive keeps: four times as many days are looked at, so that "
				"archiver.keep_daily must be at least %lldd, or 0s",
				(long long)(patience * zone->arming.span_ms / day_ms + around));
	}
	return WEIR_OK;
}

bool weir_config_find(const char **path)
{
	const char *named = getenv("WEIR_CONFIG");
	if (*path == NULL && named != NULL && *named != '\0')
		*path = named;
	if (*path == NULL && access(WEIR_CONFIG_USUAL, F_OK) == 0)
		*path = WEIR_CONFIG_USUAL;
	return *path != NULL;
}

enum weir_status weir_config_load(const char *path, struct weir_config **config, struct weir_error *error)
{
	struct weir_json_document *document;
	enum weir_status status = weir_json_load(path, &document, error);
	if (status == WEIR_OK)
		status = read_document(document, config, error);
	if (status == WEIR_OK)
		(*config)->command_words = weir_command_words("--config", path);
	return status;
}

enum weir_status weir_config_parse(const char *name, const char *text, size_t length, struct weir_config **config,
                                   struct weir_error *error)
{
	struct weir_json_document *document;
	enum weir_status status = weir_json_parse_file(name, text, length, &document, error);
	return status != WEIR_OK ? status : read_document(document, config, error);
}
