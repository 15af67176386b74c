/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind "nats": a JetStream stream of log lines. One message is one record.
 *
 * The stream has one id for all collectors: of the source's name, the stream's, the moment of its creation and the
 * subjects. A position is the message's sequence number in the stream, so a stream that was made anew is another one.
 */
#ifndef COLLECTOR_SOURCE_NATS_H
#define COLLECTOR_SOURCE_NATS_H

#include "collector/source/source.h"

extern const struct source_ops source_nats_ops;

#endif
