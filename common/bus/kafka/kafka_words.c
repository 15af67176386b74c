/* SPDX-License-Identifier: Apache-2.0 */
/* A table of signs, the first that fits; they are those of librdkafka 1.6 to 2.x and OpenSSL 1.1 and 3. */
#include "common/bus/kafka/kafka_words.h"

#include <stddef.h>
#include <string.h>

#define CERTIFICATES "(runbook: certificates)"
#define CREDENTIALS "(runbook: credentials)"
#define AWAY "(runbook: broker-away)"

static const struct weir_kafka_cause causes[] = {
	{"certificate verify failed",
     "TLS failed: its certificate could not be verified: it has expired, is not signed by bus.kafka "
     "\"ssl.ca.location\", or is for another name",
     "Renew the broker's certificate, or give \"ssl.ca.location\" the authority that signed it, and restart "
     "this process " CERTIFICATES,
     true, NULL},
	{"certificate could not be verified",
     "TLS failed: its certificate could not be verified: it has expired, is not signed by bus.kafka "
     "\"ssl.ca.location\", or is for another name",
     "Renew the broker's certificate, or give \"ssl.ca.location\" the authority that signed it, and restart "
     "this process " CERTIFICATES,
     true, NULL},
	{"alert certificate expired", "TLS failed: the broker says that this client's certificate has expired",
     "Renew \"ssl.certificate.location\", and restart this process " CERTIFICATES, true, NULL},
	{"alert certificate", "TLS failed: the broker refuses this client's certificate, or misses one",
     "Look at \"ssl.certificate.location\" and \"ssl.key.location\" of bus.kafka " CERTIFICATES, true, NULL},
	{"alert bad certificate", "TLS failed: the broker refuses this client's certificate",
     "Look at \"ssl.certificate.location\" and \"ssl.key.location\" of bus.kafka " CERTIFICATES, true, NULL},
	{"alert unknown ca", "TLS failed: the broker does not know the authority of this client's certificate",
     "Let the brokers' truststore have it, or use another certificate " CERTIFICATES, true, NULL},
	{"SSL handshake failed", NULL,
     "Look whether the port speaks TLS, and at \"ssl.ca.location\" of bus.kafka " CERTIFICATES, true, NULL},
	{"SASL authentication error", "it rejects the user: wrong \"sasl.username\" or \"sasl.password\" of bus.kafka",
     "Set them right, and restart this process " CREDENTIALS, true, NULL},
	{"Authentication failed", "it rejects the user: wrong \"sasl.username\" or \"sasl.password\" of bus.kafka",
     "Set them right, and restart this process " CREDENTIALS, true, NULL},
	{"SASL", NULL, "Look at \"sasl.mechanism\", \"sasl.username\" and \"sasl.password\" of bus.kafka " CREDENTIALS,
     true, NULL},
	{"incorrect security.protocol",
     "it closes the connection: \"security.protocol\" of bus.kafka does not fit this port, or it is just starting",
     "Look at \"security.protocol\", and at the broker's own log " AWAY, false, NULL},
	{"uthorization failed", NULL, "Give the user of this process the right to it " CREDENTIALS, true, NULL},
	{"Failed to resolve", "its name cannot be resolved", "Look at the name server, and at bus.brokers " AWAY, false,
     NULL},
	{"Connection refused", "Connection refused: no broker runs there",
     "Look at the broker's own log, and whether its disk is full; start it " AWAY, false,
     "It has run until now: look at the broker's own log and its disk, as a full one ends it; make room, and start it "
     "(runbook: broker-disk-full)"},
	{"o route to host", NULL, "Look at the network, and whether that machine runs " AWAY, false, NULL},
	{"timed out", NULL, "Look at the broker's own log and the network " AWAY, false, NULL},
	{"", NULL, "Look at the broker's own log, and whether its disk is full " AWAY, false, NULL},
};

const struct weir_kafka_cause *weir_kafka_cause(const char *complaint)
{
	const struct weir_kafka_cause *cause = causes;
	while (strstr(complaint, cause->sign) == NULL)
		cause++;
	return cause;
}
