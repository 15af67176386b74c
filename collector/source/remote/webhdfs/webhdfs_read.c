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

static struct webhdfs_place *place_of(struct webhdfs *kind, uint64_t id)
{
	return &kind->places[id & (WEBHDFS_PLACES - 1)];
}

static void forget(struct webhdfs *kind, uint64_t id)
{
	struct webhdfs_place *place = place_of(kind, id);
	free(place->address);
	*place = (struct webhdfs_place){0};
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
static enum weir_status check_location(const struct webhdfs *kind, const char *location, struct weir_error *error)
{
	const char *host = strstr(location, "://");
	host = host != NULL ? host + 3 : location;
	int length = (int)strcspn(host, "/?");
	if (strstr(location, "/webhdfs/v1/") == NULL || strchr(location, '?') == NULL)
		return weir_fail(error, WEIR_IO, "the NameNode redirects to %.*s, which is no address of a DataNode",
		                 length < 100 ? length : 100, host);
	if (strncmp(kind->urls[kind->current], "https:", 6) == 0 && strncmp(location, "https:", 6) != 0)
		return weir_fail(error, WEIR_IO, "the NameNode redirects from TLS to %.*s in clear",
		                 length < 100 ? length : 100, host);
	return WEIR_OK;
}

/* Asks where a file lies. WEIR_OK: the place has its address, or `direct` is set. */
static enum weir_status find(struct webhdfs *kind, uint64_t id, struct weir_error *error)
{
	struct webhdfs_answer answer = {0};
	char path[64];
	webhdfs_inode_path(id, path);
	enum weir_status status = webhdfs_ask(kind, path, "op=OPEN&offset=0&length=1", 0, 0, &answer, error);
	if (status == WEIR_OK && answer.http.code < 300) {
		kind->direct = true;
	} else if (status == WEIR_OK) {
		status = check_location(kind, answer.http.location, error);
		forget(kind, id);
		if (status == WEIR_OK)
			*place_of(kind, id) = (struct webhdfs_place){.id = id, .address = without_offset(answer.http.location)};
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

static enum weir_status read_place(struct webhdfs *kind, uint64_t id, uint64_t from, uint64_t to, int fd,
                                   struct webhdfs_answer *answer, struct weir_error *error)
{
	struct weir_text address = {0};
	weir_text_printf(&address, "%soffset=%" PRIu64 "&length=%" PRIu64, place_of(kind, id)->address, from, to - from);
	weir_text_append(&address, "", 1);
	enum weir_status status = webhdfs_ask_place(kind, address.at, fd, to - from, answer, error);
	weir_text_deinit(&address);
	return status;
}

static enum weir_status read_once(struct webhdfs *kind, uint64_t id, uint64_t from, uint64_t to, int fd, uint64_t *got,
                                  struct weir_error *error)
{
	struct webhdfs_answer answer = {0};
	enum weir_status status = WEIR_OK;
	if (!kind->direct && place_of(kind, id)->id != id)
		status = find(kind, id, error);
	if (status == WEIR_OK && kind->direct)
		status = read_direct(kind, id, from, to, fd, &answer, error);
	else if (status == WEIR_OK)
		status = read_place(kind, id, from, to, fd, &answer, error);
	*got = answer.http.body_fd_bytes;
	if (status == WEIR_IO && is_behind_end(&answer))
		status = WEIR_INVALID;
	else if (status == WEIR_INVALID)
		status = WEIR_IO; /* a question that is not taken says nothing of the file's length */
	webhdfs_answer_deinit(&answer);
	return status;
}

enum weir_status webhdfs_read(void *context, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
                              uint64_t *got, struct weir_error *error)
{
	struct webhdfs *kind = context;
	bool kept = place_of(kind, object->id)->id == object->id;
	*got = 0;
	enum weir_status status = read_once(kind, object->id, from, to, fd, got, error);
	if ((status != WEIR_IO && status != WEIR_END) || kind->direct)
		return status;
	forget(kind, object->id); /* it may lie elsewhere by now */
	if (*got > 0 || !kept || atomic_load(&kind->stop))
		return status;
	return read_once(kind, object->id, from, to, fd, got, error);
}
