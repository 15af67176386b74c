/* SPDX-License-Identifier: Apache-2.0 */
/* One question to whichever NameNode answers, and what is made of the answer. */
#include "collector/source/remote/webhdfs/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void webhdfs_answer_deinit(struct webhdfs_answer *answer)
{
	weir_text_deinit(&answer->http.body);
}

void webhdfs_inode_path(uint64_t id, char path[64])
{
	snprintf(path, 64, "/.reserved/.inodes/%" PRIu64, id);
}

static size_t take_client(struct webhdfs *kind)
{
	size_t place = 0;
	pthread_mutex_lock(&kind->mutex);
	for (;;) {
		for (place = 0; place < WEBHDFS_CLIENTS && kind->busy[place]; place++)
			;
		if (place < WEBHDFS_CLIENTS)
			break;
		pthread_cond_wait(&kind->freed, &kind->mutex);
	}
	kind->busy[place] = true;
	pthread_mutex_unlock(&kind->mutex);
	return place;
}

static void give_client_back(struct webhdfs *kind, size_t place)
{
	pthread_mutex_lock(&kind->mutex);
	kind->busy[place] = false;
	pthread_cond_signal(&kind->freed);
	pthread_mutex_unlock(&kind->mutex);
}

bool webhdfs_escape(struct webhdfs *kind, struct weir_text *text, struct weir_span value)
{
	size_t place = take_client(kind);
	bool good = weir_http_client_escape(kind->clients[place], text, value);
	give_client_back(kind, place);
	return good;
}

/* "http://nn1:9870/webhdfs/v1/logs/a%20b?op=OPEN&user.name=weir", terminated. @return false: it is too long */
static bool put_address(struct webhdfs *kind, const char *url, const char *path, const char *query,
                        struct weir_text *address)
{
	bool good = true;
	weir_text_clear(address);
	weir_text_printf(address, "%s/webhdfs/v1", url);
	while (*path != '\0' && good) {
		size_t length = strcspn(path, "/");
		good = length <= WEBHDFS_NAME_MOST &&
		       webhdfs_escape(kind, address, (struct weir_span){.at = path, .length = (uint32_t)length});
		path += length;
		if (*path == '/') {
			weir_text_append(address, "/", 1);
			path++;
		}
	}
	weir_text_printf(address, "?%s", query);
	if (kind->token != NULL) {
		weir_text_puts(address, "&delegation=");
		good = good && webhdfs_escape(kind, address, weir_span_of(kind->token));
	} else if (kind->user != NULL) {
		weir_text_puts(address, "&user.name=");
		good = good && webhdfs_escape(kind, address, weir_span_of(kind->user));
	}
	weir_text_append(address, "", 1);
	return good;
}

/* The host of an address, for people: what is behind it may be secret. */
static void show_host(const char *address, char host[128])
{
	const char *at = strstr(address, "://");
	at = at != NULL ? at + 3 : address;
	snprintf(host, 128, "%.*s", (int)(strcspn(at, "/?") < 120 ? strcspn(at, "/?") : 120), at);
}

/* What helps where a server does not know who asks: most want Kerberos then. */
static const char *remedy(const struct webhdfs *kind)
{
	if (kind->token != NULL)
		return "the token is none that it takes: get a new one";
	if (kind->negotiate)
		return "it takes no Kerberos ticket of weir's: see klist, KRB5_CLIENT_KTNAME and that \"url\" has the name that "
			   "the server's principal has";
	return "set \"negotiate\" for Kerberos, or \"token\"";
}

/* In words what an answer means that is neither 2xx nor a redirection. */
static enum weir_status refuse(const struct webhdfs *kind, const struct webhdfs_answer *answer, const char *host,
                               struct weir_error *error)
{
	long code = answer->http.code;
	const char *what = answer->words, *name = answer->exception;
	if (code == 404)
		return weir_fail(error, WEIR_END, "%s: there is no such file or folder: %s", host, what);
	if (code == 401)
		return weir_fail(error, WEIR_IO, "%s does not know who asks (401): %s", host, remedy(kind));
	/* A NameNode wraps it in a SecurityException, whose words name it. */
	if (strcmp(name, "InvalidToken") == 0 || strstr(what, "InvalidToken") != NULL ||
	    strcmp(name, "TokenExpiredException") == 0)
		return weir_fail(error, WEIR_IO, "%s does not take the token, which may have expired: %s", host, what);
	if (strcmp(name, "AccessControlException") == 0)
		return weir_fail(error, WEIR_IO, "%s does not permit it: %s", host, what);
	if (code == 400 || code == 405 || code == 501)
		return weir_fail(error, WEIR_INVALID, "%s does not take the question (%ld): %s", host, code, what);
	return weir_fail(error, WEIR_IO, "%s answers %ld%s%s: %s", host, code, name[0] != '\0' ? " " : "", name, what);
}

