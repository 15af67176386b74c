/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A partition's way through its states, in order: taking, working, leaving; or
 * parked if it cannot continue.
 *
 * Taking, storing and loading are checkpoint I/O's work; a partition is released
 * only when every job about it has been answered. Its epoch in the store alone
 * decides who owns it. Learning late that another process owns it costs only work,
 * which the store refuses.
 */
#include "limiter/worker/partition.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "limiter/worker/partition_base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FENCED_RETRY_MS = 15000,  /* for one that another process took, but that is still assigned to this one */
	ERROR_RETRY_MS = 30000,   /* for one with an error that a person must fix */
	FENCED_APART_MS = 300000, /* one that is fenced again within this time is not merely moved */
	BACKFILL_SEGMENTS = 16,   /* read at once: few enough to delay nothing */
	LOAD_AHEAD_MS = 2000,     /* for so long a checkpoint that is due waits for what checks wait for */
	LOAD_WANTED_MS = 2000,    /* and for so long after the last check that waits for it */
};

void partition_init(struct partition *partition, uint32_t number, const struct partition_tools *tools)
{
	partition->number = number;
	partition->tools = tools;
	partition_checks_init(&partition->checks, number, tools->publisher, tools->answering);
}

/* ---- taking ---- */

/* Not while another thread still has it: that one releases it first. */
static bool may_take(struct partition *partition, int64_t now_ms)
{
	const struct worker_core *core = partition->tools->core;
	return partition->wanted && core->generation > 0 && now_ms >= partition->retry_ms &&
	       publisher_works(partition->tools->publisher) &&
	       placement_claim(core->options.placement, partition->number, core->options.number, &partition->counted);
}

/* The caller frees. */
static char *name_machine(void)
{
	char name[256];
	if (gethostname(name, sizeof name) != 0)
		snprintf(name, sizeof name, "?");
	name[sizeof name - 1] = '\0';
	return weir_copy(name, strlen(name));
}

static void take(struct partition *partition, int64_t now_ms)
{
	const struct worker_core *core = partition->tools->core;
	struct checkpoint_job *job = partition_job(partition, CHECKPOINT_TAKE);
	job->registry = core->options.registry;
	job->assignment = core->options.assignment;
	if (!core->options.standalone && !core->options.config->archiver.enabled)
		job->words = name_machine();
	job->partition_stored = weir_alloc(1, sizeof *job->partition_stored);
	job->partition_stored->lateness_ms = core->options.config->limiter.lateness_ms;
	if (partition->asked_ms == 0)
		partition->asked_ms = now_ms;
	job->asked_ms = partition->asked_ms;
	partition->generation = core->generation;
	partition_go(partition, PARTITION_TAKING);
	partition_submit(partition, job);
}

/* How the log fails a partition for good. */
enum fault_of_log { LOG_HAS_GAP, LOG_IS_DAMAGED, LOG_IS_ANEW };

/*
 * Says what is missing between a place and the log, what that means, and what a person can do about it; only a person
 * can decide that.
 *
 * @param error  what the bus says of it
 */
static void explain(const struct partition *partition, uint64_t offset, enum fault_of_log fault,
                    struct weir_error *error)
{
	static const struct {
		const char *first, *continues, *anchor;
	} remedies[] = {
		[LOG_HAS_GAP] = {"", "after what is lost", "gap"},
		[LOG_IS_DAMAGED] = {"Delete the records up to it (kafka-delete-records); then ", "after what is lost", "gap"},
		[LOG_IS_ANEW] = {"", "with the first message that the topic has; what was judged of it does not count again",
	                     "topic-recreated"},
	};
	const struct worker_core *core = partition->tools->core;
	uint64_t first, next;
	struct weir_error what = *error, unknown;
	if (fault == LOG_HAS_GAP &&
	    core->bus->extent(core->options.bus, WEIR_TOPIC_EVENTS, partition->number, &first, &next, &unknown) ==
	        WEIR_OK &&
	    offset < first)
		(void)weir_fail(&what, WEIR_INVALID,
		                "%llu messages of %s.events (offsets %llu to %llu) were deleted before they were judged",
		                (unsigned long long)(first - offset), core->options.config->bus.prefix,
		                (unsigned long long)offset, (unsigned long long)first - 1);
	(void)weir_fail(error, WEIR_INVALID,
	                "%s. Nothing is judged in it meanwhile, so nobody new is blocked. %s`weir recover --accept-gap "
	                "%s --partition %u --yes` (or --all) continues %s (runbook: %s)",
	                what.text, remedies[fault].first, weir_config_words(core->options.config), partition->number,
	                remedies[fault].continues, remedies[fault].anchor);
}

