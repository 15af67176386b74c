/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A range of a file, from a DataNode.
 *
 * The NameNode is asked once a file where it lies. Its answer is an address whose offset is replaced, and which is used
 * until the DataNode does not give the file any more. HttpFS gives the bytes itself.
 */
#include "collector/source/remote/webhdfs/internal.h"

#include "common/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Keeps an address, in place of another's. @param address  taken; NULL: forgets what is kept of this file */
static void keep(struct webhdfs *kind, uint64_t id, char *address)
{
	struct webhdfs_place *place = &kind->places[id & (WEBHDFS_PLACES - 1)];
	pthread_mutex_lock(&kind->mutex);
	if (address != NULL || place->id == id) {
		free(place->address);
		*place = (struct webhdfs_place){.id = address != NULL ? id : 0, .address = address};
	}
	pthread_mutex_unlock(&kind->mutex);
}

/* The address that is kept of a file. Returned; NULL: none is. */
static char *kept(struct webhdfs *kind, uint64_t id)
{
	const struct webhdfs_place *place = &kind->places[id & (WEBHDFS_PLACES - 1)];
	pthread_mutex_lock(&kind->mutex);
	char *address = place->id == id ? weir_copy(place->address, strlen(place->address)) : NULL;
	pthread_mutex_unlock(&kind->mutex);
	return address;
}

/* The address without offset= and length=: others of its parameters stay, as a token's. Returned, the caller frees. */
static char *without_offset(const char *location)
{
	struct weir_text text = {0};
	const char *query = strchr(location, '?');
	size_t path = query != NULL ? (size_t)(query - location) : strlen(location);
	weir_text_append(&text, location, path);
	weir_text_append(&text, "?", 1);
	while (query != NULL && *query != '\0') {
		query++;
		size_t length = strcspn(query, "&");
		if (strncasecmp(query, "offset=", 7) != 0 && strncasecmp(query, "length=", 7) != 0 && length > 0) {
			weir_text_append(&text, query, length);
			weir_text_append(&text, "&", 1);
		}
		query += length;
	}
	weir_text_append(&text, "", 1);
	return text.at;
}

/* A login page, or an address in clear of one that was asked by TLS, is no DataNode. */
static enum weir_status check_location(const struct webhdfs_answer *answer, struct weir_error *error)
{
	const char *location = answer->http.location;
	const char *host = strstr(location, "://");
	host = host != NULL ? host + 3 : location;
	int length = (int)strcspn(host, "/?");
	if (strstr(location, "/webhdfs/v1/") == NULL || strchr(location, '?') == NULL)
		return weir_fail(error, WEIR_IO, "the NameNode redirects to %.*s, which is no address of a DataNode",
		                 length < 100 ? length : 100, host);
	if (strncmp(answer->url, "https:", 6) == 0 && strncmp(location, "https:", 6) != 0)
		return weir_fail(error, WEIR_IO, "the NameNode redirects from TLS to %.*s in clear",
		                 length < 100 ? length : 100, host);
	return WEIR_OK;
}

/* Asks where a file lies. WEIR_OK: there is an address, returned, or `direct` is set. */
static enum weir_status find(struct webhdfs *kind, uint64_t id, char **address, struct weir_error *error)
{
	struct webhdfs_answer answer = {0};
	char path[64];
	webhdfs_inode_path(id, path);
	enum weir_status status = webhdfs_ask(kind, path, "op=OPEN&offset=0&length=1", 0, 0, &answer, error);
	if (status == WEIR_OK && answer.http.code < 300) {
		kind->direct = true;
	} else if (status == WEIR_OK) {
		status = check_location(&answer, error);
		if (status == WEIR_OK) {
			*address = without_offset(answer.http.location);
			keep(kind, id, weir_copy(*address, strlen(*address)));
		}
	}
	webhdfs_answer_deinit(&answer);
	return status;
}

static bool is_behind_end(const struct webhdfs_answer *answer)
{
	return strcmp(answer->exception, "EOFException") == 0 ||
	       (answer->http.code == 403 && strstr(answer->words, "out of the range") != NULL);
}

static enum weir_status read_direct(struct webhdfs *kind, uint64_t id, uint64_t from, uint64_t to, int fd,
                                    struct webhdfs_answer *answer, struct weir_error *error)
{
	char path[64], query[96];
	webhdfs_inode_path(id, path);
	snprintf(query, sizeof query, "op=OPEN&offset=%" PRIu64 "&length=%" PRIu64, from, to - from);
	return webhdfs_ask(kind, path, query, fd, to - from, answer, error);
}

static enum weir_status read_place(struct webhdfs *kind, const char *place, uint64_t from, uint64_t to, int fd,
                                   struct webhdfs_answer *answer, struct weir_error *error)
{
	struct weir_text address = {0};
	weir_text_printf(&address, "%soffset=%" PRIu64 "&length=%" PRIu64, place, from, to - from);
	weir_text_append(&address, "", 1);
	enum weir_status status = webhdfs_ask_place(kind, address.at, fd, to - from, answer, error);
	weir_text_deinit(&address);
	return status;
}

/* @param place  its address, if one is kept; taken */
static enum weir_status read_once(struct webhdfs *kind, char *place, uint64_t id, uint64_t from, uint64_t to, int fd,
                                  uint64_t *got, struct weir_error *error)
{
	struct webhdfs_answer answer = {0};
	enum weir_status status = WEIR_OK;
	if (!kind->direct && place == NULL)
		status = find(kind, id, &place, error);
	if (status == WEIR_OK && place == NULL) {
		status = read_direct(kind, id, from, to, fd, &answer, error);
		if (status == WEIR_OK && answer.http.code >= 300) { /* another server is behind its name by now */
			kind->direct = false;
			status = weir_fail(error, WEIR_IO, "the server redirects, which gave bytes itself before");
		}
	} else if (status == WEIR_OK)
		status = read_place(kind, place, from, to, fd, &answer, error);
	*got = answer.http.body_fd_bytes;
	if (status == WEIR_IO && is_behind_end(&answer))
		status = WEIR_INVALID;
	else if (status == WEIR_INVALID)
		status = WEIR_IO; /* a question that is not taken says nothing of the file's length */
	webhdfs_answer_deinit(&answer);
	free(place);
	return status;
}

enum weir_status webhdfs_read(void *context, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
                              uint64_t *got, struct weir_error *error)
{
	struct webhdfs *kind = context;
	char *place = kept(kind, object->id);
	bool was_kept = place != NULL;
	*got = 0;
	enum weir_status status = read_once(kind, place, object->id, from, to, fd, got, error);
	if ((status != WEIR_IO && status != WEIR_END) || kind->direct)
		return status;
	keep(kind, object->id, NULL); /* it may lie elsewhere by now */
	if (*got > 0 || !was_kept || atomic_load(&kind->stop))
		return status;
	return read_once(kind, NULL, object->id, from, to, fd, got, error);
}
