/* SPDX-License-Identifier: Apache-2.0 */
/*
 * haproxy: a map of a running HAProxy, through its runtime interface.
 *
 * A copy prepares a new version of the map beside the one in use and puts it in
 * its place in one step. What changes after that are commands a key, gathered
 * in requests of a few KiB. A reload begins another process with the map as its
 * file has it, which is told from the process id; in a container that may be
 * the same again, but the map's version is 0 where no copy was put in.
 *
 * A payload ends at the first key that the map refuses, and a refused key
 * spoils HAProxy's count of entries. So a map of addresses is known as one
 * before it is filled, and no other key is sent to it.
 */
#include "deploy/gateways/target/haproxy/target_haproxy.h"

#include "common/base/alloc.h"
#include "common/files/file_place.h"
#include "deploy/gateways/target/haproxy/haproxy_map.h"
#include "deploy/gateways/target/haproxy/haproxy_socket.h"
#include "deploy/gateways/target/network_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	CHECK_MS = 1000,
	MAP_NAME_BYTES = 16,
	REMOVALS_MANY = 256, /* take HAProxy longer than a copy does, however long the map is */
};

struct haproxy_target {
	struct target target;
	char *path;                /* of the socket */
	char *map;                 /* the map's file as configured, or its last name */
	char name[MAP_NAME_BYTES]; /* "#ID": what this process calls it */
	long pid;
	long entries;   /* that the map has; -1: it does not say */
	long version;   /* of the map in use; -1: it does not say */
	long committed; /* the version that the last copy put in use */
	bool addresses; /* it takes addresses and networks alone: map_ip_… */
	struct weir_text request, answer;
};

static enum weir_status ask(struct haproxy_target *haproxy, struct weir_error *error)
{
	weir_text_puts(&haproxy->request, "\n");
	struct weir_span request = {.at = haproxy->request.at, .length = (uint32_t)haproxy->request.length};
	enum weir_status status = haproxy_socket_ask(haproxy->path, request, &haproxy->answer, error);
	weir_text_clear(&haproxy->request);
	weir_text_append(&haproxy->answer, "", 1); /* ended, for the functions of strings */
	return status;
}

/* ---- which process, which map ---- */

