/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnats, with a consumer that it does not know of.
 *
 * The library's own ordered consumer would make itself anew behind the caller's back, with a filter that a stream of
 * several subjects cannot have. What it does is little: a subscription to an inbox, a consumer that sends there, an answer
 * to each question of flow control when its turn comes, and a look at the numbers that the server puts on its messages.
 */
#include "collector/source/nats/nats_client.h"

#include "collector/source/nats/nats_subject.h"
#include "common/base/alloc.h"
#include "common/base/words.h"

#include <stdlib.h>

#ifdef WEIR_NATS

#include "common/base/clock.h"

#include <nats/nats.h>
#include <string.h>

enum {
	CONNECT_MS = 3000,
	ASK_MS = 5000,
	NEXT_MS = 100,
	HEARTBEAT_MS = 2000,
	SILENCE_MS = 3 * HEARTBEAT_MS, /* without any heartbeat the consumer is gone */
	PING_MS = 5000,
};

struct nats_client {
	natsConnection *connection;
	jsCtx *stream_context;
	natsInbox *inbox;
	natsSubscription *subscription;
	natsMsg *message;  /* what was given out last */
	uint64_t consumed; /* the consumer's number of the newest message */
	int64_t heard_ms;  /* monotonic: when something came, or there was something here */
};

bool nats_built_in(void)
{
	return true;
}

static enum weir_status fail(struct weir_error *error, natsStatus status, const char *what)
{
	natsStatus last;
	const char *words = nats_GetLastError(&last);
	if (words == NULL || *words == '\0' || last != status)
		words = natsStatus_GetText(status);
	const char *own = *words == '(' ? strstr(words, "): ") : NULL; /* its own source file, of no use to a reader */
	words = own != NULL ? own + 3 : words;
	(void)weir_fail(error, WEIR_IO, "%s: %s", what, words);
	weir_words_clean(error->text);
	return WEIR_IO;
}

/* ---- connecting ---- */

/* Errors are told by the calls that meet them; without a handler the library writes to standard error. */
static void ignore_error(natsConnection *connection, natsSubscription *subscription, natsStatus status, void *context)
{
	(void)connection, (void)subscription, (void)status, (void)context;
}

static natsStatus sign(char **words, unsigned char **signature, int *length, const char *nonce, void *seed)
{
	(void)words;
	return nats_Sign(seed, nonce, signature, length);
}

static natsStatus set_login(natsOptions *options, const struct nats_login *login)
{
	natsStatus status = NATS_OK;
	if (login->user != NULL)
		status = natsOptions_SetUserInfo(options, login->user, login->password != NULL ? login->password : "");
	if (status == NATS_OK && login->token != NULL)
		status = natsOptions_SetToken(options, login->token);
	if (status == NATS_OK && login->nkey != NULL)
		status = natsOptions_SetNKey(options, login->nkey, sign, (void *)(uintptr_t)login->seed);
	if (status == NATS_OK && login->credentials != NULL)
		status = natsOptions_SetUserCredentialsFromFiles(options, login->credentials, NULL);
	return status;
}

static natsStatus set_tls(natsOptions *options, const struct nats_login *login)
{
	natsStatus status = login->tls ? natsOptions_SetSecure(options, true) : NATS_OK;
	if (status == NATS_OK && login->ca != NULL)
		status = natsOptions_LoadCATrustedCertificates(options, login->ca);
	if (status == NATS_OK && login->certificate != NULL)
		status = natsOptions_LoadCertificatesChain(options, login->certificate, login->key);
	return status;
}

static natsStatus set_options(natsOptions *options, const struct nats_login *login)
{
	const char *urls[16];
	int count = 0;
	while (count < 16 && (size_t)count < login->url_count) {
		urls[count] = login->urls[count];
		count++;
	}
	natsStatus status = natsOptions_SetServers(options, urls, count);
	if (status == NATS_OK)
		status = natsOptions_SetName(options, login->name);
	if (status == NATS_OK)
		status = natsOptions_SetTimeout(options, CONNECT_MS);
	if (status == NATS_OK)
		status = natsOptions_SetAllowReconnect(options, false);
	if (status == NATS_OK)
		status = natsOptions_SetPingInterval(options, PING_MS);
	if (status == NATS_OK)
		status = natsOptions_SetErrorHandler(options, ignore_error, NULL);
	return status == NATS_OK ? set_login(options, login) : status;
}

enum weir_status nats_client_open(const struct nats_login *login, struct nats_client **made, struct weir_error *error)
{
	struct nats_client *client = weir_alloc(1, sizeof *client);
	natsOptions *options = NULL;
	const char *what = "cannot prepare the connection";
	natsStatus status = natsOptions_Create(&options);
	if (status == NATS_OK)
		status = set_options(options, login);
	if (status == NATS_OK) {
		what = "cannot use its certificates";
		status = set_tls(options, login);
	}
	if (status == NATS_OK) {
		what = "cannot connect";
		status = natsConnection_Connect(&client->connection, options);
	}
	if (status == NATS_OK) {
		what = "cannot use JetStream";
		status = natsConnection_JetStream(&client->stream_context, client->connection, NULL);
	}
	natsOptions_Destroy(options);
	if (status == NATS_OK) {
		*made = client;
		return WEIR_OK;
	}
	(void)fail(error, status, what);
	nats_client_close(client);
	return WEIR_IO;
}

