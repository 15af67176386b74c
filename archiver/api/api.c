/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API as a whole: authentication, rate limits, routing and the form of replies.
 *
 * A request is admitted (token, rate), its parameters are read by the route's
 * own list, and the resource answers from the worker's store. All errors have
 * the same form.
 */
#include "archiver/api/api.h"

#include "archiver/api/api_accept.h"
#include "archiver/api/api_listing.h"
#include "archiver/api/api_rate.h"
#include "archiver/api/api_resources.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"
#include "common/bytes/secret.h"
#include "common/cluster/kept_note.h"

#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>

enum {
	CONNECTIONS_MAX = 12000,
	DESCRIPTORS_LEFT = 128, /* for all else that the process has open */
	REQUEST_BYTES = 32 * 1024,
	WAITING_MAX = 256,
};

struct route {
	const char *path;
	api_answer *answer;
	unsigned parameters;
	int64_t limit_max, csv_limit_max;
	bool csv, open, store; /* gives CSV; needs no token; asks a store */
	bool without;          /* answers what it can where the store fails: then call->store is NULL */
};

#define ZONE API_BIT(API_ZONE)
#define KEY (API_BIT(API_KEY) | API_BIT(API_BUCKET))
#define RANGE (API_BIT(API_FROM) | API_BIT(API_TO))
#define PAGE (API_BIT(API_LIMIT) | API_BIT(API_AFTER))
#define FORMAT API_BIT(API_FORMAT)

static const struct route routes[] = {
	{"/api/v1/zones", api_zones_answer, 0, .store = true},
	{"/api/v1/counts", api_counts_answer, ZONE | KEY | RANGE | API_BIT(API_GRAIN) | FORMAT, .csv = true, .store = true},
	{"/api/v1/top", api_top_answer,
     ZONE | RANGE | API_BIT(API_DAY) | API_BIT(API_GRAIN) | API_BIT(API_BY) | API_BIT(API_LIMIT) | FORMAT, API_PAGE_MAX,
     API_TOP_CSV_ROWS_MAX, .csv = true, .store = true},
	{"/api/v1/decisions", api_decisions_answer,
     ZONE | KEY | API_BIT(API_ACTION) | API_BIT(API_MODE) | RANGE | PAGE | FORMAT, API_PAGE_MAX, API_CSV_ROWS_MAX,
     .csv = true, .store = true},
	{"/api/v1/blocks", api_blocks_answer, ZONE | API_BIT(API_LIMIT), API_PAGE_MAX, .store = true},
	{"/api/v1/events", api_events_answer, ZONE | KEY | RANGE | PAGE | FORMAT, API_PAGE_MAX, API_CSV_ROWS_MAX,
     .csv = true, .store = true},
	{"/api/v1/held", api_held_answer, ZONE | KEY | RANGE, .store = true},
	{"/api/v1/why", api_why_answer, API_BIT(API_ID), .csv = false},
	{"/api/v1/status", api_status_answer, 0, .store = true, .without = true},
	{"/api/v1/openapi.json", api_openapi_answer, 0, .open = true},
};

enum { ROUTE_COUNT = sizeof routes / sizeof *routes };

struct route_use {
	struct api *api;
	const struct route *route;
};

struct api {
	struct api_options options;
	struct weir_secrets tokens;
	struct weir_http *http;
	struct api_zones *zones;
	struct api_rate *rate;
	uint64_t seed;              /* so that nobody can aim clients at one place of the table */
	struct weir_store **stores; /* one a worker, which alone touches its own; NULL: not open */
	pthread_mutex_t mutex;
	struct weir_fault fault; /* with the store */
	struct route_use uses[ROUTE_COUNT];
};

struct api_zones *api_zones_of(struct api *api)
{
	return api->zones;
}

bool api_hashes_keys(const struct api *api)
{
	return api->options.hash != NULL;
}

bool api_is_open(const struct api *api)
{
	return api->tokens.count == 0;
}