/* Creates a lane from the checkpoint that was taken, and assigns its messages from there on. */
static enum weir_status open_lane(const struct partition *partition, struct checkpoint_job *job, struct lane **out)
{
	const struct partition_tools *tools = partition->tools;
	const struct worker_core *core = tools->core;
	struct shard_options options = {
		.partition = partition->number,
		.partitions = core->options.bus->partitions,
		.seed = core->options.seed,
		.ceiling_bytes = core->ceiling_bytes,
		.checks_max = (uint32_t)core->options.config->checks.in_flight,
		.lateness_ms = core->options.config->limiter.lateness_ms,
		.swap_directory = core->options.swap_directory,
	};
	struct lane *lane = lane_new(&options, core->options.registry, core->options.first_policy);
	enum weir_status status = checkpoint_restore(job->partition_stored, &job->state, lane, &job->error);
	if (status == WEIR_OK) {
		status = core->bus->resume(core->consumer, partition->number, job->state.next_offset, &lane_place(lane)->last,
		                           &job->error);
		if (status == WEIR_INVALID || status == WEIR_ANEW) {
			explain(partition, job->state.next_offset, status == WEIR_ANEW ? LOG_IS_ANEW : LOG_HAS_GAP, &job->error);
			status = WEIR_INVALID;
		}
	}
	if (status != WEIR_OK) {
		view_set_place(tools->view, partition->number, lane_next_offset(lane), shard_clock_ms(lane_shard(lane)), 0);
		lane_free(lane);
		return status;
	}
	*out = lane;
	return WEIR_OK;
}

/* Begins where the previous owner's checkpoint ended. Messages sent for it before may still be unacknowledged. */
static enum weir_status begin(struct partition *partition, struct checkpoint_job *job)
{
	const struct partition_tools *tools = partition->tools;
	struct worker_core *core = tools->core;
	enum weir_status status = open_lane(partition, job, &partition->lane);
	if (status != WEIR_OK)
		return status;
	weir_histogram_observe(&core->stats.take, &weir_latency_scale,
	                       (double)(weir_monotonic_ms() - partition->asked_ms) / 1000.0);
	checkpointing_begin(&partition->checkpointing, job->partition_stored, &job->state);
	partition->asked_ms = partition->remind_due_ms = partition->policy_due_ms = 0;
	partition->backfill = BACKFILL_IDLE;
	partition_count_begin(partition);
	partition_go(partition, PARTITION_LIVE);
	partition_checks_open(&partition->checks, partition->lane, partition->checkpointing.taken.epoch);
	weir_counter_add(&core->stats.taken, 1);
	return WEIR_OK;
}

/* ---- leaving ---- */

static void announce(struct partition *partition, bool left)
{
	struct checkpoint_job *job = partition_job(partition, CHECKPOINT_ANNOUNCE);
	job->left = left;
	partition_submit(partition, job);
}

/* Begins leaving, with a last checkpoint of what was judged. Messages that are only received are the next owner's. */
static void leave(struct partition *partition)
{
	const struct worker_core *core = partition->tools->core;
	bool loads = partition_state_loads(partition->state);
	announce(partition, false);
	core->bus->unassign(core->consumer, partition->number);
	partition_checks_leave(&partition->checks);
	partition_cut_queue(partition, loads ? 1 : 0);
	partition->leave_end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
	partition_go(partition, loads ? PARTITION_FINISHING : PARTITION_LEAVING);
}

/* Frees the lane once every answer has come. When the worker ends, lanes stay, so that their counts can be read. */
static void release(struct partition *partition)
{
	const struct partition_tools *tools = partition->tools;
	if (partition->jobs > 0 || partition->checkpointing.state == CHECKPOINTING_STORING ||
	    tools->core->phase == WORKER_ENDING)
		return;
	partition_cut_queue(partition, 0);
	partition_count_end(partition);
	lane_free(partition->lane);
	partition->lane = NULL;
	partition_go(partition, partition->fault != WEIR_OK ? PARTITION_PARKED : PARTITION_EMPTY);
}

