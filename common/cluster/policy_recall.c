/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic is read to its end, and what the store lacks is put in order: each is in the store with all those before it,
 * wherever this is cut off, as layouts of buckets are numbered by the whole history.
 */
#include "common/cluster/policy_recall.h"

#include "common/cluster/policy_feed.h"

enum { READ_MS = 10000 };

static enum weir_status keep_version(void *context, uint64_t version, struct weir_span text)
{
	(void)text;
	*(uint64_t *)context = version;
	return WEIR_OK;
}

enum weir_status weir_policy_stored_newest(struct weir_store *store, uint64_t from, uint64_t *version,
                                           struct weir_error *error)
{
	*version = 0;
	return store->ops->policy_each(store, from, keep_version, version, error);
}

static enum weir_status put_back(struct weir_store *store, const struct weir_policy *policy, uint64_t newest,
                                 struct weir_error *error)
{
	if (policy->version != newest + 1)
		return weir_fail(error, WEIR_INVALID,
		                 "the store and the topic %s both lack policy %llu, although there is policy %llu (runbook: "
		                 "store-failed-over)",
		                 weir_topic_name(WEIR_TOPIC_POLICY), (unsigned long long)newest + 1,
		                 (unsigned long long)policy->version);
	return store->ops->policy_put(store, policy->version, weir_span_of(policy->text), error);
}

static enum weir_status put_missing(struct weir_store *store, const struct weir_policy_feed *feed,
                                    struct weir_policies_recalled *recalled, struct weir_error *error)
{
	uint64_t newest;
	enum weir_status status = weir_policy_stored_newest(store, 1, &newest, error);
	const struct weir_policy *policy;
	while (status == WEIR_OK && (policy = weir_policy_feed_above(feed, newest)) != NULL) {
		status = put_back(store, policy, newest, error);
		if (status != WEIR_OK)
			break;
		newest = policy->version;
		recalled->first = recalled->first == 0 ? newest : recalled->first;
		recalled->last = newest;
	}
	return status;
}

enum weir_status weir_policy_recall(struct weir_store *store, struct weir_bus *bus,
                                    struct weir_policies_recalled *recalled, struct weir_error *error)
{
	struct weir_policy_feed *feed;
	*recalled = (struct weir_policies_recalled){0};
	enum weir_status status = weir_policy_feed_read(bus, READ_MS, &feed, error);
	if (status != WEIR_OK)
		return status;
	status = put_missing(store, feed, recalled, error);
	weir_policy_feed_free(feed);
	return status;
}

enum weir_status weir_policy_check_checkpoints(struct weir_store *store, uint32_t partitions, struct weir_error *error)
{
	uint64_t newest;
	enum weir_status status = weir_policy_stored_newest(store, 1, &newest, error);
	for (uint32_t partition = 0; status == WEIR_OK && partition < partitions; partition++) {
		struct weir_partition_state row;
		status = store->ops->inspect(store, WEIR_STORE_ROLE_LIMITER, partition, &row, error);
		if (status == WEIR_OK && row.checkpoint > 0 && row.policy_version > newest)
			return weir_fail(
				error, WEIR_INVALID,
				"partition %u was saved under policy %llu, but the newest that the store has is %llu: was it "
				"restored from an older copy? (runbook: store-failed-over)",
				partition, (unsigned long long)row.policy_version, (unsigned long long)newest);
	}
	return status;
}
