/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words lie one behind the other in blocks, for ten million of them would cost as many allocations.
 *
 * A file of that size takes seconds to read, so the lock is not held meanwhile: whoever wants the list of before, or another
 * one, goes on. One thread reads a path at a time; who needs it and has none yet waits for that one. A file that is no list
 * is not read again until it changes, however often it is asked for.
 */
#include "common/exempt/exempt_list.h"

#include "common/base/alloc.h"
#include "common/bytes/hash.h"
#include "common/bytes/hex.h"
#include "common/bytes/http_address.h"
#include "common/record/field_value.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20 };

static_assert((int)BLOCK_BYTES > (int)WEIR_EXEMPT_LINE_MAX_BYTES, "a block holds a word");

struct block {
	struct block *next;
	size_t used;
	char bytes[BLOCK_BYTES];
};

/* What a list is to those who share it. */
struct shared_list {
	struct weir_exempt_list list; /* first: the pointers are the same */
	char *path;
	struct block *blocks;
	_Atomic uint32_t users; /* and one for being the newest of its path */
	struct shared_list *next;
};

/* A path that a thread reads, which has this on its stack. */
struct reading {
	const char *path;
	struct reading *next;
};

/* A file that is no list. */
struct bad_file {
	char *path; /* of the list */
	struct weir_exempt_file_state state;
	struct weir_error error;
	struct bad_file *next;
};

struct weir_exempt_lists {
	char *folder; /* of copies; NULL: none */
	struct weir_verified_hosts *hosts;
	const struct weir_log *log;
	pthread_mutex_t lock; /* for: */
	pthread_cond_t read;  /* a reading has ended */
	struct shared_list *newest;
	struct reading *readings;
	struct bad_file *bad;
};

static void free_list(struct shared_list *shared)
{
	weir_network_set_deinit(&shared->list.networks);
	weir_word_set_deinit(&shared->list.words);
	for (uint32_t i = 0; i < shared->list.wildcard_count; i++)
		wildcard_deinit(&shared->list.wildcards[i]);
	free(shared->list.wildcards);
	for (struct block *block = shared->blocks, *next; block != NULL; block = next) {
		next = block->next;
		free(block);
	}
	free(shared->path);
	free(shared);
}

static const char *keep(struct shared_list *shared, struct weir_span word)
{
	struct block *block = shared->blocks;
	if (block == NULL || BLOCK_BYTES - block->used <= word.length) {
		block = weir_alloc(1, sizeof *block);
		block->next = shared->blocks;
		shared->blocks = block;
	}
	char *copy = block->bytes + block->used;
	memcpy(copy, word.at, word.length);
	copy[word.length] = '\0';
	block->used += word.length + (size_t)1;
	return copy;
}

/* The words of a list that is being made. */
struct loading {
	struct shared_list *shared;
	struct weir_span *words;
	uint32_t word_count, word_room;
	uint64_t networks, wildcards; /* all that there were */
	uint64_t wildcards_most;      /* as many are kept */
};

static void take_network(void *context, const struct weir_network *network)
{
	struct loading *loading = context;
	if (loading->networks++ < WEIR_EXEMPT_LIST_NETWORKS_MAX)
		weir_network_set_add(&loading->shared->list.networks, network);
}

static void take_wildcard(struct loading *loading, struct weir_span word)
{
	struct weir_exempt_list *list = &loading->shared->list;
	if (loading->wildcards++ >= loading->wildcards_most)
		return;
	list->wildcards = weir_realloc(list->wildcards, list->wildcard_count + (size_t)1, sizeof *list->wildcards);
	wildcard_init(&list->wildcards[list->wildcard_count++],
	              (struct weir_span){keep(loading->shared, word), word.length});
}

