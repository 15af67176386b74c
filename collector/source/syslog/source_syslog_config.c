/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syslog source's configuration, and its socket.
 *
 *     { "type": "syslog", "listen": "udp://127.0.0.1:514" }
 *
 *     listen          udp:// or tcp://, an address ("*": all; [::1] in brackets) or a name, and a port
 *     time_zone       of times without a zone; "UTC"
 *     line_max        longest message, that of the collector; a longer one is cut there
 *     receive_buffer  UDP: size of the kernel's buffer, 8 MiB
 *     connections     TCP: how many may be open at a time, 256
 *     connections_per_address   TCP: how many of them for one address, a quarter

 *     idle_timeout    TCP: a connection that is silent for so long is closed, 1h
 *     from            networks that messages are taken from; everywhere
 */
#include "collector/source/syslog/internal.h"

#include "collector/source/source_words.h"
#include "common/base/alloc.h"
#include "common/base/lookup.h"
#include "common/json/json_shape.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 64 << 10, BUFFER_BYTES = 8 << 20, BUFFER_MOST_BYTES = 1 << 30, BACKLOG = 128 };

/* Splits "tcp://[::1]:514" into its parts. */
static enum weir_status read_listen(const struct weir_json *at, struct syslog_config *config, struct weir_error *error)
{
	const char *text = NULL;
	enum weir_status status = weir_json_string(at, &text, error);
	if (status != WEIR_OK)
		return status;
	config->listen = text;
	config->tcp = strncmp(text, "tcp://", 6) == 0;
	const char *host = text + 6, *colon = strrchr(text, ':'), *end = NULL;
	char *rest = NULL;
	if ((config->tcp || strncmp(text, "udp://", 6) == 0) && colon >= host) {
		long port = strtol(colon + 1, &rest, 10);
		bool bracketed = *host == '[' && colon > host && colon[-1] == ']';
		host += bracketed;
		end = colon - bracketed;
		bool plain = colon[1] >= '0' && colon[1] <= '9' && *rest == '\0' && port >= 1 && port <= 65535;
		bool known = bracketed || memchr(host, ':', (size_t)(end - host)) == NULL;
		if (plain && known && end > host && (size_t)(end - host) < sizeof config->host) {
			snprintf(config->host, sizeof config->host, "%.*s", (int)(end - host), host);
			snprintf(config->port, sizeof config->port, "%ld", port);
			return WEIR_OK;
		}
	}
	return weir_json_fail(at, error,
	                      "is \"%s\"; give udp:// or tcp://, an address and a port, such as \"udp://127.0.0.1:514\" or "
	                      "\"tcp://[::1]:601\", * for all addresses",
	                      text);
}

/* Refuses members that are only for the other protocol. */
static enum weir_status refuse_others(const struct weir_json *config, bool tcp, struct weir_error *error)
{
	static const char *const tcp_names[] = {"connections", "connections_per_address", "idle_timeout", NULL};
	static const char *const udp_names[] = {"receive_buffer", NULL};
	const char *const *names = tcp ? udp_names : tcp_names;
	for (; *names != NULL; names++) {
		struct weir_json at = weir_json_member(config, *names);
		if (weir_json_exists(&at))
			return weir_json_fail(&at, error, "is only for %s", tcp ? "udp://" : "tcp://");
	}
	return WEIR_OK;
}

#define AT(member) offsetof(struct syslog_config, member)

static json_t *listen_shape(void)
{
	return weir_shape_pattern("^(udp|tcp)://.+:[0-9]+$");
}

static json_t *follow_shape(void)
{
	return json_pack("{s:b}", "const", 1);
}

