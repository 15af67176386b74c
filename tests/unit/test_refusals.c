/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that are refused: counted by surface and reason, told as one trouble each, and over when no more come. */
#include "limiter/check/refusals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int64_t now_ms;

static int64_t clock_ms(void)
{
	return now_ms;
}

struct scene {
	int ends[2];
	struct weir_log log;
	struct refusals *refusals;
	struct link nobody;
};

static void open_scene(struct scene *scene)
{
	now_ms = 1;
	*scene = (struct scene){.nobody = {.fd = -1}};
	assert_int_equal(0, pipe(scene->ends));
	scene->log = (struct weir_log){.fd = scene->ends[1], .clock_ms = clock_ms};
	scene->refusals = refusals_new(&scene->log);
}

/* What was logged since the last call. */
static const char *logged(struct scene *scene)
{
	static char text[32768];
	(void)!write(scene->ends[1], "#", 1); /* read() would wait */
	ssize_t length = read(scene->ends[0], text, sizeof text - 1);
	text[length > 0 ? length - 1 : 0] = '\0';
	return text;
}

static uint32_t lines_of(const char *text)
{
	uint32_t lines = 0;
	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static void close_scene(struct scene *scene)
{
	refusals_free(scene->refusals);
	close(scene->ends[0]);
	close(scene->ends[1]);
}

static void tell(struct scene *scene, enum refusal_reason reason, const char *what)
{
	refusals_tell(scene->refusals, REFUSAL_HTTP, reason, &scene->nobody, "/v1/nginx", what, "send it");
}

static void one_is_told_with_what_is_wrong_and_counted(void **state)
{
	struct scene scene;
	(void)state;
	open_scene(&scene);
	tell(&scene, REFUSAL_LOGIN, "The password is wrong");
	const char *text = logged(&scene);
	assert_non_null(
		strstr(text, " WARNING checks: listen.check_http refused a question of somebody by /v1/nginx: the password is "
	                 "wrong: send it. Nothing was counted, "));
	assert_int_equal(1, lines_of(text));
	assert_int_equal(1, refusals_count(scene.refusals, REFUSAL_HTTP, REFUSAL_LOGIN));
	assert_int_equal(0, refusals_count(scene.refusals, REFUSAL_HTTP, REFUSAL_ASKED));
	assert_int_equal(0, refusals_count(scene.refusals, REFUSAL_RESP, REFUSAL_LOGIN));
	refusals_tell(NULL, REFUSAL_HTTP, REFUSAL_LOGIN, &scene.nobody, NULL, "", NULL);
	assert_int_equal(0, refusals_count(NULL, REFUSAL_HTTP, REFUSAL_LOGIN));
	close_scene(&scene);
}

static void many_are_told_every_ten_minutes_and_other_reasons_at_once(void **state)
{
	struct scene scene;
	(void)state;
	open_scene(&scene);
	for (int i = 0; i < 3600; i++, now_ms += 1000)
		tell(&scene, REFUSAL_LOGIN, "The password is wrong");
	assert_int_equal(6, lines_of(logged(&scene)));
	tell(&scene, REFUSAL_SUBJECT, "The gateway does not say");
	assert_int_equal(1, lines_of(logged(&scene)));
	assert_int_equal(3600, refusals_count(scene.refusals, REFUSAL_HTTP, REFUSAL_LOGIN));
	close_scene(&scene);
}

static void other_words_for_each_are_no_flood_and_no_control_characters(void **state)
{
	struct scene scene;
	(void)state;
	open_scene(&scene);
	for (char name[] = "a\nb\x1b[31m"; name[0] < 'z'; name[0]++, now_ms += 10)
		tell(&scene, REFUSAL_ASKED, name);
	const char *text = logged(&scene);
	assert_int_equal(6, lines_of(text));
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, ": a b [31m: send it. "));
	close_scene(&scene);
}

static void it_is_over_when_none_came_for_ten_minutes(void **state)
{
	struct scene scene;
	(void)state;
	open_scene(&scene);
	tell(&scene, REFUSAL_LOGIN, "The password is wrong");
	(void)logged(&scene);
	now_ms += REFUSALS_OVER_MS - 1;
	refusals_look(scene.refusals);
	assert_int_equal(0, lines_of(logged(&scene)));
	now_ms++;
	refusals_look(scene.refusals);
	refusals_look(scene.refusals);
	const char *text = logged(&scene);
	assert_int_equal(1, lines_of(text));
	assert_non_null(
		strstr(text, " INFO checks: recovered after 10 min (1 attempt): listen.check_http has refused no question for "
	                 "this reason (login) for ten minutes\n"));
	close_scene(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_is_told_with_what_is_wrong_and_counted),
		cmocka_unit_test(many_are_told_every_ten_minutes_and_other_reasons_at_once),
		cmocka_unit_test(other_words_for_each_are_no_flood_and_no_control_characters),
		cmocka_unit_test(it_is_over_when_none_came_for_ten_minutes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