void api_figures(struct api *api, struct weir_json_writer *json)
{
	if (api->options.figures == NULL)
		return;
	struct weir_text members = {0};
	weir_text_puts(&members, "{");
	api->options.figures(api->options.figures_context, &members);
	weir_text_puts(&members, "}");
	weir_json_write_object(json, "figures");
	weir_json_write_members(json, (struct weir_span){.at = members.at, .length = (uint32_t)members.length});
	weir_json_write_end(json);
	weir_text_deinit(&members);
}

void api_troubles(struct api *api, struct weir_json_writer *json)
{
	if (api->options.troubles == NULL)
		return;
	struct weir_text lines = {0};
	api->options.troubles(api->options.troubles_context, &lines);
	weir_json_write_array(json, "troubles");
	for (size_t begin = 0, end = 0; end < lines.length; end++)
		if (lines.at[end] == '\n') {
			weir_json_write_string(json, NULL,
			                       (struct weir_span){.at = lines.at + begin, .length = (uint32_t)(end - begin)});
			begin = end + 1;
		}
	weir_json_write_end(json);
	weir_text_deinit(&lines);
}

int64_t api_kept_from(const struct api_call *call, enum weir_archive_table table, int64_t grain_ms)
{
	const struct weir_config *config = call->api->options.config; /* a command that asks for itself has none */
	int64_t keep_ms = config != NULL ? config->archiver.keep_ms[table] : 0;
	int64_t from_ms = keep_ms > 0 ? weir_wall_ms() - keep_ms : 0;
	struct weir_kept_note note;
	struct weir_error ignored; /* of a store that fails: what is asked next says it */
	if (weir_kept_note_get(call->store, &note, &ignored) == WEIR_OK && note.from_ms[table] > from_ms)
		from_ms = note.from_ms[table];
	return from_ms > 0 ? weir_begin_of(from_ms + grain_ms - 1, grain_ms) : API_ALL_KEPT;
}

void api_write_kept_from(struct weir_json_writer *json, int64_t kept_from_ms)
{
	if (kept_from_ms == API_ALL_KEPT)
		weir_json_write_null(json, "kept_from_ms");
	else
		weir_json_write_int(json, "kept_from_ms", kept_from_ms);
}

const char *api_store_name(const struct api *api)
{
	return api->options.config->store.type == WEIR_STORE_MYSQL ? "mysql" : "sqlite";
}

enum weir_status api_why(struct api *api, const char *id, struct weir_text *json, struct weir_error *error)
{
	return api->options.why != NULL ? api->options.why(api->options.why_context, id, json, error) : WEIR_END;
}

/* ---- the store ---- */

enum weir_status api_store(struct api *api, unsigned worker, struct weir_store **store, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (api->stores[worker] == NULL)
		status = api->options.open_store(api->options.context, &api->stores[worker], error);
	*store = status == WEIR_OK ? api->stores[worker] : NULL;
	return status;
}

void api_store_leave(struct api *api, unsigned worker)
{
	if (!api->options.momentary || api->stores[worker] == NULL)
		return;
	api->stores[worker]->ops->close(api->stores[worker]);
	api->stores[worker] = NULL;
}

bool api_store_failed(struct api *api, struct api_fault *fault, const struct weir_error *error)
{
	pthread_mutex_lock(&api->mutex);
	weir_fault_raise(
		&api->fault, api->options.log, "api",
		"the page and the API answer 503 where they need the store; verdicts and the archive do not depend on "
		"them. Asked again with each request. The store: %s",
		error->text);
	pthread_mutex_unlock(&api->mutex);
	return api_fault_set(fault, 503, NULL,
	                     "the store is down or too slow: retry, or ask for a shorter time range or a single zone");
}

static void store_worked(struct api *api)
{
	pthread_mutex_lock(&api->mutex);
	weir_fault_over(&api->fault, api->options.log, "api", "the store answers");
	pthread_mutex_unlock(&api->mutex);
}

/* ---- who asks ---- */

/* Which of the tokens was given, from 1; 0: none of them. */
static size_t find_token(const struct weir_secrets *tokens, const char *field)
{
	size_t found = 0;
	if (field == NULL || strncasecmp(field, "Bearer ", 7) != 0)
		return 0;
	field += 7 + strspn(field + 7, " ");
	for (size_t i = 0; i < tokens->count; i++)
		if (weir_secret_is(weir_span_of(tokens->at[i]), weir_span_of(field)))
			found = i + 1;
	return found;
}