static void forget_consumer(struct nats_client *client)
{
	natsMsg_Destroy(client->message);
	natsSubscription_Destroy(client->subscription);
	natsInbox_Destroy(client->inbox);
	client->message = NULL;
	client->subscription = NULL;
	client->inbox = NULL;
	client->consumed = 0;
}

void nats_client_close(struct nats_client *client)
{
	if (client == NULL)
		return;
	forget_consumer(client);
	jsCtx_Destroy(client->stream_context);
	natsConnection_Destroy(client->connection);
	free(client);
}

/* ---- the stream ---- */

/* Says what a refused question means. */
static enum weir_status fail_asked(struct nats_client *client, natsStatus status, jsErrCode code, const char *stream,
                                   struct weir_error *error)
{
	const char *violation = NULL;
	if (code == JSStreamNotFoundErr)
		return weir_fail(error, WEIR_IO,
		                 "there is no stream %s on the server: add it, or set \"stream\" to the right one", stream);
	if (code == JSNotEnabledErr || code == JSNotEnabledForAccountErr || status == NATS_NO_RESPONDERS)
		return weir_fail(error, WEIR_IO,
		                 "nobody answers for JetStream: enable it on the server, and for the account of this login");
	if (natsConnection_GetLastError(client->connection, &violation) != NATS_OK && violation != NULL &&
	    strstr(violation, "ermissions") != NULL) {
		(void)weir_fail(error, WEIR_IO, "the login may not read stream %s: %s", stream, violation);
		weir_words_clean(error->text);
		return WEIR_IO;
	}
	if (status == NATS_TIMEOUT)
		return weir_fail(error, WEIR_IO,
		                 "the server does not answer within %d s what stream %s has: it may have no leader now, or the "
		                 "login may not ask ($JS.API.STREAM.INFO.%s)",
		                 ASK_MS / 1000, stream, stream);
	return fail(error, status, "cannot read the stream");
}

enum weir_status nats_client_extent(struct nats_client *client, const char *stream, struct nats_extent *extent,
                                    struct weir_error *error)
{
	jsOptions options;
	jsStreamInfo *info = NULL;
	jsErrCode code = 0;
	(void)jsOptions_Init(&options);
	options.Wait = ASK_MS;
	natsStatus status = js_GetStreamInfo(&info, client->stream_context, stream, &options, &code);
	if (status != NATS_OK)
		return fail_asked(client, status, code, stream, error);
	*extent = (struct nats_extent){
		.created_ns = info->Created,
		.first = info->State.FirstSeq,
		.last = info->State.LastSeq,
		.last_ms = info->State.LastTime > 0 ? info->State.LastTime / 1000000 : 0,
	};
	jsStreamInfo_Destroy(info);
	return WEIR_OK;
}

enum weir_status nats_client_has(struct nats_client *client, const char *stream, uint64_t sequence, bool *has,
                                 struct weir_error *error)
{
	jsOptions options;
	natsMsg *message = NULL;
	jsErrCode code = 0;
	(void)jsOptions_Init(&options);
	options.Wait = ASK_MS;
	natsStatus status = js_GetMsg(&message, client->stream_context, stream, sequence, &options, &code);
	natsMsg_Destroy(message);
	*has = status == NATS_OK;
	if (status == NATS_OK || status == NATS_NOT_FOUND || code == JSNoMessageFoundErr)
		return WEIR_OK;
	return fail_asked(client, status, code, stream, error);
}

enum weir_status nats_client_consume(struct nats_client *client, const char *stream, uint64_t from,
                                     struct weir_error *error)
{
	jsConsumerConfig config;
	jsConsumerInfo *info = NULL;
	jsOptions options;
	jsErrCode code = 0;
	forget_consumer(client);
	natsStatus status = natsInbox_Create(&client->inbox);
	if (status == NATS_OK)
		status = natsConnection_SubscribeSync(&client->subscription, client->connection, client->inbox);
	if (status == NATS_OK) /* flow control bounds what waits */
		status = natsSubscription_SetPendingLimits(client->subscription, -1, -1);
	if (status != NATS_OK)
		return fail(error, status, "cannot subscribe");
	(void)jsOptions_Init(&options);
	options.Wait = ASK_MS;
	(void)jsConsumerConfig_Init(&config);
	config.Description = "weir-collector";
	config.DeliverSubject = client->inbox;
	config.DeliverPolicy = js_DeliverByStartSequence;
	config.OptStartSeq = from;
	config.AckPolicy = js_AckNone;
	config.MaxDeliver = 1;
	config.FlowControl = true;
	config.Heartbeat = HEARTBEAT_MS * INT64_C(1000000);
	config.MemoryStorage = true;
	config.Replicas = 1;
	status = js_AddConsumer(&info, client->stream_context, stream, &config, &options, &code);
	jsConsumerInfo_Destroy(info);
	client->heard_ms = weir_monotonic_ms();
	return status == NATS_OK ? WEIR_OK : fail_asked(client, status, code, stream, error);
}

