/* SPDX-License-Identifier: Apache-2.0 */
/* Networks that senders are in; who is in none of them, and shows nothing else, is anybody. */
#include "collector/source/source_senders.h"

#include "common/bytes/listen_address.h"
#include "common/json/json_shape.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { V4_PREFIX = 96 };

json_t *source_senders_shape(void)
{
	return weir_shape_list(1, SOURCE_SENDERS_MAX, weir_shape_name(0));
}

enum weir_status source_senders_read(const struct weir_json *config, struct source_senders *senders,
                                     struct weir_error *error)
{
	struct weir_json list = weir_json_member(config, "from");
	if (!weir_json_exists(&list))
		return WEIR_OK;
	size_t count = json_array_size(list.value); /* 0 for anything but an array */
	if (count == 0 || count > SOURCE_SENDERS_MAX)
		return weir_json_fail(&list, error, "must list 1 to %d networks, such as [\"10.0.0.0/8\", \"2001:db8::1\"]",
		                      SOURCE_SENDERS_MAX);
	for (size_t i = 0; i < count; i++) {
		struct weir_json element = weir_json_element(&list, i);
		const char *text = NULL, *why;
		enum weir_status status = weir_json_string(&element, &text, error);
		if (status != WEIR_OK)
			return status;
		if (!weir_network_parse(weir_span_of(text), &senders->networks[i], &why))
			return weir_json_fail(&element, error, "\"%s\": %s; expected a network such as \"10.0.0.0/8\"", text, why);
	}
	senders->count = (uint32_t)count;
	return WEIR_OK;
}

bool source_senders_address(const struct sockaddr_storage *name, struct weir_address *address)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	if (name->ss_family == AF_INET6) {
		memcpy(address->bytes, &((const struct sockaddr_in6 *)(const void *)name)->sin6_addr, 16);
		return true;
	}
	if (name->ss_family != AF_INET)
		return false;
	memcpy(address->bytes, mapped, sizeof mapped);
	memcpy(address->bytes + 12, &((const struct sockaddr_in *)(const void *)name)->sin_addr, 4);
	return true;
}

bool source_senders_have(const struct source_senders *senders, const struct weir_address *address)
{
	bool found = senders->count == 0;
	for (uint32_t i = 0; i < senders->count && !found; i++)
		found = weir_network_contains(&senders->networks[i], address);
	return found;
}

bool source_senders_take(const struct source_senders *senders, const struct sockaddr_storage *name)
{
	struct weir_address address;
	return senders->count == 0 || (source_senders_address(name, &address) && source_senders_have(senders, &address));
}

static bool has_everybody(const struct source_senders *senders)
{
	bool found = senders->count == 0;
	for (uint32_t i = 0; i < senders->count && !found; i++) {
		const struct weir_network *network = &senders->networks[i];
		found = network->prefix == 0 || (network->prefix == V4_PREFIX && weir_address_is_v4(&network->base));
	}
	return found;
}

enum weir_status source_senders_guard(const struct weir_json *config, const struct source_senders *senders,
                                      const char *host, const char *example, bool knows, const char *secrets,
                                      struct weir_error *error)
{
	struct weir_json listen = weir_json_member(config, "listen");
	if (knows || senders->count > 0 || weir_listen_is_loopback(host))
		return WEIR_OK;
	return weir_json_fail(&listen, error,
	                      "must be a loopback address such as \"%s\" unless %s is set, or the networks of its senders "
	                      "are in \"from\": anyone who can reach it could have others blocked",
	                      example, secrets);
}

void source_senders_doubt(const struct source_senders *senders, const char *host, bool knows, struct weir_text *words)
{
	if (!knows && !weir_listen_is_loopback(host) && has_everybody(senders))
		weir_text_puts(
			words, "takes lines from everybody who reaches it, and whoever sends them can have others blocked: name "
				   "the networks of its senders in \"from\", such as [\"10.0.0.0/8\"], or let it listen on a "
				   "loopback address");
}
