/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the marks say: whether a line is a part, which one, and whose.
 *
 * A container is told by its id where the object has one. Pods have their names beside it, which say the same; so does the
 * name of the file that a shipper read, which is the tag of Fluent Bit's and Fluentd's usual configuration.
 */
#include "collector/cut/line_marks.h"

#include "common/bytes/hash.h"

#include <assert.h>

static const char *const mark_names[LINE_MARKS] = {
	[LINE_MARK_PARTIAL] = "partial_message",
	[LINE_MARK_JOURNAL_PARTIAL] = "CONTAINER_PARTIAL_MESSAGE",
	[LINE_MARK_JOURNAL_ID] = "CONTAINER_PARTIAL_ID",
	[LINE_MARK_BREAK] = "_LINE_BREAK",
	[LINE_MARK_LOGTAG] = "logtag",
	[LINE_MARK_P] = "_p",
};

enum {
	NAME_ID,
	NAME_ORDINAL,
	NAME_LAST,
	NAME_JOURNAL_ID,
	NAME_JOURNAL_ORDINAL,
	NAME_JOURNAL_LAST,
	NAME_STREAM_ID,
	NAME_CONTAINERS,
	NAME_CONTAINERS_END = NAME_CONTAINERS + 7,
	NAME_POD = NAME_CONTAINERS_END,
	NAME_POD_NAMESPACE,
	NAME_POD_CONTAINER,
	NAME_FILES,
	NAME_FILES_END = NAME_FILES + 3,
	NAME_STREAMS = NAME_FILES_END,
	NAME_STREAMS_END = NAME_STREAMS + 3,
	NAMES = NAME_STREAMS_END,
};

static_assert((int)NAMES <= (int)LINE_MARKS_NAMES_MAX, "there is room for each name");

static const char *const names[NAMES] = {
	[NAME_ID] = "partial_id",
	[NAME_ORDINAL] = "partial_ordinal",
	[NAME_LAST] = "partial_last",
	[NAME_JOURNAL_ID] = "CONTAINER_PARTIAL_ID",
	[NAME_JOURNAL_ORDINAL] = "CONTAINER_PARTIAL_ORDINAL",
	[NAME_JOURNAL_LAST] = "CONTAINER_PARTIAL_LAST",
	[NAME_STREAM_ID] = "_STREAM_ID",
	[NAME_CONTAINERS] = "container_id",
	[NAME_CONTAINERS + 1] = "CONTAINER_ID_FULL",
	[NAME_CONTAINERS + 2] = "CONTAINER_ID",
	[NAME_CONTAINERS + 3] = "/kubernetes/docker_id",
	[NAME_CONTAINERS + 4] = "/kubernetes/container_id",
	[NAME_CONTAINERS + 5] = "/docker/container_id",
	[NAME_CONTAINERS + 6] = "/container/id",
	[NAME_POD] = "/kubernetes/pod_name",
	[NAME_POD_NAMESPACE] = "/kubernetes/namespace_name",
	[NAME_POD_CONTAINER] = "/kubernetes/container_name",
	[NAME_FILES] = "tag",
	[NAME_FILES + 1] = "filename",
	[NAME_FILES + 2] = "file",
	[NAME_STREAMS] = "stream",
	[NAME_STREAMS + 1] = "source",
	[NAME_STREAMS + 2] = "PRIORITY",
};

void line_marks_init(struct line_marks *marks, struct json_scan *scan, bool journal_only)
{
	*marks = (struct line_marks){.nodes = {0}};
	for (int i = 0; i < LINE_MARKS; i++)
		if (!journal_only || (i >= LINE_MARK_JOURNAL_PARTIAL && i <= LINE_MARK_BREAK))
			marks->nodes[i] = json_scan_want(scan, mark_names[i]);
	json_scan_init(&marks->names);
	for (int i = 0; i < NAMES; i++)
		marks->name_nodes[i] = json_scan_want(&marks->names, names[i]);
}

void line_marks_deinit(struct line_marks *marks)
{
	json_scan_deinit(&marks->names);
	weir_text_deinit(&marks->key);
}

/* ---- whose it is ---- */

static struct weir_span value_of(const struct line_marks *marks, int name)
{
	return json_scan_value(&marks->names, marks->name_nodes[name]);
}

static struct weir_span first_of(const struct line_marks *marks, int name, int end)
{
	struct weir_span value = {0};
	for (; name < end && value.length == 0; name++)
		value = value_of(marks, name);
	return value;
}

/* The id of the container whose log a path or a tag names, as in "kube.var.log.containers.POD_NAMESPACE_NAME-ID.log". */
static struct weir_span id_in_name(struct weir_span name)
{
	static const char end[] = ".log";
	enum { ID_BYTES = 64, END_BYTES = sizeof end - 1 };
	if (name.length <= ID_BYTES + END_BYTES || memcmp(name.at + name.length - END_BYTES, end, END_BYTES) != 0)
		return (struct weir_span){0};
	struct weir_span id = {.at = name.at + name.length - END_BYTES - ID_BYTES, .length = ID_BYTES};
	for (uint32_t i = 0; i < id.length; i++)
		if (!((id.at[i] >= '0' && id.at[i] <= '9') || (id.at[i] >= 'a' && id.at[i] <= 'f')))
			return (struct weir_span){0};
	return id.at[-1] == '-' ? id : (struct weir_span){0};
}

