/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request comes from an abuser, from a user in a burst, or from any user by
 * Zipf's law. Abusers take turns: each sends a run of requests long enough to
 * break a limit of 10 in a minute and of 100 in an hour, so every abuser
 * breaches as soon as its turn has come. In a burst a user's requests lie close
 * together, as a browser loads a page with all its pictures.
 */
#include "deploy/weir/generate/traffic.h"

#include "common/base/alloc.h"
#include "common/frame/frame.h"

#include <stdlib.h>

enum {
	ABUSE_TURN = 120, /* requests in a row of one abuser */
	BURSTS_MAX = 32,  /* at a time */
	BURST_LEAST = 4,
	BURST_SPREAD = 24,
};

#define PERCENT(share) ((uint64_t)(share)*GENERATE_WHOLE / 100)
#define ABUSE_SHARE PERCENT(10) /* of all requests, if there are abusers */

const char *const generate_method_names[GENERATE_METHOD_COUNT + 1] = {"GET",   "POST",   "HEAD",    "PUT",
                                                                      "PATCH", "DELETE", "OPTIONS", NULL};

struct generate_burst {
	uint32_t user, left;
};

struct generate_traffic {
	struct generate_traffic_options options;
	const struct generate_site *site;
	struct generate_random random;
	struct generate_zipf users, methods;
	uint64_t elapsed_ns;  /* of the log's time, since its start */
	uint64_t interval_ns; /* on average */
	uint32_t abuser, abuser_left;
	struct generate_burst bursts[BURSTS_MAX];
	uint32_t burst_count;
};

struct generate_traffic *generate_traffic_new(const struct generate_traffic_options *options,
                                              const struct generate_site *site)
{
	struct generate_traffic *traffic = weir_alloc(1, sizeof *traffic);
	traffic->options = *options;
	traffic->site = site;
	traffic->random.state = generate_mix(options->seed + 1);
	traffic->interval_ns = UINT64_C(1000000000000) / options->rate_milli;
	generate_zipf_init(&traffic->users, options->users, options->exponent);
	generate_zipf_init_weights(&traffic->methods, GENERATE_METHOD_COUNT, options->methods);
	return traffic;
}

void generate_traffic_free(struct generate_traffic *traffic)
{
	if (traffic == NULL)
		return;
	generate_zipf_deinit(&traffic->users);
	generate_zipf_deinit(&traffic->methods);
	free(traffic);
}

static uint32_t next_abuser(struct generate_traffic *traffic)
{
	if (traffic->abuser_left == 0) {
		traffic->abuser = generate_below(&traffic->random, traffic->options.abusers);
		traffic->abuser_left = ABUSE_TURN;
	}
	traffic->abuser_left--;
	return traffic->options.users + traffic->abuser;
}

static uint32_t next_user(struct generate_traffic *traffic)
{
	struct generate_random *random = &traffic->random;
	if (traffic->burst_count > 0 && generate_chance(random, traffic->options.bursts)) {
		struct generate_burst *burst = &traffic->bursts[generate_below(random, traffic->burst_count)];
		uint32_t user = burst->user;
		if (--burst->left == 0)
			*burst = traffic->bursts[--traffic->burst_count];
		return user;
	}
	uint32_t user = generate_zipf_draw(&traffic->users, generate_next(random));
	if (traffic->options.bursts > 0 && traffic->burst_count < BURSTS_MAX)
		traffic->bursts[traffic->burst_count++] =
			(struct generate_burst){.user = user, .left = BURST_LEAST + generate_below(random, BURST_SPREAD)};
	return user;
}

/* 0..whole-1, in proportion to 32 random bits. */
static uint64_t part_of(uint64_t whole, uint32_t bits)
{
	return (uint64_t)(((unsigned __int128)whole * bits) >> 32);
}

