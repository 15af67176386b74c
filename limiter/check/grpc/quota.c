/* SPDX-License-Identifier: Apache-2.0 */
/*
 * envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas: usage comes in, assignments go out.
 *
 * A bucket's id is fields, as a descriptor's entries are. An assignment is a token bucket that is never filled again
 * before it ends, and its tokens are counted in the bucket's zones before it is sent. So whatever the streams are, and
 * whatever becomes of them, no more tokens are given than the limits let pass; what a stream does not use is lost to it.
 * What it let pass beyond its tokens (before its first assignment, say) is counted when it is reported.
 *
 * Envoy begins a token bucket with the share of its tokens that the one before has left, none of a used one, and goes on with
 * that one where the numbers are the same. So DENY_ALL stands before each assignment in the same message: actions are
 * applied in their order, and what follows begins with all of its tokens.
 *
 * A bucket that was given what it asked for and has reported nothing since is not asked for again: a stream that fell silent
 * takes no tokens. Where assignments are shorter than the time between reports it is, for a few seconds.
 *
 * What is asked for more than may pass is no request of anybody's: it counts only if it passes. What Envoy refused because
 * nothing was left is one: it is asked as a check of its own, so that a zone with `block_for` blocks whoever exceeded it.
 *
 * A zone in shadow mode has no say in assignments, so none is counted there: it counts what reports say was let pass.
 */
#include "limiter/check/grpc/internal.h"
#include "limiter/check/grpc/quota_id.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/frame/frame.h"

#include <stdlib.h>
#include <sys/random.h>

enum {
	BUCKETS_MAX = 1000, /* of a stream; a message says no more, as each bucket has one usage in it */
	BATCH_MAX = 64,     /* that are asked for, and answered, at once; the others follow within a second */
	ID_MAX_BYTES = 4096,
	FIRST_TOKENS = 8,
	TTL_MAX_MS = 10000,
	TTL_LEAST_MS = 1000,
	EARLY_MS = 1500, /* an assignment that is used is renewed so long before its end, or in the middle of a short one */
	AGAIN_LEAST_MS = 100, /* until what was blocked is asked again, at a report */
	LOOKS_MS = 1100,      /* until a stream is looked at again */
	REPORTS_MS = 6000,    /* who had requests may be silent for so long: Envoy reports every 5 s */
	FREE_TTL_MS = 60000,
	TOKENS_MAX = 1 << 30,
	MS = 1000,
	NS_OF_MS = 1000000,
};

/* Numbers of fields: RateLimitQuotaUsageReports and BucketQuotaUsage, RateLimitQuotaResponse and what is in it. */
enum { REPORTS_DOMAIN = 1, REPORTS_USAGES = 2 };
enum { USAGE_BUCKET = 1, USAGE_ELAPSED = 2, USAGE_ALLOWED = 3, USAGE_DENIED = 4 };
enum { DURATION_SECONDS = 1, DURATION_NANOS = 2 };
enum { RESPONSE_ACTION = 1, ACTION_BUCKET = 1, ACTION_ASSIGNMENT = 2, ASSIGNMENT_TTL = 2, ASSIGNMENT_STRATEGY = 3 };
enum { STRATEGY_BLANKET = 1, STRATEGY_TOKENS = 3, ALLOW_ALL = 0, DENY_ALL = 1 };
enum { TOKENS_MAX_TOKENS = 1, TOKENS_PER_FILL = 2, TOKENS_INTERVAL = 3, WRAPPED_VALUE = 1 };

static const char no_reports[] = "the message is no RateLimitQuotaUsageReports";
static const char many_reports[] = "a message has at most 1000 usages: one of each bucket";
static const char long_id[] = "a bucket's id has at most 4 KiB";
static const char too_many[] = "a stream has at most 1000 buckets";
static const char too_much[] = "buckets hold too much: 16 MiB of a connection at most, 128 MiB in all";

/* What a bucket was told last. */
enum quota_told {
	TOLD_NOTHING,
	TOLD_TOKENS,
	TOLD_ALLOW,
	TOLD_DENY,     /* as nothing was left */
	TOLD_UNJUDGED, /* what on_unavailable says */
};

