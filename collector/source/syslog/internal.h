/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the syslog source share: included by source_syslog*.c alone. */
#ifndef COLLECTOR_SOURCE_SYSLOG_INTERNAL_H
#define COLLECTOR_SOURCE_SYSLOG_INTERNAL_H

#include "collector/source/source_unreplayable.h"
#include "collector/source/syslog/source_syslog.h"
#include "collector/source/syslog/syslog_line.h"
#include "common/bytes/address.h"

#include <sys/socket.h>

enum {
	SYSLOG_CHUNK_BYTES = 256 << 10, /* a chunk has little more */
	SYSLOG_CONNECTIONS_MAX = 4096,
	SYSLOG_NETWORKS_MAX = 64,
};

struct syslog_udp;
struct syslog_tcp;

struct syslog_config {
	bool tcp;
	const char *listen; /* as configured */
	const char *zone_name;
	bool follow;
	char host[256]; /* "*": every address of the machine */
	char port[8];
	int64_t receive_buffer_bytes;
	int64_t connections; /* at most so many at a time */
	int64_t share;       /* and so many of one address; 0: a quarter of them */
	struct weir_network from[SYSLOG_NETWORKS_MAX];
	uint32_t from_count; /* 0: from everywhere */
	int64_t idle_ms;     /* one that has been silent for so long is closed */
	int64_t line_max;
};

struct syslog_source {
	struct source_unreplayable base; /* first */
	struct syslog_config config;
	bool once;
	struct syslog_udp *udp; /* one of the two; both NULL in `once` */
	struct syslog_tcp *tcp;
	struct syslog_line line;
	/* what is handed out: lines, and after them perhaps one that is too long */
	struct weir_text lines, long_line;
	uint64_t long_skipped; /* above 0: there is one */
	bool handed_lines, handed_long;
	/* this thread's counts; the status takes them over at each collect() */
	uint64_t received, dropped, malformed, refused, errors;
	int64_t problem_until_ms; /* a problem is shown for a while after it was met */
	char problem[256];
	bool reads_on;
};

/* Of the configuration; read into struct syslog_config. */
extern const struct weir_json_rule syslog_members[];

/** @param zone  returned, with WEIR_OK alone */
WEIR_MUST_USE enum weir_status syslog_configure(struct syslog_config *config, const struct weir_json *json,
                                                const struct source_context *context, struct time_zone **zone,
                                                struct weir_error *error);

/** Takes a message. @param skipped  above 0: it is too long, and so many of its bytes are not here */
void syslog_source_take(struct syslog_source *source, struct weir_span message, uint64_t skipped, int64_t now_ms);

/** Whether what was taken must be handed out first. */
static inline bool syslog_source_full(const struct syslog_source *source)
{
	return source->lines.length >= SYSLOG_CHUNK_BYTES || source->long_skipped > 0;
}

/** Shows a problem for some time. @param reads_on  something was lost, but messages are taken all the same */
void syslog_source_problem(struct syslog_source *source, bool reads_on, const char *format, ...) WEIR_PRINTF(3, 4);

/** The address of a sender; false: it has none that is known. */
bool syslog_sender(const struct sockaddr_storage *name, struct weir_address *address);

/** Whether messages are taken from a sender. */
bool syslog_takes_from(const struct syslog_config *config, const struct sockaddr_storage *name);

/** A bound socket of the configured address; TCP: listening. */
WEIR_MUST_USE enum weir_status syslog_socket(const struct syslog_config *config, int *fd, struct weir_error *error);

/** @param fd  taken */
struct syslog_udp *syslog_udp_new(int fd, const struct syslog_config *config);
void syslog_udp_free(struct syslog_udp *udp);
int syslog_udp_fd(const struct syslog_udp *udp);
/** Takes what is there, until the source is full. */
void syslog_udp_read(struct syslog_udp *udp, struct syslog_source *source, int64_t now_ms);

/** @param fd  taken */
WEIR_MUST_USE enum weir_status syslog_tcp_new(int fd, const struct syslog_config *config, struct syslog_tcp **tcp,
                                              struct weir_error *error);
void syslog_tcp_free(struct syslog_tcp *tcp);
int syslog_tcp_fd(const struct syslog_tcp *tcp);
/** Takes what is there, until the source is full; opens and closes connections. */
void syslog_tcp_read(struct syslog_tcp *tcp, struct syslog_source *source, int64_t now_ms);

#endif
