/* Any store: the zones of the newest policy are rows, and zones that it has no more keep theirs. */
#include "common/text.h"
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
#define ALL                                                                                                   \
	"SELECT zone_id, limit_number, name, description, mode, algorithm, rate, window_ms, burst, block_for_ms," \
	" policy_version FROM zone_master ORDER BY zone_id, limit_number"
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
	            "1 1 site requests per client — all enforce sliding_window 10 60000 0 5000 1; "
	            "1 2 site requests per client — all enforce gcra 3 1000 7 5000 1; "
	            "7 1 door  shadow queue 4 30000 0 0 1; ");
	put(store, 2, POLICY(CHANGED_SITE), WEIR_OK);
	assert_rows(store, FEW, NULL, 0, "1 fixed_window 99 2; 7 queue 4 1; ");
	put(store, 2, POLICY(CHANGED_SITE), WEIR_OK); /* again */
	put(store, 2, POLICY(DOOR), WEIR_INVALID);
	put(store, 3, "no policy", WEIR_OK); /* of a newer program, say */
	put(store, 5, POLICY(CHANGED_SITE), WEIR_OK);
	put(store, 4, POLICY(SITE "," DOOR), WEIR_OK); /* by one who comes late: the newest one's rows stay */
	assert_rows(store, FEW, NULL, 0, "1 fixed_window 99 5; 7 queue 4 1; ");
	store->ops->close(store);
}
