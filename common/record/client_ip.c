/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the client in a chain of proxies by walking it from the right.
 *
 * What is split off at the right was written by a proxy that is trusted, and is read without a look at what lies left of
 * it: a client can write there what it likes, quotes that do not end included.
 */
#include "common/record/client_ip.h"

#include "common/base/alloc.h"
#include "common/bytes/address.h"
#include "common/json/json_shape.h"
#include "common/match/network_set.h"

#include <stdlib.h>
#include <strings.h>

struct weir_client_ip {
	int header;       /* field index */
	bool trusts_unix; /* "unix:", what nginx writes for a peer on a socket of the machine */
	struct weir_network_set trusted;
};

static enum weir_status read_trusted(const struct weir_json *list, uint32_t count, struct weir_client_ip *made,
                                     struct weir_error *error)
{
	struct weir_network *networks = weir_alloc(count, sizeof *networks);
	uint32_t network_count = 0;
	enum weir_status status = WEIR_OK;
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_json element = weir_json_element(list, i);
		const char *text = NULL, *why;
		status = weir_json_string(&element, &text, error);
		if (status != WEIR_OK)
			break;
		if (strcmp(text, "unix:") == 0)
			made->trusts_unix = true;
		else if (!weir_network_parse(weir_span_of(text), &networks[network_count++], &why))
			status =
				weir_json_fail(&element, error, "\"%s\": %s; expected a network such as \"10.0.0.0/8\"", text, why);
	}
	if (status == WEIR_OK)
		weir_network_set_init(&made->trusted, networks, network_count);
	free(networks);
	return status;
}

static json_t *header_shape(void)
{
	return weir_shape_name(0);
}

static json_t *trusted_shape(void)
{
	return weir_shape_list(1, WEIR_CLIENT_IP_TRUSTED_MAX, weir_shape_name(0));
}

static const struct weir_json_rule members[] = {
	{.name = "header",
     .kind = WEIR_JSON_TEXT,
     .needed = "name the field that holds X-Forwarded-For, such as \"xff\"",
     .meaning = "the field that holds X-Forwarded-For or Forwarded",
     .shape = header_shape},
	{.name = "trusted",
     .needed = "list the proxies' networks, such as [\"10.0.0.0/8\", \"2001:db8::1\"]",
     .meaning = "networks of proxies: the rightmost hop outside of them is the client",
     .shape = trusted_shape},
	{.name = NULL},
};

json_t *weir_client_ip_shape(void)
{
	return weir_shape_object(members);
}

