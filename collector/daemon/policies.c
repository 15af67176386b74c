/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The topic is read to its end before the first policy is returned, because a later policy would replace it at once.
 * If a policy cannot be used, the previous one stays in use and this collector is not ready.
 */
#include "collector/daemon/policies.h"

#include "collector/follow/inputs.h"
#include "collector/follow/policy_doubts.h"
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/stop.h"
#include "common/cluster/policy_feed.h"
#include "common/exempt/exempt_fetch.h"
#include "common/exempt/exempt_watch.h"
#include "common/exempt/verified_hosts.h"

#include <stdlib.h>
#include <string.h>

struct policies {
	const struct weir_config *config;
	const struct weir_log *log;
	struct weir_policy_feed *feed;
	uint64_t judged; /* the newest version that was looked at */
	struct weir_exempt_lists *lists;
	struct weir_exempt_fetch *fetch; /* NULL: nothing is fetched */
	char *folder;                    /* of what it keeps */
	struct weir_exempt_watch exempt; /* of that version's lists */
	struct weir_fault reading, waiting;
	/* The newest versions of each kind; 0: none. Equal: one of its lists was missing at first. Refused is, too, what a
	 * newer weir wrote: the least version that it can have. */
	_Atomic uint64_t given, refused;
};

enum weir_status policies_new(const struct weir_config *config, struct weir_bus *bus, const char *folder,
                              const struct weir_log *log, struct policies **out, struct weir_error *error)
{
	struct policies *policies = weir_alloc(1, sizeof *policies);
	policies->config = config;
	policies->log = log;
	struct weir_policy_feed_options feed = {.bus = bus, .log = log, .part = "policy"};
	enum weir_status status = weir_policy_feed_new(&feed, &policies->feed, error);
	if (status != WEIR_OK) {
		free(policies);
		return status;
	}
	policies->folder = folder != NULL ? weir_copy(folder, strlen(folder)) : NULL;
	const struct weir_exempt_kept_options kept = {.folder = policies->folder,
	                                              .interval_ms = config->collector.list_interval_ms,
	                                              .resolver = config->collector.resolver,
	                                              .log = log};
	weir_exempt_open(&kept, &policies->lists, &policies->fetch);
	*out = policies;
	return WEIR_OK;
}

void policies_free(struct policies *policies)
{
	if (policies == NULL)
		return;
	weir_policy_feed_free(policies->feed);
	weir_exempt_watch_deinit(&policies->exempt);
	weir_exempt_fetch_free(policies->fetch);
	weir_exempt_lists_free(policies->lists);
	free(policies->folder);
	free(policies);
}

/* Whether the sources can be matched by it. */
static bool usable(struct policies *policies, const struct weir_policy *policy)
{
	struct weir_error error;
	struct policy_doubts_log to = {.log = policies->log, .policy = policy};
	enum weir_status status = inputs_check_policy(policies->config, policy, policies->lists, &error);
	if (status == WEIR_OK)
		status = inputs_each_lack(policies->config, policy, policies->lists, policy_doubt_log, &to, &error);
	if (status == WEIR_OK) {
		policy_doubts(policy, NULL, policies->lists, policy_doubt_log, &to);
		return true;
	}
	weir_log(
		policies->log, WEIR_LOG_ERROR, "policy",
		"cannot use policy %llu: %s. %s. Mend the policy or what it names, and run `weir policy apply %s` (runbook: "
		"policy-rollback)",
		(unsigned long long)policy->version, error.text,
		atomic_load(&policies->given) > 0
			? "The previous one stays in use here, while limiters work by the new one"
			: "Nothing is read, so nobody is blocked by these logs, which keep their lines",
		weir_config_zones_words(policies->config));
	atomic_store(&policies->refused, policy->version);
	return false;
}

static void read_on(struct policies *policies, int timeout_ms)
{
	struct weir_error error;
	if (weir_policy_feed_poll(policies->feed, timeout_ms, &error) == WEIR_OK) {
		weir_fault_clear(&policies->reading, policies->log, "policy");
		if (weir_policy_feed_beyond(policies->feed) > atomic_load(&policies->refused))
			atomic_store(&policies->refused, weir_policy_feed_beyond(policies->feed));
	} else {
		weir_fault_raise(&policies->reading, policies->log, "policy",
		                 "cannot read the policies: %s. The policy in use stays. Retrying (runbook: broker-away)",
		                 error.text);
	}
}