const struct weir_json_rule syslog_members[] = {
	{.name = "type", .meaning = "the kind of source"},
	{.name = "name",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(name),
     .meaning = "a label, by which zones name it in \"sources\""},
	{.name = "listen",
     .needed = "give an address such as \"udp://127.0.0.1:514\"",
     .meaning = "udp://ADDRESS:PORT or tcp://ADDRESS:PORT; * is every address",
     .shape = listen_shape},
	SOURCE_FORMAT_RULE,
	{.name = "follow",
     .kind = WEIR_JSON_FLAG,
     .offset = AT(follow),
     .meaning = "must be true: there is no end",
     .shape = follow_shape},
	{.name = "time_zone", .kind = WEIR_JSON_TEXT, .offset = AT(zone_name), .meaning = "for times without a zone"},
	SOURCE_LINE_MAX_RULE(AT(line_max)),
	{.name = "receive_buffer",
     .kind = WEIR_JSON_SIZE,
     .offset = AT(receive_buffer_bytes),
     .least = 4096,
     .most = BUFFER_MOST_BYTES,
     .meaning = "UDP: how much the kernel keeps while nobody reads"},
	{.name = "connections",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(connections),
     .least = 1,
     .most = SYSLOG_CONNECTIONS_MAX,
     .meaning = "TCP: the most connections at a time"},
	{.name = "connections_per_address",
     .kind = WEIR_JSON_NUMBER,
     .offset = AT(share),
     .least = 1,
     .most = SYSLOG_CONNECTIONS_MAX,
     .meaning = "TCP: the most connections of one address"},
	SOURCE_SENDERS_MEMBER,
	{.name = "idle_timeout",
     .kind = WEIR_JSON_TIME,
     .offset = AT(idle_ms),
     .least = 1000,
     .most = INT64_C(7) * 86400000,
     .meaning = "TCP: close a connection that is silent this long"},
	{.name = NULL},
};

enum weir_status syslog_configure(struct syslog_config *config, const struct weir_json *json,
                                  const struct source_context *context, struct time_zone **zone,
                                  struct weir_error *error)
{
	struct weir_json listen_at = weir_json_member(json, "listen"), zone_at = weir_json_member(json, "time_zone");
	struct weir_json follow = weir_json_member(json, "follow");
	*config =
		(struct syslog_config){.zone_name = "UTC",
	                           .follow = true,
	                           .receive_buffer_bytes = BUFFER_BYTES,
	                           .connections = 256,
	                           .idle_ms = 3600000,
	                           .line_max = context->line_max_bytes > 0 ? context->line_max_bytes : LINE_MAX_BYTES};
	enum weir_status status = weir_json_read(json, syslog_members, config, error);
	if (status == WEIR_OK)
		status = read_listen(&listen_at, config, error);
	if (status == WEIR_OK)
		status = refuse_others(json, config->tcp, error);
	if (status == WEIR_OK)
		status = source_senders_read(json, &config->from, error);
	if (status == WEIR_OK && !config->follow)
		status = weir_json_fail(&follow, error, "cannot be false, because a syslog source has no end; remove it");
	struct weir_error why = {0};
	if (status == WEIR_OK && time_zone_new(config->zone_name, zone, &why) != WEIR_OK)
		status = weir_json_fail(&zone_at, error, "%s", why.text);
	return status;
}

/* Tries one address. @return a socket; -1: errno says why not */
static int bind_to(const struct addrinfo *at, const struct syslog_config *config)
{
	int one = 1, only = strcmp(config->host, "*") != 0;
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (config->tcp)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (at->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && (!config->tcp || listen(fd, BACKLOG) == 0))
		return fd;
	int reason = errno;
	close(fd);
	errno = reason;
	return -1;
}

enum weir_status syslog_socket(const struct syslog_config *config, int *fd, struct weir_error *error)
{
	bool any = strcmp(config->host, "*") == 0;
	struct addrinfo hints = {.ai_socktype = config->tcp ? SOCK_STREAM : SOCK_DGRAM,
	                         .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int result = getaddrinfo(any ? NULL : config->host, config->port, &hints, &found);
	if (result != 0)
		return weir_fail(error, weir_lookup_status(result), "cannot listen on %s: %s", config->listen,
		                 weir_lookup_words(result));
	*fd = -1;
	/* For "*" the IPv6 wildcard address is tried first, as it accepts IPv4 too. */
	for (int pass = any ? 0 : 1; pass < 2 && *fd < 0; pass++)
		for (const struct addrinfo *at = found; at != NULL && *fd < 0; at = at->ai_next)
			if (pass == 1 || at->ai_family == AF_INET6)
				*fd = bind_to(at, config);
	int reason = errno;
	freeaddrinfo(found);
	return *fd >= 0 ? WEIR_OK
	                : weir_fail(error, WEIR_IO, "cannot listen on %s: %s", config->listen, weir_errno_words(reason));
}