enum weir_status weir_client_ip_new(const struct weir_json *config, struct weir_field_table *fields,
                                    struct weir_client_ip **client_ip, struct weir_error *error)
{
	*client_ip = NULL;
	if (!weir_json_exists(config))
		return WEIR_OK;
	enum weir_status status = weir_json_known(config, members, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json header = weir_json_member(config, "header"), trusted = weir_json_member(config, "trusted");
	const char *name = NULL;
	status = weir_json_read(config, members, &name, error);
	if (status != WEIR_OK)
		return status;
	if (name[0] == '\0')
		return weir_json_fail(&header, error, "must name the field that holds X-Forwarded-For, such as \"xff\"");
	size_t count = json_array_size(trusted.value); /* 0 for anything but an array */
	if (count == 0 || count > WEIR_CLIENT_IP_TRUSTED_MAX)
		return weir_json_fail(
			&trusted, error,
			"must list the proxies' networks, such as [\"10.0.0.0/8\", \"2001:db8::1\"], 1 to %d of them",
			WEIR_CLIENT_IP_TRUSTED_MAX);

	struct weir_client_ip *made = weir_alloc(1, sizeof *made);
	status = read_trusted(&trusted, (uint32_t)count, made, error);
	if (status == WEIR_OK) {
		made->header = weir_field_table_want(fields, name);
		if (made->header < 0)
			status =
				weir_json_fail(&header, error, "is one field too many: zones and formats can use %d", WEIR_FIELD_MAX);
	}
	if (status != WEIR_OK) {
		weir_client_ip_free(made);
		return status;
	}
	fields->wanted |= UINT64_C(1) << WEIR_FIELD_IP;
	*client_ip = made;
	return WEIR_OK;
}

void weir_client_ip_free(struct weir_client_ip *client_ip)
{
	if (client_ip == NULL)
		return;
	weir_network_set_deinit(&client_ip->trusted);
	free(client_ip);
}

int weir_client_ip_header(const struct weir_client_ip *client_ip)
{
	return client_ip->header;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '+';
}

static bool is_encoded_blank(const char *at)
{
	return memcmp(at, "%20", 3) == 0;
}

/* Takes off the blanks around a text: also '+' and "%20", as logs in columns write them. No address has those there. */
static struct weir_span trim(const char *begin, const char *end)
{
	for (;;) {
		if (begin < end && is_blank(*begin))
			begin++;
		else if (end - begin >= 3 && is_encoded_blank(begin))
			begin += 3;
		else
			break;
	}
	for (;;) {
		if (end > begin && is_blank(end[-1]))
			end--;
		else if (end - begin >= 3 && is_encoded_blank(end - 3))
			end -= 3;
		else
			break;
	}
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

/* Whether the quote at `at` begins or ends a string: no backslash takes it, or an even number of them. */
static bool is_quote(const char *begin, const char *at)
{
	const char *slash = at;
	while (slash > begin && slash[-1] == '\\')
		slash--;
	return *at == '"' && (at - slash) % 2 == 0;
}

/*
 * The comma before the last element of a list, or NULL. One within quotes is part of an element.
 *
 * @param quote  the list's first, which is looked for once: a list of empty elements would be read for each; NULL: none
 */
static const char *last_comma(const char *begin, const char *end, const char *quote)
{
	bool quoted = false;
	if (quote == NULL || quote >= end)
		return memrchr(begin, ',', (size_t)(end - begin));
	for (const char *at = end; at > begin;) {
		at--;
		if (*at == ',' && !quoted)
			return at;
		if (*at == '"' && is_quote(begin, at))
			quoted = !quoted;
	}
	return NULL;
}

/* Where a pair of `Forwarded` ends: at its ';', or with the element. */
static const char *pair_end(const char *at, const char *end)
{
	bool quoted = false;
	for (; at < end && (quoted || *at != ';'); at++) {
		if (*at == '\\' && quoted && at + 1 < end)
			at++;
		else if (*at == '"')
			quoted = !quoted;
	}
	return at;
}

static struct weir_span without_quotes(struct weir_span text)
{
	if (text.length >= 2 && text.at[0] == '"' && text.at[text.length - 1] == '"')
		return (struct weir_span){.at = text.at + 1, .length = text.length - 2};
	return text;
}

/* What an element names: itself, or the value of its "for=". */
static struct weir_span node_of(struct weir_span element)
{
	const char *at = element.at, *end = at + element.length;
	if (memchr(at, '=', element.length) == NULL)
		return without_quotes(element);
	while (at < end) {
		const char *behind = pair_end(at, end), *equals = memchr(at, '=', (size_t)(behind - at));
		struct weir_span name = trim(at, equals != NULL ? equals : behind);
		if (equals != NULL && name.length == 3 && strncasecmp(name.at, "for", 3) == 0)
			return without_quotes(trim(equals + 1, behind));
		at = behind + 1;
	}
	return (struct weir_span){.at = element.at, .length = 0};
}

/* What the elements of a list came to, from the right. */
enum walk {
	WALK_ON,      /* all of them are trusted, or there was none */
	WALK_CLIENT,  /* one is not: it is the client */
	WALK_UNKNOWN, /* one names nobody */
};

/* @param client  set to each address on the way */
static enum walk walk_list(const struct weir_client_ip *rule, struct weir_span list, struct weir_span *client)
{
	const char *end = list.at + list.length, *quote = memchr(list.at, '"', list.length);
	for (const char *comma = end; comma != NULL; end = comma) {
		comma = last_comma(list.at, end, quote);
		struct weir_span element = trim(comma != NULL ? comma + 1 : list.at, end);
		if (element.length == 0)
			continue;
		struct weir_address address;
		struct weir_span node = node_of(element);
		if (!weir_address_read(node, &address))
			return WALK_UNKNOWN;
		*client = node;
		if (!weir_network_set_has(&rule->trusted, &address))
			return WALK_CLIENT;
	}
	return WALK_ON;
}

bool weir_client_ip_apply(const struct weir_client_ip *client_ip, struct weir_span header, struct weir_record *record)
{
	struct weir_span *ip = &record->fields[WEIR_FIELD_IP];
	struct weir_address address;
	enum walk walk = WALK_ON;
	bool none = weir_span_equal(header, weir_span_of("-")); /* as servers write a header that did not come */
	if (ip->at == NULL && record->cut)
		return false; /* whether the peer is a trusted proxy stands in what the line lacks */
	if (ip->at != NULL) {
		struct weir_span bare = trim(ip->at, ip->at + ip->length);
		if (weir_address_read(bare, &address))
			*ip = bare;
		bool is_list = memchr(ip->at, ',', ip->length) != NULL || memchr(ip->at, '=', ip->length) != NULL;
		bool is_unix = client_ip->trusts_unix && weir_span_equal(*ip, weir_span_of("unix:"));
		if (is_unix)
			*ip = (struct weir_span){0};
		else if (!is_list && !weir_address_read(*ip, &address))
			return true; /* a peer with a name is not trusted */
		else
			walk = walk_list(client_ip, *ip, ip);
	}
	if (walk == WALK_ON && header.at == NULL && record->cut)
		return false; /* the header may stand in what the line lacks */
	if (walk == WALK_ON && header.at != NULL && !none)
		walk = walk_list(client_ip, header, ip);
	record->ip = WEIR_RECORD_IP_UNTOLD;
	return walk != WALK_UNKNOWN;
}
