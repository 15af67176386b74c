/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gateway's list: the place where a subscriber keeps the live blocks for
 * others to look at. One file a kind, each behind this struct of functions.
 *
 * A target holds no list of its own. It is told to copy the whole table, or to
 * carry out what changed in it; when it fails, or finds that its list is no
 * longer what it wrote, it is told to copy the whole table again, later.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_TARGET_H
#define DEPLOY_GATEWAYS_TARGET_TARGET_H

#include "common/log/log.h"
#include "common/log/metrics.h"
#include "deploy/gateways/table/block_table.h"

#include <stdatomic.h>

#define TARGET_LIST_FILE "file "
#define TARGET_LIST_FILE_NEW ".new" /* behind its path: what replaces it is written there first */
#define TARGET_MAP_DEFAULT "weir.map"

enum { TARGET_TIMEOUT_MS = 30000 }; /* what a server, a command or a program may take for one step */

struct target;

/* What a list is, beside its entries, once it was read back. */
struct target_reading {
	int64_t written_ms;      /* Unix ms: when it was written last; 0: it does not say */
	bool bounded;            /* it may be full, and have no room for more */
	bool tells_keeper, kept; /* whether it says that a subscriber keeps it; and whether one does */
	bool without_zones;      /* its entries do not say of which zone they are */
};

/* Takes an entry of a list. */
typedef void target_seen(void *context, struct weir_span entry);

struct target_ops {
	const char *kind;
	int64_t interval_ms; /* at least so long between two changes on the average, unless one is told otherwise */
	int64_t burst;       /* so many changes may come at once after a time without any; 0 is one */
	bool keeps_json;     /* wants the decisions' text */
	bool copies_only;    /* knows no changes: whatever changed, the whole table is copied */
	bool wants_each;     /* every change by itself, however fast they come */
	bool may_reload;     /* runs a command after each copy */
	bool counts_down;    /* its entries end by themselves, when the time is over that was left as they were written */
	int64_t check_after_ms; /* how often its list is looked at */

	/**
	 * Makes the list equal to the table.
	 *
	 * @return WEIR_OK; WEIR_IO: it is away, or refused: later again; WEIR_INVALID: it can never serve: give up
	 */
	enum weir_status (*copy)(struct target *target, const struct block_table *table, int64_t now_ms,
	                         struct weir_error *error);
	/** Carries out the table's changes. @return as copy; after a failure the list is unknown */
	enum weir_status (*apply)(struct target *target, const struct block_table *table, int64_t now_ms,
	                          struct weir_error *error);
	/** The table's changes are left to the next copy, though a copy says less than they do. NULL: it does not. */
	void (*pass)(struct target *target, const struct block_table *table);
	/** Whether the list is still there. @return WEIR_OK; WEIR_AGAIN: it was emptied or begun anew; WEIR_IO: away */
	enum weir_status (*check)(struct target *target, const struct block_table *table, int64_t now_ms,
	                          struct weir_error *error);
	/**
	 * Takes out of the list what is over by the list's own word, before the first copy. NULL: its entries end by
	 * themselves, or it cannot be read back.
	 *
	 * @return WEIR_OK, also where it is not as this kind writes it: then it stays; WEIR_IO
	 * @thread any, one at a time, and while nobody uses the target
	 */
	enum weir_status (*age)(struct target *target, int64_t now_ms, struct weir_error *error);
	/**
	 * Reads the list back, and changes nothing, not even in a server that is asked. NULL, as `spell`: it cannot be.
	 *
	 * @param seen    called with each entry, in the words of `spell`
	 * @param end_ms  monotonic: what takes longer is WEIR_IO
	 * @return WEIR_OK; WEIR_IO: it is away, not there, or may not be read: the words say which
	 */
	enum weir_status (*read)(struct target *target, int64_t end_ms, target_seen *seen, void *context,
	                         struct target_reading *reading, struct weir_error *error);
	/** After a read: appends the words that the list has for a live entry. @return false: it cannot hold it */
	bool (*spell)(struct target *target, const struct block_table *table, const struct block_entry *entry,
	              struct weir_text *words);
	/**
	 * Appends which lists it keeps, a line each: the same whatever the target was called by. One that is a file's begins
	 * with TARGET_LIST_FILE, and its path without links follows. Of one that has maps, a line is the place of them all. NULL:
	 * what it was called by is all there is to tell two of them apart.
	 */
	void (*lists)(const struct target *target, struct weir_text *lines);
	/** Ends; the list stays as it is. @return WEIR_OK; WEIR_IO: what it was told may not have been carried out */
	enum weir_status (*close)(struct target *target, struct weir_error *error);
};

/* The beginning of every kind's own struct. */
struct target {
	const struct target_ops *ops;
	struct weir_counter unfit;    /* entries that this kind cannot hold, each time one was met */
	struct weir_counter given_up; /* what was refused for good, and is not said again */
};

struct target_options {
	const char *const *zones; /* those that are subscribed to; borrowed */
	size_t zone_count;        /* 0: all */
	uint32_t partitions;      /* of the decisions topic */
	const char *reload;       /* a command for the shell, or NULL; borrowed */
	const char *map;          /* of HAProxy: its file as configured, or that file's name, or NULL; borrowed */
	const struct weir_log *log;
	const _Atomic bool *stop; /* ends waiting */
};

/* How a kind makes one; `rest` is what stands behind "KIND:" (redis: the whole URL). */
typedef enum weir_status target_make(const char *rest, const struct target_options *options, struct target **target,
                                     struct weir_error *error);

#endif
