/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was done, for people and as JSON. That a key is gone is said of what is
 * gone; where it still lies, and who ends that when, stands beside it.
 */
#include "deploy/weir/forget/forget.h"

#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/json/json_writer.h"
#include "deploy/weir/terminal/readable.h"

#include <inttypes.h>

/* The topics that have keys; a policy may name some, in words of its own. */
static const enum weir_topic topics[] = {WEIR_TOPIC_EVENTS, WEIR_TOPIC_JUDGED, WEIR_TOPIC_DECISIONS, WEIR_TOPIC_SHADOW,
                                         WEIR_TOPIC_DEADLETTER};

enum { TOPIC_COUNT = sizeof topics / sizeof *topics };

/* Of one machine: who takes the log away. */
#define TRIMMED                                                                                                           \
	"until weir run removes its files: each once every reader is past it, and bus.explain_size (256MiB) of newer events " \
	"came; sooner with bus.explain_size at 0 and a restart"

static bool is_there(const struct forget *forget, enum weir_topic topic)
{
	/* On one machine dead letters are a file. */
	return forget->backend.kind != BACKEND_CLUSTER ? topic != WEIR_TOPIC_DEADLETTER : !forget->backend.missing[topic];
}

/* When the last message of now is gone; < 0: never. false: it is not known. */
static bool find_until(const struct forget *forget, enum weir_topic topic, int64_t *until_ms)
{
	struct weir_bus_kafka_retention retention = weir_bus_kafka_retention(forget->backend.bus, topic);
	*until_ms = retention.ms < 0 ? -1 : weir_wall_ms() + retention.ms + retention.segment_ms;
	return retention.known;
}

static void topic_name(const struct forget *forget, enum weir_topic topic, char name[WEIR_BUS_KAFKA_TOPIC_BYTES])
{
	const char *prefix = forget->backend.kind == BACKEND_CLUSTER ? forget->backend.config->bus.prefix : "weir";
	weir_bus_kafka_topic_name(prefix, topic, name);
}

/* ---- words ---- */

static void put_zone(const struct forget *forget, const struct forget_zone *zone, struct weir_text *text)
{
	weir_text_printf(text, "%s  ", zone->name);
	words_key(text, forget_key(zone));
	if (zone->placed)
		weir_text_printf(text,
		                 "  its bucket is emptied and its block lifted, allow and override end"
		                 " (partition %u, offset %" PRIu64 ")\n",
		                 zone->place.partition, zone->place.offset);
	else if (zone->velocity)
		weir_text_puts(text, "  of check_velocity\n");
	else if (forget->backend.once)
		weir_text_puts(text, "  only rows: the run has ended\n");
	else
		weir_text_puts(text, "  only rows: the policy in force does not have the zone\n");
}

/* What else went: whoever asked for one address may not have meant its neighbours. */
static void put_shared(const struct forget_zone *zone, struct weir_text *text)
{
	if (zone->shared)
		weir_text_puts(text,
		               "    shared: the zone counts a network as one, so the counts and the block of all its members "
		               "went with it\n");
}

static void put_rows(const struct forget *forget, struct weir_text *text)
{
	weir_text_puts(text, "rows removed: ");
	for (int i = 0; i < WEIR_ARCHIVE_KEYED; i++) {
		weir_text_printf(text, "%s%s ", i > 0 ? ", " : "", weir_archive_names[i].table);
		words_count(text, forget->removed.rows[i]);
	}
	if (forget->removed.locks > 0) {
		weir_text_puts(text, ", zone_bucket_lock ");
		words_count(text, forget->removed.locks);
	}
	weir_text_puts(text, "\n");
}

static void put_topic(const struct forget *forget, enum weir_topic topic, struct weir_text *text)
{
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	int64_t until_ms;
	topic_name(forget, topic, name);
	weir_text_printf(text, "  topic %s: ", name);
	if (!find_until(forget, topic, &until_ms)) {
		weir_text_puts(text, "the brokers do not report its retention\n");
	} else if (until_ms < 0) {
		weir_text_puts(text, "forever (retention.ms)\n");
	} else {
		weir_text_puts(text, "until ");
		words_time(text, until_ms);
		weir_text_puts(text, " at the latest (retention.ms and segment.ms)\n");
	}
}

/* What a database has deleted or changed is overwritten when its place is used again. */
static void put_pages(const struct forget *forget, struct weir_text *text)
{
	if (forget->backend.kind == BACKEND_CLUSTER)
		weir_text_puts(
			text, "  free space in the store's files, from rows that were deleted or changed, until it is used again "
				  "(or OPTIMIZE TABLE); its binary logs and backups, as long as they are kept\n");
	else
		weir_text_printf(text,
		                 "  free space in %s/weir.db, from rows that were deleted or changed before, until it is used "
		                 "again (or VACUUM while weir is stopped); copies of it\n",
		                 forget->backend.state_path);
}