static void take_word(void *context, struct weir_span word)
{
	struct loading *loading = context;
	struct weir_exempt_list *list = &loading->shared->list;
	if (list->first_word == NULL)
		list->first_word = keep(loading->shared, word);
	if (memchr(word.at, '*', word.length) != NULL) {
		take_wildcard(loading, word);
		return;
	}
	if (loading->word_count == loading->word_room) {
		loading->word_room = loading->word_room == 0 ? 1024 : 2 * loading->word_room;
		loading->words = weir_realloc(loading->words, loading->word_room, sizeof *loading->words);
	}
	loading->words[loading->word_count++] = (struct weir_span){keep(loading->shared, word), word.length};
}

static enum weir_status check_loaded(const struct loading *loading, const char *path, struct weir_error *error)
{
	struct weir_text shown = {0};
	enum weir_status status = WEIR_OK;
	weir_http_address_show(path, &shown);
	if (loading->wildcards > WEIR_EXEMPT_LIST_WILDCARDS_MAX)
		status = weir_fail(error, WEIR_INVALID, "%.*s: %llu entries have a '*'; at most %d are allowed in a list",
		                   (int)shown.length, shown.at, (unsigned long long)loading->wildcards,
		                   WEIR_EXEMPT_LIST_WILDCARDS_MAX);
	else if (loading->networks > WEIR_EXEMPT_LIST_NETWORKS_MAX)
		status = weir_fail(
			error, WEIR_INVALID, "%.*s: its ranges come to %llu networks; at most %d are allowed in a list",
			(int)shown.length, shown.at, (unsigned long long)loading->networks, WEIR_EXEMPT_LIST_NETWORKS_MAX);
	weir_text_deinit(&shown);
	return status;
}

static struct shared_list *new_list(const char *path)
{
	struct shared_list *shared = weir_alloc(1, sizeof *shared);
	shared->path = weir_copy(path, strlen(path));
	shared->users = 1;
	return shared;
}

/* A path may be written as a client would write it. */
static void take_path(struct loading *loading, struct weir_span word)
{
	struct weir_field_value_room room = {0};
	if (strchr(word.at, '*') != NULL)
		return;
	struct weir_span path = weir_field_value_of_path(word, &room);
	if (!weir_span_equal(path, word))
		take_word(loading, path);
	weir_field_value_room_deinit(&room);
}

/* Whether what stands behind the first colon of a word, but for one in brackets, is a port, or nothing. */
static bool has_port_alone(struct weir_span word)
{
	const char *end = word.at + word.length, *bracket = word.at[0] == '[' ? memchr(word.at, ']', word.length) : NULL;
	const char *from = bracket != NULL ? bracket : word.at, *colon = memchr(from, ':', (size_t)(end - from));
	for (colon = colon != NULL ? colon + 1 : end; colon < end; colon++)
		if (*colon < '0' || *colon > '9')
			return false;
	return true;
}

/* A host likewise, with stars, too. But a word may be of another field, and must not come to be about more than was meant. */
static void take_host(struct loading *loading, struct weir_span word)
{
	char room[WEIR_SERVED_HOST_BYTES];
	if (word.length == 0 || !has_port_alone(word))
		return;
	struct weir_span host = weir_served_host(word, room);
	if (!weir_span_equal(host, word) && !weir_span_equal(host, weir_span_of("*")))
		take_word(loading, host);
}

/* And a method: words alone, as a pattern with more letters would be of other fields, too. */
static void take_method(struct loading *loading, struct weir_span word)
{
	struct weir_span method = weir_served_method(word);
	if (!weir_span_equal(method, word))
		take_word(loading, method);
}

