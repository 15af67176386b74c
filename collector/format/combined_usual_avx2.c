/* SPDX-License-Identifier: Apache-2.0 */
/* combined_usual.c once more, for machines with AVX2: the build compiles this file for them (CMakeLists.txt). */
#include "collector/format/combined_usual.h"

#if defined(COMBINED_HAS_AVX2)

#if !defined(__AVX2__) || !defined(__BMI2__)
#error "this file is to be compiled with -mavx2 -mbmi -mbmi2"
#endif

#define COMBINED_PARSE combined_parse_avx2
#include "collector/format/combined_usual.c" /* NOLINT(bugprone-suspicious-include) */

#endif
