/* SPDX-License-Identifier: Apache-2.0 */
/* By the C library's own resolver, with a state of its own: no thread shares it, and a test gives it a server. */
#include "common/exempt/dns.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/listen_address.h"
#include "common/exempt/verified_hosts.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_BYTES = 8192, RECORDS_MAX = 64, TRIES = 2, SERVERS_MAX = 2 };

struct weir_dns {
	struct __res_state state;
	int64_t patience_ms;
};

static enum weir_status set_resolver(struct weir_dns *dns, const char *resolver, struct weir_error *error)
{
	struct sockaddr_in server = {.sin_family = AF_INET};
	char *host = NULL;
	uint16_t port = 0;
	bool good = weir_listen_address(resolver, &host, &port) && inet_pton(AF_INET, host, &server.sin_addr) == 1;
	free(host);
	if (!good)
		return weir_fail(error, WEIR_INVALID, "\"%.80s\" is no address of a name server, such as \"127.0.0.1:53\"",
		                 resolver);
	server.sin_port = htons(port);
	dns->state.nscount = 1;
	dns->state.nsaddr_list[0] = server;
	return WEIR_OK;
}

enum weir_status weir_dns_new(const char *resolver, int64_t patience_ms, struct weir_dns **out,
                              struct weir_error *error)
{
	struct weir_dns *dns = weir_alloc(1, sizeof *dns);
	enum weir_status status = WEIR_OK;
	if (res_ninit(&dns->state) != 0) {
		free(dns);
		return weir_fail(error, WEIR_IO, "cannot read /etc/resolv.conf");
	}
	dns->state.retrans = patience_ms >= 1000 ? (int)(patience_ms / 1000) : 1;
	dns->state.retry = TRIES;
	dns->state.options |= RES_IGNTC; /* a connection would be waited for without end */
	if (dns->state.nscount > SERVERS_MAX)
		dns->state.nscount = SERVERS_MAX;
	dns->patience_ms = patience_ms;
	if (resolver != NULL)
		status = set_resolver(dns, resolver, error);
	if (status != WEIR_OK) {
		weir_dns_free(dns);
		return status;
	}
	*out = dns;
	return WEIR_OK;
}

void weir_dns_free(struct weir_dns *dns)
{
	if (dns == NULL)
		return;
	res_nclose(&dns->state);
	free(dns);
}

/* Takes one record of the type asked for. @return true: it is enough */
typedef bool take_record(void *context, const ns_msg *message, const ns_rr *record);

/* The library does not tell a server that cannot answer from none: one that answers does so sooner. */
static enum weir_dns_outcome failure(const struct weir_dns *dns, int64_t asked_ms)
{
	return errno == ECONNREFUSED || weir_monotonic_ms() - asked_ms >= dns->patience_ms ? WEIR_DNS_SILENT
	                                                                                   : WEIR_DNS_FAILED;
}

static enum weir_dns_outcome ask(struct weir_dns *dns, const char *name, ns_type type, take_record *take, void *context)
{
	unsigned char answer[ANSWER_BYTES];
	ns_msg message;
	ns_rr record;
	int64_t asked_ms = weir_monotonic_ms();
	errno = 0;
	int length = res_nquery(&dns->state, name, ns_c_in, (int)type, answer, sizeof answer);
	if (length < 0)
		return dns->state.res_h_errno == HOST_NOT_FOUND || dns->state.res_h_errno == NO_DATA ? WEIR_DNS_SAID
		                                                                                     : failure(dns, asked_ms);
	if (length > (int)sizeof answer || ns_initparse(answer, length, &message) != 0)
		return WEIR_DNS_FAILED;
	int count = ns_msg_count(message, ns_s_an);
	for (int i = 0; i < count && i < RECORDS_MAX; i++)
		if (ns_parserr(&message, ns_s_an, i, &record) == 0 && ns_rr_type(record) == type &&
		    take(context, &message, &record))
			break;
	return WEIR_DNS_SAID;
}

/* The name that DNS has for an address's own names. */
static void reverse_name(const struct weir_address *address, char name[80])
{
	const uint8_t *bytes = address->bytes;
	if (weir_address_is_v4(address)) {
		snprintf(name, 80, "%d.%d.%d.%d.in-addr.arpa", bytes[15], bytes[14], bytes[13], bytes[12]);
		return;
	}
	size_t length = 0;
	for (int i = 15; i >= 0; i--)
		length += (size_t)snprintf(name + length, 80 - length, "%x.%x.", bytes[i] & 15, bytes[i] >> 4);
	snprintf(name + length, 80 - length, "ip6.arpa");
}

struct pointers {
	weir_dns_wanted *wanted;
	void *context;
	char names[WEIR_VERIFIED_POINTERS_MAX][WEIR_HOST_MAX_BYTES + 1];
	int count;
};

/* A host's name: others are written with escapes that would be read as another name. */
static bool is_host(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
	return length > 0 && name[length] == '\0' && length <= WEIR_HOST_MAX_BYTES;
}

static bool take_pointer(void *context, const ns_msg *message, const ns_rr *record)
{
	struct pointers *pointers = context;
	char name[NS_MAXDNAME];
	if (ns_name_uncompress(ns_msg_base(*message), ns_msg_end(*message), ns_rr_rdata(*record), name, sizeof name) < 0 ||
	    !is_host(name) || !pointers->wanted(pointers->context, name))
		return false;
	memcpy(pointers->names[pointers->count++], name, strlen(name) + 1);
	return pointers->count == WEIR_VERIFIED_POINTERS_MAX;
}

struct sought {
	const struct weir_address *address;
	bool found;
};

static bool take_address(void *context, const ns_msg *message, const ns_rr *record)
{
	(void)message;
	struct sought *sought = context;
	const uint8_t *bytes = sought->address->bytes;
	bool v4 = weir_address_is_v4(sought->address);
	size_t length = v4 ? 4 : 16;
	sought->found =
		ns_rr_rdlen(*record) == length && memcmp(ns_rr_rdata(*record), v4 ? bytes + 12 : bytes, length) == 0;
	return sought->found;
}

enum weir_dns_outcome weir_dns_confirmed_name(struct weir_dns *dns, const struct weir_address *address,
                                              weir_dns_wanted *wanted, void *context,
                                              char name[WEIR_HOST_MAX_BYTES + 1])
{
	char reverse[80];
	struct pointers pointers = {.wanted = wanted, .context = context};
	int64_t end_ms = weir_monotonic_ms() + WEIR_DNS_MOST_MS;
	ns_type type = weir_address_is_v4(address) ? ns_t_a : ns_t_aaaa;
	reverse_name(address, reverse);
	name[0] = '\0';
	enum weir_dns_outcome outcome = ask(dns, reverse, ns_t_ptr, take_pointer, &pointers);
	for (int i = 0; i < pointers.count; i++) {
		struct sought sought = {.address = address};
		enum weir_dns_outcome said =
			weir_monotonic_ms() < end_ms ? ask(dns, pointers.names[i], type, take_address, &sought) : WEIR_DNS_FAILED;
		outcome = outcome > said ? outcome : said;
		if (!sought.found)
			continue;
		memcpy(name, pointers.names[i], WEIR_HOST_MAX_BYTES + 1);
		return WEIR_DNS_SAID;
	}
	return outcome;
}

static bool take_none(void *context, const ns_msg *message, const ns_rr *record)
{
	(void)context, (void)message, (void)record;
	return true;
}

enum weir_dns_outcome weir_dns_probe(struct weir_dns *dns)
{
	return ask(dns, ".", ns_t_ns, take_none, NULL);
}