static void put_holders(const struct forget *forget, struct weir_text *text)
{
	weir_text_puts(text, "what may still hold it:\n");
	for (int i = 0; i < TOPIC_COUNT && forget->backend.kind == BACKEND_CLUSTER; i++)
		if (is_there(forget, topics[i]))
			put_topic(forget, topics[i], text);
	if (forget->backend.kind != BACKEND_CLUSTER && !forget->backend.once)
		weir_text_printf(text, "  the log in %s/log: " TRIMMED "\n", forget->backend.state_path);
	if (forget->backend.once)
		weir_text_printf(
			text, "  the rest of %s: buckets and the most blocked keys: remove it once no run continues from there\n",
			forget->backend.state_path);
	put_pages(forget, text);
	if (forget->backend.kind != BACKEND_CLUSTER)
		weir_text_puts(text,
		               "  the files of decisions and of dead letters that weir run writes, which are yours to edit\n");
	weir_text_puts(text, "  the source logs, which are not weir's: reading them again brings it back\n");
}

void forget_report(const struct forget *forget, struct weir_text *text)
{
	for (uint32_t i = 0; i < forget->zone_count; i++) {
		put_zone(forget, &forget->zones[i], text);
		put_shared(&forget->zones[i], text);
	}
	put_rows(forget, text);
	put_holders(forget, text);
	if (forget->unfound.length > 0) {
		weir_text_puts(text, "NOT FOUND, so not removed:\n");
		weir_text_append(text, forget->unfound.at, forget->unfound.length);
	}
	if (forget->left.length == 0)
		return;
	weir_text_puts(text, "NOT DONE YET:\n");
	weir_text_append(text, forget->left.at, forget->left.length);
	weir_text_puts(text,
	               "rows may still arrive from there: make sure that limiters and archivers are running, and run it "
	               "again (running it twice does no harm)\n");
}

/* ---- JSON ---- */

static void put_zone_json(const struct forget_zone *zone, struct weir_json_writer *json)
{
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "zone", zone->name);
	weir_json_write_uint(json, "zone_id", zone->id);
	weir_json_write_string(json, "key", forget_key(zone));
	weir_json_write_bool(json, "shared", zone->shared);
	if (zone->placed) {
		weir_json_write_object(json, "placed");
		weir_json_write_uint(json, "partition", zone->place.partition);
		weir_json_write_uint(json, "offset", zone->place.offset);
		weir_json_write_end(json);
	} else {
		weir_json_write_null(json, "placed");
	}
	weir_json_write_end(json);
}

static void put_topic_json(const struct forget *forget, enum weir_topic topic, struct weir_json_writer *json)
{
	char name[WEIR_BUS_KAFKA_TOPIC_BYTES];
	int64_t until_ms;
	topic_name(forget, topic, name);
	weir_json_write_object(json, NULL);
	weir_json_write_words(json, "topic", name);
	if (forget->backend.kind == BACKEND_CLUSTER && find_until(forget, topic, &until_ms) && until_ms >= 0)
		weir_json_write_int(json, "until_ms", until_ms);
	else
		weir_json_write_null(json, "until_ms");
	weir_json_write_end(json);
}

void forget_report_json(const struct forget *forget, struct weir_text *text)
{
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_bool(&json, "done", forget_is_done(forget));
	weir_json_write_array(&json, "zones");
	for (uint32_t i = 0; i < forget->zone_count; i++)
		put_zone_json(&forget->zones[i], &json);
	weir_json_write_end(&json);
	weir_json_write_object(&json, "rows");
	for (int i = 0; i < WEIR_ARCHIVE_KEYED; i++)
		weir_json_write_uint(&json, weir_archive_names[i].table, forget->removed.rows[i]);
	weir_json_write_uint(&json, "zone_bucket_lock", forget->removed.locks);
	weir_json_write_end(&json);
	weir_json_write_array(&json, "topics");
	for (int i = 0; i < TOPIC_COUNT && !forget->backend.once; i++)
		if (is_there(forget, topics[i]))
			put_topic_json(forget, topics[i], &json);
	weir_json_write_end(&json);
	struct weir_text left = {0};
	weir_text_append(&left, forget->unfound.at, forget->unfound.length);
	weir_text_append(&left, forget->left.at, forget->left.length);
	weir_json_write_string(
		&json, "left",
		(struct weir_span){left.length > 0 ? left.at : "", (uint32_t)(left.length > 0 ? left.length - 1 : 0)});
	weir_text_deinit(&left);
	weir_json_write_end(&json);
	weir_json_write_newline(&json);
}
