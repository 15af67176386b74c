/* SPDX-License-Identifier: Apache-2.0 */
/* A server of checks in the test's own thread, over a judge that lets everything pass or has no answer, and a client's connection to it. */
#ifndef WEIR_TESTS_SUPPORT_ASKING_H
#define WEIR_TESTS_SUPPORT_ASKING_H

#include "limiter/check/link_server.h"

struct asking {
	struct weir_policy *policy; /* NULL: there is none yet */
	uint32_t asked;             /* how many asks were judged */
	bool unavailable;           /* none of them can be */
	struct link_server *server;
	uint16_t port;
	int fd;
	char reply[1 << 16]; /* the last one */
};

/** To make a server with. */
struct link_options asking_options(struct asking *asking, enum weir_on_unavailable on_unavailable);
/** Listens, and connects the client. @param server  taken */
void asking_begin(struct asking *asking, struct link_server *server);
/** The policy of a list of zones, in JSON, is in force. */
void asking_use(struct asking *asking, const char *zones);
/** Sends bytes. @return all that came back at once; "" where the connection ended */
const char *asking_send(struct asking *asking, const char *bytes);
/** Lets time pass, by the server's clock, too. */
void asking_wait(struct asking *asking, int ms);
/** Whether the connection is open once the server has looked at its connections. */
bool asking_is_open(struct asking *asking);
void asking_end(struct asking *asking);

#endif