struct quota_bucket {
	char *id; /* canonical, as quota_id.h has it */
	uint32_t id_length;
	uint64_t hash;        /* of the id, by the stream's seed */
	uint64_t demand;      /* requests, allowed or not, in a second, of the last report that had any */
	uint64_t used;        /* requests that the last report let pass */
	uint64_t spent;       /* let pass without a token, and not counted yet */
	uint64_t asked_spent; /* of that, what the asks under way count */
	uint64_t left, late;  /* tokens that no report has named: of the assignment, and of those before it */
	bool named;           /* a report came since its last assignment */
	uint64_t guess;       /* tokens that the next ask is for at most; 0: nobody knows */
	enum quota_told told;
	int64_t ends_ms;  /* of what it was told */
	int64_t again_ms; /* it is not asked before */
	int64_t ttl_ms;   /* of its last assignment; 0: none */
	int64_t busy_ms;  /* when it reported requests; 0: never, or its last report had none */
	bool wants;       /* a report came that is not answered */
	bool active;      /* requests were reported since it was asked, or before and were not given what they need */
	bool refused;     /* it was told DENY_ALL, and has refused somebody since */
	bool shadowed;    /* it was in a zone in shadow mode when it was asked last */
	uint64_t passed;  /* let pass, and not counted in zones in shadow mode yet */
	/* of the asks that are under way */
	uint64_t asked; /* tokens */
	uint64_t asked_passed;
	bool asked_active;
	bool asking, renews; /* renews: for an assignment; else to count in zones in shadow mode alone */
	bool zones, blocked, unavailable;
	int64_t retry_ms, window_ms, remaining;
};

struct quota_stream {
	char *domain; /* NULL: it did not come yet */
	uint32_t domain_length;
	size_t id_bytes;     /* of all buckets */
	struct weir_text id; /* where one is made canonical */
	struct quota_bucket *buckets;
	/* Where buckets are found: each one's number and 1, by its hash or behind; 0: none. Twice as many as there is room. */
	uint16_t *places;
	uint64_t seed;              /* a secret, or a client could aim all of its ids at one place */
	uint32_t count, room, next; /* next: where asking goes on */
	uint32_t asking;            /* buckets whose asks are under way */
};

/* ---- reports ---- */

static int64_t read_duration(struct weir_span message)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	uint64_t seconds = 0, nanos = 0;
	while (protobuf_next(&reader, &field)) {
		if (protobuf_is_number(&field, DURATION_SECONDS))
			seconds = field.value;
		else if (protobuf_is_number(&field, DURATION_NANOS))
			nanos = field.value;
	}
	return seconds > TTL_MAX_MS ? (int64_t)TTL_MAX_MS * MS : (int64_t)(seconds * MS + nanos / NS_OF_MS % MS);
}

static void closed(struct grpc_call *call)
{
	struct quota_stream *stream = call->state;
	if (stream == NULL)
		return;
	for (uint32_t i = 0; i < stream->count; i++)
		free(stream->buckets[i].id);
	free(stream->buckets);
	free(stream->places);
	free(stream->domain);
	weir_text_deinit(&stream->id);
	free(stream);
	call->state = NULL;
	call_keeps(call, 0);
}

/* What room for so many buckets takes. */
static size_t room_bytes(uint32_t room)
{
	return room * (sizeof(struct quota_bucket) + 2 * sizeof(uint16_t));
}

static size_t bytes_of(const struct quota_stream *stream)
{
	return sizeof *stream + stream->domain_length + stream->id.capacity + stream->id_bytes + room_bytes(stream->room);
}

/* A stream ends with what it held. */
static void refuse(struct grpc_call *call, enum grpc_status status, const char *words)
{
	call_finish(call, status, words);
	closed(call);
}

