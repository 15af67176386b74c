/* SPDX-License-Identifier: Apache-2.0 */
/* See state_directory.h for what lies in it. */
#include "deploy/weir/backend/state_directory.h"

#include "common/base/alloc.h"
#include "common/cluster/key_hash.h"
#include "common/store/sqlite/store_sqlite.h"
#include "deploy/weir/backend/policy_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FAULT_BYTES = 256, WHOLE_MOST_BYTES = 64 << 20 };

#define KIND_NOTE "kind"
#define SEED_NOTE "seed"

static enum weir_status check_kind(struct state_directory *state, const char *kind, struct weir_error *error)
{
	char *note;
	size_t length;
	enum weir_status status = state->store->ops->note_get(state->store, KIND_NOTE, &note, &length, error);
	if (status != WEIR_OK)
		return status;
	if (note == NULL)
		return state->store->ops->note_put(state->store, KIND_NOTE, weir_span_of(kind), error);
	if (strcmp(note, kind) != 0)
		status = weir_fail(error, WEIR_INVALID, "%s is the state of %s: choose another --state directory", state->path,
		                   strcmp(note, "once") == 0 ? "a --once run" : "a run that follows");
	free(note);
	return status;
}

static const char *const part_names[STATE_PARTS] = {
	[STATE_DATABASE] = "weir.db",
	[STATE_DATABASE_LOG] = "weir.db-wal",
	[STATE_DATABASE_INDEX] = "weir.db-shm",
	[STATE_LOG] = "log",
};

/* @return false: it is not there */
static bool find_part(const struct state_directory *state, int which, struct state_part *part)
{
	char path[WEIR_PATH_BYTES];
	struct stat about;
	struct weir_error ignored;
	*part = (struct state_part){0};
	if (weir_path_format(path, &ignored, "%s/%s", state->path, part_names[which]) != WEIR_OK || stat(path, &about) != 0)
		return false;
	*part = (struct state_part){about.st_dev, about.st_ino};
	return true;
}

void state_directory_note_log(struct state_directory *state)
{
	(void)find_part(state, STATE_LOG, &state->parts[STATE_LOG]);
}

static bool part_stands(const struct state_directory *state, int which, struct weir_text *why)
{
	const struct state_part *opened = &state->parts[which];
	struct state_part now;
	bool there = find_part(state, which, &now);
	if (opened->inode == 0 || (there && now.inode == opened->inode && now.device == opened->device))
		return true;
	weir_text_printf(why, "%s/%s was %s while it is open\n", state->path, part_names[which],
	                 there ? "replaced" : "removed");
	return false;
}

bool state_directory_stands(const struct state_directory *state, struct weir_text *why)
{
	bool good = true;
	for (int which = 0; which < STATE_PARTS; which++)
		good &= part_stands(state, which, why);
	if (good && !weir_directory_stands(state->path, &state->lock)) {
		weir_text_printf(why, "%s/lock was removed or replaced while it is held\n", state->path);
		good = false;
	}
	return good;
}

enum weir_status state_directory_open_another(const struct state_directory *state, struct weir_store **store,
                                              struct weir_error *error)
{
	struct weir_text why = {0};
	enum weir_status status = WEIR_OK;
	if (!state_directory_stands(state, &why))
		status = weir_fail(error, WEIR_IO, "%.*s", (int)(why.length - 1), why.at);
	weir_text_deinit(&why);
	return status == WEIR_OK ? weir_store_sqlite_open(state->path, store, error) : status;
}

enum weir_status state_directory_open(struct state_directory *state, const char *path, const char *kind,
                                      struct weir_error *error)
{
	*state = (struct state_directory){.path = path};
	enum weir_status status = weir_directory_make(path, error);
	if (status == WEIR_OK)
		status = weir_directory_lock(path, &state->lock, error);
	state->locked = status == WEIR_OK;
	if (status == WEIR_OK)
		status = weir_store_sqlite_open(path, &state->store, error);
	if (status == WEIR_OK)
		status = check_kind(state, kind, error);
	for (int which = STATE_DATABASE; which <= STATE_DATABASE_INDEX && status == WEIR_OK; which++)
		(void)find_part(state, which, &state->parts[which]);
	return status;
}

