/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a limiter's stored state: a sign and a version, then the base. */
#include "common/store/record_base.h"

enum { VERSION = 3, VERSION_BYTES = 8, SIGN_BYTES = 4 + VERSION_BYTES, BEGINNING_BYTES = SIGN_BYTES + 8 };

static const char sign[4] = {VERSION_BYTES};

static void append_u64(struct weir_text *text, uint64_t number)
{
	for (int shift = 0; shift < 64; shift += 8)
		weir_text_append(text, &(char){(char)(number >> shift)}, 1);
}

static uint64_t read_u64(const char *at)
{
	uint64_t number = 0;
	for (int i = 7; i >= 0; i--)
		number = number << 8 | (uint8_t)at[i];
	return number;
}

void weir_record_base_write(uint64_t base, struct weir_text *extra)
{
	weir_text_append(extra, sign, sizeof sign);
	append_u64(extra, VERSION);
	append_u64(extra, base);
}

enum weir_status weir_record_base_read(struct weir_span *extra, uint64_t *base, struct weir_error *error)
{
	*base = 0;
	if (extra->length < SIGN_BYTES || memcmp(extra->at, sign, sizeof sign) != 0)
		return WEIR_OK;
	uint64_t version = read_u64(extra->at + sizeof sign);
	if (version > VERSION)
		return weir_fail(error, WEIR_NEWER, "the state was saved by a newer version of weir");
	if (version != VERSION || extra->length < BEGINNING_BYTES)
		return weir_fail(error, WEIR_INVALID, "the saved state is damaged");
	*base = read_u64(extra->at + SIGN_BYTES);
	extra->at += BEGINNING_BYTES;
	extra->length -= BEGINNING_BYTES;
	return WEIR_OK;
}
