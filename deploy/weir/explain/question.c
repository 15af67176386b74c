/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked and what is found are one thing, so that each step adds its part to it. */
#include "deploy/weir/explain/question.h"

#include "common/base/alloc.h"

#include <stdlib.h>

/* A decimal number up to `most`, without a sign or leading zeros; *at is after it. */
static bool take_number(const char **at, uint64_t most, uint64_t *number)
{
	const char *begin = *at;
	*number = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		uint64_t digit = (uint64_t)(**at - '0');
		if (*number > (most - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return *at > begin && (*begin != '0' || *at == begin + 1);
}

bool question_parse_id(const char *text, struct question *question)
{
	uint64_t partition, offset, index;
	if (!take_number(&text, WEIR_PARTITIONS_MAX - 1, &partition) || *text++ != '-' ||
	    !take_number(&text, INT64_MAX, &offset) || *text++ != '-' || !take_number(&text, UINT32_MAX, &index) ||
	    *text != '\0')
		return false;
	question->by_id = true;
	question->partition = (uint32_t)partition;
	question->offset = offset;
	question->index = (uint32_t)index;
	return true;
}

static void free_events(struct question *question)
{
	for (size_t i = 0; i < question->event_count; i++) {
		free(question->events[i].stream);
		free(question->events[i].file);
		free(question->events[i].line);
		free(question->events[i].fields);
	}
	free(question->events);
	question->events = NULL;
	question->event_count = 0;
}

void question_set_events(struct question *question, const struct explained_event *events, size_t count)
{
	free_events(question);
	if (count == 0)
		return;
	question->events = weir_alloc(count, sizeof *events);
	memcpy(question->events, events, count * sizeof *events);
	question->event_count = count;
}

bool question_is_equal(const struct question *question)
{
	return question->published.length > 0 && question->published.length == question->again.length &&
	       memcmp(question->published.at, question->again.at, question->again.length) == 0;
}

bool question_is_explained(const struct question *question)
{
	bool decided = question->published.length > 0 || question->again.length > 0;
	return question->missing.length == 0 && (question_is_equal(question) || (!decided && question->order.length > 0));
}

void question_reset(struct question *question)
{
	free_events(question);
	weir_text_clear(&question->again);
	weir_text_clear(&question->missing);
	question->policy_version = 0;
	question->lacking = question->left_out = 0;
	question->may_lack = question->skips_files = false;
	question->fields_left_out = 0;
	question->has_limit = false;
}

void question_deinit(struct question *question)
{
	free_events(question);
	free(question->published_in);
	weir_text_deinit(&question->key);
	weir_text_deinit(&question->order);
	weir_text_deinit(&question->held);
	weir_text_deinit(&question->unknown);
	weir_text_deinit(&question->published);
	weir_text_deinit(&question->again);
	weir_text_deinit(&question->missing);
}
