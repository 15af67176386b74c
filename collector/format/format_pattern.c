/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Format `pattern`: a PCRE2 expression whose named groups are the fields.
 *
 * The expression is compiled by PCRE2's JIT. It searches bytes, not UTF-8: a log may hold any.
 *
 * Each search has a bound on its time, so that no expression and no line can stop the log. PCRE2's limit counts the JIT's
 * steps from one place in the line alone, and no step of a loop that never goes back. So it bounds short lines, which
 * are tried with it first. For others, and where it was met, the expression is compiled once more, with a call before
 * each of its items, which costs more and says how far the line still goes: that is the most work that can be done before
 * the next call. When much may have been done, the thread's time is looked at, which grows only while it works. What a
 * search may take grows with the line's length, so it is linear.
 *
 * A line that lacks its end is a record where the search finds what it would find in all of it, whatever stands there: PCRE2
 * says of a partial match whether it came to the end.
 */
#include "collector/format/format_slots.h"
#include "common/base/alloc.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What a search may take. Ordinary lines need a few microseconds. */
enum { SEARCH_BASE_NS = 1000000, SEARCH_BYTE_NS = 200, BYTES_BETWEEN_LOOKS = 1 << 20 };

enum {
	QUICK_STEPS = 1024,          /* and two for each byte */
	QUICK_BYTES = 1 << 10,       /* lines up to here are tried by PCRE2's limit alone */
	QUICK_ANCHORED_BYTES = 4096, /* of an expression that matches at a line's beginning or not at all */
	STEPS_MAX = 100000000,
	DEPTH_MAX = 10000,
	HEAP_MAX_KIB = 16 << 10,
	JIT_STACK_MIN_BYTES = 32 << 10,
	JIT_STACK_MAX_BYTES = 1 << 20,
	PATTERN_MAX_BYTES = 16 << 10,
};

/* The groups of a name, which are several where "(?J)" allows it: entries of PCRE2's table, each with a number in front. */
struct named_groups {
	PCRE2_SPTR first, last; /* NULL: there is none */
};

struct format_pattern {
	struct format format;
	struct format_options options;
	struct format_slots slots;
	int unmatched;                                /* its index in `outcomes` */
	const char *text;                             /* the option; NULL: there is none */
	struct named_groups groups[FORMAT_SLOTS_MAX]; /* of each slot */
	pcre2_code *code;                             /* without calls */
	pcre2_code *guarded;                          /* with them */
	uint32_t quick_bytes;
	uint32_t entry_bytes; /* of the table of names */
	pcre2_match_data *match;
	pcre2_match_context *quick_limits, *limits;
	pcre2_jit_stack *jit_stack;
	/* of the search that is going on */
	uint64_t bytes; /* that may have been looked at since the clock was */
	int64_t end_ns; /* of the thread's time; 0: it was not looked at yet */
};

static int64_t thread_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Before each item of the expression; other than 0 ends the search. */
static int spend(pcre2_callout_block *block, void *data)
{
	struct format_pattern *pattern = data;
	pattern->bytes += 1 + block->subject_length - block->current_position;
	if (pattern->bytes < BYTES_BETWEEN_LOOKS)
		return 0;
	pattern->bytes = 0;
	int64_t now_ns = thread_ns();
	if (pattern->end_ns == 0)
		pattern->end_ns = now_ns + SEARCH_BASE_NS + (int64_t)block->subject_length * SEARCH_BYTE_NS;
	return now_ns < pattern->end_ns ? 0 : PCRE2_ERROR_CALLOUT;
}

/* What a group holds; absent where it took no part. */
static struct weir_span group_value(const char *line, const PCRE2_SIZE *offsets, uint32_t group)
{
	PCRE2_SIZE begin = offsets[2 * group], end = offsets[2 * group + 1];
	if (begin == PCRE2_UNSET || end <= begin)
		return (struct weir_span){0};
	return (struct weir_span){.at = line + begin, .length = (uint32_t)(end - begin)};
}