struct weir_exempt_list *weir_exempt_list_of_zone(const struct weir_zone *zone)
{
	bool paths = weir_zone_counts_by(zone, "path"), hosts = weir_zone_counts_by(zone, "host");
	bool methods = weir_zone_counts_by(zone, "method");
	struct loading loading = {.shared = new_list(""), .wildcards_most = UINT64_MAX};
	for (uint32_t i = 0; i < zone->exempt_network_count; i++)
		take_network(&loading, &zone->exempt_networks[i]);
	for (uint32_t i = 0; i < zone->exempt_word_count; i++) {
		take_word(&loading, weir_span_of(zone->exempt_words[i]));
		if (paths)
			take_path(&loading, weir_span_of(zone->exempt_words[i]));
		if (hosts)
			take_host(&loading, weir_span_of(zone->exempt_words[i]));
		if (methods)
			take_method(&loading, weir_span_of(zone->exempt_words[i]));
	}
	weir_word_set_init(&loading.shared->list.words, loading.words, loading.word_count);
	free(loading.words);
	return &loading.shared->list;
}

enum weir_status weir_exempt_list_copy(const char *folder, const char *address, char path[WEIR_PATH_BYTES],
                                       struct weir_error *error)
{
	uint8_t hash[16];
	char name[2 * sizeof hash + 1];
	weir_hash128(address, strlen(address), hash);
	*weir_hex_put(name, hash, sizeof hash) = '\0';
	return weir_path_format(path, error, "%s/%s.list", folder, name);
}

const char *weir_exempt_lists_file(const struct weir_exempt_lists *lists, const char *path, char copy[WEIR_PATH_BYTES])
{
	struct weir_error ignored;
	if (!weir_http_address_meant(path))
		return path;
	bool kept = lists != NULL && lists->folder != NULL;
	return kept && weir_exempt_list_copy(lists->folder, path, copy, &ignored) == WEIR_OK ? copy : NULL;
}

/* Whether a list is a copy that is not there, or not yet. */
static bool is_away(const struct weir_exempt_lists *lists, const char *path)
{
	char copy[WEIR_PATH_BYTES];
	struct weir_exempt_file_state state;
	const char *file = weir_exempt_lists_file(lists, path, copy);
	return weir_http_address_meant(path) && (file == NULL || !weir_exempt_file_look(file, &state));
}

static enum weir_status hash_file(const char *path, uint64_t *hash, struct weir_error *error)
{
	char bytes[1 << 16];
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return weir_fail(error, WEIR_IO, "cannot read %s: %s", path, weir_errno_words(errno));
	for (size_t got; (got = fread(bytes, 1, sizeof bytes, file)) > 0;)
		*hash = weir_hash64((uint64_t[]){*hash, weir_hash64(bytes, got)}, 2 * sizeof(uint64_t));
	bool failed = ferror(file) != 0;
	fclose(file);
	return failed ? weir_fail(error, WEIR_IO, "cannot read %s", path) : WEIR_OK;
}

enum weir_status weir_exempt_lists_hash(const struct weir_exempt_lists *lists, const struct weir_policy *policy,
                                        uint64_t *hash, struct weir_error *error)
{
	char copy[WEIR_PATH_BYTES];
	*hash = 0;
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++) {
			const char *path = policy->zones[z].exempt_lists[i];
			enum weir_status status = WEIR_OK;
			*hash = weir_hash64((uint64_t[]){*hash, weir_hash64(path, strlen(path))}, 2 * sizeof(uint64_t));
			if (!is_away(lists, path))
				status = hash_file(weir_exempt_lists_file(lists, path, copy), hash, error);
			if (status != WEIR_OK)
				return status;
		}
	return WEIR_OK;
}

/* Whether the file is as it was read. A copy that is gone is as it was. */
static bool is_fresh(const struct weir_exempt_lists *lists, const struct shared_list *list)
{
	char copy[WEIR_PATH_BYTES];
	struct weir_exempt_file_state now;
	if (is_away(lists, list->path))
		return true;
	return weir_exempt_file_look(weir_exempt_lists_file(lists, list->path, copy), &now) &&
	       weir_exempt_file_same(&now, &list->list.state);
}

