/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings as a table: name, kind, where it goes, default, bounds, meaning. What
 * is in the table is read, checked, defaulted, suggested and documented; a
 * setting that is not in it does not exist.
 */
#include "common/config/config_settings.h"

#include "common/base/alloc.h"
#include "common/json/json_shape.h"
#include "common/json/units.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum setting_kind { NUMBER, TIME, SIZE, FLAG, WORD, TEXT, SECRET, SECRETS, OBJECT };

enum { SECRETS_MAX = 64 };

struct setting {
	const char *section, *name;
	enum setting_kind kind;
	size_t offset;        /* in struct weir_config: int64_t, bool, int or char *, by kind */
	const char *fallback; /* as a configuration would write it; NULL: none, and the words say what then */
	int64_t least, most;
	const char *const *words;
	const char *without; /* what holds where there is no fallback */
	const char *meaning;
};

#define AT(member) offsetof(struct weir_config, member)
#define KIB INT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)
#define TIB (GIB * 1024)
#define HOUR_MS INT64_C(3600000)
#define DAY_MS (24 * HOUR_MS)

const char *const weir_config_sections[] = {"bus",    "store",  "redis", "collector", "limiter",    "archiver",
                                            "listen", "checks", "log",   "decisions", "deadletter", NULL};

static const char *const bus_types[] = {"local", "kafka", NULL};
static const char *const store_types[] = {"sqlite", "mysql", NULL};
static const char *const unavailable[] = {"error", "allow", "deny", NULL};
static const char *const rate_limit_fields[] = {"draft-8", "x-ratelimit", "off", NULL};
static const char *const log_levels[] = {"debug", "info", "warning", "error", NULL};
static const char *const log_formats[] = {"text", "json", NULL};

