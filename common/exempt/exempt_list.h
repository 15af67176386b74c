/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of "exempt" that stay files, in memory: up to WEIR_EXEMPT_FILE_ENTRIES_MAX networks, words and patterns each. The
 * path of one may be an address of HTTP: then its file is the copy that exempt_fetch.h keeps.
 *
 * A file is read when its path is first opened, and anew when that is asked for and it has changed. Between, all who open
 * the path share one list: so a policy's check, its matchers and its reports read it once, and a check that passed holds
 * for what follows it. Nobody who has a list waits while it is read anew: it is replaced when it is whole.
 */
#ifndef WEIR_EXEMPT_LIST_H
#define WEIR_EXEMPT_LIST_H

#include "common/exempt/verified_hosts.h"
#include "common/files/durable_file.h"
#include "common/log/log.h"
#include "common/match/network_set.h"
#include "common/match/wildcard.h"
#include "common/match/word_set.h"
#include "common/policy/policy.h"

enum {
	WEIR_EXEMPT_LIST_WILDCARDS_MAX = 1000,    /* of a file; each is tried against every value */
	WEIR_EXEMPT_LIST_NETWORKS_MAX = 40000000, /* a range of addresses comes to several */
};

#define WEIR_EXEMPT_LISTS_FOLDER "lists" /* of a state, for copies of what is fetched */

/* Immutable: the entries of a file, or those that a policy has. */
struct weir_exempt_list {
	struct weir_network_set networks;
	struct weir_word_set words;
	struct wildcard *wildcards;
	uint32_t wildcard_count;
	struct weir_exempt_file_state state; /* of the file as it was read */
	uint32_t count;                      /* entries */
	const char *first_word;              /* in the file's order; NULL: it has none */
};

/* The newest list of each path. */
struct weir_exempt_lists;

/**
 * @param folder  copied: of the copies of lists that other servers have (exempt_fetch.h). NULL: these are empty, as where
 *                there is no copy yet
 * @param log     borrowed; says which lists stay as they were, as they cannot be read any more. NULL: nobody hears it
 */
struct weir_exempt_lists *weir_exempt_lists_new(const char *folder, const struct weir_log *log);
/** Asks for the names of robots' hosts, too, and keeps them beside the copies. Without it, none is verified. Before the first matcher is made. */
void weir_exempt_lists_verify(struct weir_exempt_lists *lists, const struct weir_verified_hosts_options *options);
/** Borrowed; NULL: none is verified. @param lists  may be NULL */
struct weir_verified_hosts *weir_exempt_lists_hosts(const struct weir_exempt_lists *lists);
/** What is open stays so. @param lists  may be NULL */
void weir_exempt_lists_free(struct weir_exempt_lists *lists);

/**
 * Opens the newest list of a path, as it was read last. Only the first who opens it reads it, for seconds if it is long;
 * others who open it meanwhile wait for that.
 *
 * @param lists  NULL: the list is read for this caller alone
 * @param list   returned: weir_exempt_list_close()
 * @return WEIR_OK; WEIR_IO, WEIR_INVALID: as weir_exempt_file_read()
 * @thread any
 */
WEIR_MUST_USE enum weir_status weir_exempt_list_open(struct weir_exempt_lists *lists, const char *path,
                                                     struct weir_exempt_list **list, struct weir_error *error);
/** A zone's own entries as such a list; returned: weir_exempt_list_close(). */
struct weir_exempt_list *weir_exempt_list_of_zone(const struct weir_zone *zone);
/** @thread any */
void weir_exempt_list_close(struct weir_exempt_list *list);

/**
 * Reads anew all lists of a policy whose files have changed. One that cannot be read stays as it was, and the log says so.
 * It takes seconds where they are long: who judges opens what another thread has refreshed.
 *
 * @param lists  NULL: nothing is done
 * @return WEIR_OK: all of them can be opened; else of the first that was never read WEIR_IO or WEIR_INVALID
 * @thread any
 */
WEIR_MUST_USE enum weir_status weir_exempt_lists_refresh(struct weir_exempt_lists *lists,
                                                         const struct weir_policy *policy, struct weir_error *error);

/** Forgets the lists that a policy does not name. No matcher is about to be made for another. @thread any */
void weir_exempt_lists_prune(struct weir_exempt_lists *lists, const struct weir_policy *policy);

/** The state of the file of which the newest list was read; zeros where none was. @thread any */
struct weir_exempt_file_state weir_exempt_lists_state(struct weir_exempt_lists *lists, const char *path);

/* Of a list's entries. */
struct weir_exempt_list_facts {
	uint32_t networks, words; /* words: what is no address */
	bool read;                /* there is such a file */
	char first_word[96];      /* its beginning; "" where there is none */
};

/** What a list has: so that a zone of addresses can say that words exempt nobody. @thread any */
struct weir_exempt_list_facts weir_exempt_lists_facts(struct weir_exempt_lists *lists, const char *path);

/**
 * A hash of what the files have that a policy names as lists, copies that are not there, too.
 *
 * @param hash  set to it; 0: the policy names none
 * @return WEIR_OK; WEIR_IO
 */
WEIR_MUST_USE enum weir_status weir_exempt_lists_hash(const struct weir_exempt_lists *lists,
                                                      const struct weir_policy *policy, uint64_t *hash,
                                                      struct weir_error *error);

/** Where the copy of a list is that has such an address. @return WEIR_IO: the path is too long */
WEIR_MUST_USE enum weir_status weir_exempt_list_copy(const char *folder, const char *address,
                                                     char path[WEIR_PATH_BYTES], struct weir_error *error);

/** The file that a list is read from: its path, or that of its copy. @return NULL: it is a copy, and none is kept. @thread any */
const char *weir_exempt_lists_file(const struct weir_exempt_lists *lists, const char *path, char copy[WEIR_PATH_BYTES]);

/** Whether a value is one of its words, or matches one of its patterns. */
bool weir_exempt_list_has_word(const struct weir_exempt_list *list, struct weir_span value);

#endif
