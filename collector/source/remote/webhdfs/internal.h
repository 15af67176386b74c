/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this kind share. */
#ifndef COLLECTOR_SOURCE_WEBHDFS_INTERNAL_H
#define COLLECTOR_SOURCE_WEBHDFS_INTERNAL_H

#include "collector/source/remote/remote.h"
#include "collector/source/remote/webhdfs/source_webhdfs.h"
#include "collector/source/remote/webhdfs/webhdfs_json.h"
#include "common/http_client/http_client.h"

#include <pthread.h>

enum {
	WEBHDFS_NAMENODES_MOST = 8,
	WEBHDFS_CLIENTS = 8,
	WEBHDFS_PATHS_MOST = 64,
	WEBHDFS_FOLDERS_MOST = 16384,
	WEBHDFS_PLACES = 4096, /* addresses of DataNodes that are kept: a power of 2 */
	WEBHDFS_ANSWER_MOST_BYTES = 8 << 20,
};

enum webhdfs_unfinished { WEBHDFS_SKIP, WEBHDFS_READ };

/* A folder of the last whole listing. */
struct webhdfs_folder {
	char *path;
	size_t pattern; /* the index in `paths` */
	size_t depth;   /* how many parts of the pattern its path has */
	int64_t modified_ms;
};

/* Where a DataNode gives a file's bytes, without the offset. */
struct webhdfs_place {
	uint64_t id;
	char *address;
};

struct webhdfs {
	struct remote_settings settings;
	char *urls[WEBHDFS_NAMENODES_MOST]; /* "http://nn1:9870" */
	size_t url_count;
	_Atomic size_t current;
	char *paths[WEBHDFS_PATHS_MOST];
	size_t path_count;
	char *user, *token, *ca;
	int unfinished; /* enum webhdfs_unfinished */
	bool negotiate;
	struct weir_http_client *clients[WEBHDFS_CLIENTS]; /* each used by one thread at a time */
	bool busy[WEBHDFS_CLIENTS];
	pthread_mutex_t mutex; /* of busy and places */
	pthread_cond_t freed;
	_Atomic bool stop;
	_Atomic bool direct; /* HttpFS: it gives the bytes itself */
	bool no_blocks;      /* it does not say whether a file is open */
	bool no_pages;       /* it lists a folder in one answer alone */
	struct webhdfs_folder *folders;
	size_t folder_count;
	struct webhdfs_place *places; /* WEBHDFS_PLACES of them, each for the ids that fall on it */
};

/* ---- webhdfs_ask.c ---- */

struct webhdfs_answer {
	struct weir_http_answer http;
	char exception[WEBHDFS_WORDS_BYTES]; /* of one that is no 2xx */
	char words[WEBHDFS_WORDS_BYTES];
	const char *url; /* of the NameNode that was asked, borrowed of `urls`; NULL: none was */
};

void webhdfs_answer_deinit(struct webhdfs_answer *answer);

/**
 * Asks the NameNode that answered last, and where it does not, or is in standby, the others.
 *
 * @param path   of the file system, not escaped
 * @param query  "op=LISTSTATUS", escaped
 * @param fd     0, or where the body of a 2xx goes, `most` bytes at most
 * @return WEIR_OK: 2xx, or a redirection; WEIR_END: 404; WEIR_INVALID: 400, it knows no such operation; WEIR_IO
 */
WEIR_MUST_USE enum weir_status webhdfs_ask(struct webhdfs *kind, const char *path, const char *query, int fd,
                                           uint64_t most, struct webhdfs_answer *answer, struct weir_error *error);
/** Asks an address of a DataNode as it is. */
WEIR_MUST_USE enum weir_status webhdfs_ask_place(struct webhdfs *kind, const char *address, int fd, uint64_t most,
                                                 struct webhdfs_answer *answer, struct weir_error *error);
/** Appends a value as an address holds it. */
bool webhdfs_escape(struct webhdfs *kind, struct weir_text *text, struct weir_span value);
/** "/.reserved/.inodes/ID". */
void webhdfs_inode_path(uint64_t id, char path[64]);

/* ---- webhdfs_list.c, webhdfs_read.c: struct remote_ops ---- */

enum weir_status webhdfs_list(void *kind, bool whole, struct remote_round *round, struct weir_error *error);
enum weir_status webhdfs_read(void *kind, const struct remote_object *object, uint64_t from, uint64_t to, int fd,
                              uint64_t *got, struct weir_error *error);

#endif