/* @return WEIR_OK: there is an answer, of whatever code */
static enum weir_status call(struct webhdfs *kind, const char *address, bool negotiate, int fd, uint64_t most,
                             struct webhdfs_answer *answer, struct weir_error *error)
{
	struct weir_http_call question = {.address = address, .negotiate = negotiate, .body_fd = fd, .body_fd_most = most};
	weir_text_clear(&answer->http.body);
	answer->exception[0] = answer->words[0] = '\0';
	size_t place = take_client(kind);
	enum weir_status status = weir_http_client_call(kind->clients[place], &question, &answer->http, error);
	give_client_back(kind, place);
	bool full = status != WEIR_OK && answer->http.body_fd_full; /* more came than was asked for: enough */
	if (full || (status == WEIR_OK && answer->http.code < 400))
		return WEIR_OK;
	if (status == WEIR_OK)
		webhdfs_json_exception(weir_text_span(&answer->http.body), answer->exception, answer->words);
	return status;
}

/* Whether another NameNode may give what this one did not. */
static bool is_elsewhere(enum weir_status status, const struct webhdfs_answer *answer)
{
	return status == WEIR_IO || answer->http.code >= 500 || strcmp(answer->exception, "StandbyException") == 0 ||
	       strcmp(answer->exception, "RetriableException") == 0 || strcmp(answer->exception, "SafeModeException") == 0;
}

/* Asks the NameNode of answer->url. @param elsewhere  set: whether another may give what this one did not */
static enum weir_status ask_one(struct webhdfs *kind, const char *path, const char *query, int fd, uint64_t most,
                                struct webhdfs_answer *answer, bool *elsewhere, struct weir_error *error)
{
	struct weir_text address = {0};
	char host[128];
	show_host(answer->url, host);
	*elsewhere = false;
	if (!put_address(kind, answer->url, path, query, &address)) {
		weir_text_deinit(&address);
		return weir_fail(error, WEIR_INVALID, "a name is too long");
	}
	enum weir_status status = call(kind, address.at, kind->negotiate && kind->token == NULL, fd, most, answer, error);
	weir_text_deinit(&address);
	*elsewhere = answer->http.body_fd_bytes == 0 && is_elsewhere(status, answer);
	if (status != WEIR_OK)
		weir_error_prefix(error, "%s", host);
	else if (answer->http.code >= 400)
		status = refuse(kind, answer, host, error);
	return status;
}

enum weir_status webhdfs_ask(struct webhdfs *kind, const char *path, const char *query, int fd, uint64_t most,
                             struct webhdfs_answer *answer, struct weir_error *error)
{
	enum weir_status status = WEIR_IO;
	bool elsewhere = true;
	size_t asked = kind->current; /* others may move it meanwhile: each is asked once all the same */
	for (size_t tries = 0; tries < kind->url_count && elsewhere && !atomic_load(&kind->stop); tries++) {
		struct weir_error failure;
		answer->url = kind->urls[asked];
		enum weir_status tried = ask_one(kind, path, query, fd, most, answer, &elsewhere, &failure);
		/* That one is in standby says less than why the other does not answer. */
		if (tries == 0 || strcmp(answer->exception, "StandbyException") != 0)
			*error = failure;
		status = tried;
		if (elsewhere)
			kind->current = asked = (asked + 1) % kind->url_count;
	}
	if (elsewhere && kind->url_count > 1)
		weir_error_prefix(error, "no NameNode of %zu serves", kind->url_count);
	return elsewhere && status != WEIR_OK ? WEIR_IO : status;
}

enum weir_status webhdfs_ask_place(struct webhdfs *kind, const char *address, int fd, uint64_t most,
                                   struct webhdfs_answer *answer, struct weir_error *error)
{
	char host[128];
	show_host(address, host);
	enum weir_status status = call(kind, address, false, fd, most, answer, error);
	if (status != WEIR_OK)
		weir_error_prefix(error, "%s", host);
	else if (answer->http.code >= 300 && answer->http.code < 400)
		status = weir_fail(error, WEIR_IO, "%s, which the NameNode names as DataNode, redirects elsewhere", host);
	else if (answer->http.code >= 400)
		status = refuse(kind, answer, host, error);
	return status;
}
