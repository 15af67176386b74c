/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a Redis server answers: the tokens do not depend on how the bytes come, and memory is bounded. */
#include "common/resp/resp.h"

#include "common/base/text.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX_BYTES = 30 };

static void read_all(const uint8_t *data, size_t size, size_t step, struct weir_text *out)
{
	struct weir_resp resp;
	struct weir_resp_token token;
	struct weir_error error;
	weir_resp_init(&resp, TEXT_MAX_BYTES);
	for (;;) {
		enum weir_status status = weir_resp_next(&resp, &token, &error);
		if (status == WEIR_INVALID || (status == WEIR_AGAIN && size == 0))
			break;
		if (status == WEIR_OK) {
			require(token.depth <= WEIR_RESP_DEPTH_MAX && token.text.length <= token.whole);
			weir_text_printf(out, "%d %d %llu %lld %llu ", (int)token.kind, token.depth,
			                 (unsigned long long)token.index, (long long)token.number, (unsigned long long)token.whole);
			weir_text_append(out, token.text.at, token.text.length);
			continue;
		}
		size_t room, bytes = size < step ? size : step;
		char *into = weir_resp_room(&resp, &room);
		require(room > 0);
		bytes = bytes < room ? bytes : room;
		memcpy(into, data, bytes);
		weir_resp_filled(&resp, bytes);
		data += bytes;
		size -= bytes;
	}
	weir_resp_deinit(&resp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weir_text whole = {0}, apart = {0};
	read_all(data, size, size + 1, &whole);
	read_all(data, size, 1, &apart);
	require(whole.length == apart.length && (whole.length == 0 || memcmp(whole.at, apart.at, whole.length) == 0));
	weir_text_deinit(&whole);
	weir_text_deinit(&apart);
	return 0;
}
