/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One limit of one bucket, for tests of an algorithm's boundaries: what a limiter does at an event, with nothing around
 * it. The limit is written as the configuration writes it.
 */
#ifndef TESTS_UNIT_LIMIT_CASE_H
#define TESTS_UNIT_LIMIT_CASE_H

#include "common/algorithm/limit_state.h"
#include "common/base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASE_ENTRIES_MAX = 4096, CASE_BEFORE_BYTES = 32 /* as a bucket's header */ };

struct limit_case {
	struct weir_limit limit;
	struct weir_limit_shape shape;
	struct weir_limit_view view;
	uint8_t *block;
};

/* An empty state in a block of its own, with room for as many entries as may be. */
static inline void case_lay_out(struct limit_case *one, bool runs, bool apart)
{
	const struct weir_limit_shape *shape = &one->shape;
	runs |= shape->runs_only;
	uint32_t room = shape->times.entries_max < CASE_ENTRIES_MAX ? shape->times.entries_max : CASE_ENTRIES_MAX;
	size_t entries = shape->has_times ? weir_bits_bytes(room, weir_times_stride(&shape->times, runs)) : 0;
	size_t fixed = shape->fixed_bytes[runs] + (apart ? shape->apart_bytes : 0);
	one->block = weir_alloc(CASE_BEFORE_BYTES + fixed + entries, 1);
	one->view = (struct weir_limit_view){.shape = shape,
	                                     .fixed = one->block + CASE_BEFORE_BYTES,
	                                     .runs = runs,
	                                     .apart = apart && shape->apart_bytes > 0};
	one->view.entries = one->view.fixed + fixed;
	if (shape->has_times)
		weir_times_set_room(one->view.fixed, &shape->times, room);
}

static inline enum weir_status case_parse(const char *text, struct weir_limit *limit, struct weir_error *error)
{
	struct weir_json_document *document = NULL;
	assert_int_equal(weir_json_parse("limit", text, strlen(text), &document, error), WEIR_OK);
	struct weir_json root = weir_json_root(document);
	*limit = (struct weir_limit){0};
	enum weir_status status = weir_limit_parse(&root, limit, error);
	weir_json_document_free(document);
	return status;
}

