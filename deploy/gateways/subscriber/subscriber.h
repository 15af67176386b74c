/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps one gateway's list up to date: decisions go from the topic into a table,
 * and changes of the table into the target.
 *
 * Until all that the topic held at the start is read, nothing is added: the
 * list would first lose blocks that the topic says further on. Then the target
 * gets a copy of the whole table, and after that changes. A target that fails,
 * or has lost its list, gets a copy again, tried at growing intervals.
 *
 * @thread subscriber_run's caller; pages are made on any
 */
#ifndef DEPLOY_GATEWAYS_SUBSCRIBER_SUBSCRIBER_H
#define DEPLOY_GATEWAYS_SUBSCRIBER_SUBSCRIBER_H

#include "deploy/gateways/subscriber/feed.h"
#include "deploy/gateways/target/target.h"

struct subscriber_options {
	uint32_t partitions;      /* of the decisions topic */
	struct target *target;    /* borrowed, as all below; nobody else uses it while the subscriber exists */
	const char *const *zones; /* those to keep; none: all */
	size_t zone_count;
	uint32_t max;         /* entries of the table */
	int64_t interval_ms;  /* at least so long between two changes of the target, on the average (its burst) */
	bool once;            /* one copy, and done */
	int64_t once_wait_ms; /* it fails when for so long nothing of the topic came that it holds */
	/* Called in each turn: whether the whole list is to be written again; NULL: nobody asks. */
	bool (*take_rewrite)(void *context);
	/* Called whenever the list is up to date again; NULL: nobody listens. */
	void (*up_to_date)(void *context);
	void *context;
	const struct weir_log *log;
	const _Atomic bool *stop;
};

struct subscriber;

/** Begins to end what is over in the list as it was left (deploy/gateways/subscriber/ager.h); its pages may be asked for. */
struct subscriber *subscriber_new(const struct subscriber_options *options);

/**
 * Works until it is stopped; with `once`, until one copy is made.
 *
 * @param bus  borrowed until subscriber_free()
 * @return WEIR_OK; WEIR_IO: with `once`, the copy failed, or the topic could not be read; WEIR_INVALID: it cannot go
 *         on, the words say why
 */
WEIR_MUST_USE enum weir_status subscriber_run(struct subscriber *subscriber, struct weir_bus *bus,
                                              struct weir_error *error);

void subscriber_free(struct subscriber *subscriber);

extern const struct weir_metric_table subscriber_metric_table;

/* A subscriber on a page of metrics: its label is the gateway's name. */
struct subscriber_row {
	const struct subscriber *subscriber;
	struct weir_span gateway;
};

/** Appends the metrics of some subscribers. @thread any, while they exist */
void subscriber_metrics(const struct subscriber_row *rows, size_t count, struct weir_text *page);
/** Whether the target's list is what the topic says; else why not, in a line. @thread any */
bool subscriber_ready(struct subscriber *subscriber, struct weir_text *why);

#endif
