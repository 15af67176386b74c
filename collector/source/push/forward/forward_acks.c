/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which acknowledgements have arrived.
 *
 * Fluent Bit's chunk is a hash of its records alone: equal records of another second or host have it again, and are no
 * repeat. A sender repeats only what it has seen no acknowledgement of. So the id of such a chunk ends when its
 * acknowledgement has arrived, and what comes under it from then on is another message.
 *
 * It has arrived once the sender's kernel has all bytes and no reset has come: one comes where a connection is closed, or
 * its program dies, before all was read. So it is looked at as late as can be: when the chunk comes again, when the
 * connection ends, else after some seconds, which a living sender needs not. That one sends more on the connection says
 * less, as it need not have read yet.
 */
#include "collector/source/push/forward/internal.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/bytes/hash.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { ACKS_MOST = 1 << 16, ACKS_OF_ONE = 1 << 12, CONTENT_DIGITS = 32, READ_MS = 5000, STOP_READ_MS = 500 };

struct forward_ack {
	struct forward_ack *next;
	struct forward_connection *connection;
	int64_t sent_ms;
	uint32_t parts;
	uint8_t tag[FORWARD_TAG_HASH_BYTES];
	char chunk[CONTENT_DIGITS];
};

bool forward_chunk_is_content(struct weir_span chunk)
{
	for (uint32_t i = 0; i < chunk.length; i++)
		if ((chunk.at[i] < '0' || chunk.at[i] > '9') && (chunk.at[i] < 'a' || chunk.at[i] > 'f'))
			return false;
	return chunk.length == CONTENT_DIGITS;
}

static size_t chain_of(struct weir_span chunk)
{
	size_t chain = 0;
	for (uint32_t i = 0; i < 3; i++)
		chain = chain * 16 + ((size_t)chunk.at[i] & 15) + (chunk.at[i] > '9' ? 9 : 0);
	return chain % FORWARD_ACK_CHAINS;
}

void forward_hash_tag(struct weir_span tag, uint8_t hash[FORWARD_TAG_HASH_BYTES])
{
	weir_hash128(tag.at, tag.length, hash);
}

void forward_put_id(struct weir_text *id, uint32_t part, const uint8_t tag[FORWARD_TAG_HASH_BYTES],
                    struct weir_span chunk)
{
	weir_text_printf(id, "forward:%u:", part);
	weir_text_append(id, (const char *)tag, FORWARD_TAG_HASH_BYTES);
	weir_text_append(id, chunk.at, chunk.length);
}

void forward_acks_add(struct forward_acks *acks, struct forward_connection *connection,
                      const uint8_t tag[FORWARD_TAG_HASH_BYTES], struct weir_span chunk, uint32_t parts)
{
	/* Of too many, the ids stay for their hour. Each connection has a share, so that none uses up what all have. */
	if (!forward_chunk_is_content(chunk) || acks->count >= ACKS_MOST || connection->acks >= ACKS_OF_ONE)
		return;
	struct forward_ack *ack = weir_alloc(1, sizeof *ack);
	ack->connection = connection;
	ack->parts = parts;
	ack->sent_ms = weir_monotonic_ms();
	memcpy(ack->tag, tag, sizeof ack->tag);
	memcpy(ack->chunk, chunk.at, chunk.length);
	ack->next = acks->chains[chain_of(chunk)];
	acks->chains[chain_of(chunk)] = ack;
	acks->count++;
	connection->acks++;
}

/* Whether a reset has come, also where TLS has taken the error of it: nothing else closes a socket that this side keeps. */
static bool was_reset(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof info;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 && info.tcpi_state == TCP_CLOSE;
}

/* Whether the peer has all that was sent. */
static bool has_arrived(const struct forward_connection *connection)
{
	int left = 0, trouble = 0;
	socklen_t length = sizeof trouble;
	return connection->out.length == 0 && !connection->reset && !was_reset(connection->fd) &&
	       ioctl(connection->fd, SIOCOUTQ, &left) == 0 && left == 0 &&
	       getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &trouble, &length) == 0 && trouble == 0;
}

static void end_ids(const struct forward_ack *ack, struct push_spool *spool)
{
	for (uint32_t part = 0; part < ack->parts; part++) {
		struct weir_text id = {0};
		forward_put_id(&id, part, ack->tag, (struct weir_span){.at = ack->chunk, .length = CONTENT_DIGITS});
		push_spool_end(spool, weir_text_span(&id));
		weir_text_deinit(&id);
	}
}

/* Which of them are looked at. */
struct wanted {
	const struct forward_connection *connection; /* to be closed: none of it stays; NULL: of all */
	const uint8_t *tag;                          /* of a message that came, with its chunk; NULL: of all */
	struct weir_span chunk;
	int64_t sent_ms; /* until then */
};

static bool is_wanted(const struct forward_ack *ack, const struct wanted *wanted)
{
	return (wanted->connection == NULL || wanted->connection == ack->connection) && ack->sent_ms <= wanted->sent_ms &&
	       (wanted->tag == NULL || (memcmp(wanted->chunk.at, ack->chunk, CONTENT_DIGITS) == 0 &&
	                                memcmp(wanted->tag, ack->tag, FORWARD_TAG_HASH_BYTES) == 0));
}

static void look(struct forward_acks *acks, struct push_spool *spool, size_t chain, const struct wanted *wanted)
{
	for (struct forward_ack **at = &acks->chains[chain]; *at != NULL;) {
		struct forward_ack *ack = *at;
		bool arrived = is_wanted(ack, wanted) && has_arrived(ack->connection);
		if (arrived)
			end_ids(ack, spool);
		if (!arrived && (wanted->connection == NULL || wanted->connection != ack->connection)) {
			at = &ack->next;
			continue;
		}
		*at = ack->next;
		ack->connection->acks--;
		free(ack);
		acks->count--;
	}
}

static void look_at_all(struct forward_acks *acks, struct push_spool *spool, const struct wanted *wanted)
{
	for (size_t i = 0; i < FORWARD_ACK_CHAINS && acks->count > 0; i++)
		look(acks, spool, i, wanted);
}

void forward_acks_match(struct forward_acks *acks, struct push_spool *spool, struct weir_span tag,
                        struct weir_span chunk)
{
	uint8_t hash[FORWARD_TAG_HASH_BYTES];
	if (!forward_chunk_is_content(chunk) || acks->chains[chain_of(chunk)] == NULL)
		return;
	forward_hash_tag(tag, hash);
	look(acks, spool, chain_of(chunk), &(struct wanted){.tag = hash, .chunk = chunk, .sent_ms = INT64_MAX});
}

void forward_acks_look(struct forward_acks *acks, struct push_spool *spool, int64_t now_ms)
{
	look_at_all(acks, spool, &(struct wanted){.sent_ms = now_ms - READ_MS});
}

void forward_acks_stop(struct forward_acks *acks, struct push_spool *spool, int64_t now_ms)
{
	look_at_all(acks, spool, &(struct wanted){.sent_ms = now_ms - STOP_READ_MS});
}

void forward_acks_leave(struct forward_acks *acks, struct push_spool *spool,
                        const struct forward_connection *connection)
{
	if (connection->acks > 0)
		look_at_all(acks, spool, &(struct wanted){.connection = connection, .sent_ms = INT64_MAX});
}
