/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit.
 *
 * A descriptor's entries are fields by their keys, beside `domain`, and `ip` where there is a remote_address. It is asked
 * in each zone that the fields are in; which of them counts most, told.h says. A zone in shadow mode is asked, and left out
 * of the answer.
 */
#include "limiter/check/grpc/internal.h"
#include "limiter/check/told.h"

#include "common/frame/frame.h"

enum {
	DESCRIPTORS_MAX = 64,
	MS = 1000,
	NS_OF_MS = 1000000,
};

/* Numbers of fields: RateLimitRequest, RateLimitDescriptor and its Entry, RateLimitResponse and what is in it. */
enum { REQUEST_DOMAIN = 1, REQUEST_DESCRIPTORS = 2, REQUEST_HITS = 3 };
enum {
	DESCRIPTOR_ENTRIES = 1,
	DESCRIPTOR_HITS = 3,
	DESCRIPTOR_REFUND = 4,
	ENTRY_KEY = 1,
	ENTRY_VALUE = 2,
	WRAPPED_VALUE = 1
};
enum { RESPONSE_CODE = 1, RESPONSE_STATUSES = 2, RESPONSE_HEADERS = 3 };
enum { STATUS_CODE = 1, STATUS_LIMIT = 2, STATUS_REMAINING = 3, STATUS_RESET = 4 };
enum { LIMIT_REQUESTS = 1, LIMIT_UNIT = 2, LIMIT_NAME = 3, DURATION_SECONDS = 1, DURATION_NANOS = 2 };
enum { HEADER_KEY = 1, HEADER_VALUE = 2 };
enum code { CODE_UNKNOWN = 0, CODE_OK = 1, CODE_OVER_LIMIT = 2 };

/* ---- the request ---- */

static const char no_request[] = "the message is no RateLimitRequest";

struct request {
	struct weir_span domain;
	uint64_t hits; /* of descriptors that say none */
	struct weir_span descriptors[DESCRIPTORS_MAX];
	uint32_t count;
};

/* @return NULL, or what is wrong */
static const char *read_request(struct weir_span message, struct request *request)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	*request = (struct request){.hits = 1};
	while (protobuf_next(&reader, &field)) {
		if (protobuf_is_bytes(&field, REQUEST_DOMAIN))
			request->domain = field.bytes;
		else if (protobuf_is_number(&field, REQUEST_HITS))
			request->hits = field.value > 0 ? field.value : 1;
		else if (protobuf_is_bytes(&field, REQUEST_DESCRIPTORS) && request->count == DESCRIPTORS_MAX)
			return "a request has at most 64 descriptors";
		else if (protobuf_is_bytes(&field, REQUEST_DESCRIPTORS))
			request->descriptors[request->count++] = field.bytes;
	}
	if (reader.bad)
		return no_request;
	if (request->domain.length == 0)
		return "the request has no domain";
	return request->count == 0 ? "the request has no descriptors" : NULL;
}

static bool read_wrapped(struct weir_span message, uint64_t *value)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	*value = 0;
	while (protobuf_next(&reader, &field))
		if (protobuf_is_number(&field, WRAPPED_VALUE))
			*value = field.value;
	return !reader.bad;
}

struct entry {
	struct weir_span key, value;
};

static bool read_entry(struct weir_span message, struct entry *entry)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	*entry = (struct entry){.key = {.at = ""}, .value = {.at = ""}};
	while (protobuf_next(&reader, &field)) {
		if (protobuf_is_bytes(&field, ENTRY_KEY))
			entry->key = field.bytes;
		else if (protobuf_is_bytes(&field, ENTRY_VALUE))
			entry->value = field.bytes;
	}
	return !reader.bad;
}

static void set_field(struct check_request *fields, const struct entry *entry)
{
	check_request_set(fields, entry->key, entry->value);
	if (weir_span_equal(entry->key, weir_span_of("remote_address")))
		(void)!check_request_client(fields, (struct weir_span){0}, entry->value); /* else it has no ip */
}

/*
 * The domain is the first field: no entry takes its place.
 *
 * @param hits    set
 * @param refund  set: they are given back
 * @return NULL, or what is wrong
 */
