/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of words: in place, as what is cleaned is often all there is room for (an error, a log line). */
#include "common/base/words.h"

#include <string.h>

void weir_words_clean(char *words)
{
	char *out = words;
	size_t left = strlen(words);
	while (left > 0) {
		size_t control = weir_control_bytes(words, left);
		size_t taken = control > 0 ? control : 1;
		*out++ = control > 0 ? ' ' : *words;
		words += taken;
		left -= taken;
	}
	*out = '\0';
}

/* Of Unicode 17: Cc, Cf, Zl, Zp and Default_Ignorable_Code_Point. */
static const unsigned unseen[][2] = {
	{0x00, 0x1F},       {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},     {0x600, 0x605},
	{0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},
	{0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},
	{0x2060, 0x206F},   {0x3164, 0x3164},   {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},
	{0xFFF0, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
	{0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool weir_is_unseen(unsigned code)
{
	for (size_t i = 0; i < sizeof unseen / sizeof *unseen && unseen[i][0] <= code; i++)
		if (code <= unseen[i][1])
			return true;
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool weir_words_alike(const char *one, const char *other)
{
	while (*one != '\0' && *other != '\0') {
		if (is_digit(*one) && is_digit(*other)) {
			one += strspn(one, "0123456789");
			other += strspn(other, "0123456789");
		} else if (*one++ != *other++) {
			return false;
		}
	}
	return *one == *other;
}