/* Of groups of one name the last in the expression that took part. */
static struct weir_span last_value(const struct format_pattern *pattern, const char *line, const PCRE2_SIZE *offsets,
                                   const struct named_groups *groups)
{
	struct weir_span found = {0};
	uint32_t found_group = 0;
	for (PCRE2_SPTR entry = groups->first; entry != NULL && entry <= groups->last; entry += pattern->entry_bytes) {
		uint32_t group = (uint32_t)entry[0] << 8 | entry[1];
		struct weir_span value = group_value(line, offsets, group);
		if (value.at != NULL && group > found_group) {
			found = value;
			found_group = group;
		}
	}
	return found;
}

static int search(struct format_pattern *pattern, const char *line, uint32_t length)
{
	PCRE2_SPTR text = (PCRE2_SPTR)line;
	if (length <= pattern->quick_bytes && !pattern->format.cut) {
		pcre2_set_match_limit(pattern->quick_limits, QUICK_STEPS + 2 * length);
		int found =
			pcre2_match(pattern->code, text, length, 0, PCRE2_NO_UTF_CHECK, pattern->match, pattern->quick_limits);
		if (found != PCRE2_ERROR_MATCHLIMIT)
			return found;
	}
	pattern->bytes = 0;
	pattern->end_ns = 0;
	uint32_t options = PCRE2_NO_UTF_CHECK | (pattern->format.cut ? (uint32_t)PCRE2_PARTIAL_HARD : 0);
	return pcre2_match(pattern->guarded, text, length, 0, options, pattern->match, pattern->limits);
}

static enum format_reason parse(struct format *format, const char *line, uint32_t length, struct weir_record *record)
{
	struct format_pattern *pattern = (struct format_pattern *)format;
	int found = search(pattern, line, length);
	if (found == PCRE2_ERROR_PARTIAL || (format->cut && found == PCRE2_ERROR_NOMATCH))
		return FORMAT_LINE_TOO_LONG;
	record->cut = false; /* what was found is all that there is */
	if (found < 0 && found != PCRE2_ERROR_NOMATCH)
		return FORMAT_SEARCH_LIMIT;
	if (found <= 0) {
		format->unmatched += pattern->unmatched != 0;
		return pattern->unmatched == 0 ? format->malformed : FORMAT_SKIP;
	}
	const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(pattern->match);
	struct weir_span values[FORMAT_SLOTS_MAX];
	for (uint32_t slot = 0; slot < pattern->slots.count; slot++)
		values[slot] = last_value(pattern, line, offsets, &pattern->groups[slot]);
	return format_slots_finish(&pattern->slots, &pattern->options, values, record);
}

static void pattern_free(struct format *format)
{
	struct format_pattern *pattern = (struct format_pattern *)format;
	pcre2_match_data_free(pattern->match);
	pcre2_match_context_free(pattern->quick_limits);
	pcre2_match_context_free(pattern->limits);
	pcre2_jit_stack_free(pattern->jit_stack);
	pcre2_code_free(pattern->code);
	pcre2_code_free(pattern->guarded);
	format_options_deinit(&pattern->options);
	free(pattern);
}

static pcre2_code *compile_with(const char *text, uint32_t more, int *code, PCRE2_SIZE *offset)
{
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	pcre2_set_max_pattern_length(context, PATTERN_MAX_BYTES);
	pcre2_code *made = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
	                                 PCRE2_NEVER_UTF | PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOTALL | more,
	                                 code, offset, context);
	pcre2_compile_context_free(context);
	/* Where there is no JIT for the machine, the interpreter gives the same. */
	if (made != NULL)
		(void)pcre2_jit_compile(made, PCRE2_JIT_COMPLETE);
	return made;
}

static pcre2_match_context *make_limits(pcre2_jit_stack *stack)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	pcre2_set_match_limit(limits, STEPS_MAX);
	pcre2_set_depth_limit(limits, DEPTH_MAX);
	pcre2_set_heap_limit(limits, HEAP_MAX_KIB);
	pcre2_jit_stack_assign(limits, NULL, stack);
	return limits;
}

