/*
 * What a worker gives: decisions, lifts, judged frames, dead letters; and what
 * became of them. Every message carries its slot's partition as its tag: dead
 * letters of all partitions lie in one.
 */
#include "limiter/worker/internal.h"

#include "common/base/clock.h"
#include "common/json/json_writer.h"
#include "limiter/lane/decision.h"
#include "limiter/lane/policy_switch.h"
#include "limiter/orders/orders.h"

#include <string.h>

enum {
	DELIVERIES_AT_ONCE = 256,
	LETTER_MAX_BYTES = 1024,
	REMIND_LOOK_MS = 50,
	PEACE_MS = 20000,   /* a producer that has worked for so long ends the row of those that broke */
	BREAKS_COUNTED = 5, /* in a row: from 1 s between two producers to 32 s */
};

static void set_broken(struct worker *worker, enum weir_status status, const struct weir_error *error)
{
	if (worker->options.share == NULL) {
		worker_fail(worker, status, error);
		return;
	}
	weir_trouble_on(&worker->producer_trouble, worker->options.log, "limiter",
	                "%s; going on from the last checkpoints with a new producer", error->text);
	worker->broken = true;
}

void worker_take_deliveries(struct worker *worker, int timeout_ms)
{
	if (!worker_works(worker))
		return;
	struct weir_delivery deliveries[DELIVERIES_AT_ONCE];
	size_t count = worker->bus->poll(worker->producer, deliveries, DELIVERIES_AT_ONCE, timeout_ms);
	for (size_t i = 0; i < count; i++) {
		if (deliveries[i].status != WEIR_OK) {
			struct weir_error error;
			set_broken(worker,
			           weir_fail(&error, deliveries[i].status, "the bus did not take a message of %s, partition %u: %s",
			                     weir_topic_name(deliveries[i].topic), deliveries[i].partition, deliveries[i].why),
			           &error);
			return;
		}
		worker_slot(worker, (uint32_t)deliveries[i].tag)->acknowledged[deliveries[i].topic]++;
	}
	/* What one message is refused for may come again with the next producer, though others are taken in between. */
	if (count > 0 && worker->producer_trouble.on && weir_monotonic_ms() - worker->renewed_ms >= PEACE_MS) {
		worker->breaks_in_row = 0;
		weir_trouble_off(&worker->producer_trouble, worker->options.log, "limiter");
	}
}

/* When the next producer is due: soon after a first break, and ever later where they follow each other. */
static int64_t renew_time(struct worker *worker)
{
	int64_t wait_ms = (int64_t)WORKER_RETRY_MS << worker->breaks_in_row;
	if (worker->breaks_in_row < BREAKS_COUNTED)
		worker->breaks_in_row++;
	return weir_monotonic_ms() + wait_ms;
}

void worker_renew_producer(struct worker *worker)
{
	if (worker->producer != NULL) {
		worker->bus->producer_free(worker->producer);
		worker->producer = NULL;
		worker->renew_ms = renew_time(worker);
		for (uint32_t i = 0; i < worker->slot_count; i++)
			if (worker_has(&worker->slots[i]))
				worker_drop(worker, &worker->slots[i], worker->renew_ms);
	}
	if (weir_monotonic_ms() < worker->renew_ms)
		return;
	struct weir_error error;
	if (worker->bus->producer_new(worker->options.bus, &worker->producer, &error) != WEIR_OK) {
		weir_trouble_on(&worker->producer_trouble, worker->options.log, "limiter", "%s; trying again each second",
		                error.text);
		worker->producer = NULL;
		worker->renew_ms = weir_monotonic_ms() + WORKER_RETRY_MS;
		return;
	}
	worker->broken = false;
	worker->renewed_ms = weir_monotonic_ms();
	for (uint32_t i = 0; i < worker->slot_count; i++) {
		struct slot *slot = &worker->slots[i];
		memset(slot->sent, 0, sizeof slot->sent);
		memset(slot->acknowledged, 0, sizeof slot->acknowledged);
	}
}

