/* SPDX-License-Identifier: Apache-2.0 */
/* Any YAML as what `weir import sigma` reads. */
#include "tests/fuzz/import_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_yaml(import_sigma, data, size);
	return 0;
}