void state_directory_close(struct state_directory *state)
{
	if (state->store != NULL)
		state->store->ops->close(state->store);
	if (state->locked)
		weir_directory_unlock(&state->lock);
	*state = (struct state_directory){0};
}

enum weir_status state_directory_seed(struct state_directory *state, uint64_t *seed, struct weir_error *error)
{
	char *note;
	size_t length;
	enum weir_status status = state->store->ops->note_get(state->store, SEED_NOTE, &note, &length, error);
	if (status != WEIR_OK)
		return status;
	if (note != NULL) {
		*seed = strtoull(note, NULL, 16);
		free(note);
		return WEIR_OK;
	}
	if (getrandom(seed, sizeof *seed, 0) != (ssize_t)sizeof *seed)
		return weir_fail(error, WEIR_IO, "cannot get random bytes: %s", weir_errno_words(errno));
	char hex[20];
	snprintf(hex, sizeof hex, "%016llx", (unsigned long long)*seed);
	return state->store->ops->note_put(state->store, SEED_NOTE, weir_span_of(hex), error);
}

enum weir_status state_directory_open_read_only(struct state_directory *state, const char *path, bool *once,
                                                uint64_t *seed, struct weir_error *error)
{
	*state = (struct state_directory){.path = path};
	char *kind = NULL, *hex = NULL;
	size_t length;
	enum weir_status status = weir_store_sqlite_open_read_only(path, &state->store, error);
	if (status == WEIR_OK)
		status = state->store->ops->note_get(state->store, KIND_NOTE, &kind, &length, error);
	if (status == WEIR_OK)
		status = state->store->ops->note_get(state->store, SEED_NOTE, &hex, &length, error);
	*once = kind != NULL && strcmp(kind, "once") == 0;
	*seed = hex != NULL ? strtoull(hex, NULL, 16) : 0;
	free(kind);
	free(hex);
	return status;
}

enum weir_status state_directory_policies(struct state_directory *state, struct policy_registry *registry,
                                          struct weir_error *error)
{
	enum weir_status status = policy_log_load(state->store, registry, error);
	if (status == WEIR_INVALID)
		weir_store_sqlite_say_damaged(state->path, error);
	return status;
}

/* What no check reads of another user's state. */
static bool is_unread(const char *name)
{
	static const char *const names[] = {"dead-letter.jsonl", "swap-", "lock", "lists"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static bool may_not_read(const FTSENT *entry)
{
	if (entry->fts_level == 1 && is_unread(entry->fts_name))
		return false;
	if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS || entry->fts_info == FTS_ERR)
		return entry->fts_errno == EACCES;
	return entry->fts_info == FTS_F && faccessat(AT_FDCWD, entry->fts_path, R_OK, AT_EACCESS) != 0 && errno == EACCES;
}

bool state_directory_is_closed(const char *state)
{
	char *paths[] = {(char *)(uintptr_t)state, NULL};
	struct stat about;
	if (stat(state, &about) != 0)
		return errno == EACCES;
	if (about.st_uid == geteuid())
		return false; /* what its own user may not read is a fault of the state */
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	bool closed = false;
	for (const FTSENT *entry; walk != NULL && !closed && (entry = fts_read(walk)) != NULL;)
		closed = may_not_read(entry);
	if (walk != NULL)
		fts_close(walk);
	return closed;
}

static void pass_segment(void *context, uint32_t segment, uint32_t deltas, uint64_t base_bytes, uint64_t delta_bytes)
{
	(void)context;
	(void)segment;
	(void)deltas;
	(void)base_bytes;
	(void)delta_bytes;
}

static enum weir_status check_partition(struct weir_store *store, uint32_t partition, struct weir_error *error)
{
	struct weir_partition_state found;
	enum weir_status status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, partition, &found, error);
	if (status == WEIR_OK)
		status = store->ops->list_segments(store, partition, found.epoch, found.checkpoint, pass_segment, NULL, error);
	return status == WEIR_FENCED || status == WEIR_END ? WEIR_OK : status;
}

static enum weir_status take_fault(void *context, const struct weir_sql_value *values, unsigned count)
{
	char *words = context;
	if (count == 1 && values[0].type == WEIR_SQL_TEXT)
		snprintf(words, FAULT_BYTES, "%.*s", (int)values[0].text.length, values[0].text.at);
	return WEIR_OK;
}

