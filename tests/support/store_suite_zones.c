/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any store: the zones of the newest policy are rows, zones that it has no more keep theirs, and views name zones,
 * keys and times by them.
 */
#include "common/base/text.h"
#include "tests/support/store_suite_parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define POLICY(zones) "{\"zones\":[" zones "]}"
#define SITE                                                                                             \
	"{\"id\":1,\"name\":\"site\",\"description\":\"requests per client — all\",\"key\":[\"ip\"],"      \
	"\"block_for\":\"5s\",\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":10,\"window\":\"1m\"}," \
	"{\"algorithm\":\"gcra\",\"rate\":3,\"window\":\"1s\",\"burst\":7}]}"
#define CHANGED_SITE                                                                                        \
	"{\"id\":1,\"name\":\"site\",\"key\":[\"ip\"],\"limits\":[{\"algorithm\":\"fixed_window\",\"rate\":99," \
	"\"window\":\"1h\"}]}"
#define DOOR                                                                                           \
	"{\"id\":7,\"name\":\"door\",\"key\":[],\"mode\":\"shadow\",\"limits\":[{\"algorithm\":\"queue\"," \
	"\"length\":4,\"hold\":\"30s\",\"done\":{\"path\":[\"/out\"]}}]}"
#define ODD                                                                                                   \
	"{\"id\":1,\"name\":\"odd\",\"key\":[],\"limits\":[{\"algorithm\":\"sliding_window\",\"rate\":10,"        \
	"\"window\":\"1m\",\"precision\":\"1s\",\"lateness\":\"2m\"},{\"algorithm\":\"fixed_window\",\"rate\":9," \
	"\"window\":\"1d\",\"offset\":\"2h\"},{\"algorithm\":\"token_bucket\",\"rate\":3,\"window\":\"1s\","      \
	"\"burst\":7,\"penalize\":true},{\"algorithm\":\"uniform\",\"interval\":\"500ms\"}]}"
#define ALL                                                                                                   \
	"SELECT zone_id, limit_number, name, description, mode, algorithm, rate, window_ms, burst, precision_ms," \
	" lateness_ms, offset_ms, penalize, block_for_ms, policy_version FROM zone_master ORDER BY zone_id, limit_number"
#define FEW "SELECT zone_id, algorithm, rate, policy_version FROM zone_master ORDER BY zone_id, limit_number"

static void put(struct weir_store *store, uint64_t version, const char *text, enum weir_status expected)
{
	struct weir_error error = {.text = ""};
	if (store->ops->policy_put(store, version, weir_span_of(text), &error) != expected)
		fail_msg("policy %llu: %s", (unsigned long long)version, error.text);
}

void zones_are_rows(void **place)
{
	struct weir_store *store = open_store(*place);
	put(store, 1, POLICY(SITE "," DOOR), WEIR_OK);
	assert_rows(store, ALL, NULL, 0,
	            "1 1 site requests per client — all enforce sliding_window 10 60000 0 1 0 0 0 5000 1; "
	            "1 2 site requests per client — all enforce gcra 3 1000 7 0 0 0 0 5000 1; "
	            "7 1 door  shadow queue 4 30000 0 0 0 0 0 0 1; ");
	put(store, 10, POLICY(ODD), WEIR_OK);
	assert_rows(store, ALL " LIMIT 4", NULL, 0,
	            "1 1 odd  enforce sliding_window 10 60000 0 1000 120000 0 0 0 10; "
	            "1 2 odd  enforce fixed_window 9 86400000 0 0 0 7200000 0 0 10; "
	            "1 3 odd  enforce token_bucket 3 1000 7 0 0 0 1 0 10; "
	            "1 4 odd  enforce uniform 1 500 0 0 0 0 0 0 10; ");
	store->ops->close(store);
}

