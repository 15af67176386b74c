/*
 * `weir subscribe`: the command line, and what lives around the loop that keeps
 * a gateway's list (deploy/gateways/subscriber/subscriber.h).
 */
#include "common/base/alloc.h"
#include "common/base/stop.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/bytes/listen_address.h"
#include "common/config/arguments.h"
#include "common/config/config.h"
#include "common/daemon/notify.h"
#include "common/http/http.h"
#include "common/json/units.h"
#include "deploy/gateways/subscriber/subscriber.h"
#include "deploy/gateways/target/kinds/target_kinds.h"
#include "deploy/weir/command.h"
#include "deploy/weir/orders/order_append.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char help[] =
	"weir subscribe: keeps a gateway's list of who is blocked, from the decisions topic\n"
	"\n"
	"usage: weir subscribe --config FILE --to TARGET [OPTION...]\n"
	"\n"
	"  --config FILE     of which the sections bus, redis and log count\n"
	"  --to TARGET       where the list is kept, see below (default: the configuration's redis.url)\n"
	"  --zone NAME       only this zone's decisions; again for more (default: all)\n"
	"  --http HOST:PORT  /metrics, /healthz and /readyz\n"
	"  --interval TIME   at least so long between two changes (0ms; nft 50ms, file 200ms, nginx 1s)\n"
	"  --reload COMMAND  file, nginx-map, nginx-geo: for the shell, after each change\n"
	"  --map FILE        haproxy: the map's file as in its configuration, or that file's name (weir.map)\n"
	"  --max N           blocks kept at most (1M); past it those that end first are left out\n"
	"  --once            write the list once and end\n"
	"\n"
	"targets:\n"
	"  redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]\n"
	"      a key weir:ZONE:KEY for each block: the decision as JSON, gone by itself when the block ends\n"
	"        weir subscribe --config weir.json --to redis://127.0.0.1:6379\n"
	"        redis-cli EXISTS weir:site:203.0.113.9\n"
	"  file:PATH\n"
	"      the decisions of all live blocks as JSON lines; replaced whole\n"
	"        weir subscribe --config weir.json --to file:/var/lib/weir/blocked.jsonl\n"
	"  nginx-map:PATH\n"
	"      the body of an nginx map, from a key to when its block ends (deploy/gateways/nginx.conf)\n"
	"        weir subscribe --config weir.json --to nginx-map:/etc/nginx/weir.map --zone site \\\n"
	"            --reload 'nginx -s reload'\n"
	"  nginx-geo:PATH\n"
	"      the same as the body of an nginx geo, which finds an address in a network: for zones by prefix4, prefix6\n"
	"        weir subscribe --config weir.json --to nginx-geo:/etc/nginx/weir.map --zone site \\\n"
	"            --reload 'nginx -s reload'\n"
	"  haproxy:SOCKET\n"
	"      a map of a running HAProxy, through its socket of level admin (deploy/gateways/haproxy.cfg)\n"
	"        weir subscribe --config weir.json --to haproxy:/run/haproxy/admin.sock --zone site\n"
	"  nft:FAMILY/TABLE/SET[,SET]\n"
	"      a set of nftables with `flags timeout`; a second one where one is for IPv4 and one for IPv6\n"
	"        nft add set inet filter blocked '{ type ipv4_addr; flags timeout; }'\n"
	"        weir subscribe --config weir.json --to nft:inet/filter/blocked --zone site\n"
	"  exec:COMMAND\n"
	"      a line of JSON on its standard input for each change: the decision, or \"action\" lift, end or drop\n"
	"      (left out for room) when a block is over; all live blocks first. Started again when it ends\n"
	"        weir subscribe --config weir.json --to 'exec:while read -r line; do logger \"$line\"; done'\n"
	"\n"
	"KEY is the values of the zone's key, joined by |, with \\ before a | or \\ of their own: for \"key\": [\"ip\"]\n"
	"the address as it stands; with \"prefix6\": 64 an IPv6 client's network, as 2001:db8:0:1::/64, which is also what\n"
	"Redis is to be asked for. Lists of nginx, HAProxy and nft know keys alone: name zones by --zone, or a key is on\n"
	"the list for as long as any zone blocks it. An nginx map does not tell upper from lower case.\n"
	"\n"
	"A list that was lost (its server restarted, reloaded or emptied) is written again; SIGHUP does so at once.\n"
	"exit codes: 0 done; 1 failed; 2 usage or configuration.\n";

#define INTERVAL_MAX_MS INT64_C(3600000)
enum { MAX_MOST = 100000000, ZONES_MAX = 256, ONCE_WAIT_MS = 30000 };

enum option {
	OPTION_CONFIG,
	OPTION_TO,
	OPTION_ZONE,
	OPTION_HTTP,
	OPTION_INTERVAL,
	OPTION_RELOAD,
	OPTION_MAP,
	OPTION_MAX,
	OPTION_ONCE,
};

