/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as MessagePack: what is measured, passed over and written agree on where a value ends, and what is written
 * is an object of JSON to who reads the lines, one line, and no longer than it may be.
 */
#include "collector/record/json_scan.h"
#include "collector/source/push/forward/msgpack_json.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct weir_text *text)
{
	require(text->length > 0 && memchr(text->at, '\n', text->length) == NULL);
	if (text->at[0] != '{')
		return;
	struct json_scan scan;
	json_scan_init(&scan);
	require(json_scan_line(&scan, text->at, (uint32_t)text->length));
	json_scan_deinit(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msgpack_extent whole = {0}, grown = {0};
	struct weir_error error;
	struct weir_text text = {0}, cut = {0};
	struct msgpack passed = msgpack_of(data, size), read = passed, cut_read = passed;
	enum weir_status status = msgpack_measure(&whole, data, size, size, &error);
	enum weir_status skipped = msgpack_skip(&passed), written = msgpack_json(&read, SIZE_MAX, &text);
	require((status == WEIR_OK) == (skipped == WEIR_OK));
	require(skipped != WEIR_OK || written == WEIR_OK);
	if (status == WEIR_OK) {
		for (size_t there = 0; there < whole.seen; there += 1 + there / 16)
			require(msgpack_measure(&grown, data, there, size, &error) == WEIR_AGAIN);
		require(msgpack_measure(&grown, data, size, size, &error) == WEIR_OK && grown.seen == whole.seen);
		require(passed.at == data + whole.seen && read.at == passed.at);
		check_text(&text);
		size_t most = text.length / 2;
		require(msgpack_json(&cut_read, most, &cut) == WEIR_OK && cut_read.at == read.at);
		require(cut.length == most && (most == 0 || memcmp(cut.at, text.at, most) == 0));
	}
	weir_text_deinit(&text);
	weir_text_deinit(&cut);
	return 0;
}