void zones_are_as_the_newest_policy_says(void **place)
{
	struct weir_store *store = open_store(*place);
	put(store, 1, POLICY(SITE "," DOOR), WEIR_OK);
	put(store, 2, POLICY(CHANGED_SITE), WEIR_OK);
	assert_rows(store, FEW, NULL, 0, "1 fixed_window 99 2; 7 queue 4 1; ");
	put(store, 2, POLICY(CHANGED_SITE), WEIR_OK); /* again */
	put(store, 2, POLICY(DOOR), WEIR_INVALID);
	put(store, 3, "no policy", WEIR_OK); /* of a newer program, say */
	put(store, 5, POLICY(CHANGED_SITE), WEIR_OK);
	put(store, 4, POLICY(SITE "," DOOR), WEIR_OK); /* by one who comes late: the newest one's rows of a zone */
	assert_rows(store, FEW, NULL, 0, "1 fixed_window 99 5; 7 queue 4 4; ");
	store->ops->close(store);
}

/* 2009-02-13 23:31:30.123 UTC, before 1970, and the end of times that decisions have. */
void views_have_names_and_times(void **place)
{
	const int64_t at_ms = INT64_C(1234567890123), hour_ms = INT64_C(1234566000000);
	struct weir_store *store = open_store(*place);
	put(store, 1, POLICY(SITE "," DOOR), WEIR_OK);
	const struct weir_archive_count counts[] = {{1, weir_span_of("ä|b"), hour_ms, 5, 2, 1},
	                                            {7, weir_span_of("k"), -WEIR_HOUR_MS, 1, 0, 0}};
	const struct weir_archive_event event = {{3, 5, 1}, 7, weir_span_of("A"), at_ms, true, {.at = NULL}};
	const struct weir_archive_decision decisions[] = {{.id = {1, 7, 0},
	                                                   .at_ms = at_ms,
	                                                   .until_ms = at_ms + 5000,
	                                                   .zone = weir_span_of("site"),
	                                                   .bucket = weir_span_of("ä|b"),
	                                                   .action = weir_span_of("block"),
	                                                   .mode = weir_span_of("enforce"),
	                                                   .limited = true,
	                                                   .algorithm = weir_span_of("gcra"),
	                                                   .rate = 3,
	                                                   .window_ms = 1000,
	                                                   .held = 8,
	                                                   .nth = 2},
	                                                  {.id = {1, 8, 0},
	                                                   .at_ms = -1,
	                                                   .until_ms = INT64_C(253402300799999),
	                                                   .zone = weir_span_of("door"),
	                                                   .action = weir_span_of("block"),
	                                                   .mode = weir_span_of("shadow"),
	                                                   .ordered_by = weir_span_of("root"),
	                                                   .reason = weir_span_of("why")}};
	const struct weir_archive_batch batch = {.hours = counts,
	                                         .hour_count = 2,
	                                         .decisions = decisions,
	                                         .decision_count = 2,
	                                         .events = &event,
	                                         .event_count = 1};
	struct weir_partition_state state = take(store, WEIR_STORE_ROLE_ARCHIVER, 0);
	assert_int_equal(archive(store, &batch, &state, 1), WEIR_OK);
	assert_rows(store, "SELECT * FROM hourly ORDER BY hour_ms", NULL, 0,
	            "door k 1969-12-31 1969-12-31 23:00:00 1 0 0 1 7 k -3600000; "
	            "site ä|b 2009-02-13 2009-02-13 23:00:00 5 2 1 7 1 ä|b 1234566000000; ");
	assert_rows(store, "SELECT * FROM daily WHERE zone = 'site' AND day = '2009-02-13'", NULL, 0,
	            "site ä|b 2009-02-13 5 2 1 7 1 ä|b 1234483200000; ");
	assert_rows(store, "SELECT * FROM decisions ORDER BY at_ms", NULL, 0,
	            "1-8-0 door - 1969-12-31 1969-12-31 23:59:59.999 block 9999-12-31 23:59:59.999 shadow"
	            " - - - - root why - - -1 253402300799999; "
	            "1-7-0 site ä|b 2009-02-13 2009-02-13 23:31:30.123 block 2009-02-13 23:31:35.123 enforce"
	            " gcra 3 1000 8 - - 2 ä|b 1234567890123 1234567895123; ");
	assert_rows(store, "SELECT * FROM events", NULL, 0,
	            "3-5-1 door A 2009-02-13 2009-02-13 23:31:30.123 1 - 7 A 1234567890123; ");
	assert_rows(store, "SELECT count(*) FROM events WHERE key_text = 'a'", NULL, 0, "0; ");
	store->ops->close(store);
}
