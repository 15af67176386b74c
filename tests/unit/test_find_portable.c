/* SPDX-License-Identifier: Apache-2.0 */
/* The same searches as a machine without SSE2 makes them. */
#define WEIR_FIND_PORTABLE
#include "test_find.c" /* NOLINT(bugprone-suspicious-include) */
