/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local bus as another process sees it: a bus that only reads, beside the process that holds the log, and while none
 * does.
 *
 * It takes no lock, writes nothing and delays no trimming. Its consumers follow the files as they grow, are succeeded
 * and are removed; a message that was removed before it was read is a gap, as of any bus. What a consumer gets is
 * whole, but may not be on disk yet: after a crash of the machine, which ends this process as well, the log may not
 * hold it. What the holder could not write and wrote again into its next file is delivered again.
 */
#ifndef WEIR_COMMON_BUS_LOCAL_VIEW_H
#define WEIR_COMMON_BUS_LOCAL_VIEW_H

#include "common/bus/bus.h"

/**
 * Opens a view; no producers can be made of it.
 *
 * A log that is removed, or made anew in the same place, ends at offset 0 from then on.
 *
 * @param directory  of the bus, as for weir_bus_local_open()
 * @return WEIR_OK; WEIR_AGAIN: there is no log yet; WEIR_INVALID: it is none; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_bus_local_view(const char *directory, struct weir_bus **bus,
                                                   struct weir_error *error);

#endif