/* The place of a bucket, or the one where it would be. There is room. */
static uint16_t *place_of(const struct quota_stream *stream, struct weir_span id, uint64_t hash)
{
	uint32_t last = 2 * stream->room - 1; /* room is a power of two */
	for (uint32_t at = (uint32_t)hash & last;; at = (at + 1) & last) {
		uint16_t *place = &stream->places[at];
		if (*place == 0)
			return place;
		const struct quota_bucket *bucket = &stream->buckets[*place - 1];
		if (bucket->hash == hash &&
		    weir_span_equal(id, (struct weir_span){.at = bucket->id, .length = bucket->id_length}))
			return place;
	}
}

static void make_room(struct quota_stream *stream, uint32_t room)
{
	stream->buckets = weir_realloc(stream->buckets, room, sizeof *stream->buckets);
	free(stream->places);
	stream->places = weir_alloc(2 * (size_t)room, sizeof *stream->places);
	stream->room = room;
	for (uint32_t i = 0; i < stream->count; i++) {
		const struct quota_bucket *bucket = &stream->buckets[i];
		const struct weir_span id = {.at = bucket->id, .length = bucket->id_length};
		*place_of(stream, id, bucket->hash) = (uint16_t)(i + 1);
	}
}

/* @return NULL: the stream has ended */
static struct quota_bucket *add_bucket(struct grpc_call *call, struct quota_stream *stream, struct weir_span id,
                                       uint64_t hash)
{
	uint32_t room = stream->count < stream->room ? stream->room : stream->room == 0 ? 4 : 2 * stream->room;
	const char *full = stream->count == BUCKETS_MAX ? too_many : NULL;
	if (full == NULL && !call_may_keep(call, id.length + room_bytes(room) - room_bytes(stream->room)))
		full = too_much;
	if (full != NULL) {
		refuse(call, GRPC_RESOURCE_EXHAUSTED, full);
		return NULL;
	}
	if (room > stream->room)
		make_room(stream, room);
	uint16_t *place = place_of(stream, id, hash);
	struct quota_bucket *made = &stream->buckets[stream->count++];
	*place = (uint16_t)stream->count;
	*made = (struct quota_bucket){.id = weir_copy(id.at, id.length), .id_length = id.length, .hash = hash};
	stream->id_bytes += id.length;
	call_keeps(call, bytes_of(stream));
	return made;
}

/* @param id  as it came @return NULL: the stream has ended */
static struct quota_bucket *find_bucket(struct grpc_call *call, struct quota_stream *stream, struct weir_span id)
{
	weir_text_clear(&stream->id);
	if (id.length > ID_MAX_BYTES || !quota_id_put(&stream->id, id) || stream->id.length == 0) {
		refuse(call, GRPC_INVALID_ARGUMENT, id.length > ID_MAX_BYTES ? long_id : no_reports);
		return NULL;
	}
	id = (struct weir_span){.at = stream->id.at, .length = (uint32_t)stream->id.length};
	uint64_t hash = weir_fingerprint(stream->seed, 0, id).low;
	uint16_t place = stream->room > 0 ? *place_of(stream, id, hash) : 0;
	return place > 0 ? &stream->buckets[place - 1] : add_bucket(call, stream, id, hash);
}

static uint64_t bounded(uint64_t number)
{
	return number < (uint64_t)WEIR_COST_MAX / 4 ? number : (uint64_t)WEIR_COST_MAX / 4;
}

/*
 * Tokens pay for what was let pass. Those of assignments before were good until the present one arrived, which the stream
 * alone knows, and there may be several between two reports; none pays when its time is over, but for what the first report behind it names.
 */
static void pay(struct quota_bucket *bucket, uint64_t allowed, int64_t now_ms)
{
	uint64_t by_left = allowed < bucket->left ? allowed : bucket->left, rest = allowed - by_left;
	uint64_t by_late = rest < bucket->late ? rest : bucket->late;
	bucket->named = true;
	bucket->left -= by_left;
	bucket->late -= by_late;
	bucket->spent = bounded(bucket->spent + rest - by_late);
	if (now_ms >= bucket->ends_ms)
		bucket->left = bucket->late = 0;
}

