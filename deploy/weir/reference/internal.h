/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `weir reference` share: each writes one kind of reference from the tables of all programs. */
#ifndef DEPLOY_WEIR_REFERENCE_INTERNAL_H
#define DEPLOY_WEIR_REFERENCE_INTERNAL_H

#include "common/config/arguments.h"
#include "common/json/json.h"

#include <stdio.h>

/** The daemons' command lines, NULL after the last. */
extern const struct weir_command_line *const reference_daemons[];

/* What can be said of a value by its word in the table. */
enum reference_value { REFERENCE_OTHER, REFERENCE_FILE, REFERENCE_DIRECTORY };

/** @param word  "FILE", of an option's value or an operand; or NULL */
enum reference_value reference_value_of(const char *word);

/* ---- manual pages ---- */

/** A program's or command's page. @param date  "2026-11-26" */
void reference_man(const struct weir_command_line *line, int section, const char *date, FILE *out);
/** weir.json(5), from the schema. */
void reference_man_config(const json_t *schema, const char *date, FILE *out);

/* ---- a shell's completion ---- */

void reference_bash(FILE *out);
void reference_zsh(FILE *out);
void reference_fish(FILE *out);

#endif