void partition_drop(struct partition *partition, int64_t retry_ms)
{
	struct worker_core *core = partition->tools->core;
	core->bus->unassign(core->consumer, partition->number);
	partition_checks_close(&partition->checks);
	checkpointing_give_up(&partition->checkpointing, partition->lane);
	partition->retry_ms = retry_ms;
	weir_counter_add(&core->stats.given_up, 1);
	partition_go(partition, PARTITION_RELEASING);
	release(partition);
}

/* Whether its time to leave is up. One that will be parked has no limit while it is wanted, as no other owner waits. */
static bool is_late(const struct partition *partition, int64_t now_ms)
{
	return now_ms >= partition->leave_end_ms && !(partition->fault != WEIR_OK && partition->wanted);
}

bool partition_is_unstored(const struct partition *partition)
{
	return partition->tools->core->phase == WORKER_ENDING && partition->lane != NULL &&
	       partition_state_works(partition->state) &&
	       !checkpointing_is_done(&partition->checkpointing, partition->lane);
}

/* Leaving: once all is stored, checks are in the log, and that is announced, it is dropped. */
static void go_out(struct partition *partition, int64_t now_ms)
{
	bool announced = partition->state == PARTITION_ANNOUNCING && partition->jobs == 0;
	if (announced || is_late(partition, now_ms)) {
		if (!announced && partition_is_unstored(partition))
			weir_counter_add(&partition->tools->core->stats.unstored, 1);
		partition_drop(partition, partition->fault != WEIR_OK ? now_ms + ERROR_RETRY_MS : 0);
	} else if (partition->state == PARTITION_LEAVING &&
	           checkpointing_is_done(&partition->checkpointing, partition->lane) &&
	           partition_checks_are_safe(&partition->checks)) {
		partition_go(partition, PARTITION_ANNOUNCING);
		announce(partition, true);
	}
}

/* ---- when it cannot continue ---- */

/* A partition's error ends a standalone worker, as no other process could continue with the partition. */
static bool ends_worker(const struct partition *partition, enum weir_status status, const struct weir_error *error)
{
	struct worker_core *core = partition->tools->core;
	if (core->options.standalone)
		core_fail(core, status, error);
	return core->status != WEIR_OK;
}

/*
 * What the words of a fault leave out: what it costs, and where the runbook has what to do. Those about the log have both
 * (see explain()); every other fault that only a person can end is of what the store has.
 */
static void complete(enum weir_status status, struct weir_error *error)
{
	struct weir_error what = *error;
	if (status == WEIR_FENCED || strstr(error->text, "(runbook: ") != NULL)
		return;
	(void)weir_fail(error, what.status,
	                "%.300s. Nothing is judged in it meanwhile, so nobody new is blocked (runbook: %s)", what.text,
	                status == WEIR_NEWER ? "what-may-be-restarted" : "state-damaged");
}

/* For announcements to tell, of all partitions together. @param epoch  under which it was taken; 0: it was not */
static void note_fault(struct partition *partition, enum weir_status status, uint64_t epoch,
                       const struct weir_error *error)
{
	struct worker_core *core = partition->tools->core;
	partition->fault = status;
	if (status != WEIR_FENCED) {
		partition_say_stopped(partition, epoch, error->text);
		return;
	}
	int64_t now_ms = weir_monotonic_ms();
	partition->fenced = now_ms - partition->fenced_ms < FENCED_APART_MS ? partition->fenced + 1 : 1;
	partition->fenced_ms = now_ms;
	view_set_fenced(partition->tools->view, partition->number, partition->fenced);
	weir_counter_add(&core->stats.fenced, 1);
}

/* Parks the partition. WEIR_FENCED: it has another owner; otherwise an error that does not go away by itself. */
static void park(struct partition *partition, enum weir_status status, uint64_t epoch, struct weir_error *error)
{
	complete(status, error);
	if (ends_worker(partition, status, error))
		return;
	note_fault(partition, status, epoch, error);
	int64_t retry_ms = weir_monotonic_ms() + (status == WEIR_FENCED ? FENCED_RETRY_MS : ERROR_RETRY_MS);
	if (partition_state_works(partition->state)) {
		partition_drop(partition, retry_ms);
		return;
	}
	partition->retry_ms = retry_ms;
	partition_go(partition, PARTITION_PARKED);
}

