/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that knows libcurl. */
#include "common/http_client/http_client.h"

#include "common/base/alloc.h"
#include "common/base/words.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BODY_BUFFER_BYTES = 512 << 10, GATHERED_BYTES = 256 << 10 };

struct weir_http_client {
	struct weir_http_client_options options;
	CURL *curl;
	struct weir_text *body; /* of the question that is asked */
	size_t room;            /* what it may still take */
	const struct weir_http_call *call;
	struct weir_http_answer *answer;
	int unkept; /* errno: the descriptor did not take it */
	/* Libcurl gives 16 KiB at a time: they are written together. */
	char *gathered; /* GATHERED_BYTES; NULL until a body goes to a descriptor */
	size_t gathered_length;
	char words[CURL_ERROR_SIZE];
};

/* Writes what was gathered. @return false: the descriptor does not take it */
static bool write_gathered(struct weir_http_client *client)
{
	size_t done = 0;
	while (done < client->gathered_length) {
		ssize_t wrote = write(client->call->body_fd, client->gathered + done, client->gathered_length - done);
		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			client->unkept = wrote < 0 ? errno : EIO;
			client->answer->body_fd_full = false;
			break;
		}
		done += (size_t)wrote;
	}
	client->answer->body_fd_bytes += done;
	bool good = done == client->gathered_length;
	client->gathered_length = 0;
	return good;
}

/* Keeps what the descriptor is to take. @return how much that was: less than all ends the call */
static size_t write_body(struct weir_http_client *client, const char *bytes, size_t length)
{
	struct weir_http_answer *answer = client->answer;
	uint64_t room = client->call->body_fd_most - answer->body_fd_bytes - client->gathered_length;
	size_t most = length < room ? length : (size_t)room;
	answer->body_fd_full = most < length;
	for (size_t done = 0; done < most;) {
		size_t left = GATHERED_BYTES - client->gathered_length, part = most - done < left ? most - done : left;
		memcpy(client->gathered + client->gathered_length, bytes + done, part);
		client->gathered_length += part;
		done += part;
		if (client->gathered_length == GATHERED_BYTES && !write_gathered(client))
			return 0;
	}
	return most;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
	struct weir_http_client *client = context;
	long code = 0;
	if (client->call->body_fd > 0 && curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &code) == CURLE_OK &&
	    code / 100 == 2)
		return write_body(client, bytes, size * count);
	if (size * count > client->room)
		return 0;
	client->room -= size * count;
	weir_text_append(client->body, bytes, size * count);
	return size * count;
}

static int go_on(void *context, curl_off_t to_come, curl_off_t come, curl_off_t to_go, curl_off_t gone)
{
	(void)to_come, (void)come, (void)to_go, (void)gone;
	const struct weir_http_client *client = context;
	return client->options.stop != NULL && atomic_load(client->options.stop);
}

static bool set_options(struct weir_http_client *client)
{
	CURL *curl = client->curl;
	const struct weir_http_client_options *options = &client->options;
	return curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->words) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_ms) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)options->answer_ms) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       /* Name servers that are silent are not waited for once it has taken too long, or is to stop. */
	       curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_FILETIME, 1L) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, (long)options->path_as_is) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_USERAGENT, options->agent) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_WRITEDATA, client) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, go_on) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
	       (options->stall_ms == 0 ||
	        (curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L) == CURLE_OK &&
	         curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)((options->stall_ms + 999) / 1000)) == CURLE_OK)) &&
	       (!options->any_host || curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L) == CURLE_OK) &&
	       (!options->cookies || curl_easy_setopt(curl, CURLOPT_COOKIEFILE, "") == CURLE_OK) &&
	       (options->ca_file == NULL || curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca_file) == CURLE_OK);
}

enum weir_status weir_http_client_new(const struct weir_http_client_options *options, struct weir_http_client **out,
                                      struct weir_error *error)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return weir_fail(error, WEIR_IO, "cannot initialize libcurl");
	struct weir_http_client *client = weir_alloc(1, sizeof *client);
	client->options = *options;
	client->curl = curl_easy_init();
	if (client->curl == NULL || !set_options(client)) {
		weir_http_client_free(client);
		return weir_fail(error, WEIR_IO, "cannot initialize libcurl");
	}
	*out = client;
	return WEIR_OK;
}