/* What a line says of NAME=NUMBER; -1: nothing. */
static long number_of(const char *line, const char *line_end, const char *name)
{
	const char *at = strstr(line, name);
	return at != NULL && (line_end == NULL || at < line_end) ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* One line of `show map`: "ID (FILE) words… curr_ver=V next_ver=W entry_cnt=N". */
static bool read_map_line(struct haproxy_target *haproxy, const char *line)
{
	char *id_end;
	long id = strtol(line, &id_end, 10);
	if (id_end == line || strncmp(id_end, " (", 2) != 0)
		return false;
	const char *file = id_end + 2, *file_end = strchr(file, ')'), *line_end = strchr(line, '\n');
	if (file_end == NULL || (line_end != NULL && file_end > line_end))
		return false;
	size_t length = (size_t)(file_end - file), wanted = strlen(haproxy->map);
	if (length < wanted || memcmp(file_end - wanted, haproxy->map, wanted) != 0 ||
	    (length > wanted && (file_end[-1 - (long)wanted] != '/' || haproxy->map[0] == '/')))
		return false;
	haproxy->entries = number_of(file_end, line_end, " entry_cnt=");
	haproxy->version = number_of(file_end, line_end, " curr_ver=");
	snprintf(haproxy->name, sizeof haproxy->name, "#%ld", id);
	return true;
}

/* The process and the map, as they are at this moment. */
static enum weir_status look(struct haproxy_target *haproxy, struct weir_error *error)
{
	weir_text_puts(&haproxy->request, "show info;show map");
	enum weir_status status = ask(haproxy, error);
	if (status != WEIR_OK)
		return status;
	const char *pid = strstr(haproxy->answer.at, "\nPid: ");
	haproxy->pid = pid != NULL ? strtol(pid + strlen("\nPid: "), NULL, 10) : 0;
	for (const char *line = haproxy->answer.at; line != NULL && *line != '\0';) {
		if (read_map_line(haproxy, line))
			return WEIR_OK;
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	if (strstr(haproxy->answer.at, "Permission denied") != NULL)
		return weir_fail(error, WEIR_IO, "HAProxy at %s: the socket needs \"level admin\"", haproxy->path);
	return weir_fail(error, WEIR_IO, "HAProxy at %s has no map \"%s\" (name it with --map)", haproxy->path,
	                 haproxy->map);
}

/* What keys the map takes: each way in which the configuration uses it is a line "type=T, …" of the answer. */
static enum weir_status inspect_type(struct haproxy_target *haproxy, struct weir_error *error)
{
	weir_text_printf(&haproxy->request, "get map %s 0.0.0.0", haproxy->name);
	enum weir_status status = ask(haproxy, error);
	if (status == WEIR_OK)
		haproxy->addresses = strstr(haproxy->answer.at, "type=ip,") != NULL;
	return status;
}

/* ---- commands ---- */

/* Every answer of a command that went well is an empty line; of a key that was to go and was not there, words. */
static enum weir_status judge(const struct haproxy_target *haproxy, struct weir_error *error)
{
	for (const char *at = haproxy->answer.at; *at != '\0'; at += *at == '\n') {
		size_t length = strcspn(at, "\n");
		if (length > 0 && strncmp(at, "Key not found", strlen("Key not found")) != 0 &&
		    strncmp(at, "entry not found", strlen("entry not found")) != 0)
			return weir_fail(error, WEIR_IO, "HAProxy at %s: %.*s", haproxy->path, (int)(length < 200 ? length : 200),
			                 at);
		at += length;
	}
	return WEIR_OK;
}

static enum weir_status send_commands(struct haproxy_target *haproxy, struct weir_error *error)
{
	if (haproxy->request.length == 0)
		return WEIR_OK;
	enum weir_status status = ask(haproxy, error);
	return status == WEIR_OK ? judge(haproxy, error) : status;
}

/* A full request is sent before more is put in. */
static enum weir_status make_room(struct haproxy_target *haproxy, struct weir_span key, struct weir_error *error)
{
	size_t more = 4 * (size_t)key.length + 128; /* two commands with the key, each byte of it escaped */
	if (haproxy->request.length + more <= HAPROXY_MAP_COMMAND_MAX_BYTES)
		return WEIR_OK;
	return send_commands(haproxy, error);
}

static void command(struct haproxy_target *haproxy, const char *verb, const char *version, struct weir_span key)
{
	weir_text_printf(&haproxy->request, "%s%s map %s%s ", haproxy->request.length > 0 ? ";" : "", verb, version,
	                 haproxy->name);
	haproxy_map_word(&haproxy->request, key);
}

/* An address of IPv4 that HAProxy finds in no network of IPv4 it looks for as ::ffff:a.b.c.d among those of IPv6. */
static bool can_hold(const struct haproxy_target *haproxy, struct weir_span key, bool any_size)
{
	struct weir_network network;
	return haproxy_map_fits(key) &&
	       (!haproxy->addresses || (network_key(key, any_size, &network) && !network_key_has_mapped(&network)));
}

static bool fits(struct haproxy_target *haproxy, const struct block_table *table, struct weir_span key)
{
	if (can_hold(haproxy, key, block_table_has_operators(table, key)))
		return true;
	weir_counter_add(&haproxy->target.unfit, 1);
	return false;
}

/* ---- a copy ---- */

/* Fills the new version: plain keys in payloads, which HAProxy reads fastest, or the others a command each. */
static enum weir_status fill(struct haproxy_target *haproxy, const struct block_table *table, const char *version,
                             bool plain, struct weir_error *error)
{
	struct block_walk walk = {0};
	const struct block_entry *entry;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && (entry = block_table_next(table, &walk)) != NULL) {
		struct weir_span key = block_entry_key(entry);
		/* Of one key in several zones the block that ends last speaks for all. */
		if (haproxy_map_is_plain(key) != plain || block_table_find_key(table, key) != entry ||
		    !fits(haproxy, table, key))
			continue;
		status = make_room(haproxy, key, error);
		if (plain && haproxy->request.length == 0)
			weir_text_printf(&haproxy->request, "add map %s%s <<\n", version, haproxy->name);
		if (plain)
			weir_text_append(&haproxy->request, key.at, key.length);
		else
			command(haproxy, "add", version, key);
		weir_text_puts(&haproxy->request, " ");
		haproxy_map_until(&haproxy->request, entry->until_ms);
		if (plain)
			weir_text_puts(&haproxy->request, "\n");
	}
	return status == WEIR_OK ? send_commands(haproxy, error) : status;
}

static enum weir_status prepare(struct haproxy_target *haproxy, char version[MAP_NAME_BYTES], struct weir_error *error)
{
	static const char mark[] = "New version created: ";
	weir_text_printf(&haproxy->request, "prepare map %s", haproxy->name);
	enum weir_status status = ask(haproxy, error);
	if (status != WEIR_OK)
		return status;
	const char *found = strstr(haproxy->answer.at, mark);
	if (found == NULL)
		return weir_fail(error, WEIR_IO, "HAProxy at %s is too old: `prepare map` needs 2.4", haproxy->path);
	snprintf(version, MAP_NAME_BYTES, "@%lu ", strtoul(found + strlen(mark), NULL, 10));
	return WEIR_OK;
}

/* What was put in a version that will not be used; as far as HAProxy can be told. */
static void discard(struct haproxy_target *haproxy, const char *version)
{
	struct weir_error ignored;
	weir_text_clear(&haproxy->request);
	weir_text_printf(&haproxy->request, "clear map %s%s", version, haproxy->name);
	(void)!ask(haproxy, &ignored);
}

static enum weir_status copy(struct target *target, const struct block_table *table, int64_t now_ms,
                             struct weir_error *error)
{
	(void)now_ms;
	struct haproxy_target *haproxy = (struct haproxy_target *)target;
	char version[MAP_NAME_BYTES];
	weir_text_clear(&haproxy->request);
	enum weir_status status = look(haproxy, error);
	if (status == WEIR_OK)
		status = inspect_type(haproxy, error);
	if (status == WEIR_OK)
		status = prepare(haproxy, version, error);
	if (status != WEIR_OK)
		return status;
	status = fill(haproxy, table, version, true, error);
	if (status == WEIR_OK)
		status = fill(haproxy, table, version, false, error);
	if (status != WEIR_OK) {
		discard(haproxy, version);
		return status;
	}
	haproxy->committed = strtol(version + 1, NULL, 10);
	weir_text_printf(&haproxy->request, "commit map %s%s", version, haproxy->name);
	return send_commands(haproxy, error);
}

/* ---- changes ---- */

/* Looks whether all is as it was. @return WEIR_OK; WEIR_AGAIN: it is not: the map may have another number; WEIR_IO */
static enum weir_status look_again(struct haproxy_target *haproxy, struct weir_error *error)
{
	long before = haproxy->pid;
	char name[MAP_NAME_BYTES];
	memcpy(name, haproxy->name, sizeof name);
	weir_text_clear(&haproxy->request);
	enum weir_status status = look(haproxy, error);
	if (status != WEIR_OK)
		return status;
	if (haproxy->pid != before || strcmp(name, haproxy->name) != 0 ||
	    (haproxy->version >= 0 && haproxy->version != haproxy->committed))
		return weir_fail(error, WEIR_AGAIN, "HAProxy was restarted or reloaded, or someone else changed its map");
	return WEIR_OK;
}

/* Whether HAProxy may have the key: one that it has not is only added, as a removal looks through the whole map. */
static bool may_be_there(const struct block_table *table, const struct block_entry *change)
{
	return change->told || block_table_was_told(table, block_entry_key(change));
}

static uint32_t removals(const struct block_table *table)
{
	uint32_t count, found = 0;
	struct block_entry *const *changes = block_table_changes(table, &count);
	for (uint32_t i = 0; i < count; i++)
		found += may_be_there(table, changes[i]);
	return found;
}

static enum weir_status apply(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	struct haproxy_target *haproxy = (struct haproxy_target *)target;
	/* By the number that the map had before a reload another list might be changed, such as one of whom to trust. */
	enum weir_status status = removals(table) > REMOVALS_MANY ? WEIR_AGAIN : look_again(haproxy, error);
	if (status != WEIR_OK)
		return status == WEIR_AGAIN ? copy(target, table, now_ms, error) : status;
	uint32_t count;
	struct block_entry *const *changes = block_table_changes(table, &count);
	weir_text_clear(&haproxy->request);
	for (uint32_t i = 0; i < count && status == WEIR_OK; i++) {
		struct weir_span key = block_entry_key(changes[i]);
		const struct block_entry *now = block_table_find_key(table, key);
		if (now != NULL && !fits(haproxy, table, key))
			now = NULL;
		/* What an operator let go may stay another zone's block, which is too wide to be held. */
		if (now == NULL && !can_hold(haproxy, key, changes[i]->by_operator))
			continue;
		status = make_room(haproxy, key, error);
		if (may_be_there(table, changes[i]))
			command(haproxy, "del", "", key);
		if (now == NULL)
			continue;
		command(haproxy, "add", "", key);
		weir_text_puts(&haproxy->request, " ");
		haproxy_map_until(&haproxy->request, now->until_ms);
	}
	return status == WEIR_OK ? send_commands(haproxy, error) : status;
}

/* ---- whether the list is still there ---- */

/*
 * Of the entries that HAProxy was told of and that no change waits for the one that was decided first: what was added since
 * is there also where all else was lost. NULL: there is none.
 */
static const struct block_entry *one_told(const struct haproxy_target *haproxy, const struct block_table *table)
{
	struct block_walk walk = {0};
	const struct block_entry *entry, *first = NULL;
	while ((entry = block_table_next(table, &walk)) != NULL)
		if (entry->told && !entry->changed && (first == NULL || entry->at_ms < first->at_ms) &&
		    can_hold(haproxy, block_entry_key(entry), block_table_has_operators(table, block_entry_key(entry))))
			first = entry;
	return first;
}

/*
 * One entry that ought to be there stands for all. Only a map that compares whole strings or addresses finds a key by
 * itself: of one of patterns no more is known than how many it has.
 */
static enum weir_status look_for_one(struct haproxy_target *haproxy, const struct block_table *table,
                                     struct weir_error *error)
{
	const struct block_entry *told = one_told(haproxy, table);
	if (told == NULL)
		return WEIR_OK;
	struct weir_span key = block_entry_key(told);
	const char *slash = haproxy->addresses ? memchr(key.at, '/', key.length) : NULL;
	if (slash != NULL)
		key.length = (uint32_t)(slash - key.at);
	command(haproxy, "get", "", key);
	enum weir_status status = ask(haproxy, error);
	if (status != WEIR_OK)
		return status;
	const char *answer = haproxy->answer.at;
	bool exact = strstr(answer, "type=str,") != NULL || strstr(answer, "type=ip,") != NULL;
	bool lost = exact && strstr(answer, "found=no") != NULL && strstr(answer, "found=yes") == NULL;
	if (lost || haproxy->entries == 0)
		return weir_fail(error, WEIR_AGAIN, "HAProxy's map was emptied");
	return WEIR_OK;
}

static enum weir_status check(struct target *target, const struct block_table *table, int64_t now_ms,
                              struct weir_error *error)
{
	(void)now_ms;
	struct haproxy_target *haproxy = (struct haproxy_target *)target;
	enum weir_status status = look_again(haproxy, error);
	return status == WEIR_OK ? look_for_one(haproxy, table, error) : status;
}

/* ---- read back ---- */

/* "0xADDRESS KEY VALUE" lines; a key may have blanks. */
static enum weir_status read_back(struct target *target, int64_t end_ms, target_seen *seen, void *context,
                                  struct target_reading *reading, struct weir_error *error)
{
	(void)end_ms;
	struct haproxy_target *haproxy = (struct haproxy_target *)target;
	weir_text_clear(&haproxy->request);
	enum weir_status status = look(haproxy, error);
	if (status == WEIR_OK)
		status = inspect_type(haproxy, error);
	if (status != WEIR_OK)
		return status;
	reading->without_zones = true;
	weir_text_printf(&haproxy->request, "show map %s", haproxy->name);
	status = ask(haproxy, error);
	const char *line = status == WEIR_OK ? haproxy->answer.at : "";
	while (*line != '\0') {
		size_t length = strcspn(line, "\n");
		const char *blank = memchr(line, ' ', length), *value = memrchr(line, ' ', length);
		if (strncmp(line, "0x", 2) == 0 && value > blank)
			seen(context, (struct weir_span){.at = blank + 1, .length = (uint32_t)(value - blank - 1)});
		line += length + (line[length] == '\n');
	}
	return status;
}

static bool spell(struct target *target, const struct block_table *table, const struct block_entry *entry,
                  struct weir_text *words)
{
	struct weir_span key = block_entry_key(entry);
	weir_text_append(words, key.at, key.length);
	return can_hold((const struct haproxy_target *)target, key, block_table_has_operators(table, key));
}

static enum weir_status close_target(struct target *target, struct weir_error *error)
{
	(void)error;
	struct haproxy_target *haproxy = (struct haproxy_target *)target;
	weir_text_deinit(&haproxy->request);
	weir_text_deinit(&haproxy->answer);
	free(haproxy->path);
	free(haproxy->map);
	free(haproxy);
	return WEIR_OK;
}

static void lists(const struct target *target, struct weir_text *lines)
{
	const struct haproxy_target *haproxy = (const struct haproxy_target *)target;
	weir_text_puts(lines, "haproxy ");
	weir_file_place_put(lines, haproxy->path);
	weir_text_puts(lines, "\n");
}

static const struct target_ops ops = {
	.lists = lists,
	.read = read_back,
	.spell = spell,
	.kind = "haproxy",
	.check_after_ms = CHECK_MS,
	.copy = copy,
	.apply = apply,
	.check = check,
	.close = close_target,
};

enum weir_status target_haproxy_make(const char *rest, const struct target_options *options, struct target **target,
                                     struct weir_error *error)
{
	(void)error;
	const char *map = options->map != NULL ? options->map : TARGET_MAP_DEFAULT;
	struct haproxy_target *made = weir_alloc(1, sizeof *made);
	made->target.ops = &ops;
	made->path = weir_copy(rest, strlen(rest));
	made->map = weir_copy(map, strlen(map));
	*target = &made->target;
	return WEIR_OK;
}
