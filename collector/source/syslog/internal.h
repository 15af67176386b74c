/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the syslog source share. Only source_syslog*.c include it. */
#ifndef COLLECTOR_SOURCE_SYSLOG_INTERNAL_H
#define COLLECTOR_SOURCE_SYSLOG_INTERNAL_H

#include "collector/source/source_senders.h"
#include "collector/source/source_unreplayable.h"
#include "collector/source/syslog/source_syslog.h"
#include "collector/source/syslog/syslog_line.h"

#include <sys/socket.h>

enum {
	SYSLOG_CHUNK_BYTES = 256 << 10, /* a chunk ends once it has this much */
	SYSLOG_CONNECTIONS_MAX = 4096,
};

struct syslog_udp;
struct syslog_tcp;

struct syslog_config {
	const char *name; /* read where zones choose their sources */
	bool tcp;
	const char *listen; /* as configured */
	const char *zone_name;
	bool follow;
	char host[256]; /* "*": every address of the machine */
	char port[8];
	int64_t receive_buffer_bytes;
	int64_t connections; /* how many may be open at a time */
	int64_t share;       /* how many of them for one address; 0: a quarter */
	struct source_senders from;
	int64_t idle_ms; /* a connection is closed after being silent for so long */
	int64_t line_max;
};

struct syslog_source {
	struct source_unreplayable base; /* first */
	struct syslog_config config;
	bool once;
	struct syslog_udp *udp; /* either this or tcp is set; with `once` neither */
	struct syslog_tcp *tcp;
	struct syslog_line line;
	/* to hand out: lines, and after them possibly one that is too long */
	struct weir_text lines, long_line;
	uint64_t long_skipped; /* above 0: there is a long_line */
	bool handed_lines, handed_long;
	/* the reading thread's counts; collect() copies them to the status */
	uint64_t received, dropped, malformed, refused, errors;
	int64_t problem_until_ms; /* monotonic: a problem is shown until then */
	char problem[256];
	bool reads_on;
};

/* The members of the configuration; read into struct syslog_config. */
extern const struct weir_json_rule syslog_members[];

/** Reads the configuration. @param zone  returned with WEIR_OK: the caller owns it */
WEIR_MUST_USE enum weir_status syslog_configure(struct syslog_config *config, const struct weir_json *json,
                                                const struct source_context *context, struct time_zone **zone,
                                                struct weir_error *error);

/** Takes a message. @param skipped  above 0: it is too long, and this many of its bytes are missing here */
void syslog_source_take(struct syslog_source *source, struct weir_span message, uint64_t skipped, int64_t now_ms);

/** Whether what was taken must be handed out first. */
static inline bool syslog_source_full(const struct syslog_source *source)
{
	return source->lines.length >= SYSLOG_CHUNK_BYTES || source->long_skipped > 0;
}

/** Shows a problem for some time. @param reads_on  something was lost, but messages are still received */
void syslog_source_problem(struct syslog_source *source, bool reads_on, const char *format, ...) WEIR_PRINTF(3, 4);

/** Creates a socket bound to the configured address; for TCP it listens. */

WEIR_MUST_USE enum weir_status syslog_socket(const struct syslog_config *config, int *fd, struct weir_error *error);

/** @param fd  taken */
struct syslog_udp *syslog_udp_new(int fd, const struct syslog_config *config);
void syslog_udp_free(struct syslog_udp *udp);
int syslog_udp_fd(const struct syslog_udp *udp);
/** Receives what is there, until the source is full. */
void syslog_udp_read(struct syslog_udp *udp, struct syslog_source *source, int64_t now_ms);

/** @param fd  taken */
WEIR_MUST_USE enum weir_status syslog_tcp_new(int fd, const struct syslog_config *config, struct syslog_tcp **tcp,
                                              struct weir_error *error);
void syslog_tcp_free(struct syslog_tcp *tcp);
int syslog_tcp_fd(const struct syslog_tcp *tcp);
/** Receives what is there, until the source is full; accepts and closes connections. */
void syslog_tcp_read(struct syslog_tcp *tcp, struct syslog_source *source, int64_t now_ms);

#endif
