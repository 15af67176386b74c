/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an import makes: items, which are what the other program's configuration has (a jail, a scenario, a rule), each
 * with its zones and with a note for what has no counterpart; sources; and remarks that concern all of it.
 *
 * One thread. Everything lives as long as the plan.
 */
#ifndef DEPLOY_WEIR_IMPORT_PLAN_H
#define DEPLOY_WEIR_IMPORT_PLAN_H

#include "common/base/status.h"
#include "common/base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	PLAN_NAME_BYTES = 64,
	PLAN_ITEMS_MAX = 4096,
	PLAN_FILES_MAX = 20000,
	PLAN_KEPT_MAX_BYTES = 64 << 20, /* of texts that the readers keep */
	PLAN_FILE_MAX_BYTES = 4 << 20,  /* of one file that is read */
	PLAN_ZONES_MAX_BYTES = 800000,  /* of all zones, with room for what a policy's text adds */
};

enum plan_result { PLAN_WHOLE, PLAN_PART, PLAN_NONE };

struct plan_note {
	bool loss; /* something is left out, or is not the same; else it only explains */
	char *text;
};

struct plan_item {
	char *name, *file; /* as the other program has them */
	unsigned line;     /* 0: unknown */
	struct plan_note *notes;
	size_t note_count;
	struct weir_text *zones; /* each a JSON object without a line's end */
	size_t zone_count;
};

struct plan_source {
	char *comment;
	struct weir_text json;
};

/* A name of a zone or a source that is taken. */
struct plan_name {
	char *text;
	unsigned next; /* the number behind it that the next one like it may have */
};

struct plan {
	const char *origin; /* "fail2ban" */
	bool shadow;        /* its zones are in shadow mode */
	struct plan_item *items;
	size_t item_count;
	struct plan_source *sources;
	size_t source_count;
	char **remarks;
	size_t remark_count;
	const char *warning; /* of the remarks, the one that the summary has too; NULL: none */
	size_t zone_count, zone_bytes;
	struct plan_name *names;
	size_t name_count;
	unsigned files;      /* read so far */
	const char *refused; /* why weir does not read what is written; NULL: it does */
	char **kept;         /* what plan_keep() gave */
	size_t kept_count, kept_bytes;
	unsigned not_enabled; /* items that the other program does not use either */
	const char *aside;    /* what those are called: "jails that are not enabled" */
};

void plan_deinit(struct plan *plan);

/** A copy that lives as long as the plan. */
char *plan_keep(struct plan *plan, const char *at, size_t length);
char *plan_print(struct plan *plan, const char *format, ...) WEIR_PRINTF(2, 3);
/** Whether more is kept than an honest configuration has. */
static inline bool plan_is_full(const struct plan *plan)
{
	return plan->kept_bytes > PLAN_KEPT_MAX_BYTES || plan->item_count >= PLAN_ITEMS_MAX;
}

/**
 * Reads a regular file, as long as the import is within its bounds.
 *
 * @param text  returned with a terminating 0, the caller frees; NULL where it fails
 * @return WEIR_INVALID: it is none, or too much; WEIR_IO
 */
WEIR_MUST_USE enum weir_status plan_read_file(struct plan *plan, const char *path, char **text, size_t *length,
                                              struct weir_error *error);

/** @return valid until the next call */
struct plan_item *plan_item(struct plan *plan, const char *name, const char *file, unsigned line);
/** What has no counterpart, or one that differs: the item is then imported in part. The same words count once. */
void plan_loss(struct plan *plan, struct plan_item *item, const char *format, ...) WEIR_PRINTF(3, 4);
/** What a person should know, though nothing is lost. */
void plan_explain(struct plan *plan, struct plan_item *item, const char *format, ...) WEIR_PRINTF(3, 4);
/** Takes back the notes from one number on up to another. */
void plan_forget(struct plan_item *item, size_t from, size_t to);
void plan_remark(struct plan *plan, const char *format, ...) WEIR_PRINTF(2, 3);

/**
 * Where the caller writes one more zone's JSON, or one more source's. Valid until the next call.
 *
 * A zone is over with plan_zone_end(): one that weir would refuse is taken back, and the item's notes say why.
 */
struct weir_text *plan_zone(struct plan *plan, struct plan_item *item);
void plan_zone_end(struct plan *plan, struct plan_item *item);
struct weir_text *plan_source(struct plan *plan, const char *comment);

enum plan_result plan_result(const struct plan_item *item);

/** A name that zones and sources may have, of any text; distinct from those given before by a number behind it. */
char *plan_zone_name(struct plan *plan, const char *name);

/** Notes whether weir reads what plan_write_config() writes: its sources, too, which nothing has looked at before. */
void plan_check(struct plan *plan);

/** The configuration as weir reads it, with a comment that says of each zone where it comes from. */
void plan_write_config(const struct plan *plan, struct weir_text *out);
/** {"origin": …, "counts": …, "items": […], "remarks": […], "config": {…}} on one line. */
void plan_write_json(const struct plan *plan, struct weir_text *out);
/** What a person is told on standard error: the counts, and each item that is not whole with its reasons. */
void plan_write_summary(const struct plan *plan, struct weir_text *out);

/* ---- JSON by hand, for zones and sources ---- */

void put_string(struct weir_text *text, const char *string);
/** A duration as weir reads it: "10m", "90s". */
void put_duration(struct weir_text *text, int64_t duration_ms);

#endif
