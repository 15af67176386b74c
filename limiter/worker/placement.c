/* SPDX-License-Identifier: Apache-2.0 */
/* A table that every worker reads in every turn, without a lock; and the search for a better one. */
#include "limiter/worker/placement.h"

#include "common/base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
	NOBODY = 0,       /* as a holder; otherwise it is a thread + 1 */
	WORTHWHILE = 6,   /* nothing moves unless the highest load that moves can lower falls by at least 1/6 */
	EVEN_ENOUGH = 10, /* two threads that differ by at most 1/10 of the busier one's work are left as they are */
};

struct seat {
	_Atomic uint32_t place, holder;
	uint64_t counted; /* read and set by who becomes, or is, the holder */
};

struct placement {
	uint32_t partitions;
	struct seat seats[];
};

struct placement *placement_new(uint32_t partitions, uint32_t threads)
{
	struct placement *placement = weir_alloc(1, sizeof *placement + partitions * sizeof placement->seats[0]);
	placement->partitions = partitions;
	for (uint32_t partition = 0; partition < partitions; partition++)
		atomic_init(&placement->seats[partition].place, partition % threads);
	return placement;
}

void placement_free(struct placement *placement)
{
	free(placement);
}

uint32_t placement_of(const struct placement *placement, uint32_t partition)
{
	return atomic_load(&placement->seats[partition].place);
}

uint32_t placement_holder(const struct placement *placement, uint32_t partition)
{
	uint32_t holder = atomic_load(&placement->seats[partition].holder);
	return holder != NOBODY ? holder - 1 : placement_of(placement, partition);
}

bool placement_claim(struct placement *placement, uint32_t partition, uint32_t thread, uint64_t *counted)
{
	uint32_t nobody = NOBODY;
	if (!atomic_compare_exchange_strong(&placement->seats[partition].holder, &nobody, thread + 1))
		return false;
	*counted = placement->seats[partition].counted;
	return true;
}

void placement_release(struct placement *placement, uint32_t partition, uint64_t counted)
{
	placement->seats[partition].counted = counted;
	atomic_store(&placement->seats[partition].holder, NOBODY);
}

void placement_move(struct placement *placement, uint32_t partition, uint32_t thread)
{
	atomic_store(&placement->seats[partition].place, thread);
}

/* ---- where partitions should be ---- */

enum thread_state {
	GIVES,
	GIVES_NO_MORE,
	NEVER_GAVE, /* moving none of its partitions would help: most often it has a single large one */
};

struct plan {
	struct placement_load *loads;
	bool *moved; /* by load */
	uint32_t count;
	uint64_t *sums; /* by thread */
	enum thread_state *states;
	uint32_t threads;
};

/* The busiest thread that may still give partitions away; `threads`: none may. */
static uint32_t busiest(const struct plan *plan)
{
	uint32_t found = plan->threads;
	for (uint32_t thread = 0; thread < plan->threads; thread++)
		if (plan->states[thread] == GIVES && (found == plan->threads || plan->sums[thread] > plan->sums[found]))
			found = thread;
	return found;
}

static uint32_t idlest(const struct plan *plan)
{
	uint32_t found = 0;
	for (uint32_t thread = 1; thread < plan->threads; thread++)
		if (plan->sums[thread] < plan->sums[found])
			found = thread;
	return found;
}

/* The partition whose move leaves the busier of the two threads with the least to do; `count`: no move helps. */
static uint32_t find_best(const struct plan *plan, uint32_t from, uint32_t to)
{
	uint32_t best = plan->count;
	uint64_t least = plan->sums[from];
	if (least - plan->sums[to] <= least / EVEN_ENOUGH)
		return best;
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct placement_load *load = &plan->loads[i];
		if (load->thread != from || plan->moved[i])
			continue;
		uint64_t left = plan->sums[from] - load->work, more = plan->sums[to] + load->work;
		uint64_t most = left > more ? left : more;
		if (most < least) {
			least = most;
			best = i;
		}
	}
	return best;
}

/* Moves partitions. @param relieved  set to the work that the first thread to give any had @return how many moved */
static uint32_t move_all(const struct plan *plan, uint64_t *relieved)
{
	uint32_t moves = 0, from;
	while ((from = busiest(plan)) < plan->threads) {
		uint32_t to = idlest(plan), best = find_best(plan, from, to);
		if (best == plan->count) {
			plan->states[from] = moves == 0 ? NEVER_GAVE : GIVES_NO_MORE;
			continue;
		}
		if (moves++ == 0)
			*relieved = plan->sums[from];
		plan->sums[from] -= plan->loads[best].work;
		plan->sums[to] += plan->loads[best].work;
		plan->loads[best].thread = to;
		plan->moved[best] = true;
	}
	return moves;
}

static bool is_worthwhile(const struct plan *plan, uint64_t relieved)
{
	for (uint32_t thread = 0; thread < plan->threads; thread++)
		if (plan->states[thread] != NEVER_GAVE && plan->sums[thread] > relieved - relieved / WORTHWHILE)
			return false;
	return true;
}

uint32_t placement_improve(struct placement_load *loads, uint32_t count, uint32_t threads, const bool *busy)
{
	struct placement_load *before = weir_alloc(count, sizeof *before);
	struct plan plan = {.loads = loads,
	                    .moved = weir_alloc(count, sizeof *plan.moved),
	                    .count = count,
	                    .sums = weir_alloc(threads, sizeof *plan.sums),
	                    .states = weir_alloc(threads, sizeof *plan.states),
	                    .threads = threads};
	for (uint32_t i = 0; i < count; i++) {
		before[i] = loads[i];
		plan.sums[loads[i].thread] += loads[i].work;
	}
	for (uint32_t thread = 0; thread < threads; thread++)
		plan.states[thread] = busy[thread] ? GIVES : GIVES_NO_MORE;
	uint64_t relieved = 0;
	uint32_t moves = move_all(&plan, &relieved);
	if (!is_worthwhile(&plan, relieved)) {
		for (uint32_t i = 0; i < count; i++)
			loads[i] = before[i];
		moves = 0;
	}
	free(before);
	free(plan.moved);
	free(plan.sums);
	free(plan.states);
	return moves;
}
