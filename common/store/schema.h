/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema as text: SQL in numbered steps, for a server and for SQLite alike.
 *
 * Step N brings a database from version N - 1 to N, and is never changed once
 * it has been released: a change of the tables is one more step, at the end. A
 * step begins at a line "-- ---- step N ----"; what stands before the first one
 * is for people. The text's last step is the version that it makes.
 *
 * @thread any
 */
#ifndef WEIR_COMMON_STORE_SCHEMA_H
#define WEIR_COMMON_STORE_SCHEMA_H

#include "common/base/span.h"

#include <stdbool.h>

/** The version that all steps together make. */
uint32_t weir_schema_version(struct weir_span schema);

/** The SQL of a step, borrowed from the text. @param number  1 ... weir_schema_version() */
struct weir_span weir_schema_step(struct weir_span schema, uint32_t number);

/**
 * Takes the next statement off a step's SQL: without the comments before it, and without its semicolon.
 *
 * @param sql        what is left of it, from then on
 * @param statement  borrowed from the text
 * @return false: there is no more
 */
bool weir_schema_statement(struct weir_span *sql, struct weir_span *statement);

#endif
