/* SPDX-License-Identifier: Apache-2.0 */
/* Asked for by every loop whose length a log, a file or a policy decides. */
#include "deploy/weir/explain/patience.h"

#include "common/base/clock.h"
#include "common/base/stop.h"

bool patience_ended(const struct patience *patience)
{
	return patience != NULL && (atomic_load(weir_stop_flag()) || weir_monotonic_ms() >= patience->until_ms);
}

enum weir_status patience_check(const struct patience *patience, struct weir_error *error)
{
	if (!patience_ended(patience))
		return WEIR_OK;
	return weir_fail(error, WEIR_IO, "%s",
	                 atomic_load(weir_stop_flag()) ? "this process ends"
	                                               : "it takes too long for this process: ask weir explain");
}