static const struct setting settings[] = {
	{"bus", "type", WORD, AT(bus.type), "local", 0, 0, bus_types, NULL,
     "the log that connects the roles: on this machine's disk, or in Kafka topics"},
	{"bus", "partitions", NUMBER, AT(bus.partitions), "16", 1, WEIR_PARTITIONS_MAX, NULL, NULL,
     "partitions that keys are divided into; cannot change once there is state"},
	{"bus", "linger", TIME, AT(bus.linger_ms), "2ms", 0, 1000, NULL, NULL,
     "how long an event waits for others to share its frame"},
	{"bus", "max_linger", TIME, AT(bus.max_linger_ms), "10ms", 0, 10000, NULL, NULL,
     "the longest such wait, while acknowledgements are slow"},
	{"bus", "sync_delay", TIME, AT(bus.sync_delay_ms), "5ms", 0, 100, NULL, NULL,
     "least time from one fsync of the local log to the next, while messages are gathered; the first after a quiet "
     "moment, durable checks and each MiB do not wait"},
	{"bus", "segment_size", SIZE, AT(bus.segment_bytes), "64MiB", 64 * KIB, GIB, NULL, NULL,
     "size at which the local log starts a new file"},
	{"bus", "retention_size", SIZE, AT(bus.retention_bytes), "1GiB", MIB, 1024 * TIB, NULL, NULL,
     "how much of a topic without readers is kept"},
	{"bus", "explain_size", SIZE, AT(bus.explain_bytes), "256MiB", 0, 1024 * TIB, NULL, NULL,
     "how much of the local log of events stays after it was judged, for `weir explain`; it has keys, also forgotten "
     "ones, until so much newer came: to drop them, set it to 0 and restart"},
	{"bus", "brokers", TEXT, AT(bus.brokers), NULL, 0, 0, NULL, "needed for kafka",
     "Kafka's bootstrap brokers: `HOST:PORT`, separated by commas"},
	{"bus", "prefix", TEXT, AT(bus.prefix), "weir", 0, 0, NULL, NULL,
     "prefix of topic and consumer group names: `weir.events`. The store remembers it: two clusters need two prefixes and two "
     "databases"},
	{"bus", "replication", NUMBER, AT(bus.replication), "3", 1, 100, NULL, NULL,
     "replicas of the topics that weir creates"},
	{"bus", "min_insync", NUMBER, AT(bus.min_insync), "2", 1, 100, NULL, NULL,
     "replicas that must have a message before it is acknowledged; at most `replication`"},
	{"bus", "retention", TIME, AT(bus.retention_ms), "7d", HOUR_MS, 3660 * DAY_MS, NULL, NULL,
     "how long the topics that weir creates keep messages"},
	{"bus", "kafka", OBJECT, AT(bus.kafka), NULL, 0, 0, NULL, "none",
     "librdkafka properties by their own names; a value can be `{\"file\": …}` or `{\"env\": …}`"},
	{"store", "type", WORD, AT(store.type), "sqlite", 0, 0, store_types, NULL,
     "where checkpoints are kept: a file in the state directory, or a MySQL or MariaDB server"},
	{"store", "host", TEXT, AT(store.host), "127.0.0.1", 0, 0, NULL, NULL, "the server's host"},
	{"store", "port", NUMBER, AT(store.port), "3306", 1, 65535, NULL, NULL, "the server's port"},
	{"store", "socket", TEXT, AT(store.socket), NULL, 0, 0, NULL, "host and port", "the server's socket file"},
	{"store", "user", TEXT, AT(store.user), "weir", 0, 0, NULL, NULL, "the user on the server"},
	{"store", "password", SECRET, AT(store.password), NULL, 0, 0, NULL, "none",
     "that user's password: text, `{\"file\": …}` or `{\"env\": …}`"},
	{"store", "database", TEXT, AT(store.database), "weir", 0, 0, NULL, NULL,
     "the database; created if it is missing and the user may create it"},
	{"store", "tls_ca", TEXT, AT(store.tls_ca), NULL, 0, 0, NULL, "TLS is not requested",
     "file of the certificate authority that must have issued the server's certificate"},
	{"redis", "url", SECRET, AT(redis.url), NULL, 0, 0, NULL, "none",
     "`redis://[:PASSWORD@]HOST:PORT[/DATABASE]`, by TLS `rediss://…[?ca=FILE[&certificate=FILE&key=FILE]]`, where `weir subscribe` writes without `--to`"},
	{"collector", "max_skew", TIME, AT(collector.max_skew_ms), "5s", 0, 366 * DAY_MS, NULL, NULL,
     "an event whose time is further ahead of the clock gets the clock's time"},
	{"collector", "line_max", SIZE, AT(collector.line_max_bytes), "256KiB", KIB, MIB, NULL, NULL,
     "a longer line is cut there; it counts if its time and client stand before that, else it is malformed"},
	{"collector", "list_interval", TIME, AT(collector.list_interval_ms), "1h", 60000, 30 * DAY_MS, NULL, NULL,
     "how often a list of `exempt` that another server has is fetched"},
	{"collector", "resolver", TEXT, AT(collector.resolver), NULL, 0, 0, NULL, "the system's",
     "`IPv4:PORT` of the name server that is asked for the hosts of `verified` robots"},
	{"limiter", "threads", NUMBER, AT(limiter.threads), NULL, 1, WEIR_PARTITIONS_MAX, NULL, "number of processors",
     "worker threads; each owns some of the partitions"},
	{"limiter", "memory", SIZE, AT(limiter.memory_bytes), NULL, 16 * MIB, 1024 * TIB, NULL,
     "half of the machine's memory, or of the least limit of its systemd unit or container",
     "ceiling for buckets in memory; the least used ones move to the store, all but 8 to 36 bytes each, and to a file "
     "beside it of at most 16 times as much"},
	{"limiter", "checkpoint_interval", TIME, AT(limiter.checkpoint_interval_ms), "10s", 10, HOUR_MS, NULL, NULL,
     "longest time between checkpoints"},
	{"limiter", "lateness", TIME, AT(limiter.lateness_ms), "10m", 0, 366 * DAY_MS, NULL, NULL,
     "how long an idle bucket is kept after its limits no longer need it"},
	{"archiver", "enabled", FLAG, AT(archiver.enabled), "false", 0, 0, NULL, NULL,
     "write judged frames for an archiver; `weir run` then archives too"},
	{"archiver", "interval", TIME, AT(archiver.interval_ms), "5s", 100, 3600000, NULL, NULL,
     "shortest time between two writes to the store"},
	{"archiver", "memory", SIZE, AT(archiver.memory_bytes), "256MiB", 1 << 20, INT64_C(1) << 40, NULL, NULL,
     "ceiling for rows that are not stored yet; when it is half full, they are stored early"},
	{"archiver", "threads", NUMBER, AT(archiver.threads), NULL, 1, 64, NULL, "number of processors, up to 4",
     "writer threads of `weir-archiver`, each with a connection to the store"},
	{"archiver", "keep_hourly", TIME, AT(archiver.keep_ms[WEIR_ARCHIVE_HOURLY]), "0s", 0, 36600 * DAY_MS, NULL, NULL,
     "how long hourly counts are kept; `0s`: forever"},
	{"archiver", "keep_daily", TIME, AT(archiver.keep_ms[WEIR_ARCHIVE_DAILY]), "0s", 0, 36600 * DAY_MS, NULL, NULL,
     "how long daily counts are kept; `0s`: forever"},
	{"archiver", "keep_totals", TIME, AT(archiver.keep_ms[WEIR_ARCHIVE_TOTALS]), "0s", 0, 36600 * DAY_MS, NULL, NULL,
     "how long each zone's hourly totals are kept; `0s`: forever"},
	{"archiver", "keep_decisions", TIME, AT(archiver.keep_ms[WEIR_ARCHIVE_DECISIONS]), "0s", 0, 36600 * DAY_MS, NULL,
     NULL, "how long decisions are kept, those of zones in shadow mode too; `0s`: forever"},
	{"archiver", "keep_history", TIME, AT(archiver.keep_ms[WEIR_ARCHIVE_EVENTS]), "0s", 0, 36600 * DAY_MS, NULL, NULL,
     "how long events of zones with `history` are kept; `0s`: forever"},
	{"archiver", "hash_keys", TEXT, AT(archiver.hash_keys), NULL, 0, 0, NULL, "keys are stored in clear",
     "file with a secret of 16 bytes or more: the archive stores a hash instead of each key"},
	{"archiver", "api", TEXT, AT(archiver.api), NULL, 0, 0, NULL, "off",
     "`HOST:PORT` of the HTTP API for analysts, such as `127.0.0.1:8642`"},
	{"archiver", "tokens", SECRETS, AT(archiver.tokens), NULL, 0, 0, NULL, "none: the API listens on loopback only",
     "tokens that open the API: a list of strings, `{\"file\": …}` or `{\"env\": …}`"},
	{"archiver", "api_rate", NUMBER, AT(archiver.api_rate), "50", 0, 1000000, NULL, NULL,
     "average requests per second for each client (token and address); 0: no limit"},
	{"archiver", "api_workers", NUMBER, AT(archiver.api_workers), "4", 1, 64, NULL, NULL,
     "threads that answer API requests, each with a connection to the store"},
	{"archiver", "api_certificate", TEXT, AT(archiver.api_tls.certificate), NULL, 0, 0, NULL, "plain HTTP",
     "file of the API's certificate, followed by those that issued it, in PEM form: the API then speaks TLS. Changed "
     "files are read again"},
	{"archiver", "api_key", TEXT, AT(archiver.api_tls.key), NULL, 0, 0, NULL, "needed with a certificate",
     "file of that certificate's private key, in PEM form, without a passphrase"},
	{"archiver", "api_client_ca", TEXT, AT(archiver.api_tls.client_ca), NULL, 0, 0, NULL, "clients show no certificate",
     "file of the certificate authority that must have issued a client's certificate"},
	{"listen", "http", TEXT, AT(listen.http), NULL, 0, 0, NULL, "off",
     "`HOST:PORT` for `/metrics`, `/healthz` and `/readyz`, such as `127.0.0.1:9464`"},
	{"listen", "certificate", TEXT, AT(listen.tls.certificate), NULL, 0, 0, NULL, "plain HTTP",
     "as `archiver.api_certificate`, for these pages; `weir subscribe --http` takes it, too"},
	{"listen", "key", TEXT, AT(listen.tls.key), NULL, 0, 0, NULL, "needed with a certificate", "as `archiver.api_key`"},
	{"listen", "client_ca", TEXT, AT(listen.tls.client_ca), NULL, 0, 0, NULL, "clients show no certificate",
     "as `archiver.api_client_ca`; with `checks.tls`, limiters show each other `listen.certificate`, which it must have issued, too"},
	{"listen", "resp", TEXT, AT(listen.resp), NULL, 0, 0, NULL, "off",
     "`HOST:PORT` for [checks](../limiter/checks.md) by Redis' protocol, such as `127.0.0.1:6390`: `weir run` and "
     "`weir-limiter`"},
	{"listen", "grpc", TEXT, AT(listen.grpc), NULL, 0, 0, NULL, "off",
     "`HOST:PORT` for [checks](../limiter/checks.md#grpc) by gRPC, as Envoy asks, such as `127.0.0.1:8081`: `weir run` and "
     "`weir-limiter`"},
	{"listen", "check_http", TEXT, AT(listen.check_http), NULL, 0, 0, NULL, "off",
     "`HOST:PORT` for [checks](../limiter/checks.md#http) by HTTP, as nginx, Envoy, Caddy and Traefik ask, and by JSON, such "
     "as `127.0.0.1:8082`: `weir run` and `weir-limiter`"},
	{"checks", "on_unavailable", WORD, AT(checks.on_unavailable), "error", 0, 0, unavailable, NULL,
     "what a check gets that cannot be judged now: an error, or as if it had passed or were blocked; nothing is counted"},
	{"checks", "rate_limit_fields", WORD, AT(checks.fields), "draft-8", 0, 0, rate_limit_fields, NULL,
     "what an answer by HTTP or gRPC has for the gateway's client: `RateLimit` and `RateLimit-Policy` of the draft since its version "
     "8, `X-RateLimit-Limit`, `-Remaining` and `-Reset`, or nothing"},
	{"checks", "durable", FLAG, AT(checks.durable), "false", 0, 0, NULL, NULL,
     "answer after the log has acknowledged the check: then not even a crash lets more pass than the limit"},
	{"checks", "advertise", TEXT, AT(checks.advertise), NULL, 0, 0, NULL,
     "where `listen.resp` listens; of every address, the machine's name",
     "`HOST:PORT` by which clients and other limiters reach `listen.resp`: `weir-limiter` publishes it in the store with each "
     "partition that it takes"},
	{"checks", "redirect", FLAG, AT(checks.redirect), "false", 0, 0, NULL, NULL,
     "answer a check of another limiter's partition with MOVED, which cluster clients follow, rather than forward it there"},
	{"checks", "in_flight", NUMBER, AT(checks.in_flight), "65536", 64, 1 << 20, NULL, NULL,
     "checks of a partition that were answered and have not come back from the log, at most; more wait for up to 50 ms and are "
     "unavailable then"},
	{"checks", "connections", NUMBER, AT(checks.connections), "10000", 1, 1000000, NULL, NULL,
     "connections that a worker thread takes at most"},
	{"checks", "password", SECRET, AT(checks.password), NULL, 0, 0, NULL, "none: checks are taken on loopback only",
     "what clients must give: by RESP to AUTH or HELLO, as user `default`, by HTTP and gRPC as `authorization: Bearer PASSWORD`: text, `{\"file\": …}` or `{\"env\": …}`"},
	{"checks", "users", OBJECT, AT(checks.users), NULL, 0, 0, NULL, "none",
     "further users of `listen.resp` by their names: `{\"shop\": {\"password\": {\"env\": \"SHOP\"}, \"zones\": [\"api\"]}}`; without "
     "`zones` a user may ask in all"},
	{"checks", "tls", FLAG, AT(checks.tls), "false", 0, 0, NULL, NULL,
     "speak TLS on `listen.resp`, `listen.grpc` and `listen.check_http`, with `listen.certificate`; limiters then ask each other by TLS, too"},
	{"checks", "ca", TEXT, AT(checks.ca), NULL, 0, 0, NULL, "the system's",
     "file of the certificate authority that must have issued the other limiters' certificates, where `tls` is set"},
	{"checks", "client_ip", OBJECT, AT(checks.client_ip), NULL, 0, 0, NULL,
     "`X-Forwarded-For`, behind this machine's addresses",
     "the header that names the client of a request by HTTP, and the proxies that it passed: as "
     "[`client_ip`](../collector/formats.md#fields-that-mean-the-same-in-every-format) of a format"},
	{"log", "level", WORD, AT(log.level), "info", 0, 0, log_levels, NULL, "lowest level to log"},
	{"log", "format", WORD, AT(log.json), "text", 0, 0, log_formats, NULL, "plain text, or one JSON object per line"},
	{"decisions", "path", TEXT, AT(decisions.path), "-", 0, 0, NULL, NULL,
     "file for decisions; `-` is standard output"},
	{"decisions", "shadow_path", TEXT, AT(decisions.shadow_path), NULL, 0, 0, NULL, "not written",
     "file for decisions of zones in shadow mode"},
	{"decisions", "rotate_size", SIZE, AT(decisions.rotate_bytes), "0", 0, 1024 * TIB, NULL, NULL,
     "size at which the file is rotated; 0: never"},
	{"decisions", "keep", NUMBER, AT(decisions.keep), "10", 1, 1000, NULL, NULL, "rotated files to keep"},
	{"deadletter", "path", TEXT, AT(deadletter.path), NULL, 0, 0, NULL, "in the state directory",
     "file for lines that could not be used"},
	{"deadletter", "max_size", SIZE, AT(deadletter.max_bytes), "64MiB", 0, 1024 * TIB, NULL, NULL,
     "ceiling for that file if it is not rotated, and for the dead letters that a collector sends to "
     "the topic per day; further lines are only counted"},
	{"deadletter", "rotate_size", SIZE, AT(deadletter.rotate_bytes), "0", 0, 1024 * TIB, NULL, NULL,
     "size at which the file is rotated; 0: never"},
	{"deadletter", "rate", NUMBER, AT(deadletter.rate_per_second), "100", 0, 1000000, NULL, NULL,
     "lines per second to keep; others are only counted. 0: no limit"},
	{"deadletter", "keep", NUMBER, AT(deadletter.keep), "1", 1, 1000, NULL, NULL, "rotated files to keep"},
};