/* An IPv6 host has a whole /64 to choose from. */
static uint64_t client_of(const struct api_call *call, size_t token)
{
	struct weir_span address = weir_http_peer(call->request);
	uint64_t words[3] = {call->api->seed, token, 0};
	if (address.length > 0)
		memcpy(&words[2], address.at, address.length < 8 ? address.length : 8);
	if (address.length == 16 && words[2] == 0) /* of IPv4 */
		memcpy(&words[2], address.at + 8, 8);
	return weir_hash64(words, sizeof words);
}

/*
 * Whether a browser that was led here by the name of some other site is ruled out: its page would be of that site, and
 * could read the answer, once the name has this machine's address. An address is nobody's name.
 */
static bool is_asked_by_address(const char *host)
{
	static const char local[] = "localhost";
	struct weir_address address;
	size_t length = host != NULL ? strcspn(host, ":") : 0;
	return host == NULL || (length == sizeof local - 1 && strncasecmp(host, local, length) == 0) ||
	       weir_address_read(weir_span_of(host), &address);
}

static bool admit(struct api_call *call, const struct route *route)
{
	const struct weir_secrets *tokens = &call->api->tokens;
	const char *field = weir_http_field(call->request, "Authorization");
	size_t token = find_token(tokens, field);
	unsigned wait_s = 1;
	if (!api_rate_take(call->api->rate, client_of(call, token), weir_monotonic_ms() * 1000, &wait_s)) {
		weir_http_header(call->reply, "Retry-After", "%u", wait_s);
		return api_fault_set(&call->fault, 429, NULL, "too many requests: expected at most %lld per second",
		                     (long long)call->api->options.config->archiver.api_rate);
	}
	if (tokens->count == 0 && !is_asked_by_address(weir_http_host(call->request)))
		return api_fault_set(
			&call->fault, 421, "Host",
			"expected an address or localhost, as there are no tokens: set archiver.tokens to be asked "
			"by a name");
	if (route->open || tokens->count == 0 || token > 0)
		return true;
	weir_http_header(call->reply, "WWW-Authenticate", "Bearer");
	return api_fault_set(&call->fault, 401, "Authorization", "%s: expected \"Authorization: Bearer TOKEN\"",
	                     field == NULL ? "missing" : "wrong");
}

/* ---- what is asked for ---- */

struct reading {
	struct api_call *call;
	const struct route *route;
	int64_t limit_max; /* of the format that is asked for */
	bool good;
};

static bool read_parameter(void *context, struct weir_span name, struct weir_span value)
{
	struct reading *reading = context;
	const struct route *route = reading->route;
	reading->good = api_parameter_read(&reading->call->parameters, route->parameters, reading->limit_max, name, value,
	                                   &reading->call->fault);
	return reading->good;
}

/* Of the format alone, wherever it stands: what is wrong is found when all are read. @param context  api_parameters */
static bool read_format(void *context, struct weir_span name, struct weir_span value)
{
	struct api_fault ignored;
	if (weir_span_equal(name, weir_span_of(api_parameter_name(API_FORMAT))))
		(void)api_parameter_read(context, API_BIT(API_FORMAT), 0, name, value, &ignored);
	return true;
}

/* What the client takes, by its field. */
static enum api_accepted accepted(const struct api_call *call, const struct route *route)
{
	return api_accepted(weir_http_field(call->request, "Accept"), route->csv);
}

/* How many rows may be asked for. */
static int64_t limit_of(const struct api_call *call, const struct route *route)
{
	struct api_parameters asked;
	api_parameters_init(&asked);
	weir_http_each_query(call->request, read_format, &asked);
	bool given = (asked.given & API_BIT(API_FORMAT)) != 0;
	bool csv = route->csv && (given ? asked.format != API_JSON : accepted(call, route) == API_ACCEPTED_CSV);
	return csv ? route->csv_limit_max : route->limit_max;
}