/* One bucket's report; it may end the stream. */
static void take_usage(struct grpc_call *call, struct quota_stream *stream, struct weir_span message)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	struct weir_span id = {0};
	uint64_t allowed = 0, denied = 0;
	int64_t elapsed_ms = 0;
	while (protobuf_next(&reader, &field)) {
		if (protobuf_is_bytes(&field, USAGE_BUCKET))
			id = field.bytes;
		else if (protobuf_is_bytes(&field, USAGE_ELAPSED))
			elapsed_ms = read_duration(field.bytes);
		else if (protobuf_is_number(&field, USAGE_ALLOWED))
			allowed = bounded(field.value);
		else if (protobuf_is_number(&field, USAGE_DENIED))
			denied = bounded(field.value);
	}
	if (reader.bad || id.length == 0) {
		refuse(call, GRPC_INVALID_ARGUMENT, no_reports);
		return;
	}
	struct quota_bucket *bucket = find_bucket(call, stream, id);
	if (bucket == NULL)
		return;
	pay(bucket, allowed, call->connection->server->base.now_ms);
	bucket->passed = bounded(bucket->passed + allowed);
	bucket->used = allowed;
	bucket->busy_ms = allowed + denied > 0 ? call->connection->server->base.now_ms : 0;
	if (allowed + denied > 0) {
		bucket->active = true;
		bucket->demand = (allowed + denied) * MS / (uint64_t)(elapsed_ms > MS ? elapsed_ms : MS);
		bucket->demand += bucket->demand == 0;
	}
	bucket->refused |= bucket->told == TOLD_DENY && denied > 0;
	bucket->wants = true;
}

/* ---- asking ---- */

static void set_fields(struct check_request *fields, const struct quota_bucket *bucket)
{
	struct protobuf_reader reader =
		protobuf_reader_of((struct weir_span){.at = bucket->id, .length = bucket->id_length});
	struct quota_pair pair;
	while (quota_id_next(&reader, &pair)) {
		check_request_set(fields, pair.key, pair.value);
		if (weir_span_equal(pair.key, weir_span_of("remote_address")))
			(void)!check_request_client(fields, (struct weir_span){0}, pair.value); /* else it has no ip */
	}
}

/* How many tokens a bucket should have: for what it asked lately, for the time of an assignment, and a fourth more. */
static uint64_t tokens_wanted(const struct quota_bucket *bucket)
{
	uint64_t ttl_s = (uint64_t)(bucket->ttl_ms > 0 ? bucket->ttl_ms : TTL_MAX_MS) / MS;
	uint64_t wanted = bucket->demand * ttl_s * 5 / 4;
	wanted = wanted > FIRST_TOKENS ? wanted : FIRST_TOKENS;
	return wanted < TOKENS_MAX ? wanted : TOKENS_MAX;
}

/*
 * Whether a bucket has used its tokens, or will have before its next report. What is left at a renewal is lost: where there
 * are too few tokens it uses them up.
 */
static bool is_used(const struct quota_bucket *bucket)
{
	return bucket->left == 0 || (bucket->left <= bucket->used && tokens_wanted(bucket) < bucket->guess);
}

/* How long before its end an assignment is renewed. @param looks  the stream is looked at, as it is once a second */
static int64_t early_ms(const struct quota_bucket *bucket, bool looks)
{
	int64_t half_ms = bucket->ttl_ms / 2, early = half_ms < EARLY_MS ? half_ms : EARLY_MS;
	return looks && early < LOOKS_MS ? LOOKS_MS : early;
}

/* Whether a bucket is to be told something new. */
static bool is_due(const struct quota_bucket *bucket, int64_t now_ms, bool looks)
{
	bool over = now_ms >= bucket->ends_ms;
	if (now_ms < bucket->again_ms)
		return false;
	if (bucket->told == TOLD_NOTHING)
		return bucket->wants;
	if (bucket->spent > 0)
		return bucket->wants || over;
	if (!bucket->active && (bucket->busy_ms == 0 || now_ms - bucket->busy_ms > REPORTS_MS))
		return false;
	switch (bucket->told) {
	case TOLD_NOTHING:
	case TOLD_DENY: return bucket->wants || over;
	case TOLD_TOKENS: return (bucket->wants && is_used(bucket)) || now_ms >= bucket->ends_ms - early_ms(bucket, looks);
	case TOLD_ALLOW:
	case TOLD_UNJUDGED: break;
	}
	return over;
}

