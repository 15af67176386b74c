/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of formats: what each says of itself, and the list of them.
 *
 * A new format is a file of its own with a struct format_kind, its test, a line in FORMAT_KINDS, its row in formats.md,
 * and its reason there and in metrics.md (`weir validate --metrics` writes that).
 */
#ifndef COLLECTOR_FORMAT_KINDS_H
#define COLLECTOR_FORMAT_KINDS_H

#include "collector/format/format.h"
#include "common/json/json_rules.h"

/* Which of the common options a format takes; "type", "time_zone", "cost" and "client_ip" are every format's. */
enum {
	FORMAT_TAKES_FIELDS = 1, /* "fields" */
	FORMAT_TAKES_TIME = 2,   /* "time", "unit" */
	FORMAT_TAKES_YEAR = 4,   /* "year" */
	FORMAT_NEEDS_IP = 8, /* no option: the ip is read even where no zone asks, as it says whether a cut line counts */
};

struct ready_reader;
struct json_place;

struct format_kind {
	const char *name;      /* as a configuration writes it */
	const char *meaning;   /* what its lines are, for people: a row of formats.md */
	const char *malformed; /* the reason of a line that is not of it; kinds of one reason share its number */
	unsigned takes;        /* FORMAT_TAKES_… */
	enum format_escapes escapes;
	/* Its own options, read into the struct that begins with its struct format. NULL: none. */
	const struct weir_json_rule *options;
	/* Where it is a head: the field that has the message after it. NULL: it is none. */
	const char *message;
	bool message_is_cut;               /* members beside it may say that it is a part of one (line_marks.h) */
	bool message_is_whole;             /* all that its program wrote at once, line feeds included */
	const struct ready_reader *reader; /* of a ready one (format_ready.h); NULL: it has none */
	const struct json_place *places;   /* of a preset of `json` (format_options.h); NULL: it is none */
	bool serves_hashes;                /* of a preset: a '#' in a target is part of the path that is served */
	/** As format_new(), but a pattern's time may be missing. @param kind  this kind, or one that shares its code */
	enum weir_status (*create)(const struct weir_json *config, const struct format_kind *kind,
	                           const struct weir_field_table *fields, struct format **format, struct weir_error *error);
	/** The same for what follows a head that was split off. NULL: create */
	enum weir_status (*create_inside)(const struct weir_json *config, const struct format_kind *kind,
	                                  const struct weir_field_table *fields, struct format **format,
	                                  struct weir_error *error);
};

/* In the order in which errors list them. */
#define FORMAT_KINDS(KIND) \
	KIND(combined)         \
	KIND(common)           \
	KIND(json)             \
	KIND(delimited)        \
	KIND(logfmt)           \
	KIND(pattern)          \
	KIND(nginx_error)      \
	KIND(haproxy)          \
	KIND(sshd)             \
	KIND(apache_error)     \
	KIND(ingress_nginx)    \
	KIND(alb)              \
	KIND(squid)            \
	KIND(caddy)            \
	KIND(traefik)          \
	KIND(envoy)            \
	KIND(cloudflare)       \
	KIND(w3c)              \
	KIND(zeek)             \
	KIND(postfix)          \
	KIND(dovecot)          \
	KIND(wrapped)          \
	KIND(syslog)           \
	KIND(journal)

#define FORMAT_KIND_DECLARED(name) extern const struct format_kind format_##name;
FORMAT_KINDS(FORMAT_KIND_DECLARED)
#undef FORMAT_KIND_DECLARED

/** The number under which lines that are not of this kind are counted. */
enum format_reason format_malformed(const struct format_kind *kind);

#endif