void weir_http_client_free(struct weir_http_client *client)
{
	if (client == NULL)
		return;
	curl_easy_cleanup(client->curl);
	free(client->gathered);
	free(client);
	curl_global_cleanup();
}

static bool set_headers(CURL *curl, const struct weir_http_call *call, struct curl_slist **list)
{
	*list = NULL;
	for (size_t i = 0; i < WEIR_HTTP_HEADERS_MAX && call->headers[i] != NULL; i++) {
		struct curl_slist *longer = curl_slist_append(*list, call->headers[i]);
		if (longer == NULL)
			return false;
		*list = longer;
	}
	return curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *list) == CURLE_OK;
}

static bool set_call(CURL *curl, const struct weir_http_call *call)
{
	bool good = curl_easy_setopt(curl, CURLOPT_URL, call->address) == CURLE_OK;
	if (call->body.at != NULL)
		good = good && curl_easy_setopt(curl, CURLOPT_POST, 1L) == CURLE_OK &&
		       curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body.at) == CURLE_OK &&
		       curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)call->body.length) == CURLE_OK;
	else
		good = good && curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L) == CURLE_OK;
	/* Libcurl takes the user's ticket where an account is given that is empty. */
	const char *account = call->negotiate ? ":" : call->aws_account;
	/* What is written to a descriptor is the document as it lies there: offsets are those of its bytes. */
	const char *encodings = call->body_fd > 0 ? NULL : "";
	/* Each piece of it is a read and a write. */
	long buffer_bytes = call->body_fd > 0 ? BODY_BUFFER_BYTES : CURL_MAX_WRITE_SIZE;
	return good && curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, encodings) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, buffer_bytes) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_HTTPAUTH, call->negotiate ? CURLAUTH_NEGOTIATE : CURLAUTH_BASIC) ==
	           CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, call->aws_scope) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_USERPWD, account) == CURLE_OK;
}

/* libcurl's words may quote what a server said. */
static const char *why(struct weir_http_client *client, CURLcode done)
{
	if (done == CURLE_WRITE_ERROR && client->unkept != 0)
		return weir_errno_words(client->unkept);
	if (done == CURLE_WRITE_ERROR)
		return "the answer is too long";
	if (done == CURLE_ABORTED_BY_CALLBACK)
		return "stopped";
	weir_words_clean(client->words);
	return client->words[0] != '\0' ? client->words : curl_easy_strerror(done);
}

static void take_etag(CURL *curl, struct weir_http_answer *answer)
{
	struct curl_header *header;
	if (curl_easy_header(curl, "ETag", 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
	    strlen(header->value) < sizeof answer->etag)
		snprintf(answer->etag, sizeof answer->etag, "%s", header->value);
}

static void take_place(CURL *curl, struct weir_http_answer *answer)
{
	const char *location = NULL;
	long modified_s = -1;
	if (curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &location) == CURLE_OK && location != NULL &&
	    strlen(location) < sizeof answer->location)
		snprintf(answer->location, sizeof answer->location, "%s", location);
	if (curl_easy_getinfo(curl, CURLINFO_FILETIME, &modified_s) == CURLE_OK && modified_s > 0)
		answer->last_modified_ms = (int64_t)modified_s * 1000;
}

enum weir_status weir_http_client_call(struct weir_http_client *client, const struct weir_http_call *call,
                                       struct weir_http_answer *answer, struct weir_error *error)
{
	struct curl_slist *list;
	client->words[0] = '\0';
	client->unkept = 0;
	answer->code = 0;
	client->body = &answer->body;
	client->room = client->options.body_most_bytes;
	client->call = call;
	client->answer = answer;
	answer->retry_after_ms = -1;
	answer->etag[0] = answer->location[0] = '\0';
	answer->last_modified_ms = 0;
	answer->body_fd_bytes = 0;
	answer->body_fd_full = answer->refused = false;
	if (call->body_fd > 0 && client->gathered == NULL)
		client->gathered = weir_alloc(GATHERED_BYTES, 1);
	CURLcode done = CURLE_OUT_OF_MEMORY;
	if (set_headers(client->curl, call, &list) && set_call(client->curl, call))
		done = curl_easy_perform(client->curl);
	if (!write_gathered(client) && done == CURLE_OK) /* also what came before it failed */
		done = CURLE_WRITE_ERROR;
	(void)curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(list);
	answer->refused = done == CURLE_COULDNT_CONNECT || done == CURLE_COULDNT_RESOLVE_HOST;
	if (done == CURLE_URL_MALFORMAT || done == CURLE_UNSUPPORTED_PROTOCOL)
		return weir_fail(error, WEIR_INVALID, "%s", curl_easy_strerror(done));
	bool known = curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &answer->code) == CURLE_OK;
	curl_off_t after_s = 0;
	if (curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &after_s) == CURLE_OK && after_s > 0)
		answer->retry_after_ms = after_s < INT_MAX ? (int64_t)after_s * 1000 : INT_MAX;
	take_etag(client->curl, answer);
	take_place(client->curl, answer);
	if (done == CURLE_OK && known)
		return WEIR_OK;
	const char *words = why(client, done);
	return weir_fail(error, WEIR_IO, "%s%s", words, client->words == words ? weir_errno_advice(words) : "");
}