/* Asks in a zone that the bucket is in. @return false: the call has no room */
static bool ask_zone(struct grpc_call *call, uint32_t number, struct quota_bucket *bucket,
                     const struct check_found *found, bool alone)
{
	struct call_ask ask = {.part = number, .shadow = found->zone->mode == WEIR_SHADOW};
	bucket->shadowed |= ask.shadow;
	if (ask.shadow ? bucket->asked_passed == 0 : !bucket->renews)
		return true;
	/* what was let pass and what will be are one cost: what cannot be counted is not assigned */
	ask.cost = (int64_t)(ask.shadow ? bucket->asked_passed : bucket->asked + bucket->asked_spent);
	ask.tries = !ask.shadow && !(bucket->refused && ask.cost == 1);
	ask.bundle = ask.shadow || alone ? 0 : number + 1;
	return call_ask(call, &ask, found->zone, found->key);
}

/* Zones that have a say are asked all or none, or one that has room would count what another blocks. */
static bool ask_zones(struct grpc_call *call, uint32_t number, struct quota_bucket *bucket,
                      const struct check_found *found, uint32_t count)
{
	uint32_t live = 0;
	bool fits = true;
	for (uint32_t i = 0; i < count; i++)
		live += found[i].zone->mode != WEIR_SHADOW;
	bool crowded = bucket->renews && live > CHECK_BUNDLE_MAX;
	if (crowded) {
		check_request_note_crowd(call->connection->server->options.request, CHECK_BUNDLE_MAX);
		bucket->unavailable = true;
	}
	for (int shadow = crowded ? 1 : 0; shadow <= 1; shadow++) /* a bundle's asks are beside one another */
		for (uint32_t i = 0; i < count && fits; i++)
			if ((found[i].zone->mode == WEIR_SHADOW) == shadow)
				fits = ask_zone(call, number, bucket, &found[i], live == 1);
	return fits;
}

/* @return false: there is no room for its asks now */
static bool ask_bucket(struct grpc_call *call, uint32_t number, struct quota_bucket *bucket)
{
	struct check_found found[CHECK_REQUEST_ZONES_MAX];
	uint32_t count, before = call->ask_count;
	bool shadowed = bucket->shadowed;
	bucket->asked = tokens_wanted(bucket);
	if (bucket->guess > 0 && bucket->asked > bucket->guess)
		bucket->asked = bucket->guess;
	bucket->asked_spent = bucket->spent;
	bucket->asked_passed = bucket->passed;
	bucket->zones = bucket->blocked = bucket->shadowed = false;
	bucket->retry_ms = bucket->window_ms = 0;
	bucket->remaining = INT64_MAX;
	bucket->unavailable = check_request_find(call->connection->server->options.request, found, &count) != WEIR_OK;
	if (bucket->unavailable || ask_zones(call, number, bucket, found, count))
		return true;
	call->ask_count = before;
	bucket->shadowed |= shadowed;
	return false;
}

/* @return false: nothing more can be asked now */
static bool ask_next(struct grpc_call *call, struct quota_stream *stream, uint32_t number)
{
	struct check_request *request = call->connection->server->options.request;
	struct quota_bucket *bucket = &stream->buckets[number];
	struct weir_error error;
	if (check_request_begin(request, link_server_policy(call->connection->base.server), &error) != WEIR_OK)
		return false; /* the stream goes on by what it was told */
	check_request_set(request, weir_span_of("domain"),
	                  (struct weir_span){.at = stream->domain, .length = stream->domain_length});
	set_fields(request, bucket);
	if (!ask_bucket(call, number, bucket))
		return false;
	bucket->wants &= !bucket->renews; /* what is asked in zones on trial alone is told nobody */
	bucket->asked_active = bucket->active;
	bucket->active &= !bucket->renews;
	bucket->asking = true;
	stream->asking++;
	return true;
}

