/* SPDX-License-Identifier: Apache-2.0 */
/* A decision that is asked about, and what was found out about it. */
#ifndef DEPLOY_WEIR_EXPLAIN_QUESTION_H
#define DEPLOY_WEIR_EXPLAIN_QUESTION_H

#include "common/base/text.h"
#include "common/frame/frame.h"
#include "common/policy/policy.h"

/* The newest events that counted, beside the one that decided. */
enum { QUESTION_EVENTS_MAX = 10000 };

/* How a line was found. */
enum explained_line {
	LINE_SOUGHT,  /* not yet, or nowhere */
	LINE_AT,      /* at its position */
	LINE_BY_TIME, /* another of that key and time: the position leads nowhere */
};

/* An event that counted towards a decision, or made it. */
struct explained_event {
	int64_t time_ms, cost;
	uint8_t source[WEIR_SOURCE_ID_BYTES];
	uint64_t position;       /* after its line */
	uint64_t policy_version; /* that it was matched under */
	int64_t gone;            /* entries of it that have left a queue, while others of its cost stay */
	bool decided;            /* it made the decision */
	struct weir_span kept;   /* what its frame has of its record, while it is judged; borrowed from the replay */
	bool fields_left_out;    /* it has more of its record than can be kept */
	char *fields;            /* owned: of these, those that the zone's "history" names, a JSON object; NULL: none */
	/* the line */
	enum explained_line found;
	char *stream; /* owned: the source's stream for people; NULL: unknown */
	char *file;   /* owned: where the line is, or was */
	uint64_t offset;
	char *line; /* owned */
	uint32_t line_length;
};

/* Zero-initialised, then its id, or its zone and key, are set. */
struct question {
	/* what is asked */
	bool by_id; /* else the newest decision of zone and key is asked for */
	uint32_t partition;
	uint64_t offset;
	uint32_t index;
	uint32_t zone_id;     /* 0: not known yet */
	struct weir_text key; /* joined */
	bool key_known;

	/* what operators' commands hold for the key now */
	struct weir_text order; /* the block or allow that counts, as `weir state --orders` has it; empty: there is none */
	struct weir_text held;  /* of an allowed one, a blocked network around it, which gateways hold; empty: none */
	struct weir_text unknown; /* why that is not known, a sentence; empty: it is */
	bool shadow;              /* the zone is in shadow mode: what was blocked is no more */
	size_t network;           /* the question about the network that blocks it; 0: none does */

	/* what was published */
	struct weir_text published; /* the line; empty: it was not found */
	char *published_in;         /* owned: where it was found */

	/* what judging again gives */
	struct weir_text again; /* the line; empty: no decision came out at this place */
	uint64_t policy_version;
	bool has_limit; /* a limit decided: it has events */
	struct weir_limit limit;
	struct explained_event *events; /* owned: counted ones in the order of judging, the one that decided last */
	size_t event_count;
	int64_t lacking;  /* counted events that are known to be missing */
	int64_t left_out; /* earlier counted events, which are not among `events`: where costs are not 1, at most so many */
	bool may_lack;    /* events from before what was judged may have a share in the level */
	size_t fields_left_out; /* events whose fields are more than can be kept */
	bool skips_files;       /* there were more files than are looked into */

	struct weir_text missing; /* sentences, each ended by a newline */
};

/** Whether the text is an id of a decision: three decimal numbers with dashes between them. */
bool question_parse_id(const char *text, struct question *question);

/** Appends a sentence about what is missing: a format and its values. */
#define question_lacks(question, ...) \
	(weir_text_printf(&(question)->missing, __VA_ARGS__), weir_text_puts(&(question)->missing, "\n"))

/** Takes copies of events; those that there were go. */
void question_set_events(struct question *question, const struct explained_event *events, size_t count);

/** Whether the decision came out again as it was published, with all its events. */
bool question_is_equal(const struct question *question);

/** Whether nothing is left to say: its decision came out again, or there is none, and an operator's command says it all. */
bool question_is_explained(const struct question *question);

/** Forgets what judging again gave, and what is missing. */
void question_reset(struct question *question);

void question_deinit(struct question *question);

#endif
