/* SPDX-License-Identifier: Apache-2.0 */
/* Commands as Redis clients send them, and what a server answers: to the byte, however they come, within their bounds. */
#include "common/resp/resp_command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/resp/resp_writer.h"

#include <cmocka.h>

enum { MOST_BYTES = 1000 };

/* The commands' words with "," between them and ";" behind each command; then "..." where more must come, or why not. */
static void read_all(const char *bytes, size_t length, struct weir_text *out)
{
	static char room[WEIR_RESP_LINE_MAX_BYTES];
	struct weir_resp_command command;
	const char *why = NULL;
	for (;;) {
		enum weir_status status = weir_resp_command_read(bytes, length, MOST_BYTES, &command, &why);
		if (status != WEIR_OK) {
			weir_text_puts(out, status == WEIR_INVALID ? why : length > 0 ? "..." : "");
			weir_text_append(out, "", 1);
			return;
		}
		if (command.quoted)
			weir_resp_command_unquote(&command, room);
		for (uint32_t i = 0; i < command.count && i < WEIR_RESP_WORDS_KEPT; i++) {
			if (i > 0)
				weir_text_puts(out, ",");
			weir_text_append(out, command.words[i].at, command.words[i].length);
		}
		weir_text_puts(out, ";");
		bytes += command.bytes;
		length -= command.bytes;
	}
}

static void expect(const char *bytes, const char *commands)
{
	struct weir_text out = {0};
	read_all(bytes, strlen(bytes), &out);
	assert_string_equal(out.at, commands);
	weir_text_deinit(&out);
}

static void commands_are_arrays_or_lines(void **state)
{
	(void)state;
	expect("*3\r\n$10\r\nWEIR.CHECK\r\n$1\r\nk\r\n$4\r\nsite\r\n*1\r\n$4\r\nPING\r\n", "WEIR.CHECK,k,site;PING;");
	expect("PING\r\nECHO  hello \t x\n\r\n", "PING;ECHO,hello,x;;");
	expect("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*0\r\n*-1\r\n", "ECHO,;;;");
	expect("*1\r\n$6\r\na\r\nb\r\n\r\n", "a\r\nb\r\n;");
	expect("", "");
}

/* As redis-server 7 splits them: sdssplitargs(). */
static void quotes_of_a_line_are_taken_off(void **state)
{
	(void)state;
	expect("A \"b c\" 'd e'\r\n", "A,b c,d e;");
	expect("A \"\" '' b\n", "A,,,b;");
	expect("A b\"c d\" e'f'\r\n", "A,bc d,ef;");
	expect("A \"\\n\\r\\t\\b\\a\\\\\\\"\\q\\x41\\xzz\\x4\"\r\n", "A,\n\r\t\b\a\\\"qAxzzx4;");
	expect("A 'b\\'c\\n\\x41\"'\r\n", "A,b'c\\n\\x41\";");
	expect("A \"b'c\" \v\f d\n", "A,b'c,d;");
	static const char *const unbalanced[] = {"A \"b\r\n",   "A 'b\n",    "A \"b\"c\n", "A 'b''c'\n",
	                                         "A \"b\\\"\n", "A 'b\\'\n", "A b\"\n",    "A \"\n"};
	for (size_t i = 0; i < sizeof unbalanced / sizeof *unbalanced; i++)
		expect(unbalanced[i], "unbalanced quotes in request");
	expect("*2\r\n$1\r\nA\r\n$3\r\n\"b\"\r\n", "A,\"b\";");
}

static void a_command_that_is_not_whole_waits(void **state)
{
	(void)state;
	static const char whole[] = "*3\r\n$10\r\nWEIR.CHECK\r\n$9\r\n192.0.2.1\r\n$4\r\nsite\r\n";
	for (size_t length = 1; length < sizeof whole - 1; length++) {
		struct weir_text out = {0};
		read_all(whole, length, &out);
		assert_string_equal(out.at, "...");
		weir_text_deinit(&out);
	}
	expect("PING", "...");
}

