/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may send to a source that listens: the member "from" of its configuration, and the one rule for all such kinds.
 *
 * Whoever sends a line can have others blocked. So a source that other machines reach knows its senders: by a secret, by
 * the certificates that they show, or by the networks that they are in.
 */
#ifndef COLLECTOR_SOURCE_SENDERS_H
#define COLLECTOR_SOURCE_SENDERS_H

#include "collector/source/source.h"
#include "common/bytes/address.h"

struct sockaddr_storage;

enum { SOURCE_SENDERS_MAX = 64 };

/* Zero-initialised: everybody. */
struct source_senders {
	struct weir_network networks[SOURCE_SENDERS_MAX];
	uint32_t count; /* 0: everybody */
};

/** The shape of "from". */
json_t *source_senders_shape(void);
#define SOURCE_SENDERS_MEMBER                                                                             \
	{                                                                                                     \
		.name = "from", .meaning = "networks: what others send is refused", .shape = source_senders_shape \
	}

/** Reads "from" of a source's configuration; it may be absent. */
WEIR_MUST_USE enum weir_status source_senders_read(const struct weir_json *config, struct source_senders *senders,
                                                   struct weir_error *error);

/** The address of a socket's name; false: it has none that is known. */
bool source_senders_address(const struct sockaddr_storage *name, struct weir_address *address);

/** Whether what this one sends is taken. */
bool source_senders_have(const struct source_senders *senders, const struct weir_address *address);
/** The same of a socket's name. */
bool source_senders_take(const struct source_senders *senders, const struct sockaddr_storage *name);

/**
 * Refuses a listener to which anybody can send: it is reached from other machines, and asks for nothing.
 *
 * @param host     where it listens
 * @param example  of a loopback address, as "listen" has it
 * @param knows    whether it asks for a secret or a certificate
 * @param secrets  the members by which it would: "\"token\""
 */
WEIR_MUST_USE enum weir_status source_senders_guard(const struct weir_json *config,
                                                    const struct source_senders *senders, const char *host,
                                                    const char *example, bool knows, const char *secrets,
                                                    struct weir_error *error);

/** Appends that a listener takes lines from everybody who reaches it, if so. Parameters as above. */
void source_senders_doubt(const struct source_senders *senders, const char *host, bool knows, struct weir_text *words);

#endif