static void send(struct worker *worker, struct slot *slot, enum weir_topic topic, uint32_t partition,
                 struct weir_span key, struct weir_span payload)
{
	struct weir_error error;
	enum weir_status status = WEIR_FULL;
	int64_t end_ms = 0; /* while it is to stop: when it gives up */
	while (worker_works(worker) && (status = worker->bus->send(worker->producer, topic, partition, key, payload,
	                                                           slot->partition, &error)) == WEIR_FULL) {
		worker_take_deliveries(worker, WORKER_IDLE_WAIT_MS);
		if (!atomic_load(&worker->stop))
			continue;
		if (end_ms == 0)
			end_ms = weir_monotonic_ms() + WORKER_STOP_LIMIT_MS;
		else if (weir_monotonic_ms() >= end_ms)
			worker_fail(worker,
			            weir_fail(&error, WEIR_IO,
			                      "the bus takes no more of %s, partition %u: it is judged again by the "
			                      "next start",
			                      weir_topic_name(topic), partition),
			            &error);
	}
	if (!worker_works(worker))
		return;
	if (status == WEIR_OK)
		slot->sent[topic]++;
	else if (status == WEIR_IO)
		set_broken(worker, status, &error);
	else
		worker_fail(worker, status, &error);
}

static struct weir_span span_of_text(const struct weir_text *text)
{
	return (struct weir_span){.at = text->at, .length = (uint32_t)text->length};
}

static void publish_decision(struct worker *worker, struct slot *slot, const struct weir_zone *zone,
                             struct weir_span key)
{
	weir_text_clear(&worker->key);
	decision_message_key(&worker->key, zone, key);
	send(worker, slot, zone->mode == WEIR_SHADOW ? WEIR_TOPIC_SHADOW : WEIR_TOPIC_DECISIONS, slot->partition,
	     span_of_text(&worker->key), span_of_text(&worker->text));
	weir_counter_add(&worker->stats.decisions, 1);
}

static void publish_order(struct worker *worker, struct slot *slot, uint64_t offset, uint32_t index,
                          const struct shard_order_decision *decision)
{
	weir_text_clear(&worker->text);
	decision_order_json(&worker->text, slot->partition, offset, index, decision);
	publish_decision(worker, slot, decision->zone, decision->key);
}

/* What a change of policy comes to. */
static void publish_change(struct worker *worker, struct slot *slot, const struct lane_result *result)
{
	const struct policy_switch *change = result->change;
	for (uint32_t i = 0; i < change->lifted_count; i++) {
		weir_text_clear(&worker->text);
		decision_lift_json(&worker->text, slot->partition, result->offset, i, change->lifted[i], result->at_ms);
		publish_decision(worker, slot, change->lifted[i], (struct weir_span){.at = "", .length = 0});
	}
	for (uint32_t i = 0; i < change->block_count; i++)
		publish_order(worker, slot, result->offset, change->lifted_count + i, &change->blocks[i]);
}

void worker_publish(struct worker *worker, struct slot *slot, const struct lane_result *result,
                    struct weir_span message)
{
	uint32_t partition = slot->partition;
	for (uint32_t i = 0; i < result->judged.decision_count; i++) {
		const struct shard_decision *decision = &result->judged.decisions[i];
		weir_text_clear(&worker->text);
		decision_json(&worker->text, partition, decision);
		publish_decision(worker, slot, decision->zone->zone, decision->key);
	}
	if (result->change != NULL)
		publish_change(worker, slot, result);
	if (result->ordered != NULL)
		publish_order(worker, slot, result->offset, 0, result->ordered);
	if (result->frame == NULL || !worker->options.config->archiver.enabled)
		return;
	uint32_t pairs = result->judged.pair_count;
	weir_text_clear(&worker->judged);
	char *out = weir_text_reserve(&worker->judged, message.length + 8 + (pairs + 1) / 2);
	size_t length = weir_frame_judged(message, result->offset, result->judged.verdicts, pairs, out);
	send(worker, slot, WEIR_TOPIC_JUDGED, partition, (struct weir_span){0},
	     (struct weir_span){.at = out, .length = (uint32_t)length});
}

