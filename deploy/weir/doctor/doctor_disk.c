/* SPDX-License-Identifier: Apache-2.0 */
/* Room in the state directory, and where decisions and dead letters go: bytes, and inodes for new files. */
#include "common/base/shell.h"
#include "common/files/file_place.h"
#include "deploy/weir/doctor/internal.h"

#include <string.h>
#include <sys/statvfs.h>

/* Less is a page; a ticket is so many times as much. */
enum { LEAST_BYTES = 32 << 20, LEAST_PERCENT = 1, EARLY = 5, LEAST_FILES = 200 };

/* File systems that make inodes as they are needed count none. @return whether there are enough */
static bool check_files(const struct weir_check *check, const char *path, const char *what, const struct statvfs *about)
{
	uint64_t left = about->f_favail;
	if (about->f_files == 0 || left >= (uint64_t)EARLY * LEAST_FILES)
		return true;
	weir_findings_add(
		check->findings, left < LEAST_FILES ? WEIR_SEVERITY_PAGE : WEIR_SEVERITY_TICKET, "disk",
		"the file system of %s %s has room for %llu more files\nWhen it has none, nothing more is written "
		"there, and the daemon waits or ends\ndelete files there that are not weir's: df -i %s (runbook: "
		"positions-unsaved)",
		what, path, (unsigned long long)left, weir_shell_word(path).text);
	return false;
}

static void check_place(const struct weir_check *check, const char *path, const char *what)
{
	struct statvfs about;
	struct weir_text left = {0};
	if (path == NULL || weir_file_descriptor_of(path) >= 0 || statvfs(path, &about) != 0 || about.f_blocks == 0)
		return;
	uint64_t free_bytes = (uint64_t)about.f_bavail * about.f_frsize, percent = about.f_bavail * 100 / about.f_blocks;
	weir_text_size(&left, free_bytes);
	bool full = free_bytes < LEAST_BYTES || (percent < LEAST_PERCENT && free_bytes < (uint64_t)16 * LEAST_BYTES);
	bool early = free_bytes < (uint64_t)EARLY * LEAST_BYTES;
	if (full || early)
		weir_findings_add(
			check->findings, full ? WEIR_SEVERITY_PAGE : WEIR_SEVERITY_TICKET, "disk",
			"the disk of %s %s has %.*s left\nWhen it is full, nothing more is written there, and the daemon "
			"waits or ends\nfree some room there: df -h %s && du -xsh %s/* (runbook: positions-unsaved)",
			what, path, (int)left.length, left.at, weir_shell_word(path).text, weir_shell_word(path).text);
	else if (check_files(check, path, what, &about))
		weir_findings_good(check->findings, "disk: %s has %.*s left", path, (int)left.length, left.at);
	weir_text_deinit(&left);
}

void doctor_check_disk(struct doctor *doctor, const struct weir_check *check)
{
	char directory[WEIR_PATH_BYTES];
	struct weir_error error;
	const char *const files[] = {doctor->config->decisions.path, doctor->config->deadletter.path};
	check_place(check, doctor->state, "the state directory");
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (files[i] != NULL && weir_file_descriptor_of(files[i]) < 0 &&
		    weir_directory_of(files[i], directory, &error) == WEIR_OK)
			check_place(check, directory, "the output directory");
}