bool weir_http_client_escape(struct weir_http_client *client, struct weir_text *text, struct weir_span value)
{
	if (value.length == 0) /* a length of 0 would stand for a string's own */
		return true;
	char *escaped = value.length < INT_MAX / 4 ? curl_easy_escape(client->curl, value.at, (int)value.length) : NULL;
	if (escaped == NULL)
		return false;
	weir_text_puts(text, escaped);
	curl_free(escaped);
	return true;
}

/* ---- a server's certificate ---- */

static int64_t find_expiry(CURL *curl)
{
	struct curl_certinfo *info = NULL;
	static const char name[] = "Expire date:";
	if (curl_easy_getinfo(curl, CURLINFO_CERTINFO, &info) != CURLE_OK || info == NULL || info->num_of_certs == 0)
		return 0;
	for (const struct curl_slist *line = info->certinfo[0]; line != NULL; line = line->next)
		if (strncmp(line->data, name, sizeof name - 1) == 0)
			return (int64_t)curl_getdate(line->data + sizeof name - 1, NULL);
	return 0;
}

/* @param trusts  takes any certificate, to see it */
static CURLcode connect_only(const char *address, const char *ca_file, int64_t wait_ms, bool trusts, int64_t *expires_s,
                             char words[CURL_ERROR_SIZE])
{
	CURL *curl = curl_easy_init();
	CURLcode done = CURLE_OUT_OF_MEMORY;
	words[0] = '\0';
	if (curl == NULL)
		return done;
	if (curl_easy_setopt(curl, CURLOPT_URL, address) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, words) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)wait_ms) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, trusts ? 0L : 1L) == CURLE_OK &&
	    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, trusts ? 0L : 2L) == CURLE_OK &&
	    (ca_file == NULL || curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file) == CURLE_OK))
		done = curl_easy_perform(curl);
	if (done == CURLE_OK)
		*expires_s = find_expiry(curl);
	curl_easy_cleanup(curl);
	return done;
}

enum weir_status weir_http_client_look(const char *host, unsigned port, const char *ca_file, int64_t wait_ms,
                                       struct weir_http_certificate *certificate, struct weir_error *error)
{
	char address[300], words[CURL_ERROR_SIZE];
	*certificate = (struct weir_http_certificate){0};
	bool bare = strchr(host, ':') != NULL && host[0] != '[';
	snprintf(address, sizeof address, bare ? "https://[%s]:%u/" : "https://%s:%u/", host, port);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return weir_fail(error, WEIR_IO, "cannot initialize libcurl");
	CURLcode done = connect_only(address, ca_file, wait_ms, false, &certificate->expires_s, words);
	certificate->shown = done == CURLE_OK || done == CURLE_PEER_FAILED_VERIFICATION;
	if (done == CURLE_PEER_FAILED_VERIFICATION) {
		weir_words_clean(words);
		snprintf(certificate->refusal, sizeof certificate->refusal, "%s", words);
		(void)connect_only(address, ca_file, wait_ms, true, &certificate->expires_s, words);
	}
	curl_global_cleanup();
	if (done == CURLE_COULDNT_CONNECT || done == CURLE_OPERATION_TIMEDOUT || done == CURLE_COULDNT_RESOLVE_HOST)
		return weir_fail(error, WEIR_IO, "%s%s", words[0] != '\0' ? words : curl_easy_strerror(done),
		                 weir_errno_advice(words));
	return WEIR_OK;
}
