/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind "amqp": a queue of RabbitMQ. One message is one record.
 *
 * A stream queue has offsets: its id is of the source's name, the virtual host, the queue and the generation, the same in
 * every collector, and a position is the offset behind the message. Any other queue gives a message to one consumer, and
 * keeps it until it is acknowledged: positions count what was taken, and mean nothing at the next start.
 */
#ifndef COLLECTOR_SOURCE_AMQP_H
#define COLLECTOR_SOURCE_AMQP_H

#include "collector/source/source.h"

extern const struct source_ops source_amqp_ops;

#endif
