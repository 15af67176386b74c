/* SPDX-License-Identifier: Apache-2.0 */
/* The same searches as a machine with AVX2 makes them, for which this file is compiled; others skip it. */
#if defined(__AVX2__)

#define main find_main
#include "test_find.c" /* NOLINT(bugprone-suspicious-include) */
#undef main

int main(void)
{
	bool can = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
	return can ? find_main() : 77;
}

#else

int main(void)
{
	return 77;
}

#endif