/* Asks for the buckets that are due. @param looks  see early_ms() */
static void ask_all(struct grpc_call *call, bool looks)
{
	struct quota_stream *stream = call->state;
	int64_t now_ms = call->connection->server->base.now_ms;
	bool reads = call->out.length - call->sent <= GRPC_UNREAD_MAX_BYTES; /* else it would be told more than it takes */
	if (call->open > 0 || stream == NULL || stream->domain == NULL || !reads)
		return;
	call->ask_count = 0;
	weir_text_clear(&call->keys);
	for (uint32_t i = 0, first = stream->next; i < stream->count; i++) {
		uint32_t number = (first + i) % stream->count;
		struct quota_bucket *bucket = &stream->buckets[number];
		bucket->renews = is_due(bucket, now_ms, looks);
		if (!bucket->renews && !(bucket->wants && bucket->shadowed && bucket->passed > 0))
			continue;
		stream->next = number;
		if (stream->asking == BATCH_MAX || !ask_next(call, stream, number))
			break;
	}
	if (stream->asking > 0 && !call->finished)
		call_asks_send(call);
}

static void look(struct grpc_call *call)
{
	ask_all(call, true);
}

/* The first one counts; it may end the stream. */
static void take_domain(struct grpc_call *call, struct quota_stream *stream, struct weir_span domain)
{
	if (stream->domain != NULL || domain.length == 0)
		return;
	if (!call_may_keep(call, domain.length)) {
		refuse(call, GRPC_RESOURCE_EXHAUSTED, too_much);
		return;
	}
	stream->domain = weir_copy(domain.at, domain.length);
	stream->domain_length = domain.length;
	call_keeps(call, bytes_of(stream));
}

static struct quota_stream *new_stream(void)
{
	struct quota_stream *stream = weir_alloc(1, sizeof *stream);
	(void)!getrandom(&stream->seed, sizeof stream->seed, 0); /* it has all of so few bytes */
	return stream;
}

static void take_reports(struct grpc_call *call, struct weir_span message)
{
	struct protobuf_reader reader = protobuf_reader_of(message);
	struct protobuf_field field;
	if (call->state == NULL)
		call->state = new_stream();
	struct quota_stream *stream = call->state;
	uint32_t usages = 0;
	while (!call->finished && protobuf_next(&reader, &field)) {
		if (protobuf_is_bytes(&field, REPORTS_USAGES)) {
			take_usage(call, stream, field.bytes);
			if (++usages > BUCKETS_MAX && !call->finished)
				refuse(call, GRPC_INVALID_ARGUMENT, many_reports);
		} else if (protobuf_is_bytes(&field, REPORTS_DOMAIN)) {
			take_domain(call, stream, field.bytes);
		}
	}
	if (call->finished)
		return;
	if (reader.bad || stream->domain == NULL)
		refuse(call, GRPC_INVALID_ARGUMENT, reader.bad ? no_reports : "the first message has no domain");
	else if (usages > 0)
		ask_all(call, false);
	else
		call->connection->frames++; /* it asks nothing, as an empty frame does */
}

/* ---- assignments ---- */

static void put_duration(struct weir_text *text, uint32_t number, int64_t ms)
{
	size_t duration = protobuf_open(text, number);
	protobuf_put_number(text, DURATION_SECONDS, (uint64_t)(ms / MS));
	if (ms % MS > 0)
		protobuf_put_number(text, DURATION_NANOS, (uint64_t)(ms % MS * NS_OF_MS));
	protobuf_close(text, duration);
}

