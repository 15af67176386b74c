/* SPDX-License-Identifier: Apache-2.0 */
/* The name of the time zone that local times are shown in. */
#ifndef DEPLOY_WEIR_TERMINAL_LOCAL_ZONE_H
#define DEPLOY_WEIR_TERMINAL_LOCAL_ZONE_H

#include <time.h>

/**
 * What stands behind a local time: "CET", and "UTC" where TZ names a zone that the system does not know.
 *
 * @param parts  by localtime_r(): what is returned is valid while it is, and TZ stays
 */
const char *local_zone(const struct tm *parts);

#endif