/*
 * Checkpoint I/O was refused. If the partition is still ours and the store has lost a checkpoint, there is no other
 * owner to wait for: the partition is taken again at once, and what was judged since is judged again.
 */
static void be_refused(struct partition *partition, struct checkpoint_job *job, enum weir_status status)
{
	struct worker_core *core = partition->tools->core;
	if (!job->lost) {
		park(partition, status, job->epoch, &job->error);
	} else if (core->status == WEIR_OK) {
		weir_fault_raise(
			&core->lost, core->options.log, "limiter",
			"the store has lost the newest checkpoint of partition %u (%s). No verdict is lost: the partition "
			"is judged again from the latest checkpoint that the store has. If no failover was planned, look "
			"whether the store was restored from a copy, or a replica lags (runbook: store-failed-over)",
			partition->number, job->error.text);
		partition_drop(partition, 0);
	}
}

/*
 * What was judged before a gap is stored first, as the log may no longer have it to be judged again. But if the log
 * ends before the gap, or its extent is unknown, nothing is stored: a log that lost its end no longer has what was
 * judged, and its state would be wrong. A log that was made anew and has grown past the place is another matter: what
 * was judged of the old one was published.
 */
void partition_meet_gap(struct partition *partition, const struct weir_message *at, struct weir_error *error)
{
	const struct worker_core *core = partition->tools->core;
	if (!partition_state_receives(partition->state) || ends_worker(partition, error->status, error))
		return;
	uint64_t first, next;
	struct weir_error unknown;
	bool known =
		core->bus->extent(core->options.bus, WEIR_TOPIC_EVENTS, partition->number, &first, &next, &unknown) == WEIR_OK;
	bool inside = known && first <= at->offset && at->offset <= next;
	explain(partition, at->offset,
	        error->status == WEIR_ANEW ? LOG_IS_ANEW
	        : inside                   ? LOG_IS_DAMAGED
	                                   : LOG_HAS_GAP,
	        error);
	if (known && at->offset <= next) {
		note_fault(partition, WEIR_INVALID, partition->checkpointing.taken.epoch, error);
		leave(partition);
	} else {
		park(partition, WEIR_INVALID, partition->checkpointing.taken.epoch, error);
	}
}

/*
 * A parked partition is freed when it is no longer wanted. It is tried again when the assignment has a newer generation
 * than when it was taken, and otherwise at intervals: the other process may have taken it by mistake, because it
 * learned late of a rebalance, and dropped it; or a person may have mended the log.
 */
static void try_again(struct partition *partition, int64_t now_ms)
{
	bool due = !partition->wanted || partition->tools->core->generation > partition->generation ||
	           now_ms >= partition->retry_ms;
	if (!due)
		return;
	partition->retry_ms = 0;
	partition->fault = WEIR_OK;
	partition_go(partition, PARTITION_EMPTY);
}

/*
 * Another has taken it, perhaps by mistake, and this one would learn of it by its next checkpoint alone. Where nothing is
 * counted there is none, and whoever looks for the owner in the store finds nobody.
 */
static void be_told_of_another(struct partition *partition)
{
	struct weir_error error;
	(void)weir_fail(&error, WEIR_FENCED, "another process has taken partition %u", partition->number);
	park(partition, WEIR_FENCED, 0, &error);
}

/* ---- each turn ---- */

void partition_step(struct partition *partition, int64_t now_ms)
{
	switch (partition->state) {
	case PARTITION_EMPTY:
		if (may_take(partition, now_ms))
			take(partition, now_ms);
		else if (!partition->wanted)
			partition->asked_ms = 0;
		break;
	case PARTITION_LIVE:
	case PARTITION_LOADING:
	case PARTITION_HELD:
	case PARTITION_HALTED:
		if (!partition->wanted)
			leave(partition);
		else if (partition_checks_are_lost(&partition->checks))
			be_told_of_another(partition);
		break;
	case PARTITION_FINISHING:
	case PARTITION_LEAVING:
	case PARTITION_ANNOUNCING: go_out(partition, now_ms); break;
	case PARTITION_RELEASING: release(partition); break;
	case PARTITION_PARKED: try_again(partition, now_ms); break;
	default: break; /* TAKING: the answer moves it on */
	}
}