/* @param tokens  0: blanket instead */
static void put_action(struct weir_text *text, const struct quota_bucket *bucket, uint64_t tokens, uint64_t blanket,
                       int64_t ttl_ms)
{
	size_t action = protobuf_open(text, RESPONSE_ACTION);
	protobuf_put_bytes(text, ACTION_BUCKET, (struct weir_span){.at = bucket->id, .length = bucket->id_length});
	size_t assignment = protobuf_open(text, ACTION_ASSIGNMENT);
	put_duration(text, ASSIGNMENT_TTL, ttl_ms);
	size_t strategy = protobuf_open(text, ASSIGNMENT_STRATEGY);
	if (tokens > 0) {
		size_t token_bucket = protobuf_open(text, STRATEGY_TOKENS);
		protobuf_put_number(text, TOKENS_MAX_TOKENS, tokens);
		size_t wrapped = protobuf_open(text, TOKENS_PER_FILL);
		protobuf_put_number(text, WRAPPED_VALUE, 1);
		protobuf_close(text, wrapped);
		put_duration(text, TOKENS_INTERVAL, 100 * ttl_ms); /* never within its time */
		protobuf_close(text, token_bucket);
	} else {
		protobuf_put_number(text, STRATEGY_BLANKET, blanket);
	}
	protobuf_close(text, strategy);
	protobuf_close(text, assignment);
	protobuf_close(text, action);
}

static int64_t between(int64_t number, int64_t least, int64_t most)
{
	return number < least ? least : number > most ? most : number;
}

static void take_answer(struct quota_bucket *bucket, const struct call_ask *ask)
{
	const struct check_answer *answer = &ask->answer;
	if (ask->shadow)
		return;
	if (answer->outcome == CHECK_UNAVAILABLE ||
	    answer->outcome == CHECK_NO_ZONE) { /* its policy is another one still */
		bucket->unavailable = true;
		return;
	}
	bucket->zones = true;
	if (answer->outcome == CHECK_BLOCKED) {
		bucket->blocked = true;
		if (answer->retry_after_ms > bucket->retry_ms)
			bucket->retry_ms = answer->retry_after_ms;
	}
	if (answer->remaining < bucket->remaining)
		bucket->remaining = answer->remaining;
	if (answer->window_ms > 0 && (bucket->window_ms == 0 || answer->window_ms < bucket->window_ms))
		bucket->window_ms = answer->window_ms;
}

/* @param tokens  of TOLD_TOKENS; else blanket */
static void tell(struct grpc_call *call, struct weir_text *text, struct quota_bucket *bucket, enum quota_told told,
                 uint64_t tokens, uint64_t blanket, int64_t ttl_ms)
{
	bucket->told = told;
	/* the next report may name tokens of all that were given since the last one, and what was left then */
	bucket->late = bucket->named ? bucket->left : bounded(bucket->late + bucket->left);
	bucket->named = false;
	bucket->left = tokens;
	bucket->ends_ms = call->connection->server->base.now_ms + ttl_ms;
	if (told == TOLD_TOKENS) {
		bucket->ttl_ms = ttl_ms;
		put_action(text, bucket, 0, DENY_ALL, ttl_ms); /* forgets the bucket of tokens before it */
	}
	put_action(text, bucket, tokens, blanket, ttl_ms);
}

/* They are counted, and good until their time is over. */
static bool has_tokens(const struct quota_bucket *bucket, int64_t now_ms)
{
	return bucket->told == TOLD_TOKENS && bucket->left > 0 && now_ms < bucket->ends_ms;
}

/* It could not be judged. */
static void tell_unjudged(struct grpc_call *call, struct weir_text *text, struct quota_bucket *bucket)
{
	enum weir_on_unavailable on_unavailable = call->connection->base.server->options.on_unavailable;
	int64_t now_ms = call->connection->server->base.now_ms;
	bucket->active |= bucket->asked_active;
	/* it goes on by what it was told; where it is to be denied, until the tokens that it has are used */
	if (on_unavailable == WEIR_ON_UNAVAILABLE_ERROR ||
	    (on_unavailable == WEIR_ON_UNAVAILABLE_DENY && has_tokens(bucket, now_ms))) {
		bucket->wants = true;
		bucket->again_ms = now_ms + AGAIN_LEAST_MS;
		return;
	}
	bucket->refused = false;
	tell(call, text, bucket, TOLD_UNJUDGED, 0, on_unavailable == WEIR_ON_UNAVAILABLE_DENY ? DENY_ALL : ALLOW_ALL,
	     TTL_LEAST_MS);
}

