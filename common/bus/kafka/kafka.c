/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties, handles and the log of librdkafka.
 *
 * librdkafka reports the same fault once for each of its connections, and again at
 * each attempt. Such lines are not logged as errors: only the newest is kept, and
 * code that knows that something does not work logs it once, with that line as the
 * cause.
 */
#include "common/bus/kafka/kafka.h"

#include "common/base/alloc.h"
#include "common/base/deadline.h"
#include "common/tls/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_BYTES = 256, BROKERS_MOST = 64 };

struct setting {
	char *name, *value;
};

struct certificate {
	char *broker; /* HOST:PORT */
	int64_t ends_s;
};

struct weir_kafka {
	char *part, *client, *brokers;
	struct weir_log log;
	struct weir_json at; /* where the settings are from, for refusals */
	struct setting *settings;
	size_t setting_count;
	pthread_mutex_t lock;            /* guards all that follows */
	const struct weir_log *followed; /* the owner's log, whose level may change; NULL: the owner has released this */
	char complaint[WEIR_KAFKA_COMPLAINT_BYTES];
	struct certificate certificates[BROKERS_MOST];
	size_t certificate_count;
	uint32_t holders; /* the owner, and each handle */
};

/* Better for weir than librdkafka's own defaults. A configuration may override them. */
static const struct weir_kafka_property defaults[] = {
	{"socket.nagle.disable", "true", false},
	{"socket.keepalive.enable", "true", false},
	{"socket.timeout.ms", "20000", false},
	{"request.timeout.ms", "15000", false},
	{"reconnect.backoff.ms", "100", false},
	{"reconnect.backoff.max.ms", "1000", false},
	{"retry.backoff.max.ms", "1000", true},
	{"log.connection.close", "false", false},
	{"topic.metadata.refresh.interval.ms", "30000", false},
	/* With 0, a producer that waits for a response would spin, and send its next few bytes in a batch of their own. */
	{"linger.ms", "1", false},
	{"check.crcs", "true", false},
	{"session.timeout.ms", "10000", false},
	{"heartbeat.interval.ms", "1000", false}, /* by heartbeats members learn of a rebalance */
	/* The first fetch of a partition that is assigned while the others are idle waits this long. */
	{"fetch.wait.max.ms", "20", false},
	{"fetch.error.backoff.ms", "100", false},
	/*
	 * Prefetching is bounded by bytes, over all partitions of a handle. Versions before 2.2, without
	 * fetch.queue.backoff.ms, check a full queue again only after up to a second, so it holds more than a second's
	 * work.
	 */
	{"queued.min.messages", "1000000", false},
	{"queued.max.messages.kbytes", "131072", false},
	{"fetch.queue.backoff.ms", "10", true},
	{NULL, NULL, false},
};

static void release(struct weir_kafka *kafka)
{
	pthread_mutex_lock(&kafka->lock);
	bool last = --kafka->holders == 0;
	pthread_mutex_unlock(&kafka->lock);
	if (!last)
		return;
	for (size_t i = 0; i < kafka->setting_count; i++) {
		free(kafka->settings[i].name);
		free(kafka->settings[i].value);
	}
	free(kafka->settings);
	for (size_t i = 0; i < kafka->certificate_count; i++)
		free(kafka->certificates[i].broker);
	free(kafka->part);
	free(kafka->client);
	free(kafka->brokers);
	pthread_mutex_destroy(&kafka->lock);
	free(kafka);
}

void weir_kafka_free(struct weir_kafka *kafka)
{
	if (kafka == NULL)
		return;
	pthread_mutex_lock(&kafka->lock);
	kafka->followed = NULL;
	pthread_mutex_unlock(&kafka->lock);
	release(kafka);
}

/* ---- properties ---- */

/* A value as text, as librdkafka takes it. @param out  returned, the caller frees */
static enum weir_status read_value(const struct weir_json *at, char **out, struct weir_error *error)
{
	char number[32];
	switch (json_typeof(at->value)) {
	case JSON_TRUE: *out = weir_copy("true", 4); return WEIR_OK;
	case JSON_FALSE: *out = weir_copy("false", 5); return WEIR_OK;
	case JSON_INTEGER:
		snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(at->value));
		*out = weir_copy(number, strlen(number));
		return WEIR_OK;
	case JSON_STRING:
	case JSON_OBJECT: return weir_json_secret(at, out, error);
	default: break;
	}
	return weir_json_fail(at, error,
	                      "must be a string, a whole number, true, false, {\"file\": PATH} or {\"env\": NAME}");
}

