/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's own check of its sources. */
#include "collector/follow/source_check.h"
#include "deploy/weir/doctor/internal.h"

void doctor_check_sources(struct doctor *doctor, const struct weir_check *check)
{
	(void)doctor;
	source_check(check);
}
