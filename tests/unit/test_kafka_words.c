/* SPDX-License-Identifier: Apache-2.0 */
/* What librdkafka and OpenSSL say, as they say it, and the cause that is read in it. */
#include "common/bus/kafka/kafka_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_cause_is_named_with_what_helps(void **state)
{
	(void)state;
	static const struct {
		const char *complaint, *words, *remedy;
		bool stays;
	} cases[] = {
		{"ssl://b1:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::certificate verify failed: broker "
	     "certificate could not be verified, verify that ssl.ca.location is correctly configured",
	     "it has expired, is not signed by bus.kafka \"ssl.ca.location\"", "(runbook: certificates)", true},
		{"ssl://b1:9093/1: SSL handshake failed: error:0A000415:SSL routines::sslv3 alert certificate expired: SSL alert "
	     "number 45",
	     "this client's certificate has expired", "ssl.certificate.location", true},
		{"sasl_plaintext://b1:9092/bootstrap: SASL authentication error: Authentication failed during authentication due "
	     "to invalid credentials with SASL mechanism SCRAM-SHA-256",
	     "wrong \"sasl.username\" or \"sasl.password\"", "(runbook: credentials)", true},
		{"b1:9092/bootstrap: Connect to ipv4#127.0.0.1:9092 failed: Connection refused", "no broker runs there",
	     "its disk is full", false},
		{"b1:9092/bootstrap: Failed to resolve 'b1:9092': Name or service not known", "cannot be resolved",
	     "bus.brokers", false},
		{"b1:9092/1: something that nobody has seen", NULL, "(runbook: broker-away)", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct weir_kafka_cause *cause = weir_kafka_cause(cases[i].complaint);
		if (cases[i].words == NULL)
			assert_null(cause->words);
		else
			assert_non_null(strstr(cause->words, cases[i].words));
		assert_non_null(strstr(cause->remedy, cases[i].remedy));
		assert_int_equal(cases[i].stays, cause->stays);
	}
}

/* A broker that ran and refuses now has ended, which a full disk does to it. */
static void a_broker_that_ran_is_looked_at_for_its_disk(void **state)
{
	(void)state;
	const struct weir_kafka_cause *refused = weir_kafka_cause("b1:9092/1: Connect to b1 failed: Connection refused");
	assert_non_null(strstr(refused->remedy, "(runbook: broker-away)"));
	assert_non_null(strstr(refused->remedy_after, "(runbook: broker-disk-full)"));
	assert_null(weir_kafka_cause("b1:9092/1: SASL authentication error: no")->remedy_after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_cause_is_named_with_what_helps),
	                                   cmocka_unit_test(a_broker_that_ran_is_looked_at_for_its_disk)};
	return cmocka_run_group_tests_name("kafka words", tests, NULL, NULL);
}