static enum weir_status compile(struct format_pattern *pattern, const struct weir_json *at, const char *text,
                                struct weir_error *error)
{
	int code = 0;
	PCRE2_SIZE offset = 0;
	pattern->code = compile_with(text, 0, &code, &offset);
	if (pattern->code != NULL)
		pattern->guarded = compile_with(text, PCRE2_AUTO_CALLOUT, &code, &offset);
	if (pattern->guarded == NULL) {
		PCRE2_UCHAR why[128];
		pcre2_get_error_message(code, why, sizeof why);
		return weir_json_fail(at, error, "is not a valid PCRE2 expression: %s at byte %zu", (const char *)why,
		                      offset + 1);
	}
	uint32_t options = 0;
	(void)pcre2_pattern_info(pattern->code, PCRE2_INFO_ALLOPTIONS, &options);
	pattern->quick_bytes = (options & PCRE2_ANCHORED) != 0 ? QUICK_ANCHORED_BYTES : QUICK_BYTES;
	pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
	pattern->jit_stack = pcre2_jit_stack_create(JIT_STACK_MIN_BYTES, JIT_STACK_MAX_BYTES, NULL);
	pattern->quick_limits = make_limits(pattern->jit_stack);
	pattern->limits = make_limits(pattern->jit_stack);
	pcre2_set_callout(pattern->limits, spend, pattern);
	return WEIR_OK;
}

static bool lacks(const struct format *format, uint32_t field)
{
	const struct format_pattern *pattern = (const struct format_pattern *)format;
	int slot = format_slots_of_field(&pattern->slots, field);
	return slot < 0 || pattern->groups[slot].first == NULL;
}

static struct named_groups groups_of(struct format_pattern *pattern, const char *name)
{
	struct named_groups groups = {0};
	int bytes = pcre2_substring_nametable_scan(pattern->code, (PCRE2_SPTR)name, &groups.first, &groups.last);
	if (bytes <= 0)
		return (struct named_groups){0};
	pattern->entry_bytes = (uint32_t)bytes;
	return groups;
}

static void find_groups(struct format_pattern *pattern)
{
	format_slots_init(&pattern->slots, &pattern->options);
	for (uint32_t slot = 0; slot < pattern->slots.count; slot++)
		pattern->groups[slot] = groups_of(pattern, pattern->slots.names[slot].at);
	if (pattern->groups[FORMAT_SLOT_TIME].first == NULL)
		pattern->format.missing_time = pattern->options.time_name;
}

static enum weir_status create(const struct weir_json *config, const struct format_kind *kind,
                               const struct weir_field_table *fields, struct format **format, struct weir_error *error)
{
	struct format_pattern *pattern = weir_alloc(1, sizeof *pattern);
	struct weir_json at = weir_json_member(config, "pattern");
	pattern->format.parse = parse;
	pattern->format.free = pattern_free;
	pattern->format.lacks = lacks;
	pattern->format.takes_cut = true;
	enum weir_status status = format_options_init(&pattern->options, config, fields, kind, &pattern->format, error);
	if (status == WEIR_OK)
		status = compile(pattern, &at, pattern->text, error);
	if (status != WEIR_OK) {
		format_free(&pattern->format);
		return status;
	}
	find_groups(pattern);
	*format = &pattern->format;
	return WEIR_OK;
}

static const char *const outcomes[] = {"malformed", "skip", NULL};

#define AT(member) offsetof(struct format_pattern, member)

static const struct weir_json_rule options[] = {
	{.name = "pattern",
     .kind = WEIR_JSON_TEXT,
     .offset = AT(text),
     .needed = "give an expression such as \"^(?<time>\\\\S+) (?<ip>\\\\S+)\"",
     .meaning = "an expression of PCRE2 with a named group for each field"},
	{.name = "unmatched",
     .kind = WEIR_JSON_WORD,
     .offset = AT(unmatched),
     .words = outcomes,
     .meaning = "whether a line that is not of the format is \"malformed\" (the default), or \"skip\": not counted"},
	{.name = NULL},
};

const struct format_kind format_pattern = {
	.name = "pattern",
	.meaning = "whatever an expression matches",
	.malformed = "no match",
	.takes = FORMAT_TAKES_FIELDS | FORMAT_TAKES_TIME | FORMAT_TAKES_YEAR,
	.escapes = FORMAT_ESCAPES_BACKSLASHES,
	.options = options,
	.create = create,
};