enum { SETTING_COUNT = sizeof settings / sizeof *settings };

static void *place_of(const struct setting *setting, struct weir_config *config)
{
	return (char *)config + setting->offset;
}

static int find_word(const char *const *words, const char *word)
{
	int index = 0;
	while (strcmp(words[index], word) != 0)
		index++;
	return index;
}

void weir_settings_default(struct weir_config *config)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *setting = &settings[i];
		void *place = place_of(setting, config);
		if (setting->fallback == NULL)
			continue;
		bool known = true;
		switch (setting->kind) {
		case NUMBER: *(int64_t *)place = strtoll(setting->fallback, NULL, 10); break;
		case TIME: known = weir_parse_duration(setting->fallback, place); break;
		case SIZE: known = weir_parse_size(setting->fallback, place); break;
		case FLAG: *(bool *)place = strcmp(setting->fallback, "true") == 0; break;
		case WORD: *(int *)place = find_word(setting->words, setting->fallback); break;
		case TEXT: *(char **)place = weir_copy(setting->fallback, strlen(setting->fallback)); break;
		case SECRET:
		case SECRETS:
		case OBJECT: break;
		}
		assert(known);
		(void)known;
	}
}

static enum weir_status read_text(const struct weir_json *at, char **place, struct weir_error *error)
{
	const char *text = NULL;
	enum weir_status status = weir_json_string(at, &text, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	if (*text == '\0')
		return weir_json_fail(at, error, "must not be empty; remove it");
	free(*place);
	*place = weir_copy(text, strlen(text));
	return WEIR_OK;
}

static enum weir_status read_secret(const struct weir_json *at, struct weir_json *secret, struct weir_error *error)
{
	*secret = *at;
	return weir_json_check_secret(at, error);
}

static enum weir_status read_secrets(const struct weir_json *at, struct weir_secret_list *secrets,
                                     struct weir_error *error)
{
	secrets->at = *at;
	enum weir_status status = weir_json_list(at, 0, SECRETS_MAX, &secrets->count, error);
	for (size_t i = 0; i < secrets->count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(at, i);
		status = weir_json_check_secret(&element, error);
	}
	return status;
}

static enum weir_status read_setting(const struct setting *setting, const struct weir_json *at,
                                     struct weir_config *config, struct weir_error *error)
{
	void *place = place_of(setting, config);
	switch (setting->kind) {
	case NUMBER: return weir_json_int(at, setting->least, setting->most, place, error);
	case TIME: return weir_json_duration(at, setting->least, setting->most, place, error);
	case SIZE: return weir_json_size(at, setting->least, setting->most, place, error);
	case FLAG: return weir_json_bool(at, place, error);
	case WORD: return weir_json_word(at, setting->words, place, error);
	case TEXT: return read_text(at, place, error);
	case SECRET: return read_secret(at, place, error);
	case SECRETS: return read_secrets(at, place, error);
	case OBJECT:
		if (weir_json_exists(at) && !json_is_object(at->value))
			return weir_json_fail(at, error, "must be an object");
		*(struct weir_json *)place = *at;
		return WEIR_OK;
	}
	abort();
}

enum weir_status weir_settings_read(const struct weir_json *root, const char *section, struct weir_config *config,
                                    struct weir_error *error)
{
	struct weir_json object = weir_json_member(root, section);
	if (!weir_json_exists(&object))
		return WEIR_OK;
	const char *names[SETTING_COUNT + 1];
	size_t count = 0;
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (strcmp(settings[i].section, section) == 0)
			names[count++] = settings[i].name;
	names[count] = NULL;
	enum weir_status status = weir_json_only(&object, names, error);
	for (size_t i = 0; i < SETTING_COUNT && status == WEIR_OK; i++) {
		if (strcmp(settings[i].section, section) != 0)
			continue;
		struct weir_json at = weir_json_member(&object, settings[i].name);
		status = read_setting(&settings[i], &at, config, error);
	}
	return status;
}

void weir_settings_free(struct weir_config *config)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (settings[i].kind == TEXT)
			free(*(char **)place_of(&settings[i], config));
}

