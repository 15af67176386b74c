/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of "exempt" that stay files, in memory: up to WEIR_EXEMPT_FILE_ENTRIES_MAX networks, words and patterns each.
 *
 * A file is read when its path is first opened, and anew when that is asked for and it has changed. Between, all who open
 * the path share one list: so a policy's check, its matchers and its reports read it once, and a check that passed holds
 * for what follows it.
 */
#ifndef COLLECTOR_EXEMPT_LIST_H
#define COLLECTOR_EXEMPT_LIST_H

#include "collector/match/word_set.h"
#include "collector/record/network_set.h"
#include "common/log/log.h"
#include "common/match/wildcard.h"
#include "common/policy/policy.h"

enum {
	EXEMPT_LIST_WILDCARDS_MAX = 1000,    /* of a file; each is tried against every value */
	EXEMPT_LIST_NETWORKS_MAX = 40000000, /* a range of addresses comes to several */
};

/* Immutable: the entries of a file, or those that a policy has. */
struct exempt_list {
	struct network_set networks;
	struct word_set words;
	struct wildcard *wildcards;
	uint32_t wildcard_count;
	struct weir_exempt_file_state state; /* of the file as it was read */
	uint32_t count;                      /* entries */
	const char *first_word;              /* in the file's order; NULL: it has none */
};

/* The newest list of each path. */
struct exempt_lists;

/** @param log  borrowed; says which lists stay as they were, as they cannot be read any more. NULL: nobody hears it */
struct exempt_lists *exempt_lists_new(const struct weir_log *log);
/** What is open stays so. @param lists  may be NULL */
void exempt_lists_free(struct exempt_lists *lists);

/**
 * Opens the newest list of a path.
 *
 * @param lists  NULL: the list is read for this caller alone
 * @param list   returned: exempt_list_close()
 * @return WEIR_OK; WEIR_IO, WEIR_INVALID: as weir_exempt_file_read()
 * @thread any
 */
WEIR_MUST_USE enum weir_status exempt_list_open(struct exempt_lists *lists, const char *path, struct exempt_list **list,
                                                struct weir_error *error);
/** A zone's own entries as such a list; returned: exempt_list_close(). */
struct exempt_list *exempt_list_of_zone(const struct weir_zone *zone);
/** @thread any */
void exempt_list_close(struct exempt_list *list);

/**
 * Reads anew all lists of a policy whose files have changed. One that cannot be read stays as it was, and the log says so.
 *
 * @param lists  NULL: nothing is done
 * @return WEIR_OK: all of them can be opened; else of the first that was never read WEIR_IO or WEIR_INVALID
 * @thread any
 */
WEIR_MUST_USE enum weir_status exempt_lists_refresh(struct exempt_lists *lists, const struct weir_policy *policy,
                                                    struct weir_error *error);

/** Forgets the lists that a policy does not name. No matcher is about to be made for another. @thread any */
void exempt_lists_prune(struct exempt_lists *lists, const struct weir_policy *policy);

/** The state of the file of which the newest list was read; zeros where none was. @thread any */
struct weir_exempt_file_state exempt_lists_state(struct exempt_lists *lists, const char *path);

/* Of a list's entries. */
struct exempt_list_facts {
	uint32_t networks, words; /* words: what is no address */
	char first_word[96];      /* its beginning; "" where there is none */
};

/** What a list has: so that a zone of addresses can say that words exempt nobody. @thread any */
struct exempt_list_facts exempt_lists_facts(struct exempt_lists *lists, const char *path);

/** Whether a value is one of its words, or matches one of its patterns. */
bool exempt_list_has_word(const struct exempt_list *list, struct weir_span value);

#endif