/* @param state  set, of the file, also where that is no list; as it was where it could not be opened */
static enum weir_status load(const struct weir_exempt_lists *lists, const char *path, struct shared_list **loaded,
                             struct weir_exempt_file_state *state, struct weir_error *error)
{
	char copy[WEIR_PATH_BYTES];
	struct shared_list *shared = new_list(path);
	struct loading loading = {.shared = shared, .wildcards_most = WEIR_EXEMPT_LIST_WILDCARDS_MAX};
	const struct weir_exempt_taker taker = {
		.context = &loading, .network = take_network, .word = take_word, .most = WEIR_EXEMPT_FILE_ENTRIES_MAX};
	enum weir_status status = WEIR_OK;
	if (!is_away(lists, path))
		status =
			weir_exempt_file_read(weir_exempt_lists_file(lists, path, copy), &taker, state, &shared->list.count, error);
	shared->list.state = *state;
	if (status == WEIR_OK)
		status = check_loaded(&loading, path, error);
	if (status == WEIR_OK)
		weir_word_set_init(&shared->list.words, loading.words, loading.word_count);
	free(loading.words);
	if (status != WEIR_OK) {
		free_list(shared);
		return status;
	}
	*loaded = shared;
	return WEIR_OK;
}

static void release(struct shared_list *shared)
{
	if (atomic_fetch_sub(&shared->users, 1) == 1)
		free_list(shared);
}

/* ---- files that are no lists ---- */

static struct bad_file **bad_place(struct weir_exempt_lists *lists, const char *path)
{
	struct bad_file **place = &lists->bad;
	while (*place != NULL && strcmp((*place)->path, path) != 0)
		place = &(*place)->next;
	return place;
}

static void drop_bad(struct bad_file **place)
{
	struct bad_file *bad = *place;
	*place = bad->next;
	free(bad->path);
	free(bad);
}

/* Notes what came of reading one. One that could not be opened, or read, may be had at the next time. */
static void note(struct weir_exempt_lists *lists, const char *path, enum weir_status status,
                 const struct weir_exempt_file_state *state, const struct weir_error *error)
{
	struct bad_file **place = bad_place(lists, path);
	if (*place != NULL)
		drop_bad(place);
	if (status != WEIR_INVALID)
		return;
	struct bad_file *bad = weir_alloc(1, sizeof *bad);
	*bad =
		(struct bad_file){.path = weir_copy(path, strlen(path)), .state = *state, .error = *error, .next = lists->bad};
	lists->bad = bad;
}

/* Whether the file is still one that is no list. */
static bool is_still_bad(const struct weir_exempt_lists *lists, const struct bad_file *bad, const char *path)
{
	char copy[WEIR_PATH_BYTES];
	struct weir_exempt_file_state now;
	return bad->path != NULL && !is_away(lists, path) &&
	       weir_exempt_file_look(weir_exempt_lists_file(lists, path, copy), &now) &&
	       weir_exempt_file_same(&now, &bad->state);
}

/* ---- all lists ---- */

struct weir_exempt_lists *weir_exempt_lists_new(const char *folder, const struct weir_log *log)
{
	struct weir_exempt_lists *lists = weir_alloc(1, sizeof *lists);
	lists->folder = folder != NULL ? weir_copy(folder, strlen(folder)) : NULL;
	lists->log = log;
	pthread_mutex_init(&lists->lock, NULL);
	pthread_cond_init(&lists->read, NULL);
	return lists;
}

void weir_exempt_lists_free(struct weir_exempt_lists *lists)
{
	if (lists == NULL)
		return;
	for (struct shared_list *list = lists->newest, *next; list != NULL; list = next) {
		next = list->next;
		release(list);
	}
	while (lists->bad != NULL)
		drop_bad(&lists->bad);
	weir_verified_hosts_free(lists->hosts);
	pthread_cond_destroy(&lists->read);
	pthread_mutex_destroy(&lists->lock);
	free(lists->folder);
	free(lists);
}

void weir_exempt_lists_verify(struct weir_exempt_lists *lists, const struct weir_verified_hosts_options *options)
{
	struct weir_verified_hosts_options kept = *options;
	kept.folder = lists->folder;
	lists->hosts = weir_verified_hosts_new(&kept);
}