static int64_t next_time(struct generate_traffic *traffic, int64_t now_ms)
{
	struct generate_random *random = &traffic->random;
	traffic->elapsed_ns += part_of(traffic->interval_ns * 2, (uint32_t)generate_next(random));
	int64_t time_ms = now_ms >= 0 ? now_ms : traffic->options.start_ms + (int64_t)(traffic->elapsed_ns / 1000000);
	if (generate_chance(random, traffic->options.out_of_order))
		time_ms -= 1 + (int64_t)part_of((uint64_t)traffic->options.late_by_ms, (uint32_t)generate_next(random));
	if (time_ms < 0)
		return 0;
	return time_ms < WEIR_TIME_END_MS ? time_ms : WEIR_TIME_END_MS - 1;
}

/* Each line a status up to a number of thousand draws. */
struct outcome {
	uint32_t until;
	uint16_t status;
};

static uint16_t draw_status(const struct outcome *outcomes, uint32_t bits)
{
	uint32_t drawn = generate_scale(bits, 1000);
	while (drawn >= outcomes->until)
		outcomes++;
	return outcomes->status;
}

static void answer(struct generate_event *event)
{
	static const struct outcome page[] = {{895, 200}, {920, 301}, {940, 302}, {985, 404},
	                                      {990, 403}, {995, 499}, {998, 500}, {1000, 503}};
	static const struct outcome asset[] = {{700, 200}, {960, 304}, {975, 206}, {998, 404}, {1000, 499}};
	static const struct outcome action[] = {{720, 200}, {820, 201}, {880, 204}, {930, 302},
	                                        {960, 400}, {980, 422}, {995, 409}, {1000, 500}};
	static const struct outcome login[] = {{550, 302}, {800, 200}, {1000, 401}};
	static const struct outcome attack[] = {{30, 302}, {940, 401}, {1000, 429}};
	const struct generate_page *asked = event->page;
	const struct outcome *outcomes = event->method <= GENERATE_HEAD && event->method != GENERATE_POST ? page : action;
	if (asked->login)
		outcomes = event->abuser ? attack : login;
	else if (asked->asset)
		outcomes = asset;
	event->status = draw_status(outcomes, (uint32_t)event->noise);
	bool full = event->status == 200 || event->status == 206;
	uint32_t bytes = full ? asked->bytes : 150 + (asked->bytes & 511);
	event->bytes = bytes + generate_scale((uint32_t)(event->noise >> 32), bytes / 8 + 1);
	if (event->status == 304 || event->status == 204 || event->method == GENERATE_HEAD)
		event->bytes = 0;
}

void generate_traffic_next(struct generate_traffic *traffic, int64_t now_ms, struct generate_event *event)
{
	struct generate_random *random = &traffic->random;
	const struct generate_traffic_options *options = &traffic->options;
	const struct generate_site *site = traffic->site;
	event->time_ms = next_time(traffic, now_ms);
	event->abuser = options->abusers > 0 && generate_chance(random, ABUSE_SHARE);
	event->user = event->abuser ? next_abuser(traffic) : next_user(traffic);
	event->method = generate_zipf_draw(&traffic->methods, generate_next(random));
	/* Every second abuser tries passwords, the others read all they can. */
	bool attack = event->abuser && event->user % 2 == 0;
	if (attack)
		event->method = GENERATE_POST;
	if (event->method == GENERATE_GET || event->method == GENERATE_HEAD)
		event->page = &site->pages[generate_zipf_draw(&site->page_draw, generate_next(random))];
	else
		event->page = &site->actions[attack ? 0 : generate_zipf_draw(&site->action_draw, generate_next(random))];
	event->noise = generate_next(random);
	answer(event);
	event->duplicate = options->duplicates > 0 && generate_chance(random, options->duplicates);
	event->damage = GENERATE_WHOLE_LINE;
	if (options->malformed > 0 && generate_chance(random, options->malformed))
		event->damage = GENERATE_CUT_LINE + generate_below(random, GENERATE_DAMAGE_COUNT - GENERATE_CUT_LINE);
}