/* Submits background reading of segments that no message needs yet, a few at a time. */
static void fill_back(struct partition *partition)
{
	uint32_t segments[BACKFILL_SEGMENTS];
	if (partition->backfill != BACKFILL_IDLE || !partition_state_receives(partition->state) ||
	    partition_state_loads(partition->state) || core_is_to_end(partition->tools->core))
		return;
	uint32_t count = shard_unread(lane_shard(partition->lane), segments, BACKFILL_SEGMENTS);
	if (count == 0) {
		partition->backfill = BACKFILL_COMPLETE;
		return;
	}
	struct checkpoint_job *job = partition_load_job(partition, segments, count);
	job->later = true;
	partition->backfill = BACKFILL_READING;
	partition_submit(partition, job);
}

/* Submits reading of the segments that checks wait for. Messages are judged meanwhile. */
static void load_for_checks(struct partition *partition)
{
	uint32_t segments[SHARD_MISSING_MOST];
	uint32_t count = partition_checks_missing(&partition->checks, segments);
	if (count == 0)
		return;
	struct checkpoint_job *job = partition_load_job(partition, segments, count);
	job->checks = true;
	partition->checks.loading = true;
	partition_submit(partition, job);
}

/* Whether somebody still wants what is loaded for checks: whoever was told that there is no answer yet asks again soon. */
static bool load_is_wanted(const struct partition_checks *checks, int64_t now_ms)
{
	return now_ms - checks->wanted_ms < LOAD_WANTED_MS;
}

/*
 * Whether a checkpoint waits until checks have what they wait for. Where checkpoints follow one another faster than the store reads,
 * each load would be outdated when it comes. Not where room or the owner's leaving waits for the checkpoint.
 */
static bool load_goes_first(const struct partition *partition, int64_t now_ms)
{
	const struct partition_checks *checks = &partition->checks;
	int64_t interval_ms = partition->tools->core->options.config->limiter.checkpoint_interval_ms;
	return checks->loading && checks->outdated && load_is_wanted(checks, now_ms) &&
	       partition->state == PARTITION_LIVE && now_ms - partition->checkpointing.cut_ms < interval_ms + LOAD_AHEAD_MS;
}

void partition_checkpoint(struct partition *partition, int64_t now_ms)
{
	const struct worker_core *core = partition->tools->core;
	struct checkpointing *checkpointing = &partition->checkpointing;
	if (!partition_state_works(partition->state))
		return;
	bool due = !partition_state_receives(partition->state) ||
	           checkpointing_is_due(checkpointing, partition->lane,
	                                core->options.config->limiter.checkpoint_interval_ms, now_ms);
	if (due && !partition_state_loads(partition->state) && !load_goes_first(partition, now_ms))
		checkpointing_cut(checkpointing, partition->tools->publisher, partition->lane, now_ms);
	checkpointing_go_on(checkpointing, partition->tools->publisher, partition->lane, now_ms);
	if (partition->state == PARTITION_HELD && !shard_is_full(lane_shard(partition->lane)) &&
	    !checkpointing_is_overdue(checkpointing, partition->lane, atomic_load(&core->age_limit_ms)))
		partition_resume(partition); /* the cut alone may make room, before it is stored */
	load_for_checks(partition);
	fill_back(partition);
	partition_ask_for_policy(partition, now_ms);
}

void partition_remind(struct partition *partition, int64_t now_ms)
{
	int64_t remind_ms = atomic_load(&partition->tools->core->remind_ms);
	if (partition->remind_due_ms > now_ms + remind_ms)
		partition->remind_due_ms = now_ms + remind_ms; /* it has become shorter */
	if (!partition_state_receives(partition->state) || now_ms < partition->remind_due_ms)
		return;
	partition->remind_due_ms = now_ms + remind_ms;
	output_remind(partition->tools->output, partition->lane);
}

