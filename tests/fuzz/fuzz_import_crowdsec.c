/* SPDX-License-Identifier: Apache-2.0 */
/* Any YAML as what `weir import crowdsec` reads. */
#include "tests/fuzz/import_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	import_yaml(import_crowdsec, data, size);
	return 0;
}
