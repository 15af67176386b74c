/* SPDX-License-Identifier: Apache-2.0 */
/* What a Redis server answers, token by token: however it arrives, and with a bound on what is kept. */
#include "common/resp/resp.h"
#include "common/resp/resp_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/text.h"

#include <cmocka.h>

/* Every token as "depth.index:kind text/whole", a word each; "?" where it is refused. */
static void read_all(const char *answer, size_t length, size_t step, uint32_t most, struct weir_text *out)
{
	struct weir_resp resp;
	struct weir_resp_token token;
	struct weir_error error;
	size_t given = 0;
	weir_resp_init(&resp, most);
	for (;;) {
		enum weir_status status = weir_resp_next(&resp, &token, &error);
		if (status == WEIR_INVALID)
			weir_text_puts(out, "? ");
		if (status == WEIR_INVALID || (status == WEIR_AGAIN && given == length))
			break;
		if (status == WEIR_AGAIN) {
			size_t room, bytes = length - given < step ? length - given : step;
			char *into = weir_resp_room(&resp, &room);
			assert_true(room > 0);
			bytes = bytes < room ? bytes : room;
			memcpy(into, answer + given, bytes);
			weir_resp_filled(&resp, bytes);
			given += bytes;
			continue;
		}
		weir_text_printf(out, "%d.%d:", token.depth, (int)token.index);
		switch (token.kind) {
		case WEIR_RESP_NIL: weir_text_puts(out, "nil"); break;
		case WEIR_RESP_NUMBER: weir_text_printf(out, "%lld", (long long)token.number); break;
		case WEIR_RESP_LIST: weir_text_printf(out, "[%lld]", (long long)token.number); break;
		case WEIR_RESP_TEXT:
		case WEIR_RESP_ERROR:
			weir_text_printf(out, "%s%.*s", token.kind == WEIR_RESP_ERROR ? "!" : "", (int)token.text.length,
			                 token.text.at);
			if (token.whole > token.text.length)
				weir_text_printf(out, "/%d", (int)token.whole);
		}
		weir_text_puts(out, " ");
	}
	weir_text_append(out, "", 1);
	weir_resp_deinit(&resp);
}

static void expect(const char *answer, uint32_t most, const char *tokens)
{
	for (size_t step = 1; step <= strlen(answer); step = step < 8 ? step + 1 : step * 2) {
		struct weir_text out = {0};
		read_all(answer, strlen(answer), step, most, &out);
		assert_string_equal(out.at, tokens);
		weir_text_deinit(&out);
	}
}

static void answers_of_every_kind(void **state)
{
	(void)state;
	expect("+OK\r\n:-7\r\n$-1\r\n*-1\r\n$0\r\n\r\n*0\r\n-ERR no\r\n", 100,
	       "0.0:OK 0.0:-7 0.0:nil 0.0:nil 0.0: 0.0:[0] 0.0:!ERR no ");
	expect("*2\r\n$1\r\na\r\n*2\r\n*1\r\n:1\r\n$2\r\n\r\n\r\n+x\r\n", 100,
	       "0.0:[2] 1.0:a 1.1:[2] 2.0:[1] 3.0:1 2.1:\r\n 0.0:x ");
	expect("*3\r\n*0\r\n*1\r\n*0\r\n:4\r\n:5\r\n", 100, "0.0:[3] 1.0:[0] 1.1:[1] 2.0:[0] 1.2:4 0.0:5 ");
}

/* A reservation's id goes from limiter to limiter as two numbers, any ones. */
static void numbers_of_64_bits(void **state)
{
	(void)state;
	const int64_t ends[] = {0,        9, 10, 576460752303423488, 5764607523034234880, INT64_MAX / 10, INT64_MAX - 7,
	                        INT64_MAX};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		for (int sign = 0; sign < 2; sign++) {
			int64_t number = sign == 0 ? ends[i] : -ends[i] - 1;
			struct weir_text written = {0}, wanted = {0};
			weir_resp_integers(&written, &number, 1);
			weir_text_append(&written, "", 1);
			weir_text_printf(&wanted, "0.0:[1] 1.0:%lld ", (long long)number);
			expect(written.at, 100, wanted.at);
			weir_text_deinit(&written);
			weir_text_deinit(&wanted);
		}
	}
	expect(":9223372036854775808\r\n", 100, "? ");
	expect(":-9223372036854775809\r\n", 100, "? ");
	expect(":20000000000000000000\r\n", 100, "? ");
}

static void of_a_long_text_the_beginning_comes(void **state)
{
	(void)state;
	expect("*2\r\n$10\r\n0123456789\r\n$4\r\nabcd\r\n:1\r\n", 4, "0.0:[2] 1.0:0123/10 1.1:abcd 0.0:1 ");
	/* longer than all that is kept: it is thrown away as it comes */
	enum { LONG = 3000000 };
	char *answer = malloc(LONG + 64);
	int head = snprintf(answer, 64, "$%d\r\n", LONG);
	memset(answer + head, 'x', LONG);
	memcpy(answer + head + LONG, "\r\n:2\r\n", 6);
	struct weir_text out = {0};
	read_all(answer, (size_t)head + LONG + 6, 100000, 3, &out);
	assert_string_equal(out.at, "0.0:xxx/3000000 0.0:2 ");
	weir_text_deinit(&out);
	free(answer);
}

static void what_is_no_answer_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"HTTP/1.1 400 Bad Request\r\n",
		"$x\r\n",
		"$1\r\nab\r\n",
		":\r\n",
		":-\r\n",
		"*1\n",
		"\r\n",
		"$99999999999999999999\r\n",
		"%1\r\n",
		"_\r\n",
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct weir_text out = {0};
		read_all(wrong[i], strlen(wrong[i]), 3, 100, &out);
		if (strchr(out.at, '?') == NULL)
			fail_msg("%s: %s", wrong[i], out.at);
		weir_text_deinit(&out);
	}
	char *endless = malloc(200001);
	memset(endless, '+', 200000);
	endless[200000] = '\0';
	struct weir_text out = {0};
	read_all(endless, 200000, 1000, 100, &out);
	assert_string_equal(out.at, "? ");
	weir_text_deinit(&out);
	free(endless);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_of_every_kind),
		cmocka_unit_test(numbers_of_64_bits),
		cmocka_unit_test(of_a_long_text_the_beginning_comes),
		cmocka_unit_test(what_is_no_answer_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
