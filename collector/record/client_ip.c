/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the client in an X-Forwarded-For chain by walking it from the right.
 *
 * Only text moves: the result is a part of the line, so that a key made of it is what an operator reads in the log.
 */
#include "collector/record/client_ip.h"

#include "common/base/alloc.h"
#include "common/bytes/address.h"

#include <stdlib.h>

struct client_ip {
	int header; /* field index */
	uint32_t trusted_count;
	struct weir_network trusted[];
};

static enum weir_status read_trusted(const struct weir_json *list, struct client_ip *made, struct weir_error *error)
{
	for (uint32_t i = 0; i < made->trusted_count; i++) {
		struct weir_json element = weir_json_element(list, i);
		const char *text = NULL, *why;
		enum weir_status status = weir_json_string(&element, &text, error);
		if (status != WEIR_OK)
			return status;
		if (!weir_network_parse(weir_span_of(text), &made->trusted[i], &why))
			return weir_json_fail(&element, error, "\"%s\": %s; expected a network such as \"10.0.0.0/8\"", text, why);
	}
	return WEIR_OK;
}

enum weir_status client_ip_new(const struct weir_json *config, struct field_table *fields, struct client_ip **client_ip,
                               struct weir_error *error)
{
	static const char *const names[] = {"header", "trusted", NULL};
	*client_ip = NULL;
	if (!weir_json_exists(config))
		return WEIR_OK;
	enum weir_status status = weir_json_only(config, names, error);
	if (status != WEIR_OK)
		return status;
	struct weir_json header = weir_json_member(config, "header"), trusted = weir_json_member(config, "trusted");
	const char *name = NULL;
	status = weir_json_string(&header, &name, error);
	if (status != WEIR_OK)
		return status;
	if (name == NULL || name[0] == '\0')
		return weir_json_fail(&header, error, "must name the field that holds X-Forwarded-For, such as \"xff\"");
	size_t count = json_array_size(trusted.value); /* 0 for anything but an array */
	if (count == 0 || count > CLIENT_IP_TRUSTED_MAX)
		return weir_json_fail(
			&trusted, error,
			"must list the proxies' networks, such as [\"10.0.0.0/8\", \"2001:db8::1\"], 1 to %d of them",
			CLIENT_IP_TRUSTED_MAX);

	struct client_ip *made = weir_alloc(1, sizeof *made + count * sizeof made->trusted[0]);
	made->trusted_count = (uint32_t)count;
	status = read_trusted(&trusted, made, error);
	if (status == WEIR_OK) {
		made->header = field_table_want(fields, name);
		if (made->header < 0)
			status = weir_json_fail(&header, error, "is one field too many: zones and formats can use %d", FIELD_MAX);
	}
	if (status != WEIR_OK) {
		client_ip_free(made);
		return status;
	}
	fields->wanted |= UINT64_C(1) << FIELD_IP;
	*client_ip = made;
	return WEIR_OK;
}

void client_ip_free(struct client_ip *client_ip)
{
	free(client_ip);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct weir_span trim(const char *begin, const char *end)
{
	while (begin < end && is_blank(*begin))
		begin++;
	while (end > begin && is_blank(end[-1]))
		end--;
	return (struct weir_span){.at = begin, .length = (uint32_t)(end - begin)};
}

/* ":" and 1 to 5 digits, or nothing. */
static bool is_port(const char *at, const char *end)
{
	if (at == end)
		return true;
	if (*at != ':' || end - at < 2 || end - at > 6)
		return false;
	for (at++; at < end; at++) {
		if (*at < '0' || *at > '9')
			return false;
	}
	return true;
}

/* Takes brackets and a port off a hop; an IPv6 address without brackets has no port. */
static struct weir_span bare(struct weir_span hop)
{
	const char *end = hop.at + hop.length;
	if (hop.length > 0 && hop.at[0] == '[') {
		const char *close = memchr(hop.at, ']', hop.length);
		if (close != NULL && is_port(close + 1, end))
			return (struct weir_span){.at = hop.at + 1, .length = (uint32_t)(close - hop.at - 1)};
		return hop;
	}
	const char *colon = memchr(hop.at, ':', hop.length);
	if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL && is_port(colon, end))
		hop.length = (uint32_t)(colon - hop.at);
	return hop;
}

/*
 * Takes one hop of the walk.
 *
 * @param client  set to the hop if it is an address
 * @return whether the walk goes on to the left
 */
static bool take_hop(const struct client_ip *rule, struct weir_span hop, struct weir_span *client)
{
	struct weir_address address;
	hop = bare(hop);
	if (!weir_address_parse(hop, &address))
		return false;
	*client = hop;
	for (uint32_t i = 0; i < rule->trusted_count; i++) {
		if (weir_network_contains(&rule->trusted[i], &address))
			return true;
	}
	return false;
}

void client_ip_apply(const struct client_ip *client_ip, struct record *record)
{
	struct weir_span header = record->fields[client_ip->header], *ip = &record->fields[FIELD_IP];
	if (ip->at != NULL && !take_hop(client_ip, *ip, ip))
		return;
	if (header.at == NULL)
		return;
	const char *end = header.at + header.length;
	for (;;) {
		const char *comma = memrchr(header.at, ',', (size_t)(end - header.at));
		const char *begin = comma != NULL ? comma + 1 : header.at;
		if (!take_hop(client_ip, trim(begin, end), ip) || comma == NULL)
			return;
		end = comma;
	}
}