/* "number, 1 to 1024" */
static void describe_kind(struct weir_text *text, const struct setting *setting)
{
	static const char *const kinds[] = {"number", "time",   "size",    "true or false", NULL,
	                                    "text",   "secret", "secrets", "object"};
	char least[24], most[24];
	switch (setting->kind) {
	case NUMBER:
		weir_text_printf(text, "number, %lld to %lld", (long long)setting->least, (long long)setting->most);
		break;
	case TIME:
		weir_text_printf(text, "time, %s to %s", weir_format_duration(setting->least, least, sizeof least),
		                 weir_format_duration(setting->most, most, sizeof most));
		break;
	case SIZE:
		weir_text_printf(text, "size, %s to %s", weir_format_size(setting->least, least, sizeof least),
		                 weir_format_size(setting->most, most, sizeof most));
		break;
	case WORD:
		for (size_t i = 0; setting->words[i] != NULL; i++)
			weir_text_printf(text, "%s`\"%s\"`", i > 0 ? ", " : "", setting->words[i]);
		break;
	default: weir_text_puts(text, kinds[setting->kind]);
	}
}

/* As a configuration would write it. */
static json_t *default_of(const struct setting *setting)
{
	if (setting->kind == NUMBER)
		return json_integer(strtoll(setting->fallback, NULL, 10));
	if (setting->kind == FLAG)
		return json_boolean(strcmp(setting->fallback, "true") == 0);
	return json_string(setting->fallback);
}

