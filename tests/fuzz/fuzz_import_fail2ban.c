/* SPDX-License-Identifier: Apache-2.0 */
/* Any two texts as a jail.local and, behind a form feed, as its filter "f". */
#include "tests/fuzz/import_target.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[] = "/tmp/weir-fuzz-XXXXXX", jail[64], filters[64], filter[96];

static void clean_up(void)
{
	unlink(jail);
	unlink(filter);
	rmdir(filters);
	rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (jail[0] == '\0') {
		char *made = mkdtemp(folder);
		assert(made != NULL);
		snprintf(jail, sizeof jail, "%s/jail.local", folder);
		snprintf(filters, sizeof filters, "%s/filter.d", folder);
		snprintf(filter, sizeof filter, "%s/f.conf", filters);
		int done = mkdir(filters, 0700);
		assert(done == 0);
		atexit(clean_up);
	}
	const uint8_t *feed = memchr(data, '\f', size);
	size_t first = feed != NULL ? (size_t)(feed - data) : size;
	write_file(jail, data, first);
	write_file(filter, feed != NULL ? feed + 1 : data, feed != NULL ? size - first - 1 : 0);
	import_whole(import_fail2ban, folder);
	return 0;
}