static const char *read_descriptor(struct check_request *fields, const struct request *request,
                                   struct weir_span message, uint64_t *hits, bool *refund)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	struct entry entry;
	*hits = request->hits;
	*refund = false;
	check_request_set(fields, weir_span_of("domain"), request->domain);
	while (protobuf_next(&reader, &field)) {
		if (protobuf_is_bytes(&field, DESCRIPTOR_HITS) && !read_wrapped(field.bytes, hits))
			return no_request;
		if (protobuf_is_number(&field, DESCRIPTOR_REFUND))
			*refund = field.value != 0;
		if (!protobuf_is_bytes(&field, DESCRIPTOR_ENTRIES))
			continue;
		if (!read_entry(field.bytes, &entry))
			return no_request;
		set_field(fields, &entry);
	}
	if (reader.bad)
		return no_request;
	return *hits > WEIR_COST_MAX ? "hits_addend is at most 1099511627776" : NULL;
}

/* @return NULL, or what is wrong */
static const char *ask_zones(struct grpc_call *call, uint32_t part, uint64_t hits)
{
	static const char too_much[] = "the request is in too many zones: at most 64 a descriptor, 256 in all";
	struct check_found found[CHECK_REQUEST_ZONES_MAX];
	uint32_t count;
	if (check_request_find(call->connection->server->options.request, found, &count) != WEIR_OK)
		return too_much;
	bool peek = hits == 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct call_ask ask = {
			.part = part, .peek = peek, .shadow = found[i].zone->mode == WEIR_SHADOW, .cost = peek ? 1 : (int64_t)hits};
		if (!call_ask(call, &ask, found[i].zone, found[i].key))
			return too_much;
	}
	return NULL;
}

/* ---- the answer ---- */

/* How a descriptor did. */
struct outcome {
	struct told_verdict verdict;
	const struct call_ask *tightest; /* NULL: no zone */
};

static enum code code_of(const struct told_verdict *verdict)
{
	if (verdict->blocked)
		return CODE_OVER_LIMIT;
	return verdict->why != NULL ? CODE_UNKNOWN : CODE_OK;
}

/* @param outcomes  set, of each descriptor @return what all come to */
static struct told_verdict sum_up(struct grpc_call *call, struct outcome *outcomes, uint32_t count)
{
	struct told_verdict verdict = {0};
	for (uint32_t i = 0; i < count; i++)
		outcomes[i] = (struct outcome){0};
	for (uint32_t i = 0; i < call->ask_count; i++) {
		struct call_ask *ask = &call->asks[i];
		struct outcome *outcome = &outcomes[ask->part];
		if (ask->shadow)
			continue;
		told_settle(&ask->answer, call->connection->base.server->options.on_unavailable);
		told_sum(&verdict, &ask->answer);
		told_sum(&outcome->verdict, &ask->answer);
		if (ask->answer.outcome != CHECK_UNAVAILABLE &&
		    (outcome->tightest == NULL || told_is_tighter(&ask->answer, &outcome->tightest->answer)))
			outcome->tightest = ask;
	}
	return verdict;
}

/* Envoy's units have one length each; of others it is told the name alone. */
static uint64_t unit_of(int64_t window_ms)
{
	static const struct {
		int64_t ms;
		uint64_t unit;
	} units[] = {{1000, 1}, {60000, 2}, {3600000, 3}, {86400000, 4}, {7 * INT64_C(86400000), 7}};
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (units[i].ms == window_ms)
			return units[i].unit;
	return 0;
}

static uint64_t as_uint32(int64_t number)
{
	return number < 0 ? 0 : number > UINT32_MAX ? UINT32_MAX : (uint64_t)number;
}

static void put_duration(struct weir_text *text, uint32_t number, int64_t ms)
{
	size_t duration = protobuf_open(text, number);
	if (ms >= MS)
		protobuf_put_number(text, DURATION_SECONDS, (uint64_t)(ms / MS));
	if (ms % MS > 0)
		protobuf_put_number(text, DURATION_NANOS, (uint64_t)(ms % MS * NS_OF_MS));
	protobuf_close(text, duration);
}

static void put_status(struct weir_text *text, const struct outcome *outcome)
{
	size_t status = protobuf_open(text, RESPONSE_STATUSES);
	protobuf_put_number(text, STATUS_CODE, code_of(&outcome->verdict));
	const struct check_answer *answer = outcome->tightest != NULL ? &outcome->tightest->answer : NULL;
	if (answer != NULL && answer->limit > 0) {
		size_t limit = protobuf_open(text, STATUS_LIMIT);
		uint64_t unit = unit_of(answer->window_ms);
		protobuf_put_number(text, LIMIT_REQUESTS, as_uint32(answer->limit));
		if (unit != 0)
			protobuf_put_number(text, LIMIT_UNIT, unit);
		protobuf_put_bytes(text, LIMIT_NAME, weir_span_of(outcome->tightest->zone));
		protobuf_close(text, limit);
		if (answer->remaining > 0)
			protobuf_put_number(text, STATUS_REMAINING, as_uint32(answer->remaining));
	}
	if (answer != NULL && (answer->limit > 0 || answer->outcome == CHECK_BLOCKED) && told_wait_ms(answer) >= 0)
		put_duration(text, STATUS_RESET, told_wait_ms(answer));
	protobuf_close(text, status);
}