static enum weir_status read_setting(const struct weir_kafka_refusal *refusals, const struct weir_json *at,
                                     rd_kafka_conf_t *trial, struct setting *setting, struct weir_error *error)
{
	for (const struct weir_kafka_refusal *refusal = refusals; refusal->name != NULL; refusal++)
		if (strcmp(refusal->name, setting->name) == 0)
			return weir_json_fail(at, error, "cannot be set here: %s", refusal->why);
	enum weir_status status = read_value(at, &setting->value, error);
	char words[WORDS_BYTES];
	if (status == WEIR_OK &&
	    rd_kafka_conf_set(trial, setting->name, setting->value, words, sizeof words) != RD_KAFKA_CONF_OK)
		status = weir_json_fail(at, error, "%s", words);
	return status;
}

static enum weir_status read_settings(struct weir_kafka *kafka, const struct weir_kafka_options *options,
                                      struct weir_error *error)
{
	const char *name;
	json_t *value;
	enum weir_status status = WEIR_OK;
	if (!weir_json_exists(&options->settings))
		return WEIR_OK;
	if (!json_is_object(options->settings.value))
		return weir_json_fail(&options->settings, error, "must be an object with librdkafka properties");
	rd_kafka_conf_t *trial = rd_kafka_conf_new();
	kafka->settings = weir_alloc(json_object_size(options->settings.value), sizeof *kafka->settings);
	json_object_foreach(options->settings.value, name, value)
	{
		struct weir_json at = weir_json_member(&options->settings, name);
		struct setting *setting = &kafka->settings[kafka->setting_count++];
		setting->name = weir_copy(name, strlen(name));
		if ((status = read_setting(options->refusals, &at, trial, setting, error)) != WEIR_OK)
			break;
	}
	rd_kafka_conf_destroy(trial);
	return status;
}

enum weir_status weir_kafka_new(const struct weir_kafka_options *options, struct weir_kafka **kafka,
                                struct weir_error *error)
{
	struct weir_kafka *made = weir_alloc(1, sizeof *made);
	pthread_mutex_init(&made->lock, NULL);
	made->holders = 1;
	made->part = weir_copy(options->part, strlen(options->part));
	made->client = weir_copy(options->client, strlen(options->client));
	made->brokers = weir_copy(options->brokers, strlen(options->brokers));
	made->log = *options->log;
	made->followed = options->log;
	made->at = options->settings;
	enum weir_status status = read_settings(made, options, error);
	if (status == WEIR_OK)
		*kafka = made;
	else
		release(made);
	return status;
}

/* ---- librdkafka's log ---- */

/* Keeps a complaint, without librdkafka's thread name, "[thrd:...]: ", and its count of attempts. */
static void keep_complaint(struct weir_kafka *kafka, const char *words)
{
	if (strstr(words, "brokers are down") != NULL)
		return; /* a consequence of the causes before it, and it names none */
	const char *behind = strncmp(words, "[thrd:", 6) == 0 ? strstr(words, "]: ") : NULL;
	if (behind != NULL)
		words = behind + 3;
	const char *end = strstr(words, " (after ");
	size_t length = end != NULL ? (size_t)(end - words) : strlen(words);
	if (length >= sizeof kafka->complaint)
		for (length = sizeof kafka->complaint - 1; length > 0 && words[length] != ' ';)
			length--; /* not in the middle of a word */
	pthread_mutex_lock(&kafka->lock);
	memcpy(kafka->complaint, words, length);
	kafka->complaint[length] = '\0';
	pthread_mutex_unlock(&kafka->lock);
}

/* Sets the level of the copy of the log to the present one of the owner's log. */
static void follow_level(struct weir_kafka *kafka)
{
	pthread_mutex_lock(&kafka->lock);
	if (kafka->followed != NULL)
		kafka->log.level = kafka->followed->level;
	pthread_mutex_unlock(&kafka->lock);
}

