/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a daemon: plain text, or JSON lines.
 *
 * A logger is made once from the configuration and passed down; every line has
 * a level, a role and words, and goes to standard error in one write().
 *
 * The words of a trouble say, in this order: what happened, with the name of the
 * topic, partition, file or peer; what it means for verdicts and data; what weir
 * does about it; what the operator should do, and where deploy/RUNBOOK.md says
 * more: "(runbook: broker-away)". Levels: what costs verdicts or data, or waits
 * for a person, is an ERROR; what heals by itself a WARNING; a recovery INFO.
 */
#ifndef WEIR_COMMON_LOG_H
#define WEIR_COMMON_LOG_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum weir_log_level { WEIR_LOG_DEBUG, WEIR_LOG_INFO, WEIR_LOG_WARNING, WEIR_LOG_ERROR };

struct weir_log {
	int fd;
	_Atomic enum weir_log_level level; /* lines below it are left out; its owner may change it while others log */
	bool json;
	const _Atomic bool *unfinished; /* while set, a line without its end stands on the terminal (progress): each line
	                                   takes it off first. NULL: none ever does. Borrowed */
	int64_t (*clock_ms)(void);      /* how long a trouble lasts; NULL: the time since the machine started */
};

/** One line. A line break in the words is written as a space. @thread any */
void weir_log(const struct weir_log *log, enum weir_log_level level, const char *part, const char *format, ...)
	WEIR_PRINTF(4, 5);

/*
 * A trouble that lasts, such as one that is retried: told when it begins, every
 * ten minutes with its age while it lasts, and when it is over.
 *
 * It is told anew where its words change; words that differ in their figures
 * alone are the same. One cause cannot flood the log: after a few lines that
 * follow each other closely, or a few returns of what had only just ended, there
 * is at most one a minute. Zero-initialised; of one thread, or under a lock.
 */
struct weir_fault {
	bool on;
	char text[1024]; /* the words: what happened, what it means, what weir does, what the operator should do */
	uint64_t times;  /* how often it was raised: attempts */
	enum weir_log_level level;
	int64_t since_ms, told_ms; /* by the log's clock: when it began, and when it was last told */
	uint32_t lines;            /* told in a short time */
	bool told, begun_told;     /* its present words are in the log; something of it is */
};

/** Raises it at WARNING: weir goes on by itself, and no verdict is lost. */
void weir_fault_raise(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *format, ...)
	WEIR_PRINTF(4, 5);
/** @param level  WEIR_LOG_ERROR: it costs verdicts or data for as long as it lasts, or somebody must do something */
void weir_fault_raise_at(struct weir_fault *fault, const struct weir_log *log, enum weir_log_level level,
                         const char *part, const char *format, ...) WEIR_PRINTF(5, 6);
/*
 * Failures of which most have another's words, such as those of a broker that the bus tells of by itself, or are over at
 * once: they are worth a line of their own where they last. Zero-initialised.
 */
struct weir_lasting {
	int64_t since_ms; /* by the log's clock: of the first failure in a row; 0: it works */
};

/** A failure. @param others  somebody else tells of it @return whether it has lasted long enough for a line */
bool weir_lasting_failed(struct weir_lasting *lasting, const struct weir_log *log, bool others);
static inline void weir_lasting_worked(struct weir_lasting *lasting)
{
	lasting->since_ms = 0;
}

/** Tells one that is on again where ten minutes have passed: for a trouble that nobody retries. */
void weir_fault_remind(struct weir_fault *fault, const struct weir_log *log, const char *part);
/** Logs at INFO that it is over, and how long it lasted, if it was on. */
void weir_fault_clear(struct weir_fault *fault, const struct weir_log *log, const char *part);
/** Likewise, with words that say what is right again. */
void weir_fault_over(struct weir_fault *fault, const struct weir_log *log, const char *part, const char *format, ...)
	WEIR_PRINTF(4, 5);

/* Something that happens again and again, such as a message that is skipped. Zero-initialised; of one thread. */
struct weir_notice {
	int64_t told_ms;
	uint32_t lines;
	uint64_t left_out;
};

/** Logs it: the first few times at once, and then at most once a minute, with how many were left out in between. */
void weir_notice_log(struct weir_notice *notice, const struct weir_log *log, enum weir_log_level level,
                     const char *part, const char *format, ...) WEIR_PRINTF(5, 6);

/** The time that ages of troubles are counted in. */
int64_t weir_log_clock_ms(const struct weir_log *log);

enum { WEIR_AGE_BYTES = 40 };
/** "38 s", "1 min 38 s", "6 h 10 min", "3 d 2 h". @return text */
const char *weir_age(int64_t age_ms, char text[WEIR_AGE_BYTES]);

#endif