struct weir_verified_hosts *weir_exempt_lists_hosts(const struct weir_exempt_lists *lists)
{
	return lists != NULL ? lists->hosts : NULL;
}

/* Where the newest list of a path is linked, or where it would be. */
static struct shared_list **place_of(struct weir_exempt_lists *lists, const char *path)
{
	struct shared_list **place = &lists->newest;
	while (*place != NULL && strcmp((*place)->path, path) != 0)
		place = &(*place)->next;
	return place;
}

static void replace(struct shared_list **place, struct shared_list *loaded)
{
	struct shared_list *before = *place;
	loaded->next = before != NULL ? before->next : NULL;
	*place = loaded;
	if (before != NULL)
		release(before);
}

static struct shared_list *share(struct shared_list *list)
{
	if (list != NULL)
		atomic_fetch_add(&list->users, 1);
	return list;
}

static bool is_read(const struct weir_exempt_lists *lists, const char *path)
{
	const struct reading *reading = lists->readings;
	while (reading != NULL && strcmp(reading->path, path) != 0)
		reading = reading->next;
	return reading != NULL;
}

static void begin_reading(struct weir_exempt_lists *lists, struct reading *reading)
{
	reading->next = lists->readings;
	lists->readings = reading;
	pthread_mutex_unlock(&lists->lock);
}

static void end_reading(struct weir_exempt_lists *lists, struct reading *reading)
{
	pthread_mutex_lock(&lists->lock);
	struct reading **place = &lists->readings;
	while (*place != reading)
		place = &(*place)->next;
	*place = reading->next;
	pthread_cond_broadcast(&lists->read);
}

/*
 * With the lock held, which it gives back while it looks at the file and reads it.
 *
 * @param fresh  as the file is now; else as it was read, if it was
 * @param list   returned: release(). After a failure the list of before; NULL: there is none
 */
static enum weir_status read_newest(struct weir_exempt_lists *lists, const char *path, bool fresh,
                                    struct shared_list **list, struct weir_error *error)
{
	struct reading reading = {.path = path};
	struct bad_file bad = {0};
	struct weir_exempt_file_state state = {0};
	struct shared_list *loaded = NULL;
	enum weir_status status = WEIR_OK;
	while ((fresh || *place_of(lists, path) == NULL) && is_read(lists, path))
		pthread_cond_wait(&lists->read, &lists->lock);
	*list = share(*place_of(lists, path));
	if (*list != NULL && !fresh)
		return WEIR_OK;
	const struct bad_file *known = *bad_place(lists, path);
	if (known != NULL)
		bad = *known;
	begin_reading(lists, &reading);
	if (is_still_bad(lists, &bad, path)) {
		status = WEIR_INVALID;
		*error = bad.error;
	} else if (*list == NULL || !is_fresh(lists, *list)) {
		status = load(lists, path, &loaded, &state, error);
	}
	end_reading(lists, &reading);
	if (loaded != NULL || state.inode != 0)
		note(lists, path, status, &state, error);
	if (loaded == NULL)
		return status;
	if (*list != NULL)
		release(*list);
	replace(place_of(lists, path), loaded);
	*list = share(loaded);
	return WEIR_OK;
}

enum weir_status weir_exempt_list_open(struct weir_exempt_lists *lists, const char *path,
                                       struct weir_exempt_list **list, struct weir_error *error)
{
	struct shared_list *found;
	enum weir_status status;
	if (lists == NULL) {
		status = load(lists, path, &found, &(struct weir_exempt_file_state){0}, error);
	} else {
		pthread_mutex_lock(&lists->lock);
		status = read_newest(lists, path, false, &found, error);
		pthread_mutex_unlock(&lists->lock);
	}
	if (status == WEIR_OK)
		*list = &found->list;
	return status;
}

