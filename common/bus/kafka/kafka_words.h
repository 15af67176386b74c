/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What librdkafka and OpenSSL say of a broker, in words that name the cause and what
 * helps. Their own name neither an expired certificate nor a wrong password as such.
 */
#ifndef WEIR_KAFKA_WORDS_H
#define WEIR_KAFKA_WORDS_H

#include <stdbool.h>

struct weir_kafka_cause {
	const char *sign;         /* a part of their words */
	const char *words;        /* what it means; NULL: their own words say it */
	const char *remedy;       /* what the operator does */
	bool stays;               /* no broker's return ends it: somebody must do something */
	const char *remedy_after; /* what the operator does where brokers have answered this process; NULL: the same */
};

/** The cause behind their words; never NULL: the last one is for all that are not known. */
const struct weir_kafka_cause *weir_kafka_cause(const char *complaint);

#endif