/* Called by librdkafka's threads. */
static void on_log(const rd_kafka_t *handle, int level, const char *facility, const char *words)
{
	struct weir_kafka *kafka = handle != NULL ? rd_kafka_opaque(handle) : NULL;
	if (kafka == NULL)
		return;
	/* The line that all brokers are down comes after one that says why. */
	if (strcmp(facility, "FAIL") == 0 || (strcmp(facility, "ERROR") == 0 && strstr(words, "brokers are down") == NULL))
		keep_complaint(kafka, words);
	follow_level(kafka);
	(void)level; /* none of it concerns an operator by itself: code that needs what does not work reports it */
	weir_log(&kafka->log, WEIR_LOG_DEBUG, kafka->part, "librdkafka: %s: %s", facility, words);
}

/* The broker's name stands before the first ": "; for words that are not cut in the middle of one there is room. */
bool weir_kafka_complaint(struct weir_kafka *kafka, char *text, size_t bytes, const struct weir_kafka_cause **cause)
{
	pthread_mutex_lock(&kafka->lock);
	bool some = kafka->complaint[0] != '\0';
	const struct weir_kafka_cause *known = weir_kafka_cause(kafka->complaint);
	const char *end = strstr(kafka->complaint, ": ");
	int name = end != NULL ? (int)(end - kafka->complaint + 2) : 0;
	if (some && known->words != NULL)
		snprintf(text, bytes, "%.*s%s", name, kafka->complaint, known->words);
	else if (some)
		snprintf(text, bytes, "%s%s", kafka->complaint, weir_errno_advice(kafka->complaint));
	pthread_mutex_unlock(&kafka->lock);
	if (cause != NULL)
		*cause = known;
	return some;
}

void weir_kafka_content(struct weir_kafka *kafka)
{
	pthread_mutex_lock(&kafka->lock);
	kafka->complaint[0] = '\0';
	pthread_mutex_unlock(&kafka->lock);
}

/* ---- certificates of brokers ---- */

static void note_certificate(struct weir_kafka *kafka, const char *broker, int64_t ends_s)
{
	size_t i = 0;
	pthread_mutex_lock(&kafka->lock);
	while (i < kafka->certificate_count && strcmp(kafka->certificates[i].broker, broker) != 0)
		i++;
	if (i == kafka->certificate_count && i < BROKERS_MOST)
		kafka->certificates[kafka->certificate_count++].broker = weir_copy(broker, strlen(broker));
	if (i < kafka->certificate_count)
		kafka->certificates[i].ends_s = ends_s;
	pthread_mutex_unlock(&kafka->lock);
}

/*
 * Called by librdkafka's threads in each handshake, for each certificate of the chain, the broker's own at depth 0. It
 * looks on: what OpenSSL found stands.
 */
static int on_certificate(rd_kafka_t *handle, const char *broker, int32_t id, int *found, int depth, const char *der,
                          size_t length, char *words, size_t bytes, void *opaque)
{
	(void)handle, (void)id, (void)words, (void)bytes;
	int64_t ends_s = depth == 0 ? weir_certificate_ends_s((struct weir_span){der, (uint32_t)length}) : 0;
	if (ends_s != 0)
		note_certificate(opaque, broker, ends_s);
	return *found == 0;
}

/* Where a configuration trusts every certificate, what OpenSSL found would end a handshake that it is to let through. */
static void watch_certificates(rd_kafka_conf_t *conf)
{
	char verifies[sizeof "false"];
	size_t bytes = sizeof verifies;
	if (rd_kafka_conf_get(conf, "enable.ssl.certificate.verification", verifies, &bytes) == RD_KAFKA_CONF_OK &&
	    strcmp(verifies, "true") == 0)
		(void)rd_kafka_conf_set_ssl_cert_verify_cb(conf, on_certificate); /* fails where librdkafka has no TLS */
}

void weir_kafka_each_certificate(struct weir_kafka *kafka,
                                 void (*tell)(void *context, const char *broker, int64_t ends_s), void *context)
{
	pthread_mutex_lock(&kafka->lock);
	for (size_t i = 0; i < kafka->certificate_count; i++)
		tell(context, kafka->certificates[i].broker, kafka->certificates[i].ends_s);
	pthread_mutex_unlock(&kafka->lock);
}

