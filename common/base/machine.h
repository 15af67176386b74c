/* SPDX-License-Identifier: Apache-2.0 */
/* The resources that this process may use: the container's limits, if there are any. */
#ifndef WEIR_COMMON_MACHINE_H
#define WEIR_COMMON_MACHINE_H

#include <stdint.h>

/** Processors that it may run on, at least 1. */
uint32_t weir_machine_processors(void);

/** Physical memory, or the control group's limit where that is lower. */
int64_t weir_machine_memory_bytes(void);

#endif