/* A parameter says more than the field. */
static bool choose_format(struct api_call *call, const struct route *route)
{
	if ((call->parameters.given & API_BIT(API_FORMAT)) != 0) {
		call->csv = call->parameters.format != API_JSON;
		return true;
	}
	enum api_accepted taken = accepted(call, route);
	call->csv = taken == API_ACCEPTED_CSV;
	return taken != API_ACCEPTED_NOTHING ||
	       api_fault_set(&call->fault, 406, "Accept", "expected application/json%s", route->csv ? " or text/csv" : "");
}

/* What no parameter shows by itself. */
static bool check_parameters(struct api_call *call, const struct route *route)
{
	bool zone_needed =
		(route->parameters & ZONE) != 0 && route->answer != api_decisions_answer && route->answer != api_blocks_answer;
	const struct api_parameters *asked = &call->parameters;
	if (zone_needed && (asked->given & ZONE) == 0)
		return api_fault_set(&call->fault, 400, "zone", "missing: expected a zone name");
	return (asked->given & RANGE) != RANGE || asked->from_ms < asked->to_ms ||
	       api_fault_set(&call->fault, 400, "from", "expected a time before \"to\"");
}

static bool read_request(struct api_call *call, const struct route *route)
{
	struct reading reading = {.call = call, .route = route, .limit_max = limit_of(call, route), .good = true};
	api_parameters_init(&call->parameters);
	weir_http_each_query(call->request, read_parameter, &reading);
	return reading.good && choose_format(call, route) && check_parameters(call, route);
}

/* What was kept has a key, or its hash, as "bucket" gives it. */
static void find_bucket(struct api_call *call)
{
	bool stored = (call->parameters.given & API_BIT(API_BUCKET)) != 0;
	if ((call->parameters.given & API_BIT(API_KEY)) != 0)
		call->bucket = weir_key_hash(stored ? NULL : call->api->options.hash, call->parameters.key, call->digits);
}

static bool find_zone(struct api_call *call)
{
	struct weir_error error;
	if ((call->parameters.given & ZONE) == 0)
		return true;
	switch (api_zones_find(call->api->zones, call->store, call->parameters.zone, &call->zone, &error)) {
	case WEIR_OK: return true;
	case WEIR_END: return api_fault_set(&call->fault, 404, "zone", "unknown: expected a zone listed by /api/v1/zones");
	default: return api_store_failed(call->api, &call->fault, &error);
	}
}

static bool answer_from_store(struct api_call *call, const struct route *route)
{
	find_bucket(call);
	return find_zone(call) && route->answer(call);
}

/* The store failed; call->fault says so. */
static bool answer_without_store(struct api_call *call, const struct route *route)
{
	call->store = NULL;
	weir_text_clear(&call->reply->body);
	return route->answer(call);
}

static bool answer(struct api_call *call, const struct route *route)
{
	struct weir_error error;
	if (!admit(call, route) || !read_request(call, route))
		return false;
	if (!route->store)
		return route->answer(call);
	unsigned worker = weir_http_worker(call->request);
	if (api_store(call->api, worker, &call->store, &error) != WEIR_OK)
		return api_store_failed(call->api, &call->fault, &error) ||
		       (route->without && answer_without_store(call, route));
	bool answered = answer_from_store(call, route);
	api_store_leave(call->api, worker);
	if (answered)
		store_worked(call->api);
	else if (route->without && call->fault.status == 503)
		return answer_without_store(call, route);
	return answered;
}

static void handle(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct route_use *use = context;
	struct api_call call = {.api = use->api, .request = request, .reply = reply};
	weir_http_header(reply, "X-Content-Type-Options", "nosniff");
	if (answer(&call, use->route)) {
		reply->content_type = call.csv ? "text/csv; charset=utf-8" : "application/json";
		reply->tagged = !call.csv;
		reply->packed = true;
		return;
	}
	if (call.fault.status == 503)
		weir_http_header(reply, "Retry-After", "1");
	api_refuse(reply, call.fault.status, call.fault.parameter, call.fault.message);
}