/* A block that the topic may forget while it holds, and has not been in it for long enough to be thought of again. */
static bool is_to_be_reminded(const struct order_term *block, int64_t remind_ms, int64_t now_ms)
{
	return block->holds && block->offset != ORDER_NO_OFFSET && block->until_ms > now_ms &&
	       block->until_ms - block->at_ms > 2 * remind_ms && now_ms - block->at_ms >= remind_ms;
}

static void remind_of(struct worker *worker, struct slot *slot, const struct order *order)
{
	const struct zone_rules *zone = rules_zone(lane_rules(slot->lane), order->zone_id);
	if (zone == NULL)
		return;
	const struct order_term *block = &order->block;
	struct shard_order_decision decision = {.zone = zone->zone,
	                                        .key = order->key,
	                                        .at_ms = block->at_ms,
	                                        .until_ms = block->until_ms,
	                                        .by = block->by,
	                                        .reason = block->reason};
	publish_order(worker, slot, block->offset, 0, &decision);
	weir_counter_add(&worker->stats.reminders, 1);
}

void worker_remind(struct worker *worker)
{
	int64_t remind_ms = worker->options.remind_ms, monotonic_ms = weir_monotonic_ms();
	if (remind_ms == 0 || worker->broken || monotonic_ms < worker->remind_due_ms)
		return;
	worker->remind_due_ms = monotonic_ms + REMIND_LOOK_MS;
	int64_t now_ms = weir_wall_ms();
	for (uint32_t i = 0; i < worker->slot_count && worker_works(worker); i++) {
		struct slot *slot = &worker->slots[i];
		if (slot->state != WORKER_LIVE || monotonic_ms < slot->remind_due_ms)
			continue;
		slot->remind_due_ms = monotonic_ms + remind_ms;
		const struct orders *orders = shard_orders(lane_shard(slot->lane));
		for (uint32_t k = 0; k < orders->count; k++)
			if (is_to_be_reminded(&orders->list[k]->block, remind_ms, now_ms))
				remind_of(worker, slot, orders->list[k]);
	}
}

/* Whether one more may be kept, and said, in this second. */
static bool letter_allowed(struct worker *worker)
{
	int64_t most = worker->options.config->deadletter.rate_per_second, second = weir_monotonic_ms() / 1000;
	if (second != worker->letters_second) {
		worker->letters_second = second;
		worker->letters = 0;
	}
	return most <= 0 || worker->letters++ < most;
}

void worker_bury(struct worker *worker, struct slot *slot, struct weir_span message, uint64_t offset,
                 const char *reason)
{
	weir_counter_add(&worker->stats.malformed, 1);
	if (worker->options.dead_letters && !letter_allowed(worker)) {
		weir_counter_add(&worker->stats.dead_letters_dropped, 1);
		return;
	}
	weir_log(worker->options.log, WEIR_LOG_WARNING, "limiter", "partition %u, offset %llu: passed over: %s",
	         slot->partition, (unsigned long long)offset, reason);
	if (!worker->options.dead_letters)
		return;
	struct weir_span start = {.at = message.at,
	                          .length = message.length < LETTER_MAX_BYTES ? message.length : LETTER_MAX_BYTES};
	struct weir_text *text = &worker->text;
	weir_text_clear(text);
	struct weir_json_writer json = weir_json_writer(text);
	weir_json_write_object(&json, NULL);
	weir_json_write_words(&json, "source", weir_topic_name(WEIR_TOPIC_EVENTS));
	weir_json_write_uint(&json, "partition", slot->partition);
	weir_json_write_uint(&json, "position", offset);
	weir_json_write_words(&json, "reason", reason);
	weir_json_write_string(&json, "text", start);
	weir_json_write_end(&json);
	send(worker, slot, WEIR_TOPIC_DEADLETTER, 0, (struct weir_span){0}, span_of_text(text));
	weir_counter_add(&worker->stats.dead_letters, 1);
}