/* Less may pass than was asked for: what was let pass is counted alone as soon as it can be. @return when to ask again */
static int64_t expect_less(struct quota_bucket *bucket)
{
	uint64_t left = bucket->remaining > 0 && bucket->remaining < INT64_MAX ? (uint64_t)bucket->remaining : 0;
	bucket->guess = left > bucket->spent + 1 ? (left - bucket->spent + 1) / 2 : 1;
	if (bucket->spent >= left)
		bucket->spent = left > 1 ? left - 1 : 0;
	if (left > 1)
		return AGAIN_LEAST_MS;
	return bucket->retry_ms > 0 ? between(bucket->retry_ms, AGAIN_LEAST_MS, TTL_MAX_MS) : TTL_LEAST_MS;
}

static void tell_blocked(struct grpc_call *call, struct weir_text *text, struct quota_bucket *bucket)
{
	int64_t now_ms = call->connection->server->base.now_ms, wait_ms = expect_less(bucket);
	bucket->active |= bucket->asked_active;
	bucket->again_ms = now_ms + wait_ms;
	if (has_tokens(bucket, now_ms)) {
		bucket->again_ms = bucket->again_ms < bucket->ends_ms ? bucket->again_ms : bucket->ends_ms;
		return;
	}
	tell(call, text, bucket, TOLD_DENY, 0, DENY_ALL, between(wait_ms, TTL_LEAST_MS, TTL_MAX_MS));
	bucket->refused &= bucket->asked + bucket->asked_spent > 1; /* not yet asked */
}

static void assign(struct grpc_call *call, struct weir_text *text, struct quota_bucket *bucket)
{
	bucket->again_ms = 0;
	if (bucket->blocked) { /* which counts more than a zone that did not answer */
		tell_blocked(call, text, bucket);
		return;
	}
	if (bucket->unavailable) {
		tell_unjudged(call, text, bucket);
		return;
	}
	bucket->refused = false;
	bucket->spent -= bucket->asked_spent; /* what came meanwhile is counted with the next one */
	if (!bucket->zones) {
		tell(call, text, bucket, TOLD_ALLOW, 0, ALLOW_ALL, FREE_TTL_MS);
		return;
	}
	/* of whole seconds, as Envoy counts no parts of one */
	int64_t ttl_ms = between(bucket->window_ms > 0 ? bucket->window_ms / 4 : TTL_MAX_MS, TTL_LEAST_MS, TTL_MAX_MS);
	bucket->guess = bucket->remaining > 1 ? (uint64_t)bucket->remaining / 2 : 1;
	tell(call, text, bucket, TOLD_TOKENS, bucket->asked, 0, ttl_ms / MS * MS);
}

/* All that was asked is answered: a message with what each bucket is told. */
static void answer(struct grpc_call *call)
{
	struct quota_stream *stream = call->state;
	for (uint32_t i = 0; i < call->ask_count; i++)
		take_answer(&stream->buckets[call->asks[i].part], &call->asks[i]);
	struct weir_text *text = call_message_open(call);
	size_t before = text->length;
	for (uint32_t i = 0; i < stream->count && stream->asking > 0; i++) {
		struct quota_bucket *bucket = &stream->buckets[i];
		if (!bucket->asking)
			continue;
		bucket->asking = false;
		stream->asking--;
		bucket->passed -= bucket->asked_passed; /* what came meanwhile is counted with the next report */
		if (bucket->renews)
			assign(call, text, bucket);
	}
	if (text->length > before)
		call_message_close(call);
	else
		call_message_drop(call);
}

const struct grpc_method method_quota = {
	.name = "RateLimitQuotaService/StreamRateLimitQuotas",
	.path = "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas",
	.streams = true,
	.message = take_reports,
	.answered = answer,
	.look = look,
	.closed = closed,
};