static json_t *setting_shape(const struct setting *setting)
{
	switch (setting->kind) {
	case NUMBER: return weir_shape_number(setting->least, setting->most);
	case TIME: return weir_shape_time();
	case SIZE: return weir_shape_size(setting->least, setting->most);
	case FLAG: return weir_shape_flag();
	case WORD: return weir_shape_words(setting->words);
	case TEXT: return weir_shape_name(0);
	case SECRET: return weir_shape_secret();
	case SECRETS: return weir_shape_list(0, SECRETS_MAX, weir_shape_secret());
	case OBJECT: return json_pack("{s:s}", "type", "object"); /* its reader looks at it where the rest asks for it */
	}
	abort();
}

json_t *weir_settings_shape(const char *section)
{
	static const struct weir_json_rule none[] = {{.name = NULL}};
	json_t *shape = weir_shape_object(none), *members = json_object_get(shape, "properties");
	for (const struct setting *setting = settings; setting < settings + SETTING_COUNT; setting++) {
		if (strcmp(setting->section, section) != 0)
			continue;
		json_t *member = weir_shape_explained(setting_shape(setting), setting->meaning);
		json_object_set_new(member, "default", setting->fallback == NULL ? NULL : default_of(setting));
		json_object_set_new(members, setting->name, member);
	}
	return shape;
}

void weir_config_describe(struct weir_text *text)
{
	weir_text_puts(text, "| setting | kind | default | meaning |\n|---|---|---|---|\n");
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const struct setting *setting = &settings[i];
		weir_text_printf(text, "| `%s.%s` | ", setting->section, setting->name);
		describe_kind(text, setting);
		if (setting->fallback == NULL)
			weir_text_printf(text, " | %s", setting->without);
		else
			weir_text_printf(text, " | `%s`", setting->fallback);
		weir_text_printf(text, " | %s |\n", setting->meaning);
	}
}