const struct weir_policy *policies_poll(struct policies *policies, int timeout_ms)
{
	read_on(policies, timeout_ms);
	const struct weir_policy *newest = weir_policy_feed_newest(policies->feed);
	if (!weir_policy_feed_caught_up(policies->feed))
		return NULL;
	if (newest == NULL) {
		weir_fault_raise(
			&policies->waiting, policies->log, "policy",
			"no policy yet: run `weir policy apply %s`. Nothing is read until there is one; logs keep their lines "
			"(runbook: nothing-judged)",
			weir_config_zones_words(policies->config));
		return NULL;
	}
	weir_fault_clear(&policies->waiting, policies->log, "policy");
	int64_t now_ms = weir_monotonic_ms();
	bool newer = newest->version > policies->judged, changed = weir_exempt_watch_changed(&policies->exempt, now_ms);
	if (!newer && !changed)
		return NULL;
	policies->judged = newest->version;
	if (newer)
		weir_exempt_fetch_set(policies->fetch, newest, WEIR_EXEMPT_FETCH_WAIT_MS, weir_stop_flag());
	bool judged = usable(policies, newest);
	weir_exempt_watch_set(&policies->exempt, newest, policies->lists, now_ms);
	if (!judged) {
		weir_exempt_watch_again(&policies->exempt, now_ms);
		return NULL;
	}
	atomic_store(&policies->given, newest->version);
	return newest;
}

void policies_forget(struct policies *policies, uint64_t version)
{
	const struct weir_policy *newest = weir_policy_feed_newest(policies->feed);
	if (newest != NULL && newest->version == version)
		weir_exempt_lists_prune(policies->lists, newest);
	weir_policy_feed_forget(policies->feed, version);
}

struct weir_exempt_lists *policies_lists(const struct policies *policies)
{
	return policies->lists;
}

bool policies_known(const struct policies *policies)
{
	return weir_policy_feed_caught_up(policies->feed);
}

bool policies_ready(const struct policies *policies, struct weir_text *why)
{
	uint64_t given = atomic_load(&policies->given), refused = atomic_load(&policies->refused);
	if (refused > given)
		weir_text_printf(why, "cannot use policy %llu: see the log\n", (unsigned long long)refused);
	else if (given == 0)
		weir_text_printf(why, "no policy yet: run `weir policy apply %s`\n", weir_config_zones_words(policies->config));
	return given > 0 && given >= refused;
}

enum { NEWEST_VERSION, BAD_MESSAGES, METRIC_COUNT };

static const struct weir_metric metrics[METRIC_COUNT] = {
	[NEWEST_VERSION] =
		{"weir_policy_newest_version", WEIR_GAUGE, "version", WEIR_NO_LABELS,
         "The newest version on the policy topic; 0 if there is none. If it stays above "
         "weir_policy_version, this collector cannot use that policy: see the log. Of a policy that a newer "
         "weir applied, the least version that it can have."},
	[BAD_MESSAGES] = {"weir_policy_bad_messages_total", WEIR_COUNTER, "messages",
                      WEIR_LABELS({"reason",
                                   "`foreign`, no policy: something other than weir writes there, or `newer`, a "
                                   "policy of a newer weir, which this program cannot read until it is upgraded"}),
                      "Messages on the policy topic that were skipped. See the log for their offsets."},
};

const struct weir_metric_table policies_metric_table = {metrics, METRIC_COUNT};

void policies_metrics(const struct policies *policies, struct weir_text *page)
{
	uint64_t given = atomic_load(&policies->given), refused = atomic_load(&policies->refused);
	weir_metrics_gauge(page, &metrics[NEWEST_VERSION], (double)(refused > given ? refused : given));
	weir_metrics_family(page, &metrics[BAD_MESSAGES]);
	for (enum weir_policy_skip why = 0; why < WEIR_POLICY_SKIPS; why++) {
		const struct weir_span reason = weir_span_of(weir_policy_skip_word(why));
		weir_metrics_uint(page, &metrics[BAD_MESSAGES], &reason, weir_policy_feed_skipped(policies->feed, why));
	}
	weir_exempt_fetch_metrics(policies->fetch, page);
	weir_verified_hosts_metrics(weir_exempt_lists_hosts(policies->lists), page);
}
