/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By what the group of limiters says and by what `weir doctor` measures. Who may not describe the group is told by the
 * second alone: limiters that are away are then found once their lag is too old for one that is running.
 */
#include "deploy/weir/inspect/unjudged.h"

#include "common/base/clock.h"
#include "common/bus/kafka/bus_kafka.h"
#include "common/json/units.h"
#include "limiter/daemon/limiter_check.h"

#include <stdio.h>

enum { MEMBERS_MS = 3000, POSITIONS_MS = 6000 };

static void count_member(void *context, const char *client, const char *host, const uint32_t *partitions, size_t count)
{
	(void)client;
	(void)host;
	(void)partitions;
	(void)count;
	++*(size_t *)context;
}

static void read_positions(const struct backend *backend, struct limiter_state *state)
{
	struct weir_findings findings = {0};
	struct weir_check check = {.config = backend->config,
	                           .config_words = "",
	                           .wait_ms = backend->wait_ms,
	                           .end_ms = weir_monotonic_ms() + POSITIONS_MS,
	                           .log = &backend->log,
	                           .findings = &findings};
	limiter_check_positions(&check, backend->bus, backend->store, state);
	weir_findings_deinit(&findings); /* which are `weir doctor`'s to tell */
}

static void put_words(struct unjudged *unjudged, const struct limiter_state *state)
{
	char age[24];
	int length = 0;
	unsigned long long behind = state->behind;
	if (unjudged->nobody)
		length = snprintf(unjudged->words, sizeof unjudged->words, "no limiter is running");
	const char *and = length > 0 ? ", and " : "";
	char *at = unjudged->words + length;
	size_t room = sizeof unjudged->words - (size_t)length;
	if (!state->asked)
		snprintf(at, room, "%show much of the log is not judged yet is not known", and);
	else if (state->stuck > 0)
		snprintf(at, room, "%s%u partition%s of the log %s stopped", and, state->stuck, state->stuck == 1 ? "" : "s",
		         state->stuck == 1 ? "is" : "are");
	else if (behind > 0 && state->oldest_ms >= 1000)
		snprintf(at, room, "%s%llu message%s of the log %s not judged yet, the oldest for %s", and, behind,
		         behind == 1 ? "" : "s", behind == 1 ? "is" : "are",
		         weir_format_duration(state->oldest_ms / 1000 * 1000, age, sizeof age));
	else if (behind > 0)
		snprintf(at, room, "%s%llu message%s of the log %s not judged yet", and, behind, behind == 1 ? "" : "s",
		         behind == 1 ? "is" : "are");
}

void unjudged_look(const struct backend *backend, struct unjudged *unjudged)
{
	size_t members = 0;
	struct limiter_state state;
	struct weir_error error;
	*unjudged = (struct unjudged){.nobody = false};
	if (backend->kind != BACKEND_CLUSTER || backend->bus == NULL || backend->store == NULL)
		return;
	unjudged->nobody =
		weir_bus_kafka_members(backend->bus, "limiter", MEMBERS_MS, count_member, &members, &error) == WEIR_OK &&
		members == 0;
	read_positions(backend, &state);
	bool behind =
		unjudged->nobody ? !state.asked || state.behind > 0 : state.oldest_ms > limiter_check_late_ms(backend->config);
	unjudged->waits = state.stuck > 0 || behind;
	if (unjudged->nobody || unjudged->waits)
		put_words(unjudged, &state);
}
