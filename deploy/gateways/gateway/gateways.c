/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for each gateway: one that is slow, or away, holds up no other. */
#include "deploy/gateways/gateway/gateways.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/gateways/subscriber/subscriber.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { LOOK_MS = 5 };

struct gateway {
	char *name; /* owned */
	struct weir_bus *bus;
	struct target *target;
	struct subscriber *subscriber;
	_Atomic bool rewrite, ended;
	enum weir_status status; /* of the thread, once it has ended */
	struct weir_error error;
	pthread_t thread;
	bool running;
};

struct gateways {
	struct gateway *at;
	size_t count; /* of those that were begun */
	const struct weir_log *log;
	_Atomic bool stop;
};

static bool take_rewrite(void *context)
{
	return atomic_exchange(&((struct gateway *)context)->rewrite, false);
}

static void *work(void *context)
{
	struct gateway *gateway = context;
	gateway->status = subscriber_run(gateway->subscriber, gateway->bus, &gateway->error);
	atomic_store(&gateway->ended, true);
	return NULL;
}

struct subscriber_options gateway_subscriber(const struct gateway_settings *settings, uint32_t partitions,
                                             struct target *target)
{
	return (struct subscriber_options){.partitions = partitions,
	                                   .target = target,
	                                   .zones = settings->zones,
	                                   .zone_count = settings->zone_count,
	                                   .max = (uint32_t)settings->max,
	                                   .interval_ms = settings->interval_ms >= 0 ? settings->interval_ms
	                                                                             : target->ops->interval_ms};
}

static enum weir_status start(struct gateways *gateways, const struct gateway_settings *settings, struct weir_bus *bus,
                              struct gateway *gateway, struct weir_error *error)
{
	gateway->name = gateway_settings_name(settings);
	gateway->bus = bus;
	enum weir_status status =
		gateway_open(settings, bus->partitions, gateways->log, &gateways->stop, &gateway->target, error);
	if (status != WEIR_OK)
		return status;
	struct subscriber_options options = gateway_subscriber(settings, bus->partitions, gateway->target);
	options.take_rewrite = take_rewrite;
	options.context = gateway;
	options.log = gateways->log;
	options.stop = &gateways->stop;
	gateway->subscriber = subscriber_new(&options);
	gateway->running = pthread_create(&gateway->thread, NULL, work, gateway) == 0;
	return gateway->running ? WEIR_OK : weir_fail(error, WEIR_IO, "cannot start a thread");
}

enum weir_status gateways_start(const struct gateway_list *list, struct weir_bus *bus, const struct weir_log *log,
                                struct gateways **out, struct weir_error *error)
{
	struct gateways *gateways = weir_alloc(1, sizeof *gateways);
	enum weir_status status = WEIR_OK;
	gateways->log = log;
	gateways->at = weir_alloc(list->count, sizeof *gateways->at);
	*out = gateways; /* on failure too: what was begun is to be stopped */
	while (status == WEIR_OK && gateways->count < list->count) {
		size_t i = gateways->count++;
		status = start(gateways, &list->at[i], bus, &gateways->at[i], error);
	}
	return status;
}

static bool is_ready(const struct gateway *gateway, struct weir_text *why)
{
	size_t before = why->length;
	weir_text_printf(why, "gateway %s: ", gateway->name);
	if (!subscriber_ready(gateway->subscriber, why))
		return false;
	why->length = before;
	return true;
}

bool gateways_ready(const struct gateways *gateways, struct weir_text *why)
{
	bool ready = true;
	for (size_t i = 0; i < gateways->count; i++)
		ready &= is_ready(&gateways->at[i], why);
	return ready;
}

bool gateways_ended(const struct gateways *gateways)
{
	for (size_t i = 0; i < gateways->count; i++)
		if (atomic_load(&gateways->at[i].ended))
			return true;
	return false;
}

static void tell_waiting(const struct gateways *gateways, int64_t most_ms)
{
	struct weir_text why = {0};
	for (size_t i = 0; i < gateways->count; i++) {
		weir_text_clear(&why);
		if (is_ready(&gateways->at[i], &why))
			continue;
		weir_log(gateways->log, WEIR_LOG_WARNING, "gateways", "judging begins without it after %lld s: %.*s",
		         (long long)most_ms / 1000, (int)(why.length - 1), why.at);
	}
	weir_text_deinit(&why);
}

bool gateways_wait(struct gateways *gateways, int64_t most_ms, const _Atomic bool *stop)
{
	int64_t end_ms = weir_monotonic_ms() + most_ms;
	bool ready;
	struct weir_text why = {0};
	while (!(ready = gateways_ready(gateways, &why)) && weir_monotonic_ms() < end_ms && !atomic_load(stop) &&
	       !gateways_ended(gateways)) {
		weir_text_clear(&why);
		nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
	}
	weir_text_deinit(&why);
	if (!ready && !atomic_load(stop))
		tell_waiting(gateways, most_ms);
	return ready;
}

void gateways_rewrite(struct gateways *gateways)
{
	for (size_t i = 0; i < gateways->count; i++)
		atomic_store(&gateways->at[i].rewrite, true);
}

void gateways_metrics(const struct gateways *gateways, struct weir_text *page)
{
	if (gateways->count == 0)
		return;
	struct subscriber_row *rows = weir_alloc(gateways->count, sizeof *rows);
	for (size_t i = 0; i < gateways->count; i++) {
		const struct gateway *gateway = &gateways->at[i];
		rows[i] = (struct subscriber_row){gateway->subscriber, weir_span_of(gateway->name)};
	}
	subscriber_metrics(rows, gateways->count, page);
	free(rows);
}

static enum weir_status stop(struct gateway *gateway, struct weir_error *error)
{
	struct weir_error ignored;
	enum weir_status status = WEIR_OK;
	if (gateway->running) {
		pthread_join(gateway->thread, NULL);
		status = gateway->status;
		if (status != WEIR_OK)
			(void)weir_fail(error, status, "gateway %s: %s", gateway->name, gateway->error.text);
	}
	subscriber_free(gateway->subscriber);
	if (gateway->target != NULL)
		(void)!gateway->target->ops->close(gateway->target, &ignored);
	free(gateway->name);
	return status;
}

enum weir_status gateways_stop(struct gateways *gateways, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (gateways == NULL)
		return WEIR_OK;
	atomic_store(&gateways->stop, true);
	for (size_t i = 0; i < gateways->count; i++) {
		enum weir_status one = stop(&gateways->at[i], error);
		status = one != WEIR_OK ? one : status;
	}
	free(gateways->at);
	free(gateways);
	return status;
}