/* ---- messages ---- */

bool nats_client_has_more(struct nats_client *client)
{
	uint64_t count = 0;
	return natsSubscription_QueuedMsgs(client->subscription, &count) == NATS_OK && count > 0;
}

/* A number that the server put into a message's head; 0: none. */
static uint64_t number_of(natsMsg *message, const char *name)
{
	const char *value = NULL;
	return natsMsgHeader_Get(message, name, &value) == NATS_OK && value != NULL ? strtoull(value, NULL, 10) : 0;
}

/*
 * Handles what is no message of the stream: a heartbeat, which tells how far the server has sent, or a question of flow
 * control, which is answered now that all before it is taken.
 */
static enum weir_status take_notice(struct nats_client *client, natsMsg *message, struct weir_error *error)
{
	const char *question = natsMsg_GetReply(message), *state = NULL;
	if (natsMsgHeader_Get(message, "Status", &state) != NATS_OK || state == NULL || strcmp(state, "100") != 0) {
		(void)weir_fail(error, WEIR_IO, "the server ended the consumer: status %s", state != NULL ? state : "unknown");
		weir_words_clean(error->text);
		return WEIR_IO;
	}
	if (question == NULL || *question == '\0')
		(void)natsMsgHeader_Get(message, "Nats-Consumer-Stalled", &question);
	if (question != NULL && *question != '\0')
		(void)natsConnection_Publish(client->connection, question, NULL, 0);
	if (number_of(message, "Nats-Last-Consumer") > client->consumed)
		return weir_fail(error, WEIR_IO, "messages went missing on the way; they are asked for again");
	return WEIR_AGAIN;
}

static enum weir_status take_message(struct nats_client *client, natsMsg *got, struct nats_message *message,
                                     struct weir_error *error)
{
	struct nats_place place;
	const char *reply = natsMsg_GetReply(got);
	if (reply == NULL || !nats_place_read(weir_span_of(reply), &place))
		return take_notice(client, got, error);
	if (place.consumer != client->consumed + 1)
		return weir_fail(error, WEIR_IO, "messages went missing on the way; they are asked for again");
	client->consumed = place.consumer;
	*message = (struct nats_message){
		.data = {.at = natsMsg_GetData(got), .length = (uint32_t)natsMsg_GetDataLength(got)},
		.subject = weir_span_of(natsMsg_GetSubject(got)),
		.sequence = place.sequence,
		.pending = place.pending,
		.put_ms = place.put_ns / 1000000,
	};
	return WEIR_OK;
}

enum weir_status nats_client_next(struct nats_client *client, struct nats_message *message, struct weir_error *error)
{
	natsMsg_Destroy(client->message);
	client->message = NULL;
	natsStatus status = natsSubscription_NextMsg(&client->message, client->subscription, NEXT_MS);
	int64_t now_ms = weir_monotonic_ms();
	if (status == NATS_TIMEOUT && now_ms - client->heard_ms <= SILENCE_MS)
		return WEIR_AGAIN;
	if (status == NATS_TIMEOUT)
		return weir_fail(error, WEIR_IO, "nothing was heard of the consumer for %d s", SILENCE_MS / 1000);
	if (status != NATS_OK)
		return fail(error, status, "the connection broke");
	client->heard_ms = now_ms;
	return take_message(client, client->message, message, error);
}

#else

bool nats_built_in(void)
{
	return false;
}

static enum weir_status fail(struct weir_error *error)
{
	return weir_fail(error, WEIR_INVALID, "this program was built without libnats");
}

enum weir_status nats_client_open(const struct nats_login *login, struct nats_client **client, struct weir_error *error)
{
	(void)login, (void)client;
	return fail(error);
}

void nats_client_close(struct nats_client *client)
{
	(void)client;
}

enum weir_status nats_client_extent(struct nats_client *client, const char *stream, struct nats_extent *extent,
                                    struct weir_error *error)
{
	(void)client, (void)stream, (void)extent;
	return fail(error);
}

enum weir_status nats_client_has(struct nats_client *client, const char *stream, uint64_t sequence, bool *has,
                                 struct weir_error *error)
{
	(void)client, (void)stream, (void)sequence, (void)has;
	return fail(error);
}

enum weir_status nats_client_consume(struct nats_client *client, const char *stream, uint64_t from,
                                     struct weir_error *error)
{
	(void)client, (void)stream, (void)from;
	return fail(error);
}

bool nats_client_has_more(struct nats_client *client)
{
	(void)client;
	return false;
}

enum weir_status nats_client_next(struct nats_client *client, struct nats_message *message, struct weir_error *error)
{
	(void)client, (void)message;
	return fail(error);
}

#endif
