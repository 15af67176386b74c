/* SPDX-License-Identifier: Apache-2.0 */
/* The resources that this process may use: the limits of its container or its systemd unit, if there are any. */
#ifndef WEIR_COMMON_MACHINE_H
#define WEIR_COMMON_MACHINE_H

#include <stdint.h>

/** Processors that it may run on, at least 1. */
uint32_t weir_machine_processors(void);

/**
 * The least limit of memory of the control groups that a process is in and of all above them; -1: there is none.
 *
 * @param groups   a file as /proc/self/cgroup
 * @param mounted  where they are, as /sys/fs/cgroup: of version 2, or in folders by controller of version 1
 */
int64_t weir_machine_group_bytes(const char *groups, const char *mounted);

/** Physical memory, or the least limit of this process's control groups where that is lower. */
int64_t weir_machine_memory_bytes(void);

#endif
