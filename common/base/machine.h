/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may use of the machine: the container's limits where there are some. */
#ifndef WEIR_COMMON_MACHINE_H
#define WEIR_COMMON_MACHINE_H

#include <stdint.h>

/** Processors that it may run on, at least 1. */
uint32_t weir_machine_processors(void);

/** Physical memory, or the control group's limit where that is lower. */
int64_t weir_machine_memory_bytes(void);

#endif
