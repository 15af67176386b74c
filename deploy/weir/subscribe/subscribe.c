/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir subscribe`: the command line, and what lives around the loop that keeps
 * a gateway's list (deploy/gateways/subscriber/subscriber.h).
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/read_file.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/bus/local/bus_local_view.h"
#include "common/bytes/listen_address.h"
#include "common/cluster/policy_log.h"
#include "common/config/arguments.h"
#include "common/config/config.h"
#include "common/daemon/certificate_metrics.h"
#include "common/daemon/daemon.h"
#include "common/daemon/heartbeat.h"
#include "common/daemon/notify.h"
#include "common/daemon/process_metrics.h"
#include "common/http/http.h"
#include "common/json/units.h"
#include "deploy/gateways/gateway/gateways.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/backend/written_files.h"
#include "deploy/weir/command.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ZONES_MAX = 256, ONCE_WAIT_MS = 30000, LOOK_MS = 100 };
enum { LEAVE_MS = 15000 }; /* for the bus, once the list is closed */

enum option {
	OPTION_CONFIG,
	OPTION_STATE,
	OPTION_TO,
	OPTION_TO_FILE,
	OPTION_ZONE,
	OPTION_HTTP,
	OPTION_INTERVAL,
	OPTION_RELOAD,
	OPTION_MAP,
	OPTION_MAX,
	OPTION_ONCE,
	OPTION_COUNT,
};

static const struct weir_argument_option options[] = {
	[OPTION_CONFIG] = {.name = "config",
                       .value = "FILE",
                       .type = WEIR_ARGUMENT_TEXT,
                       .help = "a configuration; only its sections bus, redis and log are used"},
	[OPTION_STATE] = {.name = "state",
                      .value = "DIR",
                      .type = WEIR_ARGUMENT_TEXT,
                      .help = "the state directory of a `weir run`, whose log is read; it may be running, or not yet "
                              "(default on one machine: the usual one)"},
	[OPTION_TO] = {.name = "to",
                   .value = "TARGET",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "where the list is kept, see below (default: redis.url of the configuration)"},
	[OPTION_TO_FILE] = {.name = "to-file",
                        .value = "FILE",
                        .type = WEIR_ARGUMENT_TEXT,
                        .help = "a file whose first line is that: for a target with a password or a token, which the "
                                "command line would show to everybody on this machine"},
	[OPTION_ZONE] = {.name = "zone",
                     .value = "NAME",
                     .type = WEIR_ARGUMENT_TEXT,
                     .help = "only this zone's decisions (default: all)",
                     .repeatable = true,
                     .expected = "a zone's name, at most 256 times"},
	[OPTION_HTTP] = {.name = "http",
                     .value = "HOST:PORT",
                     .type = WEIR_ARGUMENT_TEXT,
                     .help = "serve /metrics, /healthz and /readyz here",
                     .expected = "HOST:PORT, such as 127.0.0.1:9465"},
	[OPTION_INTERVAL] =
		{.name = "interval",
         .value = "TIME",
         .type = WEIR_ARGUMENT_DURATION,
         .help = "wait at least this long between two changes (default 0ms; nft 50ms, file 200ms, nginx 1s)",
         .most = GATEWAY_INTERVAL_MOST_MS},
	[OPTION_RELOAD] = {.name = "reload",
                       .value = "COMMAND",
                       .type = WEIR_ARGUMENT_TEXT,
                       .help = "file, nginx-map, nginx-geo: a shell command to run after each change"},
	[OPTION_MAP] =
		{.name = "map",
         .value = "FILE",
         .type = WEIR_ARGUMENT_TEXT,
         .help = "haproxy: the map's file, written as in its configuration or as a bare file name (default weir.map)"},
	[OPTION_MAX] = {.name = "max",
                    .value = "N",
                    .type = WEIR_ARGUMENT_NUMBER,
                    .help = "keep at most N blocks (default 1M); past that, those that end first are left out",
                    .least = 1,
                    .most = GATEWAY_BLOCKS_MOST},
	[OPTION_ONCE] = {.name = "once", .type = WEIR_ARGUMENT_FLAG, .help = "write the list once and exit"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"Targets", "redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]\n"
                "    a key weir:ZONE:KEY for each block; its value is the decision as JSON, and\n"
                "    it expires when the block ends. rediss:// is the same by TLS; ?ca=FILE at\n"
                "    its end names the certificates to trust\n"
                "file:PATH\n"
                "    the decisions of all live blocks as JSON lines; the file is replaced whole\n"
                "nginx-geo:PATH\n"
                "    the body of an nginx geo, from an address or a network to the time at\n"
                "    which its block ends: for zones that count by one address, also by\n"
                "    prefix4 or prefix6 (deploy/gateways/nginx.conf)\n"
                "nginx-map:PATH\n"
                "    the same as the body of an nginx map: for other keys, without networks\n"
                "haproxy:SOCKET\n"
                "    a map of a running HAProxy, through its socket with level admin\n"
                "    (deploy/gateways/haproxy.cfg)\n"
                "nft:FAMILY/TABLE/SET[,SET]\n"
                "    a set of nftables with `flags timeout`; two sets if one is for IPv4 and\n"
                "    the other for IPv6\n"
                "ipset:SET[,SET]\n"
                "    a set of ipset, hash:ip or hash:net with `timeout 0`\n"
                "cloudflare-list:FILE, aws-waf-ipset:FILE\n"
                "    a list of addresses at a provider; FILE says which, and the credentials\n"
                "webhook:https://HOST/PATH, webhook:FILE\n"
                "    changes as JSON to a server, or words to a chat or a mailbox; FILE holds\n"
                "    the address and its secrets (deploy/gateways/README.md)\n"
                "exec:COMMAND\n"
                "    each change as a line of JSON on its standard input: a decision, or when a\n"
                "    block is over \"action\" lift, end or drop (left out by --max). All live\n"
                "    blocks come first. It is restarted when it exits\n"},
	{"Keys", "KEY is the values of the zone's key, joined by |, with \\ before a | or \\ of their own. For "
             "\"key\": [\"ip\"] it is the address itself. With \"prefix6\": 64 it is an IPv6 client's network, "
             "such as 2001:db8:0:1::/64; ask Redis for that network too.\n"
             "\n"
             "Lists of nginx, HAProxy and nft hold keys alone. Name the zones with --zone, or a key stays on "
             "the list for as long as any zone blocks it. An nginx map does not tell upper case from lower case.\n"
             "\n"
             "A lost list is written again: after its server was restarted, reloaded or emptied. SIGHUP writes "
             "it again at once.\n"},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "stopped by a signal, or --once is done"},
	{WEIR_EXIT_FAILED, "a server or the target failed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir subscribe",
	.summary = "keep a gateway's list of who is blocked: Redis, nginx, HAProxy, nft",
	.usage = "weir subscribe [--config FILE] --to TARGET | --to-file FILE [OPTION...]\n"
			 "weir subscribe --state DIR --to TARGET [OPTION...]",
	.about = "Keeps a gateway's list of who is blocked, from the decisions topic of a cluster, or from the log of a "
			 "`weir run` on this machine.",
	.operand = {.hint = "give the target with --to TARGET"},
	.options = options,
	.sections = sections,
	.examples = "weir subscribe --config weir.json --to redis://127.0.0.1:6379\n"
				"redis-cli EXISTS weir:site:203.0.113.9\n"
				"weir subscribe --config weir.json --to-file /etc/weir/redis.target\n"
				"weir subscribe --state /var/lib/weir --to redis://127.0.0.1:6379\n"
				"weir subscribe --config weir.json --to file:/var/lib/weir/blocked.jsonl\n"
				"weir subscribe --config weir.json --to nginx-geo:/etc/nginx/weir.map \\\n"
				"    --zone site --reload 'nginx -s reload'\n"
				"weir subscribe --config weir.json --to nginx-map:/etc/nginx/users.map \\\n"
				"    --zone users --reload 'nginx -s reload'\n"
				"weir subscribe --config weir.json --to haproxy:/run/haproxy/weir.sock \\\n"
				"    --zone site\n"
				"nft add set inet filter blocked '{ type ipv4_addr; flags timeout; }'\n"
				"weir subscribe --config weir.json --to nft:inet/filter/blocked --zone site\n"
				"weir subscribe --config weir.json --to 'exec:logger -t weir'",
	.exits = exits,
};

struct subscribe {
	const char *config_path, *state_path;
	const char *to_file;
	char *to; /* owned: what was read */
	struct gateway_settings gateway;
	const char *zones[ZONES_MAX]; /* the gateway's */
	char *http_host;
	uint16_t http_port;
	bool once, announced;
	double start_s; /* of the process: Unix time */

	struct weir_config *config;                                  /* NULL: there is only a state directory */
	char state[WEIR_PATH_BYTES], log_directory[WEIR_PATH_BYTES]; /* of one machine; "": a cluster's */
	uint32_t partitions;
	struct weir_log log;
	struct target *target;
	_Atomic(struct weir_bus *) bus;     /* NULL until it is open; the pages look at it meanwhile */
	_Atomic(struct weir_bus *) opening; /* the same, before the topic is there; NULL: a local one, or not begun */
	struct subscriber *subscriber;
	struct weir_http *http;
};

/* ---- the command line ---- */

static bool is_zone_name(const char *name)
{
	size_t length = strlen(name);
	return length > 0 && length <= WEIR_ZONE_NAME_MAX_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == length;
}

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct subscribe *subscribe = context;
	switch (option) {
	case OPTION_CONFIG: subscribe->config_path = value->text; break;
	case OPTION_STATE: subscribe->state_path = value->text; break;
	case OPTION_TO: subscribe->gateway.to = value->text; break;
	case OPTION_TO_FILE: subscribe->to_file = value->text; break;
	case OPTION_RELOAD: subscribe->gateway.reload = value->text; break;
	case OPTION_MAP: subscribe->gateway.map = value->text; break;
	case OPTION_ONCE: subscribe->once = true; break;
	case OPTION_INTERVAL: subscribe->gateway.interval_ms = (int64_t)value->number; break;
	case OPTION_MAX: subscribe->gateway.max = (int64_t)value->number; break;
	case OPTION_ZONE:
		if (!is_zone_name(value->text) || subscribe->gateway.zone_count == ZONES_MAX)
			return weir_arguments_refuse_value(&line, OPTION_ZONE, value->text);
		subscribe->zones[subscribe->gateway.zone_count++] = value->text;
		break;
	case OPTION_HTTP:
		free(subscribe->http_host);
		subscribe->http_host = NULL;
		if (!weir_listen_address(value->text, &subscribe->http_host, &subscribe->http_port))
			return weir_arguments_refuse_value(&line, OPTION_HTTP, value->text);
		break;
	default: break;
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- opening, in order ---- */

/* The log of one machine: in the directory that is named, else where `weir run` keeps it. */
static enum weir_status find_log(struct subscribe *subscribe, struct weir_error *error)
{
	enum weir_status status = subscribe->state_path != NULL
	                              ? weir_path_format(subscribe->state, error, "%s", subscribe->state_path)
	                              : state_directory_default(subscribe->state, error);
	return status == WEIR_OK ? weir_path_format(subscribe->log_directory, error, "%s/log", subscribe->state) : status;
}

/* Whether a target holds what opens it: an account's password, or an address that is one. */
static bool has_secret(const char *to)
{
	static const char webhook[] = "webhook:";
	const char *host = strstr(to, "://"), *account = host != NULL ? strrchr(host, '@') : NULL;
	if (strncmp(to, webhook, sizeof webhook - 1) == 0)
		return host != NULL;
	return strncmp(to, "redis", 5) == 0 && account != NULL &&
	       memchr(host + 3, ':', (size_t)(account - host - 3)) != NULL;
}

/* --to, --to-file, or redis.url: one of them. */
static enum weir_status find_target(struct subscribe *subscribe, struct weir_error *error)
{
	const struct weir_config *config = subscribe->config;
	enum weir_status status = WEIR_OK;
	if (subscribe->gateway.to != NULL && subscribe->to_file != NULL)
		return weir_fail(error, WEIR_INVALID, "--to and --to-file: give one of them");
	if (subscribe->gateway.to != NULL && has_secret(subscribe->gateway.to))
		weir_log(&subscribe->log, WEIR_LOG_WARNING, "subscribe",
		         "--to: everybody on this machine can see the secret in this command line: write the target into a "
		         "file that only this user can read, and give --to-file FILE");
	if (subscribe->gateway.to != NULL)
		return WEIR_OK;
	if (subscribe->to_file != NULL)
		status = weir_read_first_line(subscribe->to_file, &subscribe->to, error);
	else if (config != NULL)
		status = weir_json_secret(&config->redis.url, &subscribe->to, error);
	subscribe->gateway.to = subscribe->to;
	if (status == WEIR_OK && subscribe->to_file != NULL && subscribe->to[0] == '\0')
		return weir_fail(error, WEIR_INVALID, "%s: its first line must be a target, as --to takes it",
		                 subscribe->to_file);
	if (status != WEIR_OK || subscribe->to != NULL)
		return status;
	return weir_fail(error, WEIR_INVALID, "missing --to TARGET%s%s", config != NULL ? ", or redis.url in " : "",
	                 config != NULL ? subscribe->config_path : "");
}

/* A certificate that cannot serve is the configuration's fault, which another start does not change. */
static enum weir_status check_pages(const struct subscribe *subscribe, struct weir_error *error)
{
	struct weir_text doubts = {0};
	if (subscribe->http_host == NULL || subscribe->config == NULL)
		return WEIR_OK;
	const struct weir_http_tls tls = weir_daemon_tls(subscribe->config);
	enum weir_status status = weir_http_tls_check(&tls, &doubts, error);
	weir_text_deinit(&doubts); /* the server says them when it starts */
	return status;
}

static enum weir_status read_config(struct subscribe *subscribe, struct weir_error *error)
{
	subscribe->log = (struct weir_log){.fd = STDERR_FILENO, .level = WEIR_LOG_INFO};
	enum weir_status status = WEIR_OK;
	if (subscribe->config_path != NULL)
		status = weir_config_load(subscribe->config_path, &subscribe->config, error);
	if (status != WEIR_OK)
		return status;
	const struct weir_config *config = subscribe->config;
	if (config != NULL) {
		subscribe->log.level = (enum weir_log_level)config->log.level;
		subscribe->log.json = config->log.json != 0;
		subscribe->partitions = (uint32_t)config->bus.partitions;
	}
	if (config != NULL && config->bus.type == WEIR_BUS_KAFKA && subscribe->state_path != NULL)
		return weir_fail(error, WEIR_INVALID, "--state is for one machine, and %s is a cluster's configuration",
		                 subscribe->config_path);
	if ((status = check_pages(subscribe, error)) != WEIR_OK || (status = find_target(subscribe, error)) != WEIR_OK)
		return status;
	return config == NULL || config->bus.type == WEIR_BUS_LOCAL ? find_log(subscribe, error) : WEIR_OK;
}

/* A `weir run` that was never started has no log yet. */
static enum weir_status open_local(struct subscribe *subscribe, struct weir_error *error)
{
	struct weir_fault fault = {0};
	enum weir_status status;
	int64_t end_ms = weir_monotonic_ms() + (subscribe->once ? ONCE_WAIT_MS : INT64_MAX / 2);
	struct weir_bus *bus = NULL;
	while ((status = weir_bus_local_view(subscribe->log_directory, &bus, error)) == WEIR_AGAIN) {
		weir_fault_raise(&fault, &subscribe->log, "bus", "%s; waiting for weir run", error->text);
		if (*weir_stop_flag() || weir_monotonic_ms() >= end_ms)
			return weir_fail(error, WEIR_IO, "there is no log in %s", subscribe->log_directory);
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
	}
	weir_fault_clear(&fault, &subscribe->log, "bus");
	if (status != WEIR_OK || bus == NULL)
		return status;
	atomic_store(&subscribe->bus, bus);
	if (subscribe->partitions != 0 && bus->partitions != subscribe->partitions)
		return weir_fail(error, WEIR_INVALID, "%s has %u partitions, and bus.partitions is %u",
		                 subscribe->log_directory, bus->partitions, subscribe->partitions);
	subscribe->partitions = bus->partitions;
	return WEIR_OK;
}

/* Without a configuration only the log knows how many partitions it has, so it comes first. */
static enum weir_status find_partitions(struct subscribe *subscribe, struct weir_error *error)
{
	return subscribe->partitions == 0 ? open_local(subscribe, error) : WEIR_OK;
}

/*
 * Without a configuration the state knows the zones: those of its newest policy, if it has one yet and can be read. A list
 * that is written once would stay empty for good; for one that is kept a later policy may have the zone.
 */
static enum weir_status check_zones(const struct subscribe *subscribe, struct weir_error *error)
{
	struct state_directory state = {0};
	struct weir_policy_history history;
	struct weir_error words;
	enum weir_status status = WEIR_OK;
	bool run_once;
	uint64_t seed;
	if (subscribe->config != NULL || subscribe->gateway.zone_count == 0)
		return WEIR_OK;
	if (state_directory_open_read_only(&state, subscribe->state, &run_once, &seed, &words) == WEIR_OK &&
	    weir_policy_history_load(state.store, &history, &words) == WEIR_OK) {
		for (size_t i = 0; history.count > 0 && status == WEIR_OK && i < subscribe->gateway.zone_count; i++) {
			const struct weir_policy *newest = history.policies[history.count - 1];
			if (weir_policy_find_zone(newest, weir_span_of(subscribe->zones[i]), &words) != NULL)
				continue;
			if (subscribe->once)
				status = weir_fail(error, WEIR_INVALID, "--zone: %s", words.text);
			else
				weir_log(&subscribe->log, WEIR_LOG_WARNING, "subscribe", "--zone: %s", words.text);
		}
		weir_policy_history_deinit(&history);
	}
	state_directory_close(&state);
	return status;
}

/* A zone that nothing is said of empties the list. Where the zones are not in the configuration nobody knows. */
static void inspect_zones(const struct subscribe *subscribe)
{
	struct weir_error words;
	const struct weir_policy *policy = subscribe->config != NULL ? subscribe->config->policy : NULL;
	for (size_t i = 0; policy != NULL && i < subscribe->gateway.zone_count; i++)
		if (weir_policy_find_zone(policy, weir_span_of(subscribe->zones[i]), &words) == NULL)
			weir_log(&subscribe->log, WEIR_LOG_WARNING, "subscribe", "--zone: %s", words.text);
	if (policy != NULL)
		gateway_tell_misses(&subscribe->gateway, policy, &subscribe->log);
}

/* A list that is a file takes the place of whatever is there. */
static enum weir_status check_written(const struct subscribe *subscribe, struct weir_error *error)
{
	const struct weir_config *config = subscribe->config;
	struct written_files files = {0};
	struct weir_text lists = {0};
	if (subscribe->target->ops->lists != NULL)
		subscribe->target->ops->lists(subscribe->target, &lists);
	written_files_add_lists(&files, subscribe->to_file != NULL ? "--to-file" : "--to", &lists);
	enum weir_status status = written_files_check_read(&files, subscribe->to_file, error);
	if (status == WEIR_OK && config != NULL)
		status = written_files_check_config(&files, config, subscribe->config_path, error);
	if (status == WEIR_OK && subscribe->state[0] != '\0')
		status = written_files_check_state(&files, subscribe->state, error);
	if (config != NULL && config->bus.type == WEIR_BUS_LOCAL) {
		written_files_add(&files, "decisions.path", config->decisions.path);
		written_files_add(&files, "decisions.shadow_path", config->decisions.shadow_path);
		written_files_add(&files, "deadletter.path", config->deadletter.path);
	}
	if (status == WEIR_OK)
		status = written_files_check(&files, error);
	written_files_deinit(&files);
	weir_text_deinit(&lists);
	return status;
}

/* For how many partitions there is room: a topic is read whole, and may have more than are configured. */
static uint32_t slots(const struct subscribe *subscribe)
{
	return subscribe->log_directory[0] == '\0' ? WEIR_BUS_PARTITIONS_MAX : subscribe->partitions;
}

static enum weir_status open_target(struct subscribe *subscribe, struct weir_error *error)
{
	enum weir_status status = gateway_open(&subscribe->gateway, slots(subscribe), &subscribe->log, weir_stop_flag(),
	                                       &subscribe->target, error);
	return status == WEIR_OK ? check_written(subscribe, error) : status;
}

/* SIGHUP. */
static bool take_rewrite(void *context)
{
	(void)context;
	return weir_stop_take_reload();
}

static void tell_up_to_date(void *context)
{
	struct subscribe *subscribe = context;
	if (!subscribe->announced)
		weir_notify("READY=1\nSTATUS=keeping the list up to date");
	subscribe->announced = true;
}

static void make_subscriber(struct subscribe *subscribe)
{
	struct subscriber_options how = gateway_subscriber(&subscribe->gateway, slots(subscribe), subscribe->target);
	how.once = subscribe->once;
	how.once_wait_ms = ONCE_WAIT_MS;
	how.take_rewrite = take_rewrite;
	how.up_to_date = tell_up_to_date;
	how.context = subscribe;
	how.log = &subscribe->log;
	how.stop = weir_stop_flag();
	subscribe->subscriber = subscriber_new(&how);
}

static enum weir_status open_bus(struct subscribe *subscribe, struct weir_error *error)
{
	if (subscribe->bus != NULL)
		return WEIR_OK;
	if (subscribe->log_directory[0] != '\0')
		return open_local(subscribe, error);
	struct weir_bus *bus;
	enum weir_status status = weir_bus_kafka_open_topic(
		subscribe->config, "weir-subscribe", WEIR_TOPIC_DECISIONS, &subscribe->opening,
		subscribe->once ? ONCE_WAIT_MS : INT64_MAX / 2, weir_stop_flag(), &subscribe->log, &bus, error);
	if (status == WEIR_OK)
		atomic_store(&subscribe->bus, bus);
	return status;
}

/* ---- pages ---- */

static void show_metrics(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct subscribe *subscribe = context;
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	char *name = gateway_name(subscribe->gateway.to);
	const struct subscriber_row row = {subscribe->subscriber, weir_span_of(name)};
	subscriber_metrics(&row, 1, &reply->body);
	if (subscribe->log_directory[0] == '\0')
		weir_bus_kafka_metrics(atomic_load(&subscribe->opening), subscribe->partitions, &reply->body);
	weir_process_metrics("subscribe", subscribe->start_s, &reply->body);
	weir_http_metrics(request, &reply->body);
	weir_certificate_metrics(subscribe->config, subscribe->gateway.to, &reply->body);
	free(name);
}

static void show_health(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)context;
	(void)request;
	weir_text_puts(&reply->body, "ok\n"); /* whoever cannot go on ends */
}

static void show_readiness(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct subscribe *subscribe = context;
	struct weir_bus *opening = atomic_load(&subscribe->opening);
	reply->status = subscriber_ready(subscribe->subscriber, &reply->body) ? 200 : 503;
	if (opening != NULL && atomic_load(&subscribe->bus) == NULL)
		weir_bus_kafka_awaits(opening, &reply->body);
	if (reply->status == 200)
		weir_text_puts(&reply->body, "ok\n");
}

static enum weir_status start_pages(struct subscribe *subscribe, struct weir_error *error)
{
	if (subscribe->http_host == NULL)
		return WEIR_OK;
	const struct weir_http_path paths[] = {
		{"/metrics", show_metrics, subscribe},
		{"/healthz", show_health, subscribe},
		{"/readyz", show_readiness, subscribe},
	};
	struct weir_http_options http = {.host = subscribe->http_host,
	                                 .port = subscribe->http_port,
	                                 .paths = paths,
	                                 .path_count = 3,
	                                 .log = &subscribe->log};
	if (subscribe->config != NULL)
		http.tls = weir_daemon_tls(subscribe->config);
	return weir_http_start(&http, &subscribe->http, error);
}

/* ---- */

/* @param well  it was asked to end, and nothing is the matter */
static enum weir_status close_all(struct subscribe *subscribe, bool well, struct weir_error *error)
{
	weir_http_stop(subscribe->http);
	subscriber_free(subscribe->subscriber);
	enum weir_status status = WEIR_OK;
	if (subscribe->target != NULL)
		status = subscribe->target->ops->close(subscribe->target, error);
	if (well)
		weir_stop_within(LEAVE_MS, WEIR_EXIT_DONE);
	struct weir_bus *bus = atomic_load(&subscribe->bus), *opening = atomic_load(&subscribe->opening);
	if (bus == NULL)
		bus = opening;
	if (bus != NULL)
		bus->ops->close(bus);
	weir_config_free(subscribe->config);
	free(subscribe->to);
	free(subscribe->http_host);
	return status;
}

static enum weir_status follow_topic(struct subscribe *subscribe, struct weir_error *error)
{
	struct weir_heartbeat *heartbeat = weir_heartbeat_start(&subscribe->log, NULL, NULL);
	enum weir_status status = open_bus(subscribe, error);
	if (status == WEIR_OK)
		status = subscriber_run(subscribe->subscriber, subscribe->bus, error);
	weir_heartbeat_stop(heartbeat);
	return status;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct subscribe subscribe = {.gateway = {.interval_ms = -1, .max = BLOCK_TABLE_MAX_DEFAULT},
	                              .start_s = weir_process_start_s()};
	subscribe.gateway.zones = subscribe.zones;
	struct weir_error error = {.text = ""}, failure;
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, &subscribe);
	if (code == WEIR_EXIT_NOT_YET && subscribe.state_path == NULL && !weir_config_find(&subscribe.config_path))
		code = weir_arguments_refuse(&line, WEIR_CONFIG_MISSING ", or name a directory with --state");
	if (code != WEIR_EXIT_NOT_YET) {
		free(subscribe.http_host);
		return code;
	}
	weir_stop_install();
	enum weir_status status = read_config(&subscribe, &error);
	bool usage = status != WEIR_OK;
	if (status == WEIR_OK)
		status = find_partitions(&subscribe, &error);
	if (status == WEIR_OK)
		status = check_zones(&subscribe, &error);
	if (status == WEIR_OK)
		status = open_target(&subscribe, &error);
	usage = usage || status == WEIR_INVALID;
	if (status == WEIR_OK)
		inspect_zones(&subscribe);
	if (status == WEIR_OK)
		make_subscriber(&subscribe);
	/* It is well while it waits for the bus, and says that it does. */
	if (status == WEIR_OK)
		status = start_pages(&subscribe, &error);
	if (status == WEIR_OK)
		status = follow_topic(&subscribe, &error);
	weir_notify("STOPPING=1");
	bool stopped = *weir_stop_flag();
	bool well = stopped && (status == WEIR_OK || status == WEIR_IO);
	if (close_all(&subscribe, well, &failure) != WEIR_OK && status == WEIR_OK && !stopped) {
		status = WEIR_IO;
		error = failure;
	}
	if (status == WEIR_OK || well)
		return WEIR_EXIT_DONE;
	if (subscribe.log.json)
		weir_log(&subscribe.log, WEIR_LOG_ERROR, "subscribe", "%s", error.text);
	else
		fprintf(stderr, "weir subscribe: %s\n", error.text);
	return usage ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
}

const struct command command_subscribe = {&line, command_main};
