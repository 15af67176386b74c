/* SPDX-License-Identifier: Apache-2.0 */
/* One finding for each reason, however many partitions have it: reasons that differ in figures alone are one. */
#include "limiter/daemon/limiter_stops.h"

#include "common/cluster/partition_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_MOST = 8, NAMED_MOST = 8, ANCHOR_BYTES = 40 };

static const char anchor_begin[] = " (runbook: ";

struct reason {
	char *words; /* of the first that has it */
	uint32_t first, count;
	struct weir_text numbers; /* "0, 3, 7" */
};

struct reasons {
	struct reason at[REASONS_MOST];
	size_t count;
};

static bool is_same(const char *left, const char *right)
{
	for (;; left++, right++) {
		left += strspn(left, "0123456789");
		right += strspn(right, "0123456789");
		if (*left != *right)
			return false;
		if (*left == '\0')
			return true;
	}
}

/* @param words  taken */
static void add(struct reasons *reasons, uint32_t partition, char *words)
{
	size_t i = 0;
	while (i < reasons->count && i + 1 < REASONS_MOST && !is_same(reasons->at[i].words, words))
		i++;
	struct reason *reason = &reasons->at[i];
	if (i == reasons->count) {
		*reason = (struct reason){.words = words, .first = partition};
		reasons->count++;
	} else {
		free(words);
	}
	if (reason->count++ < NAMED_MOST)
		weir_text_printf(&reason->numbers, "%s%u", reason->count > 1 ? ", " : "", partition);
	else if (reason->count == NAMED_MOST + 1)
		weir_text_puts(&reason->numbers, ", ...");
}

/* The heading that the words name; "is-it-over": none. */
static void find_anchor(const char *words, char anchor[ANCHOR_BYTES])
{
	const char *begin = strstr(words, anchor_begin);
	snprintf(anchor, ANCHOR_BYTES, "is-it-over");
	if (begin == NULL)
		return;
	begin += sizeof anchor_begin - 1;
	snprintf(anchor, ANCHOR_BYTES, "%.*s", (int)strcspn(begin, ")"), begin);
}

static bool is_of_log(const char *anchor)
{
	return strcmp(anchor, "gap") == 0 || strcmp(anchor, "topic-recreated") == 0;
}

static void write_remedy(const struct weir_check *check, const struct reason *reason, const char *anchor,
                         struct weir_text *remedy)
{
	bool damaged = strcmp(anchor, "state-damaged") == 0;
	if (!damaged && !is_of_log(anchor)) {
		weir_text_puts(remedy, strcmp(anchor, "what-may-be-restarted") == 0
		                           ? "upgrade this limiter: one of a newer weir has stored what it cannot read"
		                           : "do what the limiter's log says");
		return;
	}
	weir_text_printf(remedy, "weir recover %s %s ", damaged ? "--drop-damaged" : "--accept-gap", check->config_words);
	if (reason->count == 1)
		weir_text_printf(remedy, "--partition %u --yes", reason->first);
	else
		weir_text_puts(remedy, "--all --yes");
}

static void tell(const struct weir_check *check, const struct reason *reason)
{
	char anchor[ANCHOR_BYTES];
	struct weir_text remedy = {0};
	const char *end = strstr(reason->words, ". Nothing is judged in it");
	int length = end != NULL ? (int)(end - reason->words) : (int)strlen(reason->words);
	find_anchor(reason->words, anchor);
	write_remedy(check, reason, anchor, &remedy);
	weir_findings_add(
		check->findings, WEIR_SEVERITY_PAGE, "partitions",
		"limiter: partition%s %.*s %s stopped: %.*s\nTheir keys are not judged, and nobody is newly blocked "
		"there\n%.*s (runbook: %s)",
		reason->count > 1 ? "s" : "", (int)reason->numbers.length, reason->numbers.at, reason->count > 1 ? "are" : "is",
		length, reason->words, (int)remedy.length, remedy.at, anchor);
	weir_text_deinit(&remedy);
}

uint32_t limiter_check_stops(const struct weir_check *check, struct weir_store *store, uint32_t partitions, bool told)
{
	struct reasons reasons = {0};
	uint32_t stopped = 0;
	for (uint32_t i = 0; i < partitions; i++) {
		char *words, anchor[ANCHOR_BYTES];
		struct weir_error error;
		if (weir_partition_note_get(store, WEIR_PARTITION_STOPPED, i, &words, &error) != WEIR_OK)
			break; /* a store that cannot be read is among the findings */
		if (words == NULL)
			continue;
		find_anchor(words, anchor);
		if (told && is_of_log(anchor)) {
			free(words);
			continue;
		}
		stopped++;
		add(&reasons, i, words);
	}
	for (size_t i = 0; i < reasons.count; i++) {
		tell(check, &reasons.at[i]);
		free(reasons.at[i].words);
		weir_text_deinit(&reasons.at[i].numbers);
	}
	return stopped;
}