bool partition_is_owed(const struct partition *partition)
{
	return partition->jobs > 0 || partition->checkpointing.state == CHECKPOINTING_STORING ||
	       !publisher_is_acknowledged(partition->tools->publisher, partition->number);
}

/* ---- answers ---- */

static void be_stored(struct partition *partition, struct checkpoint_job *job)
{
	checkpointing_answered(&partition->checkpointing, partition->lane, job);
	if (!partition_state_works(partition->state))
		return;
	if (job->status != WEIR_OK) {
		be_refused(partition, job, job->status);
		return;
	}
	checkpointing_advance(&partition->checkpointing, partition->tools->core, job);
	partition_checks_stored(&partition->checks, job->cut.state.next_offset);
	if (partition_state_loads(partition->state))
		return;
	checkpointing_clean(partition->lane);
	if (partition->state == PARTITION_HELD)
		partition_resume(partition); /* at least one message, or a ceiling below a frame would stop it for ever */
}

/*
 * What was read while messages were judged is as of the checkpoint that was current then. If another one was stored since, it
 * may hold newer versions of buckets that have left memory, so the segments are read again.
 */
static bool is_outdated(const struct partition *partition, const struct checkpoint_job *job)
{
	return (job->later || job->checks) && job->stored != partition->checkpointing.stored;
}

/* Reads the same once more. @return false: nobody wants it any more */
static bool load_again(struct partition *partition, const struct checkpoint_job *job)
{
	if (!job->checks || !partition->checks.loading || !load_is_wanted(&partition->checks, weir_monotonic_ms()) ||
	    !partition_state_receives(partition->state))
		return false;
	struct checkpoint_job *again = partition_load_job(partition, job->segments, job->segment_count);
	again->checks = partition->checks.outdated = true;
	partition_submit(partition, again);
	return true;
}

static void be_loaded(struct partition *partition, struct checkpoint_job *job)
{
	enum weir_status status = job->status;
	if (job->later)
		partition->backfill = BACKFILL_IDLE;
	if (!partition_state_works(partition->state))
		return;
	if (status == WEIR_OK && is_outdated(partition, job) && load_again(partition, job))
		return;
	if (status == WEIR_OK && !is_outdated(partition, job))
		status = checkpoint_load(partition->lane, job->segments, job->segment_count, &job->blobs, &job->error);
	if (status != WEIR_OK)
		be_refused(partition, job, status);
	else if (job->kind == CHECKPOINT_POLICIES)
		partition_policies_read(partition);
	else if (job->checks)
		partition_checks_loaded(&partition->checks);
	else if (!job->later && !job->more)
		partition_resume(partition);
}

static void be_taken(struct partition *partition, struct checkpoint_job *job)
{
	enum weir_status status = job->status;
	if (status == WEIR_OK && (!partition->wanted || !publisher_works(partition->tools->publisher)))
		status = WEIR_END;
	if (status == WEIR_OK)
		status = begin(partition, job);
	if (status == WEIR_OK)
		return;
	if (status == WEIR_INVALID || status == WEIR_NEWER) {
		park(partition, status, job->partition_stored->epoch, &job->error);
		return;
	}
	int64_t wait_ms = status == WEIR_AGAIN ? job->retry_ms : status == WEIR_END ? 0 : WORKER_RETRY_MS;
	partition->retry_ms = weir_monotonic_ms() + wait_ms;
	partition_go(partition, PARTITION_EMPTY);
}

void partition_take_answer(struct partition *partition, struct checkpoint_job *job)
{
	if (job->kind != CHECKPOINT_SAVE)
		partition->jobs--;
	switch (job->kind) {
	case CHECKPOINT_SAVE: be_stored(partition, job); break;
	case CHECKPOINT_TAKE: be_taken(partition, job); break;
	case CHECKPOINT_ANNOUNCE: /* only a hint to the next owner: its outcome does not matter */
	case CHECKPOINT_STOPPED: break;
	default: be_loaded(partition, job); break;
	}
}

/* ---- the end ---- */

void partition_deinit(struct partition *partition)
{
	partition_cut_queue(partition, 0);
	partition_checks_deinit(&partition->checks);
	if (partition->lane == NULL)
		return;
	checkpointing_give_up(&partition->checkpointing, partition->lane);
	partition_count_end(partition);
	lane_free(partition->lane);
}
