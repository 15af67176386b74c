/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own words are kept: they name the right, the table or the switch. */
#include "common/base/clock.h"
#include "common/cluster/connect.h"
#include "common/cluster/store_claim.h"
#include "common/diagnosis/server_checks.h"
#include "common/store/mysql/store_mysql.h"
#include "common/store/mysql/store_mysql_failures.h"

#include <stdlib.h>
#include <string.h>

enum { SKEW_MOST_MS = 2000 };

static const char store_check[] = "store";

/* By the client's own words; NULL: it is not the certificate. */
static const char *certificate_remedy(const char *words)
{
	static const struct {
		const char *words, *remedy;
	} all[] = {
		{"certificate has expired", "renew the certificate of the store's server, then FLUSH SSL there"},
		{"not yet valid", "set the clocks right: the certificate of the store's server begins later"},
		{"issuer", "name the authority that signed the certificate of the store's server in \"store.tls_ca\""},
		{"self-signed", "name the authority that signed the certificate of the store's server in \"store.tls_ca\""},
		{"Validation of SSL server certificate",
	     "call the server in \"store.host\" as its certificate does, or renew that with this name"},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcasestr(words, all[i].words) != NULL)
			return all[i].remedy;
	return NULL;
}

/* Whether the number says more than that the server is away: that of TLS does not, where its words name no certificate. */
static bool is_told(const struct weir_mysql_failure *failure)
{
	return failure != NULL && strcmp(failure->runbook, "store-away") != 0 &&
	       strcmp(failure->runbook, "certificates") != 0;
}

static void add_unreadable(const struct weir_check *check, enum weir_status status, const char *words)
{
	const struct weir_mysql_failure *failure = weir_mysql_failure_in(words);
	if (status == WEIR_NEWER)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, store_check,
			"%s\nThis version of weir cannot work on it\ninstall the version of weir that the daemons have "
			"(runbook: what-may-be-restarted)",
			words);
	else if (certificate_remedy(words) != NULL)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "certificates",
			"%s\nNo limiter or archiver that starts now reaches the store; what is connected works until its connection "
			"ends\n%s (runbook: certificates)",
			words, certificate_remedy(words));
	else if (is_told(failure))
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, store_check, "%s\n%s\n%s (runbook: %s)", words,
		                  status == WEIR_INVALID
		                      ? "A limiter or archiver that starts now ends at once"
		                      : "A limiter or archiver that starts now waits for it and does nothing; one "
		                        "that runs judges on in memory what it has",
		                  failure->remedy, failure->runbook);
	else if (status == WEIR_INVALID)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, store_check,
		                  "%s\nA limiter or archiver that starts now ends at once\nname a database of weir's own in "
		                  "\"store.database\" (runbook: store-tables)",
		                  words);
	else
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, store_check,
			"%s\nA limiter judges on in memory what it has, and pauses at half of the topics' retention. No partition can "
			"move, and one that starts waits for the store and judges nothing\nstart the store, and restart no limiter "
			"before; the store's own log says why it ended (runbook: store-away)",
			words);
}

static void add_unwritable(const struct weir_check *check, const char *role, const char *words)
{
	const struct weir_mysql_failure *failure = weir_mysql_failure_in(words);
	weir_findings_add(
		check->findings, WEIR_SEVERITY_PAGE, store_check,
		"%s; the %s cannot write\nNo checkpoint is stored: limiters judge on in memory, and pause at half of "
		"the topics' retention\n%s (runbook: %s)",
		words, role, failure != NULL ? failure->remedy : "look at the log of the store's server",
		failure != NULL ? failure->runbook : "store-away");
}

const char *weir_check_store_remedy(const char *words, const char **runbook)
{
	const struct weir_mysql_failure *failure = weir_mysql_failure_in(words);
	*runbook = failure != NULL ? failure->runbook : "store-away";
	return failure != NULL ? failure->remedy : "start the store";
}

/* @return whether it takes them */
static bool check_role(const struct weir_check *check, struct weir_store *store, int role, const char *name)
{
	struct weir_error error;
	enum weir_status status = weir_store_mysql_try_writes(store, role, &error);
	if (status == WEIR_INVALID)
		add_unwritable(check, name, error.text);
	else if (status != WEIR_OK)
		add_unreadable(check, status, error.text);
	return status == WEIR_OK;
}

void weir_check_writes(const struct weir_check *check, struct weir_store *store, bool limiter, bool archiver)
{
	if ((!limiter || check_role(check, store, WEIR_STORE_ROLE_LIMITER, "limiter")) && archiver)
		(void)check_role(check, store, WEIR_STORE_ROLE_ARCHIVER, "archiver");
}

static void check_clock(const struct weir_check *check, struct weir_store *store)
{
	struct weir_error error;
	int64_t theirs_ms = 0, before_ms = weir_wall_ms();
	if (weir_store_mysql_clock(store, &theirs_ms, &error) != WEIR_OK)
		return;
	int64_t now_ms = weir_wall_ms(), skew_ms = 0;
	if (theirs_ms < before_ms)
		skew_ms = before_ms - theirs_ms;
	else if (theirs_ms > now_ms)
		skew_ms = now_ms - theirs_ms;
	if (llabs(skew_ms) > SKEW_MOST_MS)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "clocks",
			"this machine's clock is %lld s %s that of the store\nTimes of lines and the age of blocks are "
			"judged wrongly where a clock is wrong\nchronyc tracking (or timedatectl) on both machines says "
			"which is wrong (runbook: clock)",
			llabs(skew_ms) / 1000, skew_ms > 0 ? "ahead of" : "behind");
	else
		weir_findings_good(check->findings, "clocks: this machine and the store agree");
}

/* What another cluster's store says of partitions and policies is not this one's. @return whether it is this one's */
static bool check_claim(const struct weir_check *check, struct weir_store *store)
{
	struct weir_error error;
	enum weir_status status = weir_store_check_claim(store, check->config, &error);
	if (status == WEIR_INVALID)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, store_check,
		                  "%s\nNo limiter or archiver with this configuration starts; the other cluster works on\nset "
		                  "\"bus.prefix\" or \"store.database\" to this cluster's own (runbook: prefix-changed)",
		                  error.text);
	else if (status != WEIR_OK)
		add_unreadable(check, status, error.text);
	return status == WEIR_OK;
}

bool weir_check_store(const struct weir_check *check, bool limiter, bool archiver, struct weir_store **store)
{
	struct weir_text missing = {0};
	struct weir_error error;
	size_t before = weir_findings_count(check->findings, WEIR_SEVERITY_NOTE);
	*store = NULL;
	enum weir_status status =
		weir_connect_existing_store(check->config, check->wait_ms, NULL, check->log, &missing, store, &error);
	if (status != WEIR_OK)
		add_unreadable(check, status, error.text);
	else if (*store == NULL)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, store_check,
		                  "the store lacks %.*s\nNothing is judged yet\nweir policy apply %s (runbook: nothing-judged)",
		                  (int)missing.length, missing.at, check->config_words);
	weir_text_deinit(&missing);
	if (*store == NULL)
		return status != WEIR_IO;
	if (!check_claim(check, *store)) {
		(*store)->ops->close(*store);
		*store = NULL;
		return true;
	}
	weir_check_writes(check, *store, limiter, archiver);
	if (weir_findings_count(check->findings, WEIR_SEVERITY_NOTE) == before)
		weir_findings_good(check->findings, "store: it answers, and takes what is written");
	check_clock(check, *store);
	return true;
}