void weir_exempt_list_close(struct weir_exempt_list *list)
{
	release((struct shared_list *)list);
}

/* With the lock held, which it gives back while it reads. */
static enum weir_status refresh(struct weir_exempt_lists *lists, const struct weir_zone *zone, const char *path,
                                struct weir_error *error)
{
	struct shared_list *found;
	struct weir_error wrong;
	enum weir_status status = read_newest(lists, path, true, &found, &wrong);
	if (found == NULL)
		return weir_fail(error, status, "zone \"%s\", exempt: %s", zone->name, wrong.text);
	release(found);
	if (status != WEIR_OK && lists->log != NULL)
		weir_log(
			lists->log, WEIR_LOG_ERROR, "exempt",
			"%s. The list stays as it was read before: who was put on it since is not exempt. Mend the file; it is read "
			"again when it changes",
			wrong.text);
	return WEIR_OK;
}

enum weir_status weir_exempt_lists_refresh(struct weir_exempt_lists *lists, const struct weir_policy *policy,
                                           struct weir_error *error)
{
	enum weir_status first = WEIR_OK;
	struct weir_error more;
	if (lists == NULL)
		return WEIR_OK;
	pthread_mutex_lock(&lists->lock);
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++) {
			const struct weir_zone *zone = &policy->zones[z];
			enum weir_status status = refresh(lists, zone, zone->exempt_lists[i], first == WEIR_OK ? error : &more);
			first = first == WEIR_OK ? status : first;
		}
	pthread_mutex_unlock(&lists->lock);
	return first;
}

static bool names(const struct weir_policy *policy, const char *path)
{
	for (uint32_t z = 0; z < policy->zone_count; z++)
		for (uint32_t i = 0; i < policy->zones[z].exempt_list_count; i++)
			if (strcmp(policy->zones[z].exempt_lists[i], path) == 0)
				return true;
	return false;
}

void weir_exempt_lists_prune(struct weir_exempt_lists *lists, const struct weir_policy *policy)
{
	pthread_mutex_lock(&lists->lock);
	for (struct shared_list **place = &lists->newest; *place != NULL;) {
		struct shared_list *list = *place;
		if (names(policy, list->path)) {
			place = &list->next;
			continue;
		}
		*place = list->next;
		release(list);
	}
	for (struct bad_file **place = &lists->bad; *place != NULL;) {
		if (names(policy, (*place)->path))
			place = &(*place)->next;
		else
			drop_bad(place);
	}
	pthread_mutex_unlock(&lists->lock);
}

struct weir_exempt_file_state weir_exempt_lists_state(struct weir_exempt_lists *lists, const char *path)
{
	struct weir_exempt_file_state state = {0};
	pthread_mutex_lock(&lists->lock);
	const struct shared_list *found = *place_of(lists, path);
	if (found != NULL)
		state = found->list.state;
	pthread_mutex_unlock(&lists->lock);
	return state;
}

struct weir_exempt_list_facts weir_exempt_lists_facts(struct weir_exempt_lists *lists, const char *path)
{
	struct weir_exempt_list_facts facts = {0};
	struct shared_list *found;
	struct weir_error ignored; /* whoever makes a matcher tells it */
	pthread_mutex_lock(&lists->lock);
	if (read_newest(lists, path, false, &found, &ignored) == WEIR_OK) {
		const struct weir_exempt_list *list = &found->list;
		facts.networks = list->networks.count4 + list->networks.count6;
		facts.read = list->state.inode != 0;
		facts.words = list->words.count + list->wildcard_count;
		snprintf(facts.first_word, sizeof facts.first_word, "%s", list->first_word != NULL ? list->first_word : "");
		release(found);
	}
	pthread_mutex_unlock(&lists->lock);
	return facts;
}

bool weir_exempt_list_has_word(const struct weir_exempt_list *list, struct weir_span value)
{
	return weir_word_set_has(&list->words, value) || wildcards_match(list->wildcards, list->wildcard_count, value);
}