/* ---- a question from within the process ---- */

static bool answer_arguments(struct api_call *call, const struct route *route, const struct api_argument *arguments,
                             size_t count)
{
	struct reading reading = {.call = call, .route = route, .limit_max = route->limit_max, .good = true};
	api_parameters_init(&call->parameters);
	for (size_t i = 0; i < count && reading.good; i++)
		read_parameter(&reading, weir_span_of(arguments[i].name), arguments[i].value);
	return reading.good && check_parameters(call, route) && answer_from_store(call, route);
}

static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < ROUTE_COUNT; i++)
		if (strcmp(routes[i].path, path) == 0)
			return &routes[i];
	return NULL;
}

enum weir_status api_ask(const struct api_options *options, const char *path, const struct api_argument *arguments,
                         size_t count, struct weir_text *body, struct weir_error *error)
{
	const struct route *route = find_route(path);
	struct weir_store *store;
	if (route == NULL)
		return weir_fail(error, WEIR_INVALID, "there is no %s", path);
	enum weir_status status = options->open_store(options->context, &store, error);
	if (status != WEIR_OK)
		return status;
	struct api api = {.options = *options,
	                  .zones = api_zones_new(options->log, options->momentary),
	                  .mutex = PTHREAD_MUTEX_INITIALIZER};
	struct weir_http_reply reply = {.status = 200, .body = *body};
	struct api_call call = {.api = &api, .reply = &reply, .store = store};
	if (!answer_arguments(&call, route, arguments, count))
		status = weir_fail(error, call.fault.status == 503 ? WEIR_IO : WEIR_INVALID, "%s%s%s",
		                   call.fault.parameter != NULL ? call.fault.parameter : "",
		                   call.fault.parameter != NULL ? ": " : "", call.fault.message);
	*body = reply.body;
	api_zones_free(api.zones);
	store->ops->close(store);
	return status;
}

static void handle_file(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct api_file *file = context;
	(void)request;
	weir_http_header(reply, "X-Content-Type-Options", "nosniff");
	/* A page has nothing from elsewhere and nothing inline, and sends nothing but its own questions. */
	weir_http_header(reply, "Content-Security-Policy",
	                 "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'");
	weir_http_header(reply, "Referrer-Policy", "no-referrer");
	reply->content_type = file->content_type;
	weir_text_append(&reply->body, file->bytes, file->length);
	reply->tagged = reply->packed = true;
}

/* What the server itself refuses, in the same form. */
static void refuse(void *context, const char *words, struct weir_http_reply *reply)
{
	(void)context;
	api_refuse(reply, reply->status, NULL, words);
}

/* ---- starting and stopping ---- */

enum { CERTIFICATE_EXPIRES, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[CERTIFICATE_EXPIRES] = {"weir_api_certificate_expires_timestamp_seconds", WEIR_GAUGE, "Unix time", WEIR_NO_LABELS,
                             "When the API's certificate expires. Only an API that speaks TLS has it."},
};

const struct weir_metric_table api_metric_table = {metrics, METRIC_COUNT};

/* As many connections as the process may have descriptors for: all that it is allowed, as nothing here counts on few. */
static unsigned connection_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return DESCRIPTORS_LEFT;
	rlim_t wanted = CONNECTIONS_MAX + DESCRIPTORS_LEFT;
	if (limit.rlim_cur < wanted) {
		struct rlimit raised = {limit.rlim_max < wanted ? limit.rlim_max : wanted, limit.rlim_max};
		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			limit = raised;
	}
	if (limit.rlim_cur >= wanted)
		return CONNECTIONS_MAX;
	return limit.rlim_cur > 2 * DESCRIPTORS_LEFT ? (unsigned)limit.rlim_cur - DESCRIPTORS_LEFT : DESCRIPTORS_LEFT;
}

static struct weir_http_tls tls_of(const struct weir_config *config)
{
	return (struct weir_http_tls){.certificate = config->archiver.api_tls.certificate,
	                              .key = config->archiver.api_tls.key,
	                              .client_ca = config->archiver.api_tls.client_ca,
	                              .prefix = "archiver.api_"};
}