/* @param counts_past  "count": "all" */
static inline struct limit_case *case_open(const char *text, bool counts_past)
{
	struct weir_error error;
	struct limit_case *one = weir_alloc(1, sizeof *one);
	if (case_parse(text, &one->limit, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	one->shape = weir_limit_shape_of(&one->limit, counts_past);
	case_lay_out(one, false, false);
	return one;
}

static inline void case_close(struct limit_case *one)
{
	weir_match_free(&one->limit.done);
	free(one->block);
	free(one);
}

/* Another form, with what there is. */
static inline void case_take_form(struct limit_case *one, bool runs, bool apart)
{
	struct limit_case before = *one;
	case_lay_out(one, runs, apart);
	one->view.newest_ms = before.view.newest_ms;
	if (!one->shape.ops->is_empty(&before.view))
		one->shape.ops->copy(&one->view, &before.view);
	free(before.block);
}

static inline void case_record(struct limit_case *one, int64_t t, int64_t cost, bool blocked)
{
	const struct weir_limit_ops *ops = one->shape.ops;
	enum weir_limit_recorded recorded;
	while ((recorded = ops->record(&one->view, t, cost, blocked)) != WEIR_LIMIT_RECORDED) {
		assert_int_not_equal(recorded, WEIR_LIMIT_NEEDS_ROOM);
		if (recorded == WEIR_LIMIT_NEEDS_RUNS)
			case_take_form(one, true, true);
		else
			one->view.newest_ms = 0;
	}
	if (t > one->view.newest_ms && !ops->charged_by_all)
		one->view.newest_ms = t;
	assert_true(ops->check(&one->view));
}

static inline unsigned case_judge(struct limit_case *one, int64_t t, int64_t cost)
{
	const struct weir_limit_ops *ops = one->shape.ops;
	if (ops->leave != NULL)
		ops->leave(&one->view, t);
	return ops->judge(&one->view, t, cost);
}

/* An event where only what passes is counted. */
static inline unsigned case_event(struct limit_case *one, int64_t t, int64_t cost)
{
	unsigned judgement = case_judge(one, t, cost);
	if (judgement == 0 || (one->shape.ops->charged_by_all && !(judgement & WEIR_LIMIT_LATE)))
		case_record(one, t, cost, judgement != 0);
	return judgement;
}

static inline char *case_text(struct weir_text *text)
{
	weir_text_append(text, "", 1);
	return text->at;
}

#define EXPECT_PASS(one, t, cost) assert_int_equal(case_event(one, t, cost), 0)
#define EXPECT_OVER(one, t, cost) assert_int_equal(case_event(one, t, cost), WEIR_LIMIT_OVER)
#define EXPECT_LATE(one, t, cost) assert_int_equal(case_event(one, t, cost), WEIR_LIMIT_LATE)
#define EXPECT_RESET(one, t, at) assert_int_equal((one)->shape.ops->reset(&(one)->view, t), at)
#define EXPECT_HELD(one, t, count) assert_int_equal((one)->shape.ops->held(&(one)->view, t), count)

static inline void expect_shown(struct limit_case *one, const char *json)
{
	struct weir_text text = {0};
	one->shape.ops->show(&one->view, &text);
	assert_string_equal(case_text(&text), json);
	weir_text_deinit(&text);
}

/* ---- what a limit says of itself ---- */

/* The sentence, the few words, the canonical text, and what a decision says. */
static inline void expect_words(const char *limit, const char *sentence, const char *brief, const char *canonical,
                                const char *decided)
{
	struct limit_case *one = case_open(limit, false);
	struct weir_text text = {0};
	one->limit.algorithm->describe(&text, &one->limit);
	assert_string_equal(case_text(&text), sentence);
	weir_text_clear(&text);
	weir_limit_brief(&text, &one->limit);
	assert_string_equal(case_text(&text), brief);
	weir_text_clear(&text);
	weir_limit_decided(&text, &one->limit);
	assert_string_equal(case_text(&text), decided);
	json_t *object = weir_limit_json(&one->limit), *again = json_loads(decided, 0, NULL);
	char *dumped = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(dumped, canonical);
	/* A decision's limit is read back as far as it goes. */
	struct weir_limit read;
	assert_true(weir_limit_read(again, &read));
	weir_text_clear(&text);
	weir_limit_decided(&text, &read);
	assert_string_equal(case_text(&text), decided);
	/* The canonical text is the limit. */
	struct limit_case *same = case_open(dumped, false);
	assert_true(weir_limit_equal(&one->limit, &same->limit));
	case_close(same);
	free(dumped);
	json_decref(object);
	json_decref(again);
	weir_text_deinit(&text);
	case_close(one);
}

static inline void expect_refused(const char *limit, const char *words)
{
	struct weir_limit made;
	struct weir_error error = {.text = "accepted"};
	enum weir_status status = case_parse(limit, &made, &error);
	weir_match_free(&made.done);
	assert_string_equal(error.text, words);
	assert_int_equal(status, WEIR_INVALID);
}

/* The limit multiplied, as a decision would say it. */
static inline void expect_scaled(const char *limit, uint32_t thousandths, const char *decided)
{
	struct limit_case *one = case_open(limit, false);
	struct weir_limit scaled = weir_limit_scaled(&one->limit, thousandths);
	struct weir_text text = {0};
	weir_limit_decided(&text, &scaled);
	assert_string_equal(case_text(&text), decided);
	weir_text_deinit(&text);
	case_close(one);
}

static inline void expect_kept_for(const char *limit, int64_t memory_ms)
{
	struct limit_case *one = case_open(limit, false);
	assert_int_equal(weir_limit_memory_ms(&one->limit), memory_ms);
	case_close(one);
}

/* The most that `limit` lets pass in any window of `window`. */
static inline void expect_most(const char *limit, const char *window, int64_t most)
{
	struct limit_case *one = case_open(limit, false), *other = case_open(window, false);
	assert_int_equal(one->limit.algorithm->most_within(&one->limit, &other->limit), most);
	case_close(one);
	case_close(other);
}

/* What "N/WINDOW" of --limit stands for; or what is wrong with it. */
static inline void expect_shorthand(const char *algorithm, int64_t number, const char *window, const char *expected)
{
	const char *wrong = NULL;
	struct weir_limit given = {.algorithm = weir_algorithm_named(algorithm), .rate = number, .window_ms = 1000};
	json_t *object = weir_limit_shorthand(&given, window, &wrong);
	if (object == NULL) {
		assert_string_equal(wrong, expected);
		return;
	}
	char *dumped = json_dumps(object, JSON_COMPACT);
	assert_string_equal(dumped, expected);
	free(dumped);
	json_decref(object);
}

#endif
