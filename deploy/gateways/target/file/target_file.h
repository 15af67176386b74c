/* SPDX-License-Identifier: Apache-2.0 */
/* A file of JSON lines as a target; and what targets that are files have in common. */
#ifndef DEPLOY_GATEWAYS_TARGET_FILE_TARGET_FILE_H
#define DEPLOY_GATEWAYS_TARGET_FILE_TARGET_FILE_H

#include "deploy/gateways/target/list_file.h"
#include "deploy/gateways/target/target.h"

struct file_target {
	struct target target;
	struct list_file file;
	const char *reload; /* or NULL */
	bool reload_due;    /* the file has changed, and nobody was told yet */
	int64_t age_at_ms;  /* Unix ms; what the file holds is not over before */
};

/** Moves past one entry of a file, and says when that is over. @return false: it is none that this kind writes */
typedef bool file_target_entry(const char **at, const char *end, int64_t *until_ms);

target_make target_file_make;

/** The ops' lists. */
void file_target_lists(const struct target *target, struct weir_text *lines);

enum weir_status file_target_make(const struct target_ops *ops, const char *path, const struct target_options *options,
                                  struct target **target, struct weir_error *error);
/** Ends the new file, and runs the command if it is another than the old. */
enum weir_status file_target_end(struct file_target *target, struct weir_error *error);
enum weir_status file_target_check(struct target *target, const struct block_table *table, int64_t now_ms,
                                   struct weir_error *error);
/** Takes out of the file what is over, and runs the command if something was. */
enum weir_status file_target_age(struct file_target *target, file_target_entry *entry, int64_t now_ms,
                                 struct weir_error *error);
/** The file's bytes, and when it was written last. @return the caller frees them; WEIR_IO: it is not there, say */
enum weir_status file_target_bytes(const struct file_target *target, char **bytes, struct weir_span *text,
                                   struct target_reading *reading, struct weir_error *error);
enum weir_status file_target_close(struct target *target, struct weir_error *error);

#endif
