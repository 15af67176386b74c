/* SPDX-License-Identifier: Apache-2.0 */
/*
 * combined and common as a machine without SSE2 parses them.
 *
 * The parser compiled here stands in for the library's, which the linker then leaves out.
 */
#define WEIR_FIND_PORTABLE
/* NOLINTBEGIN(bugprone-suspicious-include) */
#include "collector/format/combined_line.c"
#include "collector/format/combined_usual.c"
#include "collector/format/format_combined.c"
#include "test_format_combined.c"
/* NOLINTEND(bugprone-suspicious-include) */