static enum weir_status listen_on(struct api *api, struct weir_error *error)
{
	const struct api_options *options = &api->options;
	struct weir_http_path *paths = weir_alloc(ROUTE_COUNT + options->file_count, sizeof *paths);
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		api->uses[i] = (struct route_use){api, &routes[i]};
		paths[i] = (struct weir_http_path){routes[i].path, handle, &api->uses[i]};
	}
	for (size_t i = 0; i < options->file_count; i++)
		paths[ROUTE_COUNT + i] =
			(struct weir_http_path){options->files[i].path, handle_file, (void *)(uintptr_t)&options->files[i]};
	struct weir_http_options http = {.host = options->config->archiver.api_host,
	                                 .port = options->config->archiver.api_port,
	                                 .paths = paths,
	                                 .path_count = ROUTE_COUNT + options->file_count,
	                                 .connections = connection_limit(),
	                                 .request_bytes = REQUEST_BYTES,
	                                 .workers = (unsigned)options->config->archiver.api_workers,
	                                 .waiting = WAITING_MAX,
	                                 .refuse = refuse,
	                                 .tls = tls_of(options->config),
	                                 .log = options->log};
	enum weir_status status = weir_http_start(&http, &api->http, error);
	free(paths);
	return status;
}

enum weir_status api_check(const struct weir_config *config, struct weir_text *doubts, struct weir_error *error)
{
	struct weir_secrets tokens = {0};
	if (config->archiver.api_host == NULL)
		return WEIR_OK;
	enum weir_status status = weir_config_open_tokens(config, &tokens, error);
	weir_secrets_deinit(&tokens);
	const struct weir_http_tls tls = tls_of(config);
	return status == WEIR_OK ? weir_http_tls_check(&tls, doubts, error) : status;
}

enum weir_status api_start(const struct api_options *options, struct api **api, struct weir_error *error)
{
	*api = NULL;
	if (options->config->archiver.api_host == NULL)
		return WEIR_OK;
	struct weir_secrets tokens;
	enum weir_status status = weir_config_open_tokens(options->config, &tokens, error);
	if (status != WEIR_OK) {
		weir_secrets_deinit(&tokens);
		return status;
	}
	struct api *started = weir_alloc(1, sizeof *started);
	started->options = *options;
	started->tokens = tokens;
	started->zones = api_zones_new(options->log, options->momentary);
	started->rate = api_rate_new(options->config->archiver.api_rate);
	started->stores = weir_alloc((size_t)options->config->archiver.api_workers, sizeof *started->stores);
	pthread_mutex_init(&started->mutex, NULL);
	if (getrandom(&started->seed, sizeof started->seed, 0) != sizeof started->seed)
		started->seed = (uint64_t)weir_monotonic_ms();
	status = listen_on(started, error);
	if (status != WEIR_OK) {
		api_stop(started);
		return status;
	}
	weir_log(options->log, WEIR_LOG_INFO, "api", "listening on %s port %u", options->config->archiver.api_host,
	         api_port(started));
	*api = started;
	return WEIR_OK;
}

void api_metrics(const struct api *api, struct weir_text *page)
{
	int64_t expires_s = api != NULL ? weir_http_certificate_expires_s(api->http) : 0;
	weir_metrics_family(page, &metrics[CERTIFICATE_EXPIRES]);
	if (expires_s != 0)
		weir_metrics_double(page, &metrics[CERTIFICATE_EXPIRES], NULL, (double)expires_s);
}

uint16_t api_port(const struct api *api)
{
	return weir_http_port(api->http);
}

void api_stop(struct api *api)
{
	if (api == NULL)
		return;
	weir_http_stop(api->http);
	for (int64_t i = 0; i < api->options.config->archiver.api_workers; i++)
		if (api->stores[i] != NULL)
			api->stores[i]->ops->close(api->stores[i]);
	free(api->stores);
	weir_secrets_deinit(&api->tokens);
	api_rate_free(api->rate);
	api_zones_free(api->zones);
	pthread_mutex_destroy(&api->mutex);
	free(api);
}