/* Every page, where there are few. */
static enum weir_status check_pages(struct state_directory *state, struct weir_error *error)
{
	char path[WEIR_PATH_BYTES], fault[FAULT_BYTES] = "";
	struct stat about;
	enum weir_status status = weir_path_format(path, error, "%s/%s", state->path, part_names[STATE_DATABASE]);
	if (status != WEIR_OK || stat(path, &about) != 0 || about.st_size > WHOLE_MOST_BYTES)
		return status;
	status = state->store->ops->query(state->store, "PRAGMA quick_check(1)", NULL, 0, take_fault, fault, error);
	if (status == WEIR_OK && strcmp(fault, "ok") != 0 && fault[0] != '\0') {
		status = weir_fail(error, WEIR_INVALID, "%s is damaged: %s", path, fault);
		weir_store_sqlite_say_damaged(state->path, error);
	}
	return status;
}

enum weir_status state_directory_check(struct state_directory *state, uint32_t partitions, struct weir_error *error)
{
	struct policy_registry *registry = policy_registry_new();
	enum weir_status status = state_directory_policies(state, registry, error);
	policy_registry_free(registry);
	for (uint32_t i = 0; i < partitions && status == WEIR_OK; i++)
		status = check_partition(state->store, i, error);
	return status == WEIR_OK ? check_pages(state, error) : status;
}

static enum weir_status take_flag(void *context, const struct weir_sql_value *values, unsigned count)
{
	*(bool *)context = count == 1 && values[0].number != 0;
	return WEIR_OK;
}

enum weir_status state_directory_open_archive(const char *path, struct weir_store **store, struct weir_error *error)
{
	static const char any[] = "SELECT EXISTS (SELECT 1 FROM zone_hourly) OR EXISTS (SELECT 1 FROM decision_history)"
							  " OR EXISTS (SELECT 1 FROM shadow_history)";
	struct weir_store *opened;
	bool archived = false;
	enum weir_status status = weir_store_sqlite_open_read_only(path, &opened, error);
	if (status != WEIR_OK)
		return status;
	status = weir_key_hash_settled(opened, &archived, error); /* an archive of an empty log is one */
	if (status == WEIR_OK && !archived)
		status = opened->ops->query(opened, any, NULL, 0, take_flag, &archived, error);
	if (status == WEIR_OK && !archived)
		status =
			weir_fail(error, WEIR_INVALID,
		              "nothing is archived in %s: set archiver.enabled to true in the configuration of `weir run`; "
		              "for finished logs, `weir run --once --config FILE --state DIR` makes an archive",
		              path);
	if (status == WEIR_OK)
		*store = opened;
	else
		opened->ops->close(opened);
	return status;
}

enum weir_status state_directory_temporary(char **path, struct weir_error *error)
{
	const char *parent = getenv("TMPDIR");
	char pattern[WEIR_PATH_BYTES];
	enum weir_status status =
		weir_path_format(pattern, error, "%s/weir-XXXXXX", parent != NULL && parent[0] != '\0' ? parent : "/tmp");
	if (status != WEIR_OK)
		return status;
	if (mkdtemp(pattern) == NULL)
		return weir_fail(error, WEIR_IO, "cannot create a directory like %s: %s", pattern, weir_errno_words(errno));
	*path = weir_copy(pattern, strlen(pattern));
	return WEIR_OK;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *at)
{
	(void)status;
	(void)kind;
	(void)at;
	return remove(path);
}

void state_directory_remove(char *path)
{
	if (path == NULL)
		return;
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(path);
}

enum weir_status state_directory_default(char path[WEIR_PATH_BYTES], struct weir_error *error)
{
	if (geteuid() == 0)
		return weir_path_format(path, error, "/var/lib/weir");
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (state != NULL && state[0] == '/')
		return weir_path_format(path, error, "%s/weir", state);
	if (home != NULL && home[0] == '/')
		return weir_path_format(path, error, "%s/.local/state/weir", home);
	return weir_fail(error, WEIR_INVALID, "neither XDG_STATE_HOME nor HOME is set: give a --state directory");
}
