/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy's matcher for requests, made anew with each policy. A policy that cannot be used here, as a list that it names
 * is missing, is tried again every few seconds: until then nothing is asked, and the surface says that it is unavailable.
 *
 * Who asks here judges as well, so it reads no list anew: it takes what another thread of the process has read. Only a list
 * that nobody has read yet is read here, as without it those on it would be counted.
 */
#include "limiter/check/request/check_request.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/http_token.h"
#include "common/matcher/matcher.h"
#include "common/record/client_ip.h"
#include "common/record/served_host.h"
#include "common/record/served_method.h"
#include "common/record/served_path.h"
#include "limiter/check/check_key.h"

#include <assert.h>
#include <stdlib.h>

enum { LOOK_MS = 1000, AGAIN_MS = 5000 };

static const char usual_client_ip[] = "{\"header\": \"x-forwarded-for\", \"trusted\": [\"127.0.0.0/8\", \"::1/128\"]}";

struct check_request {
	struct check_request_options options;
	struct weir_client_ip *client_ip;
	char *hops_header;

	const struct weir_policy *policy; /* of which the members below are */
	uint64_t version;
	struct weir_field_table fields;
	struct weir_matcher *matcher; /* NULL: the policy cannot be used, as `error` says */
	struct weir_error error;
	int target_field; /* -1: no zone looks at the target */
	int64_t look_ms;  /* monotonic: when newer lists are taken, or a policy that cannot be used is tried again */
	struct weir_fault refused;
	struct weir_notice crowded;

	struct weir_record record;
	uint64_t given;          /* bits: its fields that were given, empty ones among them */
	struct weir_span target; /* that was given, whether some zone uses it or not: the path may be had from it */
	char ip_text[WEIR_ADDRESS_TEXT_BYTES];
	char host_text[WEIR_SERVED_HOST_BYTES];
	struct weir_served_path_room path_room;
	struct weir_text key_room;
};

static const char target_name[] = "target";

/* No request has another. */
static bool is_header_name(const char *name)
{
	struct weir_span word = weir_span_of(name);
	return weir_http_is_token(word) && word.length <= WEIR_FIELD_NAME_MAX_BYTES;
}

/* Reads the rule with a table of its own: only the name of its header matters here. */
static enum weir_status read_client_ip(struct check_request *request, const struct weir_json *at,
                                       struct weir_error *error)
{
	struct weir_field_table fields;
	weir_field_table_init(&fields);
	enum weir_status status = weir_client_ip_new(at, &fields, &request->client_ip, error);
	if (status == WEIR_OK) {
		const char *name = fields.names[weir_client_ip_header(request->client_ip)];
		const struct weir_json header = weir_json_member(at, "header");
		request->hops_header = weir_copy(name, strlen(name));
		if (!is_header_name(name))
			status = weir_json_fail(&header, error, "can be no header's name: write it as \"X-Forwarded-For\"");
	}
	weir_field_table_deinit(&fields);
	return status;
}

enum weir_status check_request_new(const struct check_request_options *options, struct check_request **out,
                                   struct weir_error *error)
{
	struct check_request *request = weir_alloc(1, sizeof *request);
	struct weir_json_document *document = NULL;
	struct weir_json client_ip = options->client_ip;
	enum weir_status status = WEIR_OK;
	request->options = *options;
	weir_field_table_init(&request->fields);
	if (!weir_json_exists(&client_ip)) {
		status = weir_json_parse("client_ip", usual_client_ip, sizeof usual_client_ip - 1, &document, error);
		assert(status == WEIR_OK);
		client_ip = weir_json_root(document);
	}
	status = read_client_ip(request, &client_ip, error);
	weir_json_document_free(document);
	request->options.client_ip = (struct weir_json){0};
	if (status == WEIR_OK)
		*out = request;
	else
		check_request_free(request);
	return status;
}

void check_request_free(struct check_request *request)
{
	if (request == NULL)
		return;
	weir_matcher_free(request->matcher);
	weir_field_table_deinit(&request->fields);
	weir_client_ip_free(request->client_ip);
	weir_served_path_room_deinit(&request->path_room);
	weir_text_deinit(&request->key_room);
	free(request->hops_header);
	free(request);
}