static const struct weir_argument_option options[] = {
	{"config", true}, {"to", true},  {"zone", true}, {"http", true},  {"interval", true},
	{"reload", true}, {"map", true}, {"max", true},  {"once", false}, {NULL, false}};

struct subscribe {
	const char *config_path, *to, *reload, *map;
	const char *zones[ZONES_MAX];
	size_t zone_count;
	char *http_host;
	uint16_t http_port;
	int64_t interval_ms; /* -1: the target's own */
	uint32_t max;
	bool once;

	struct weir_config *config;
	struct weir_log log;
	struct target *target;
	struct weir_bus *bus;
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

/* @return false: it was refused in words */
static bool take_option(struct subscribe *subscribe, const struct weir_arguments *arguments, int option,
                        const char *value)
{
	uint64_t number;
	switch ((enum option)option) {
	case OPTION_CONFIG: subscribe->config_path = value; return true;
	case OPTION_TO: subscribe->to = value; return true;
	case OPTION_RELOAD: subscribe->reload = value; return true;
	case OPTION_MAP: subscribe->map = value; return true;
	case OPTION_ONCE: subscribe->once = true; return true;
	case OPTION_ZONE:
		if (is_zone_name(value) && subscribe->zone_count < ZONES_MAX) {
			subscribe->zones[subscribe->zone_count++] = value;
			return true;
		}
		weir_arguments_refuse(arguments, "--zone takes a zone's name, at most %d times, not \"%s\"", ZONES_MAX, value);
		return false;
	case OPTION_HTTP:
		free(subscribe->http_host);
		subscribe->http_host = NULL;
		if (weir_listen_address(value, &subscribe->http_host, &subscribe->http_port))
			return true;
		weir_arguments_refuse(arguments, "--http takes HOST:PORT, such as 127.0.0.1:9465, not \"%s\"", value);
		return false;
	case OPTION_INTERVAL:
		if (weir_parse_duration(value, &subscribe->interval_ms) && subscribe->interval_ms >= 0 &&
		    subscribe->interval_ms <= INTERVAL_MAX_MS)
			return true;
		weir_arguments_refuse(arguments, "--interval takes a time up to 1h, such as 500ms, not \"%s\"", value);
		return false;
	case OPTION_MAX:
		if (weir_arguments_count(value, &number) && number >= 1 && number <= MAX_MOST) {
			subscribe->max = (uint32_t)number;
			return true;
		}
		weir_arguments_refuse(arguments, "--max takes a number from 1 to 100M, not \"%s\"", value);
		return false;
	}
	return false;
}

/* @return WEIR_EXIT_NOT_YET: go on; else the exit code */
static enum weir_exit read_arguments(struct subscribe *subscribe, int argc, char **argv)
{
	struct weir_arguments arguments = {.command = "weir subscribe", .options = options, .argc = argc, .argv = argv};
	const char *value;
	int option;
	while ((option = weir_arguments_next(&arguments, &value)) != WEIR_ARGUMENTS_END) {
		if (option == WEIR_ARGUMENTS_HELP) {
			fputs(help, stdout);
			return WEIR_EXIT_DONE;
		}
		if (option == WEIR_ARGUMENTS_WORD)
			weir_arguments_refuse(&arguments, "\"%s\" is no option; a target stands behind --to", value);
		if (option < 0 || !take_option(subscribe, &arguments, option, value))
			return WEIR_EXIT_USAGE;
	}
	if (subscribe->config_path == NULL) {
		weir_arguments_refuse(&arguments, "--config FILE is needed: it says where the bus is");
		return WEIR_EXIT_USAGE;
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- opening, in order ---- */

static enum weir_status read_config(struct subscribe *subscribe, struct weir_error *error)
{
	enum weir_status status = weir_config_load(subscribe->config_path, &subscribe->config, error);
	if (status != WEIR_OK)
		return status;
	const struct weir_config *config = subscribe->config;
	subscribe->log = (struct weir_log){
		.fd = STDERR_FILENO, .level = (enum weir_log_level)config->log.level, .json = config->log.json != 0};
	struct weir_json root = weir_json_root(config->document);
	struct weir_json bus = weir_json_member(&root, "bus");
	struct weir_json type = weir_json_member(&bus, "type");
	if (config->bus.type != WEIR_BUS_KAFKA)
		return weir_json_fail(&type, error,
		                      "weir subscribe needs \"kafka\"; `weir run` writes its decisions to a file by itself");
	if (subscribe->to == NULL)
		subscribe->to = config->redis.url;
	if (subscribe->to == NULL)
		return weir_fail(error, WEIR_INVALID, "--to TARGET is needed, or redis.url in %s", subscribe->config_path);
	return WEIR_OK;
}

/* A zone that nothing is said of empties the list. Where the zones are not in the configuration nobody knows. */
static void look_at_zones(const struct subscribe *subscribe)
{
	struct weir_error words;
	for (size_t i = 0; subscribe->config->policy != NULL && i < subscribe->zone_count; i++)
		if (order_zone(subscribe->config->policy, subscribe->zones[i], &words) == NULL)
			weir_log(&subscribe->log, WEIR_LOG_WARNING, "subscribe", "--zone: %s", words.text);
}

static enum weir_status open_target(struct subscribe *subscribe, struct weir_error *error)
{
	struct target_options target = {.zones = subscribe->zones,
	                                .zone_count = subscribe->zone_count,
	                                .partitions = (uint32_t)subscribe->config->bus.partitions,
	                                .reload = subscribe->reload,
	                                .map = subscribe->map,
	                                .log = &subscribe->log,
	                                .stop = weir_stop_flag()};
	return target_open(subscribe->to, &target, &subscribe->target, error);
}

static void make_subscriber(struct subscribe *subscribe)
{
	struct subscriber_options subscriber = {
		.partitions = (uint32_t)subscribe->config->bus.partitions,
		.target = subscribe->target,
		.zones = subscribe->zones,
		.zone_count = subscribe->zone_count,
		.max = subscribe->max,
		.interval_ms = subscribe->interval_ms >= 0 ? subscribe->interval_ms : subscribe->target->ops->interval_ms,
		.once = subscribe->once,
		.once_wait_ms = ONCE_WAIT_MS,
		.log = &subscribe->log,
		.stop = weir_stop_flag()};
	subscribe->subscriber = subscriber_new(&subscriber);
}

static enum weir_status open_bus(struct subscribe *subscribe, struct weir_error *error)
{
	return weir_bus_kafka_open_topic(subscribe->config, "weir-subscribe", WEIR_TOPIC_DECISIONS, true,
	                                 subscribe->once ? ONCE_WAIT_MS : INT64_MAX / 2, weir_stop_flag(), &subscribe->log,
	                                 &subscribe->bus, error);
}

/* ---- pages ---- */

static void show_metrics(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct subscribe *subscribe = context;
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	subscriber_metrics(subscribe->subscriber, &reply->body);
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
	reply->status = subscriber_ready(subscribe->subscriber, &reply->body) ? 200 : 503;
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
	struct weir_http_options http = {
		.host = subscribe->http_host, .port = subscribe->http_port, .paths = paths, .path_count = 3};
	return weir_http_start(&http, &subscribe->http, error);
}

/* ---- */

static enum weir_status close_all(struct subscribe *subscribe, struct weir_error *error)
{
	weir_http_stop(subscribe->http);
	subscriber_free(subscribe->subscriber);
	enum weir_status status = WEIR_OK;
	if (subscribe->target != NULL)
		status = subscribe->target->ops->close(subscribe->target, error);
	if (subscribe->bus != NULL)
		subscribe->bus->ops->close(subscribe->bus);
	weir_config_free(subscribe->config);
	free(subscribe->http_host);
	return status;
}

enum weir_exit command_subscribe(int argc, char **argv)
{
	struct subscribe subscribe = {.interval_ms = -1, .max = BLOCK_TABLE_MAX_DEFAULT};
	struct weir_error error = {.text = ""}, trouble;
	enum weir_exit code = read_arguments(&subscribe, argc, argv);
	if (code != WEIR_EXIT_NOT_YET) {
		free(subscribe.http_host);
		return code;
	}
	weir_stop_install();
	enum weir_status status = read_config(&subscribe, &error);
	if (status == WEIR_OK)
		status = open_target(&subscribe, &error);
	bool usage = status != WEIR_OK;
	if (status == WEIR_OK)
		look_at_zones(&subscribe);
	if (status == WEIR_OK)
		make_subscriber(&subscribe);
	/* It is well while it waits for the bus, and says that it does. */
	if (status == WEIR_OK)
		status = start_pages(&subscribe, &error);
	if (status == WEIR_OK)
		status = open_bus(&subscribe, &error);
	if (status == WEIR_OK)
		status = subscriber_run(subscribe.subscriber, subscribe.bus, &error);
	weir_notify("STOPPING=1");
	bool stopped = *weir_stop_flag();
	if (close_all(&subscribe, &trouble) != WEIR_OK && status == WEIR_OK && !stopped) {
		status = WEIR_IO;
		error = trouble;
	}
	if (status == WEIR_OK || (stopped && status == WEIR_IO))
		return WEIR_EXIT_DONE;
	if (subscribe.log.json)
		weir_log(&subscribe.log, WEIR_LOG_ERROR, "subscribe", "%s", error.text);
	else
		fprintf(stderr, "weir subscribe: %s\n", error.text);
	return usage ? WEIR_EXIT_USAGE : WEIR_EXIT_FAILED;
}
