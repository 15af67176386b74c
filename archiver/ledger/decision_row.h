/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A published decision as a row: one message of the topic of decisions, or of those in shadow mode, read.
 */
#ifndef ARCHIVER_DECISION_ROW_H
#define ARCHIVER_DECISION_ROW_H

#include "common/bus/bus.h"
#include "common/store/archive.h"

struct decision_row {
	struct weir_archive_decision row;
	bool shadow; /* its mode is shadow: nobody enforces it */
	char *texts; /* owned: the row's texts lie in it */
};

/**
 * Reads a message. A text of an operator that is longer than 1,024 bytes is cut.
 *
 * @return WEIR_OK: decision_row_deinit(); WEIR_INVALID: it is no decision, and why
 */
WEIR_MUST_USE enum weir_status decision_row_read(const struct weir_message *message, struct decision_row *row,
                                                 struct weir_error *error);
void decision_row_deinit(struct decision_row *row);

#endif
