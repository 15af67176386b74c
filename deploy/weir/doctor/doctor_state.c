/* SPDX-License-Identifier: Apache-2.0 */
/* The state directory of `weir run`: whether it is held, and can be read and written. */
#include "common/base/shell.h"
#include "common/bus/local/bus_local.h"
#include "common/files/file_damage.h"
#include "common/files/file_owner.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/doctor/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char state_check[] = "state";
static const char refuses[] = "weir run refuses to start: nothing is judged then, and nobody is newly blocked";
static const char refuses_or_ends[] =
	"weir run refuses to start, or cannot go on where it reads that: nothing is judged then, "
	"and nobody is newly blocked";

static void check_log(struct doctor *doctor, const struct weir_check *check)
{
	const struct weir_bus_local_options options = {.partitions = (uint32_t)doctor->config->bus.partitions};
	char path[WEIR_PATH_BYTES];
	struct weir_error error;
	enum weir_status status = weir_path_format(path, &error, "%s/log", doctor->state);
	if (status == WEIR_OK)
		status = weir_bus_local_check(path, &options, &error);
	if (status != WEIR_OK)
		weir_findings_damaged(check->findings, state_check, &error, refuses);
}

/* A start makes one where there is none, or an empty file, and knows nothing of what was. */
static void say_lost(struct doctor *doctor, const struct weir_check *check, const char *what)
{
	weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, state_check,
	                  "%s/weir.db %s, though there is a log beside it\nThe archive, the overrides, and the counts and "
	                  "blocks that the log does not have are lost when weir run starts\nput a copy of it back before "
	                  "weir run starts; without one, start it (runbook: state-file-damaged)",
	                  doctor->state, what);
}

static bool has_log(const struct doctor *doctor)
{
	char path[WEIR_PATH_BYTES];
	return weir_path_format(path, NULL, "%s/log/partitions", doctor->state) == WEIR_OK && access(path, F_OK) == 0;
}

static bool is_empty(const struct doctor *doctor)
{
	char path[WEIR_PATH_BYTES];
	struct stat about;
	return weir_path_format(path, NULL, "%s/weir.db", doctor->state) == WEIR_OK && stat(path, &about) == 0 &&
	       about.st_size == 0;
}

static void check_store(struct doctor *doctor, const struct weir_check *check)
{
	struct state_directory state;
	struct weir_error error;
	bool once;
	uint64_t seed;
	enum weir_status status = state_directory_open_read_only(&state, doctor->state, &once, &seed, &error);
	if (status == WEIR_OK)
		status = state_directory_check(&state, (uint32_t)doctor->config->bus.partitions, &error);
	if (status != WEIR_OK && weir_damage_find_remedy(error.text, NULL) != NULL)
		weir_findings_damaged(check->findings, state_check, &error, refuses_or_ends);
	else if (status != WEIR_OK && is_empty(doctor) && has_log(doctor))
		say_lost(doctor, check, "is empty");
	else if (status != WEIR_OK)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, state_check,
			"%s\nweir run cannot continue from its state\nls -l %s shows whose it is; run this command as the "
			"user of weir run (runbook: store-away)",
			error.text, weir_shell_word(doctor->state).text);
	state_directory_close(&state);
}

/* A file that its owner may not open. Where this process may not either, who reads it says so. */
static void check_rights(const struct weir_check *check, const FTSENT *entry)
{
	mode_t needed = S_IRUSR | S_IWUSR;
	bool told = faccessat(AT_FDCWD, entry->fts_path, R_OK, AT_EACCESS) != 0 &&
	            strncmp(entry->fts_name, "dead-letter.jsonl", 17) != 0;
	if (entry->fts_info == FTS_F && (entry->fts_statp->st_mode & needed) != needed && !told)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, state_check,
		                  "%s: its owner may not read and write it\n%s\nchmod u+rw %s (runbook: process-down)",
		                  entry->fts_path, refuses, weir_shell_word(entry->fts_path).text);
}

