/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over files, without libFuzzer.
 *
 * A build by any compiler so replays the corpus, and with it every input that was once a bug. It owns
 * nothing of the target: each file named on the command line, and each in a folder named there, is read
 * whole and handed over once.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX_BYTES = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Hands one file to the target. The buffer has the input's exact size, so that a sanitizer sees a read past it. */
static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (file == NULL) {
		perror(path);
		return -1;
	}
	int result = -1;
	uint8_t *data = NULL;
	struct stat status;
	if (fstat(fileno(file), &status) != 0 || status.st_size > INPUT_MAX_BYTES) {
		fprintf(stderr, "%s: unreadable, or above %d bytes\n", path, INPUT_MAX_BYTES);
		goto cleanup;
	}
	size_t size = (size_t)status.st_size;
	data = malloc(size > 0 ? size : 1);
	if (data == NULL || fread(data, 1, size, file) != size) {
		fprintf(stderr, "%s: could not be read\n", path);
		goto cleanup;
	}
	LLVMFuzzerTestOneInput(data, size);
	result = 0;

cleanup:
	free(data);
	fclose(file);
	return result;
}

/* Replays a folder's files, not those of folders within. Returns how many, or -1. */
static long replay_folder(const char *path)
{
	DIR *folder = opendir(path);
	if (folder == NULL) {
		perror(path);
		return -1;
	}
	long count = 0;
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		char name[4096];
		struct stat status;
		int length = snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		if (length < 0 || (size_t)length >= sizeof name || stat(name, &status) != 0 || !S_ISREG(status.st_mode))
			continue;
		if (replay_file(name) != 0) {
			count = -1;
			break;
		}
		count++;
	}
	closedir(folder);
	return count;
}

int main(int argc, char **argv)
{
	long total = 0;
	for (int i = 1; i < argc; i++) {
		struct stat status;
		long count = 1;
		if (stat(argv[i], &status) == 0 && S_ISDIR(status.st_mode))
			count = replay_folder(argv[i]);
		else if (replay_file(argv[i]) != 0)
			count = -1;
		if (count < 0)
			return 1;
		total += count;
	}
	printf("%ld inputs replayed\n", total);
	return 0;
}
