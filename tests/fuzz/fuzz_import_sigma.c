/* SPDX-License-Identifier: Apache-2.0 */
/* Any YAML as what `weir import sigma` reads. */
#include "tests/fuzz/import_target.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("import", 0);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	write_file(path, data, size);
	import_whole(import_sigma, path);
	close(fd);
	return 0;
}