/* ---- header fields ---- */

static void put_header(void *context, const char *name, struct weir_span value)
{
	struct weir_text *text = context;
	size_t header = protobuf_open(text, RESPONSE_HEADERS);
	protobuf_put_bytes(text, HEADER_KEY, weir_span_of(name));
	protobuf_put_bytes(text, HEADER_VALUE, value);
	protobuf_close(text, header);
}

static void put_headers(struct grpc_call *call, struct weir_text *text, const struct told_verdict *verdict)
{
	struct told told[TOLD_ZONES_MAX];
	enum weir_rate_limit_fields fields = call->connection->server->options.fields;
	uint32_t count = 0;
	for (uint32_t i = 0; i < call->ask_count; i++)
		if (!call->asks[i].shadow)
			count = told_add(told, count, &(struct told){.zone = call->asks[i].zone, .answer = &call->asks[i].answer});
	told_fields(fields, told, count, put_header, text);
	if (fields != WEIR_FIELDS_OFF)
		told_retry_after(verdict, put_header, text);
}

/* ---- the end ---- */

static void answer(struct grpc_call *call)
{
	struct outcome outcomes[DESCRIPTORS_MAX];
	uint32_t count = (uint32_t)(uintptr_t)call->state;
	const struct told_verdict verdict = sum_up(call, outcomes, count);
	if (!verdict.blocked && verdict.why != NULL) {
		call_finish(call, GRPC_UNAVAILABLE, verdict.why);
		return;
	}
	struct weir_text *text = call_message_open(call);
	protobuf_put_number(text, RESPONSE_CODE, code_of(&verdict));
	for (uint32_t i = 0; i < count; i++)
		put_status(text, &outcomes[i]);
	put_headers(call, text, &verdict);
	call_message_close(call);
	call_finish(call, GRPC_OK, NULL);
}

/* The policy cannot be used, or there is none: all descriptors are told what checks are told that cannot be judged. */
static void answer_without_policy(struct grpc_call *call, enum weir_status status)
{
	struct weir_zone none = {.name = (char *)(uintptr_t) ""};
	const char *why = status == WEIR_AGAIN ? "there is no policy yet: run weir policy apply"
	                                       : "the policy cannot be used here: the log says why";
	uint32_t count = (uint32_t)(uintptr_t)call->state;
	if (call->connection->base.server->options.on_unavailable == WEIR_ON_UNAVAILABLE_ERROR) {
		call_finish(call, GRPC_UNAVAILABLE, why);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct call_ask ask = {.part = i, .answer = {.outcome = CHECK_UNAVAILABLE}};
		(void)call_ask(call, &ask, &none, weir_span_of(""));
	}
	answer(call);
}

static void take_request(struct grpc_call *call, struct weir_span message)
{
	struct check_request *fields = call->connection->server->options.request;
	struct request request;
	struct weir_error error;
	uint64_t hits;
	bool refund;
	const char *wrong = read_request(message, &request);
	call->state = (void *)(uintptr_t)request.count;
	for (uint32_t i = 0; wrong == NULL && i < request.count; i++) {
		const struct weir_policy *policy = link_server_policy(call->connection->base.server);
		enum weir_status status = check_request_begin(fields, policy, &error);
		if (status != WEIR_OK) {
			call->ask_count = 0;
			answer_without_policy(call, status);
			return;
		}
		wrong = read_descriptor(fields, &request, request.descriptors[i], &hits, &refund);
		if (wrong == NULL &&
		    !refund) /* nothing says of which request it is: it is no cost, and nothing is given back */
			wrong = ask_zones(call, i, hits);
	}
	if (wrong != NULL)
		call_finish(call, GRPC_INVALID_ARGUMENT, wrong);
	else
		call_asks_send(call);
}

const struct grpc_method method_rate_limit = {.name = "RateLimitService/ShouldRateLimit",
                                              .path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
                                              .message = take_request,
                                              .answered = answer};
