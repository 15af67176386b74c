/* SPDX-License-Identifier: Apache-2.0 */
/* A list as a file that is replaced whole: whoever reads it finds the old one or the new, also after a crash. */
#ifndef DEPLOY_GATEWAYS_TARGET_LIST_FILE_H
#define DEPLOY_GATEWAYS_TARGET_LIST_FILE_H

#include "common/base/text.h"
#include "common/files/durable_file.h"

#include <stdbool.h>
#include <stdint.h>

/* Fill in the path; the rest is zero at first. */
struct list_file {
	char path[WEIR_PATH_BYTES];
	char place[WEIR_PATH_BYTES]; /* where it leads to, when the file was last begun */
	uint64_t hash, length;       /* of what stands in it */
	uint64_t device, inode;      /* 0: nothing was written yet */
	/* while one is written */
	int fd;
	uint64_t new_hash, new_length;
	struct weir_text buffer;
	int failed; /* errno of the first write that failed */
};

/** Opens the new file beside the old one: 0644, as servers read it under another user. */
WEIR_MUST_USE enum weir_status list_file_begin(struct list_file *file, struct weir_error *error);
/** Writes what has gathered in `buffer` if it is much; a failure shows at the end. */
void list_file_flow(struct list_file *file);
/** Puts the new file in the old one's place, unless they are equal. @param changed  whether they were not */
WEIR_MUST_USE enum weir_status list_file_end(struct list_file *file, bool *changed, struct weir_error *error);

/** Whether what was written last still stands there; true as well while nothing was written. */
bool list_file_is_in_place(const struct list_file *file);

void list_file_deinit(struct list_file *file);

#endif