/* What root made there in an earlier version, or somebody copied: its owner is not who the directory belongs to. */
static void check_owners(const struct doctor *doctor, const struct weir_check *check)
{
	char *paths[] = {(char *)(uintptr_t)doctor->state, NULL};
	char owner[WEIR_USER_NAME_BYTES], other[WEIR_USER_NAME_BYTES];
	struct stat about;
	FTS *walk = stat(doctor->state, &about) == 0 ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	if (walk == NULL)
		return;
	for (const FTSENT *entry; (entry = fts_read(walk)) != NULL;) {
		if (entry->fts_info != FTS_F && entry->fts_info != FTS_D)
			continue;
		if (entry->fts_statp->st_uid == about.st_uid) {
			check_rights(check, entry);
			continue;
		}
		weir_user_name(about.st_uid, owner);
		weir_user_name(entry->fts_statp->st_uid, other);
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, state_check,
		                  "%s belongs to %s, and %s to %s\nweir run as %s cannot start, or cannot store\n"
		                  "chown -R %s %s (runbook: process-down)",
		                  entry->fts_path, other, doctor->state, owner, owner, owner,
		                  weir_shell_word(doctor->state).text);
		break;
	}
	fts_close(walk);
}

static void say_closed(const char *state, const struct weir_check *check)
{
	char self[WEIR_USER_NAME_BYTES], owner[WEIR_USER_NAME_BYTES] = "root";
	struct stat about;
	weir_user_name(geteuid(), self);
	if (stat(state, &about) == 0)
		weir_user_name(about.st_uid, owner);
	bool number = owner[strspn(owner, "0123456789")] == '\0';
	weir_findings_add(
		check->findings, WEIR_SEVERITY_TICKET, state_check,
		"%s: this command runs as %s, who may not read it\nWhether weir run works, and what its state holds, "
		"is not known\nsudo -u %s%s weir doctor %s --state %s (runbook: process-down)",
		state, self, number ? "\\#" : "", owner, check->config_words, weir_shell_word(state).text);
}

void doctor_check_state(struct doctor *doctor, const struct weir_check *check)
{
	char path[WEIR_PATH_BYTES];
	struct weir_error error;
	if (doctor->closed_state != NULL)
		say_closed(doctor->closed_state, check);
	if (doctor->state == NULL || weir_path_format(path, &error, "%s/weir.db", doctor->state) != WEIR_OK)
		return;
	if (access(path, F_OK) != 0 && errno == ENOENT && has_log(doctor)) {
		say_lost(doctor, check, "is missing");
		check_log(doctor, check);
		return;
	}
	if (access(path, F_OK) != 0) {
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, state_check,
			"there is no state of weir run in %s: %s\nIt never ran, or keeps its state elsewhere\nweir run %s "
			"--state %s, or name its directory with --state (runbook: process-down)",
			doctor->state, weir_errno_words(errno), check->config_words, weir_shell_word(doctor->state).text);
		return;
	}
	if (weir_directory_look(doctor->state) == WEIR_DIRECTORY_FREE) {
		check_owners(doctor, check); /* whoever holds it has opened its files */
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, state_check,
			"weir run is not running: nobody holds %s\nNothing is judged, and nobody is newly blocked\nsystemctl "
			"start weir, or weir run %s --state %s (runbook: process-down)",
			doctor->state, check->config_words, weir_shell_word(doctor->state).text);
	} else {
		weir_findings_good(check->findings, "state: weir run holds %s", doctor->state);
	}
	if (faccessat(AT_FDCWD, doctor->state, W_OK | X_OK, AT_EACCESS) != 0 && errno == EROFS)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, state_check,
			"%s is on a read-only file system\nNothing is stored; weir run ends\nmount it writable: mount -o "
			"remount,rw (runbook: store-read-only)",
			doctor->state);
	check_log(doctor, check);
	check_store(doctor, check);
}