static void what_is_no_command_is_refused(void **state)
{
	(void)state;
	expect("*1\r\n:1\r\n", "expected '$': a command is an array of bulk strings");
	expect("*1\r\n*1\r\n$1\r\na\r\n", "expected '$': a command is an array of bulk strings");
	expect("*x\r\n", "invalid multibulk length");
	expect("*1025\r\n", "invalid multibulk length");
	expect("*1\rx", "invalid multibulk length");
	expect("*99999999999999999999999999999", "invalid multibulk length");
	expect("*1\r\n$-1\r\n", "invalid bulk length");
	expect("*1\r\n$4\r\nPINGx\r\n", "a bulk string is longer than its length");
	/* long before it has come */
	expect("*1\r\n$536870912\r\n", "invalid bulk length: the command would be too long");
	expect("*2\r\n$900\r\n", "...");
	expect("PING\r\n*1\r\n$1001\r\n", "PING;invalid bulk length: the command would be too long");
	expect("GET / HTTP/1.1\r\nHost: a\r\n", "this port speaks Redis' protocol, not HTTP");
	expect("\x16\x03", "this port speaks Redis' protocol without TLS");
	expect("\x16", "...");
	expect("GET HTTP/1.1\r\n", "GET,HTTP/1.1;");
	char *line = malloc(WEIR_RESP_LINE_MAX_BYTES + 1);
	memset(line, 'a', WEIR_RESP_LINE_MAX_BYTES);
	line[WEIR_RESP_LINE_MAX_BYTES] = '\0';
	expect(line, "too big inline request");
	free(line);
}

static void of_many_words_the_first_are_kept(void **state)
{
	(void)state;
	struct weir_resp_command command;
	const char *why;
	char bytes[2000] = "*1000\r\n";
	size_t length = strlen(bytes);
	assert_int_equal(weir_resp_command_read(bytes, length, sizeof bytes, &command, &why), WEIR_AGAIN);
	length = (size_t)snprintf(bytes, sizeof bytes, "*%d\r\n", WEIR_RESP_WORDS_KEPT + 4);
	for (int i = 0; i < WEIR_RESP_WORDS_KEPT + 4; i++)
		length += (size_t)snprintf(bytes + length, sizeof bytes - length, "$1\r\n%c\r\n", '!' + i);
	assert_int_equal(weir_resp_command_read(bytes, length, sizeof bytes, &command, &why), WEIR_OK);
	assert_int_equal(command.count, WEIR_RESP_WORDS_KEPT + 4);
	assert_int_equal(command.bytes, length);
	assert_int_equal(command.words[WEIR_RESP_WORDS_KEPT - 1].at[0], '!' + WEIR_RESP_WORDS_KEPT - 1);
}

static void replies_are_those_of_the_protocol(void **state)
{
	(void)state;
	struct weir_text text = {0};
	weir_resp_simple(&text, "OK");
	weir_resp_error(&text, "ERR no zone '%s'", "a\r\nb");
	weir_resp_string(&text, "hello");
	weir_resp_integer(&text, INT64_MIN);
	weir_resp_nil(&text, WEIR_RESP2);
	weir_resp_nil(&text, WEIR_RESP3);
	weir_resp_map(&text, 2, WEIR_RESP2);
	weir_resp_map(&text, 2, WEIR_RESP3);
	weir_resp_array(&text, 0);
	weir_resp_integers(&text, (const int64_t[]){0, 16, 15, -1, INT64_MAX}, 5);
	weir_text_append(&text, "", 1);
	assert_string_equal(text.at,
	                    "+OK\r\n-ERR no zone 'a  b'\r\n$5\r\nhello\r\n:-9223372036854775808\r\n$-1\r\n_\r\n*4\r\n%2\r\n"
	                    "*0\r\n*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:9223372036854775807\r\n");
	weir_text_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_are_arrays_or_lines),      cmocka_unit_test(quotes_of_a_line_are_taken_off),
		cmocka_unit_test(a_command_that_is_not_whole_waits), cmocka_unit_test(what_is_no_command_is_refused),
		cmocka_unit_test(of_many_words_the_first_are_kept),  cmocka_unit_test(replies_are_those_of_the_protocol),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
