/* SPDX-License-Identifier: Apache-2.0 */
/* An eventfd and poll(); without one, short naps. */
#include "common/bus/kafka/queue_bell.h"

#include "common/base/clock.h"
#include "common/base/wake.h"

#include <poll.h>
#include <time.h>

enum { NAP_MS = 5 };

void weir_kafka_bell_init(struct bus_kafka_bell *bell)
{
	*bell = (struct bus_kafka_bell){.own = weir_wake_new(), .lent = -1};
}

void weir_kafka_bell_deinit(struct bus_kafka_bell *bell)
{
	if (bell->own >= 0)
		close(bell->own);
	bell->own = -1;
}

void weir_kafka_bell_hang(const struct bus_kafka_bell *bell, rd_kafka_queue_t *queue)
{
	static const uint64_t one = 1;
	int descriptor = bell->lent >= 0 ? bell->lent : bell->own;
	rd_kafka_queue_io_event_enable(queue, descriptor, &one, sizeof one);
	weir_wake_up(descriptor); /* what is in the queue already has written nothing */
}

void weir_kafka_bell_leave(rd_kafka_queue_t *queue)
{
	rd_kafka_queue_io_event_enable(queue, -1, NULL, 0);
}

void weir_kafka_bell_clear(const struct bus_kafka_bell *bell)
{
	if (bell->lent < 0 && bell->own >= 0)
		weir_wake_clear(bell->own);
}

static void nap(int64_t left_ms)
{
	int64_t nap_ms = left_ms < NAP_MS ? left_ms : NAP_MS;
	if (nap_ms > 0)
		nanosleep(&(struct timespec){.tv_nsec = nap_ms * 1000000L}, NULL);
}

void weir_kafka_bell_wait(const struct bus_kafka_bell *bell, int64_t left_ms)
{
	struct pollfd waits = {.fd = bell->own, .events = POLLIN};
	if (left_ms <= 0)
		return;
	if (bell->lent >= 0 || bell->own < 0)
		nap(left_ms);
	else
		(void)!poll(&waits, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
}

rd_kafka_event_t *weir_kafka_queue_poll(rd_kafka_queue_t *queue, int64_t timeout_ms)
{
	int64_t end_ms = weir_monotonic_ms() + timeout_ms, left_ms = timeout_ms;
	for (;;) {
		rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 0);
		if (event != NULL || left_ms <= 0)
			return event;
		nap(left_ms);
		left_ms = end_ms - weir_monotonic_ms();
	}
}