static void compile(struct check_request *request, const struct weir_policy *policy)
{
	weir_matcher_free(request->matcher);
	weir_field_table_deinit(&request->fields);
	weir_field_table_init(&request->fields);
	request->matcher = NULL;
	request->policy = policy;
	request->version = policy->version;
	enum weir_status status =
		weir_matcher_new(policy, request->options.lists, &request->fields, 1, &request->matcher, &request->error);
	request->target_field = weir_field_table_find(&request->fields, weir_span_of(target_name));
	if (status == WEIR_OK)
		weir_fault_clear(&request->refused, request->options.log, "checks");
	else
		weir_fault_raise(
			&request->refused, request->options.log, "checks",
			"policy %llu cannot be used for checks: %s. Mend the policy or what it names: until then checks "
			"of requests are unavailable, and keys that would be exempt are counted. Retrying",
			(unsigned long long)policy->version, request->error.text);
}

/* Lists may have been read anew, or have come that were missing. */
static void look(struct check_request *request)
{
	if (request->matcher == NULL)
		compile(request, request->policy);
	else if (request->options.lists != NULL && weir_policy_has_lists(request->policy))
		weir_matcher_renew_lists(request->matcher, request->options.lists);
}

enum weir_status check_request_begin(struct check_request *request, const struct weir_policy *policy,
                                     struct weir_error *error)
{
	int64_t now_ms = weir_monotonic_ms();
	if (policy == NULL)
		return weir_fail(error, WEIR_AGAIN, "there is no policy yet: run `weir policy apply`");
	bool another = policy != request->policy || policy->version != request->version;
	if (another)
		compile(request, policy);
	else if (now_ms >= request->look_ms)
		look(request);
	if (another || now_ms >= request->look_ms)
		request->look_ms = weir_monotonic_ms() + (request->matcher != NULL ? LOOK_MS : AGAIN_MS);
	if (request->matcher == NULL) {
		*error = request->error;
		return WEIR_INVALID;
	}
	for (uint32_t i = 0; i < request->fields.count; i++)
		request->record.fields[i] = (struct weir_span){0};
	request->given = 0;
	request->target = (struct weir_span){0};
	request->record.ip = WEIR_RECORD_IP_UNTOLD;
	request->record.asks = true;
	request->record.cost = 1;
	return WEIR_OK;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/*
 * Whether a header is the one of a field's name, which has `_` for `-`. One with `_` never is: a gateway that takes out its
 * client's X-Forwarded-User may leave an X_Forwarded_User.
 */
static bool same_name(const char *field, struct weir_span name)
{
	uint32_t i = 0;
	while (i < name.length && field[i] != '\0' && lower(field[i] == '_' ? '-' : field[i]) == lower(name.at[i]))
		i++;
	return i == name.length && field[i] == '\0';
}

/* The first that is given counts, if it is empty, too. */
static void set(struct check_request *request, unsigned field, struct weir_span value)
{
	uint64_t bit = UINT64_C(1) << field;
	if (value.at == NULL || (request->given & bit) != 0)
		return;
	request->given |= bit;
	if (value.length > 0)
		request->record.fields[field] = value;
}

void check_request_set(struct check_request *request, struct weir_span name, struct weir_span value)
{
	int field = weir_field_table_find(&request->fields, name);
	if (request->target.at == NULL && weir_span_equal(name, weir_span_of(target_name)))
		request->target = value;
	if (field >= 0)
		set(request, (unsigned)field, value);
}

bool check_request_is_none(struct weir_span value)
{
	return value.length == 0 || (value.length == 1 && *value.at == '-');
}

void check_request_header(struct check_request *request, struct weir_span name, struct weir_span value)
{
	static const struct {
		unsigned field;
		const char *header;
	} standard[] = {{WEIR_FIELD_AGENT, "user-agent"}, {WEIR_FIELD_HOST, "host"}, {WEIR_FIELD_USER, "x-forwarded-user"}};
	if (check_request_is_none(value))
		value.length = 0;
	for (size_t i = 0; i < sizeof standard / sizeof *standard; i++)
		if (same_name(standard[i].header, name))
			set(request, standard[i].field, value);
	for (uint32_t i = WEIR_FIELD_STANDARD_COUNT; i < request->fields.count; i++)
		if (same_name(request->fields.names[i], name))
			set(request, i, value);
}

const char *check_request_hops_header(const struct check_request *request)
{
	return request->hops_header;
}

/* An address has one form, however it is written. */
static void settle_ip(struct check_request *request)
{
	struct weir_span *ip = &request->record.fields[WEIR_FIELD_IP];
	struct weir_address address;
	if (ip->at == NULL)
		return;
	if (!weir_address_read(*ip, &address)) {
		request->record.ip = WEIR_RECORD_IP_WORD;
		return;
	}
	request->record.ip = WEIR_RECORD_IP_PLAIN;
	ip->length = weir_address_format(&address, request->ip_text);
	ip->at = request->ip_text;
}

/* What is the same request to a server is the same here: as formats settle a line's fields. */
static void settle_fields(struct check_request *request)
{
	struct weir_span *path = &request->record.fields[WEIR_FIELD_PATH], *host = &request->record.fields[WEIR_FIELD_HOST];
	struct weir_span *method = &request->record.fields[WEIR_FIELD_METHOD];
	if (request->record.ip == WEIR_RECORD_IP_UNTOLD)
		settle_ip(request);
	if (path->at != NULL)
		*path = weir_served_path(*path, &request->path_room);
	if (host->at != NULL)
		*host = weir_served_host(*host, request->host_text);
	if (method->at != NULL)
		*method = weir_served_method(*method);
}

bool check_request_client(struct check_request *request, struct weir_span hops, struct weir_span peer)
{
	struct weir_span *ip = &request->record.fields[WEIR_FIELD_IP];
	*ip = (struct weir_span){0};
	if (hops.length > 0 && !weir_client_ip_apply(request->client_ip, hops, &request->record))
		return false;
	if (ip->at == NULL && peer.length > 0) /* there are no hops, as of "-", or of a list without an element */
		*ip = peer;
	settle_ip(request);
	return ip->at != NULL;
}

bool check_request_exempts(struct check_request *request, const struct weir_policy *policy,
                           const struct weir_zone *zone, struct weir_span given)
{
	struct weir_span values[WEIR_ZONE_KEY_MAX];
	struct weir_error ignored;
	if (!weir_zone_exempts(zone) || given.length > CHECK_REQUEST_EXEMPT_MAX_BYTES ||
	    check_request_begin(request, policy, &ignored) != WEIR_OK ||
	    !check_key_values(zone, given, &request->key_room, values))
		return false;
	for (uint32_t i = 0; i < zone->key_count; i++)
		check_request_set(request, weir_span_of(zone->key[i].field), values[i]);
	settle_fields(request);
	return weir_matcher_exempts_key(request->matcher, zone, &request->record);
}

void check_request_note_crowd(struct check_request *request, uint32_t most)
{
	weir_notice_log(
		&request->crowded, request->options.log, WEIR_LOG_WARNING, "checks",
		"a request is in more than %u zones by policy %llu, and is not judged. Give zones a \"match\", so that "
		"each request is in few",
		most, (unsigned long long)request->version);
}

static enum weir_status refuse_crowd(struct check_request *request)
{
	check_request_note_crowd(request, CHECK_REQUEST_ZONES_MAX);
	return WEIR_FULL;
}

/* Path and target are had from one another where one alone is given, as in a line: of a format that has one of them. */
static void complete(struct check_request *request)
{
	struct weir_span path = request->record.fields[WEIR_FIELD_PATH];
	set(request, WEIR_FIELD_PATH, request->target);
	if (request->target_field >= 0)
		set(request, (unsigned)request->target_field, path);
}

enum weir_status check_request_find(struct check_request *request, struct check_found *found, uint32_t *count)
{
	struct weir_matched matched;
	*count = 0;
	complete(request);
	settle_fields(request);
	weir_matcher_match(request->matcher, &request->record, &matched);
	for (uint32_t i = 0; i < matched.event_count; i++)
		for (uint32_t k = 0; k < matched.events[i].zone_count; k++) {
			const struct weir_frame_zone *zone = &matched.events[i].zones[k];
			if (zone->done)
				continue;
			if (*count == CHECK_REQUEST_ZONES_MAX)
				return refuse_crowd(request);
			found[(*count)++] =
				(struct check_found){.zone = weir_policy_zone(request->policy, zone->id), .key = matched.events[i].key};
		}
	return WEIR_OK;
}
