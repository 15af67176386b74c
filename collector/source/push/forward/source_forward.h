/* SPDX-License-Identifier: Apache-2.0 */
/* The source of type "forward": what Fluentd, Fluent Bit, Docker and loggers send by the Fluent Forward protocol. */
#ifndef COLLECTOR_SOURCE_FORWARD_H
#define COLLECTOR_SOURCE_FORWARD_H

#include "collector/source/source.h"

extern const struct source_ops source_forward_ops;

#endif