static void add(struct line_marks *marks, char kind, struct weir_span value)
{
	weir_text_append(&marks->key, &kind, 1);
	if (value.length > 0)
		weir_text_append(&marks->key, value.at, value.length);
	weir_text_append(&marks->key, "", 1);
}

/* Writes what tells one container's stream from all others; false: nothing does. */
static bool write_stream(struct line_marks *marks)
{
	struct weir_span id = value_of(marks, NAME_STREAM_ID), pod = value_of(marks, NAME_POD);
	if (id.length > 0) {
		add(marks, 's', id);
		return true;
	}
	id = first_of(marks, NAME_CONTAINERS, NAME_CONTAINERS_END);
	struct weir_span container = value_of(marks, NAME_POD_CONTAINER);
	for (int i = NAME_FILES; i < NAME_FILES_END && id.length == 0 && (pod.length == 0 || container.length == 0); i++)
		id = id_in_name(value_of(marks, i));
	if (id.length > 0) {
		add(marks, 'c', id);
	} else if (pod.length > 0 && container.length > 0) {
		add(marks, 'p', pod);
		add(marks, 'n', value_of(marks, NAME_POD_NAMESPACE));
		add(marks, 'c', container);
	} else {
		return false;
	}
	add(marks, 'o', first_of(marks, NAME_STREAMS, NAME_STREAMS_END));
	return true;
}

static void name_part(struct line_marks *marks, struct weir_span id, struct line_part *part)
{
	weir_text_clear(&marks->key);
	if (id.length > 0)
		add(marks, 'i', id);
	part->named = id.length > 0 || write_stream(marks);
	if (!part->named)
		return;
	XXH128_hash_t hash = XXH3_128bits(marks->key.at, marks->key.length);
	part->key = (struct line_key){.low = hash.low64, .high = hash.high64};
}

/* ---- which part it is ---- */

static bool is(struct weir_span value, const char *word)
{
	return value.at != NULL && weir_span_equal(value, weir_span_of(word));
}

static bool is_true(struct weir_span value)
{
	return is(value, "true") || is(value, "1") || is(value, "True");
}

/* A part's number; 0: it has none, or one that no part has. */
static uint32_t number_of(struct weir_span value)
{
	uint32_t number = 0;
	if (value.length > 9)
		return 0;
	for (uint32_t i = 0; i < value.length; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return 0;
		number = number * 10 + (uint32_t)(value.at[i] - '0');
	}
	return number;
}

/* Docker's. @return whether it says anything */
static bool read_docker(struct line_marks *marks, const struct json_scan *scan, bool journal, struct line_part *part)
{
	int partial = journal ? LINE_MARK_JOURNAL_PARTIAL : LINE_MARK_PARTIAL;
	struct weir_span id = value_of(marks, journal ? NAME_JOURNAL_ID : NAME_ID);
	bool says = is_true(json_scan_value(scan, marks->nodes[partial]));
	if (!says && id.length == 0)
		return false;
	struct weir_span last = value_of(marks, journal ? NAME_JOURNAL_LAST : NAME_LAST);
	part->more = last.length > 0 ? !is_true(last) : says;
	part->number = number_of(value_of(marks, journal ? NAME_JOURNAL_ORDINAL : NAME_ORDINAL));
	part->continues = part->number > 1 || (part->number == 0 && !part->more);
	name_part(marks, id, part);
	return true;
}

/* CRI's tags, of which the first says it: "P", "P:x". */
static bool is_partial_tag(struct weir_span tag)
{
	return tag.length > 0 && tag.at[0] == 'P' && (tag.length == 1 || tag.at[1] == ':');
}

static bool says_more(const struct line_marks *marks, const struct json_scan *scan)
{
	struct weir_span broken = json_scan_value(scan, marks->nodes[LINE_MARK_BREAK]);
	struct weir_span tag = json_scan_value(scan, marks->nodes[LINE_MARK_LOGTAG]);
	if (tag.at == NULL)
		tag = json_scan_value(scan, marks->nodes[LINE_MARK_P]);
	return is_partial_tag(tag) || is(broken, "line-max") || is(broken, "pid-change");
}

bool line_marks_may_be_part(const struct line_marks *marks, const struct json_scan *scan,
                            const struct line_parts *parts)
{
	if (line_parts_wait(parts))
		return true;
	bool docker = false, other = false;
	for (int i = 0; i < LINE_MARKS; i++) {
		bool there = json_scan_value(scan, marks->nodes[i]).at != NULL;
		docker |= there && i <= LINE_MARK_JOURNAL_ID;
		other |= there;
	}
	return docker || (other && says_more(marks, scan));
}

struct line_part line_marks_part(struct line_marks *marks, const struct json_scan *scan, struct weir_span object)
{
	struct line_part part = {.more = says_more(marks, scan)};
	(void)json_scan_line(&marks->names, object.at, object.length);
	if (!read_docker(marks, scan, false, &part) && !read_docker(marks, scan, true, &part))
		name_part(marks, (struct weir_span){0}, &part);
	return part;
}