/* ---- handles ---- */

/* Sets one of weir's own values. Only a name that is newer than this librdkafka may be rejected. */
static void put(rd_kafka_conf_t *conf, const struct weir_kafka_property *property)
{
	char words[WORDS_BYTES];
	rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, property->name, property->value, words, sizeof words);
	if (result == RD_KAFKA_CONF_OK || (result == RD_KAFKA_CONF_UNKNOWN && property->newer))
		return;
	fprintf(stderr, "weir: librdkafka %s rejects a property that weir needs: %s\n", rd_kafka_version_str(), words);
	abort();
}

rd_kafka_conf_t *weir_kafka_conf(struct weir_kafka *kafka, const struct weir_kafka_property *fixed)
{
	rd_kafka_conf_t *conf = rd_kafka_conf_new();
	char words[WORDS_BYTES];
	put(conf, &(struct weir_kafka_property){"bootstrap.servers", kafka->brokers, false});
	put(conf, &(struct weir_kafka_property){"client.id", kafka->client, false});
	for (const struct weir_kafka_property *property = defaults; property->name != NULL; property++)
		put(conf, property);
	for (size_t i = 0; i < kafka->setting_count; i++) /* they were checked when they were read */
		(void)rd_kafka_conf_set(conf, kafka->settings[i].name, kafka->settings[i].value, words, sizeof words);
	for (const struct weir_kafka_property *property = fixed; property != NULL && property->name != NULL; property++)
		put(conf, property);
	rd_kafka_conf_set_opaque(conf, kafka);
	rd_kafka_conf_set_log_cb(conf, on_log);
	watch_certificates(conf);
	return conf;
}

enum weir_status weir_kafka_open(struct weir_kafka *kafka, rd_kafka_type_t type, rd_kafka_conf_t *conf,
                                 rd_kafka_t **handle, struct weir_error *error)
{
	char words[WORDS_BYTES];
	pthread_mutex_lock(&kafka->lock);
	kafka->holders++;
	pthread_mutex_unlock(&kafka->lock);
	*handle = rd_kafka_new(type, conf, words, sizeof words);
	if (*handle != NULL)
		return WEIR_OK;
	rd_kafka_conf_destroy(conf);
	release(kafka); /* the owner still holds it */
	return weir_json_fail(&kafka->at, error, "%s%s", words, weir_errno_advice(words));
}

/* A handle's end on another thread. The last of the two threads that use it frees it. */
struct ending {
	rd_kafka_t *handle;
	pthread_mutex_t lock;
	pthread_cond_t done;
	bool ended, left;
};

static void free_ending(struct ending *ending)
{
	pthread_mutex_destroy(&ending->lock);
	pthread_cond_destroy(&ending->done);
	free(ending);
}

static void destroy(rd_kafka_t *handle)
{
	struct weir_kafka *kafka = rd_kafka_opaque(handle);
	rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
	release(kafka);
}

static void *end_handle(void *context)
{
	struct ending *ending = context;
	destroy(ending->handle);
	pthread_mutex_lock(&ending->lock);
	ending->ended = true;
	bool left = ending->left;
	pthread_cond_signal(&ending->done);
	pthread_mutex_unlock(&ending->lock);
	if (left)
		free_ending(ending);
	return NULL;
}

void weir_kafka_end(rd_kafka_t *handle, int64_t wait_ms)
{
	if (handle == NULL)
		return;
	struct ending *ending = weir_alloc(1, sizeof *ending);
	struct weir_deadline deadline = weir_deadline_in_ms(wait_ms);
	pthread_t thread;
	ending->handle = handle;
	pthread_mutex_init(&ending->lock, NULL);
	weir_condition_init(&ending->done);
	if (pthread_create(&thread, NULL, end_handle, ending) != 0) {
		destroy(handle);
		free_ending(ending);
		return;
	}
	pthread_detach(thread);
	pthread_mutex_lock(&ending->lock);
	while (!ending->ended && weir_condition_wait(&ending->done, &ending->lock, &deadline))
		;
	bool ended = ending->ended;
	ending->left = !ended;
	pthread_mutex_unlock(&ending->lock);
	if (ended)
		free_ending(ending);
}
