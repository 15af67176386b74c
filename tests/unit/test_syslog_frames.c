/* SPDX-License-Identifier: Apache-2.0 */
/* Messages out of a stream of bytes, however these come: counted ones, lines, both mixed, long ones, cut ones. */
#include "collector/source/syslog/syslog_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LINE_MAX = 1024, OUT_BYTES = 1 << 16 };

struct sink {
	char out[OUT_BYTES]; /* "message;", "message+SKIPPED;", "message!;" of one that was cut */
	size_t length;
};

static void take_all(struct syslog_frames *frames, bool ended, struct sink *sink)
{
	struct syslog_frame frame;
	enum syslog_frame_status status;
	while ((status = syslog_frames_next(frames, ended, &frame)) != SYSLOG_FRAME_NONE) {
		assert_true(frame.message.length <= LINE_MAX);
		char more[32] = "";
		if (frame.skipped > 0)
			snprintf(more, sizeof more, "+%llu", (unsigned long long)frame.skipped);
		sink->length +=
			(size_t)snprintf(sink->out + sink->length, OUT_BYTES - sink->length, "%.*s%s%s;", (int)frame.message.length,
		                     frame.message.at, more, status == SYSLOG_FRAME_CUT ? "!" : "");
	}
}

/* Feeds bytes in pieces of at most `piece`. */
static void feed(struct sink *sink, const char *bytes, size_t length, size_t piece)
{
	struct syslog_frames frames;
	syslog_frames_init(&frames, LINE_MAX);
	sink->length = 0;
	sink->out[0] = '\0';
	for (size_t at = 0; at < length;) {
		size_t room;
		char *to = syslog_frames_room(&frames, &room);
		size_t count = length - at < piece ? length - at : piece;
		count = count < room ? count : room;
		memcpy(to, bytes + at, count);
		syslog_frames_added(&frames, count);
		at += count;
		take_all(&frames, false, sink);
	}
	take_all(&frames, true, sink);
	assert_true(syslog_frames_empty(&frames));
	assert_true(frames.capacity <= LINE_MAX + 4096);
	syslog_frames_deinit(&frames);
}

static void expect(const char *bytes, size_t length, const char *expected)
{
	static const size_t pieces[] = {1, 2, 3, 7, 100, 1000, 5000, 1 << 20};
	struct sink *sink = malloc(sizeof *sink);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		feed(sink, bytes, length, pieces[i]);
		assert_string_equal(sink->out, expected);
	}
	free(sink);
}

static void expect_text(const char *text, const char *expected)
{
	expect(text, strlen(text), expected);
}

static void counted_and_lines_mixed(void **state)
{
	(void)state;
	expect_text("5 <1>ab6 <2>a\nb<3>line\n<4>line\r\n4 <5>x<6>last", "<1>ab;<2>a\nb;<3>line;<4>line\r;<5>x;<6>last;");
}

#define EXPECT_BYTES(bytes, expected) expect(bytes, sizeof(bytes) - 1, expected)

static void a_zero_may_end_messages(void **state)
{
	(void)state;
	EXPECT_BYTES("<2>c\0<1>a\nb\0<3>last", "<2>c;<1>a\nb;<3>last;");
	/* The first newline says that newlines end them, so that no zero in a message begins another. */
	EXPECT_BYTES("<1>a\n<2>b\0<9>c\n",
	             "<1>a;<2>b;"); /* "<9>c" is of the second message, which is shown up to its zero */
}

static void trailers_behind_counted_messages_are_passed_over(void **state)
{
	(void)state;
	static const char text[] = "4 <1>a\n4 <2>b\0\n\n4 <3>c\r\n";
	expect(text, sizeof text - 1, "<1>a;<2>b;<3>c;");
	expect_text("\n\n", "");
	expect_text("", "");
}

static void what_is_no_count_is_a_line(void **state)
{
	(void)state;
	expect_text("2024-05-01 x\n", "2024-05-01 x;");
	expect_text("1234567890 x\n", "1234567890 x;");
	expect_text("0 x\n", "0 x;");
	expect_text("12\n", "12;");
	expect_text("12", "12;");
	expect_text("hello\n 3 <1>\n", "hello; 3 <1>;");
}

static void a_number_in_front_of_a_line_swallows_nothing(void **state)
{
	(void)state;
	expect_text("<1>a\n999999999 b\n<2>c\n", "<1>a;999999999 b;<2>c;");
	expect_text("7 \n<1>a\n", "7 ;<1>a;");
	expect_text("12  <1>a\n<2>b\n", "12  <1>a;<2>b;");
}

static void a_cut_count_is_told(void **state)
{
	(void)state;
	expect_text("4 <1>a9 <2>b", "<1>a;<2>b!;");
	expect_text("4 ", "!;");
}

static void long_messages_are_counted_not_kept(void **state)
{
	(void)state;
	enum { LONG = 20000 };
	char *text = malloc(LONG + 200), *expected = malloc(2 * LINE_MAX + 200);
	memset(text, 'x', LONG);
	memcpy(text + LONG, "\n<1>a\n", 7);
	memset(expected, 'x', LINE_MAX);
	snprintf(expected + LINE_MAX, 100, "+%d;<1>a;", LONG - LINE_MAX + 1);
	expect_text(text, expected);

	/* just at the limit, and one above */
	memset(text, 'x', LINE_MAX);
	memcpy(text + LINE_MAX, "\ny\n", 4);
	snprintf(expected + LINE_MAX, 100, ";y;");
	expect_text(text, expected);
	memset(text, 'x', LINE_MAX + 1);
	memcpy(text + LINE_MAX + 1, "\ny\n", 4);
	snprintf(expected + LINE_MAX, 100, "+2;y;");
	expect_text(text, expected);
	memcpy(text + LINE_MAX + 1, "", 1);
	snprintf(expected + LINE_MAX, 100, "+1;");
	expect_text(text, expected);

	int head = snprintf(text, 100, "%d ", LONG);
	memset(text + head, 'x', LONG);
	text[head] = expected[0] = '<';
	memcpy(text + head + LONG, "4 <1>a", 7);
	snprintf(expected + LINE_MAX, 100, "+%d;<1>a;", LONG - LINE_MAX);
	expect_text(text, expected);
	text[head + LONG - 1] = '\0'; /* the last octet is missing */
	snprintf(expected + LINE_MAX, 100, "+%d!;", LONG - LINE_MAX - 1);
	expect_text(text, expected);
	free(text);
	free(expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counted_and_lines_mixed),
		cmocka_unit_test(a_zero_may_end_messages),
		cmocka_unit_test(trailers_behind_counted_messages_are_passed_over),
		cmocka_unit_test(what_is_no_count_is_a_line),
		cmocka_unit_test(a_number_in_front_of_a_line_swallows_nothing),
		cmocka_unit_test(a_cut_count_is_told),
		cmocka_unit_test(long_messages_are_counted_not_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
