/*
 * Files as a source: what its parts share.
 *
 *   source_file.c         streams in turn, status
 *   source_file_config.c  configuration
 *   source_file_scan.c    which files the patterns name, and which are new
 *   source_file_judge.c   whose file lies at a path: a known one's, a copy, or a new one
 *   source_file_find.c    where a known file has gone to, and which were rotated away unseen
 *   source_file_open.c    a stream's open files, and what is stated about it
 *   source_file_stream.c  the next lines of one stream: through its parts, one after another
 *   source_file_plan.c    what follows when a file has no more lines: rotation by renaming
 *   source_file_cut.c     truncation in place
 *   source_file_late.c    lines that come to a file that was left
 *   source_file_watch.c   being woken: inotify where it works, a timer where not
 */
#ifndef COLLECTOR_SOURCE_FILE_INTERNAL_H
#define COLLECTOR_SOURCE_FILE_INTERNAL_H

#include "collector/input/input_lines.h"
#include "collector/source/file/source_file.h"
#include "collector/source/source_memory.h"
#include "common/base/text.h"

#include <pthread.h>
#include <sys/stat.h>

struct file_watch;

enum {
	FILE_ABSENCES_MAX = 3,        /* a listing may miss a file that is being renamed: only then it counts as gone */
	FILE_ABSENCES_UNMOUNTED = 60, /* of one whose directory is missing: a second each, it may be mounted again */
	FILE_LOOKS_AFTER = 3,         /* scans after a rotation that look again for files rotated away unseen */
};

/* A file that is being read, or was and may get late lines. Owned by its stream. */
struct open_file {
	struct source_memory_file *file; /* what is remembered of it */
	struct input_lines *lines;
	struct stat about;                 /* when it was opened, or when the end of a compressed file was reached */
	char *path;                        /* where it was found, for words */
	char head[FINGERPRINT_HEAD_BYTES]; /* its first bytes: to see a truncation */
	size_t head_bytes;
	int64_t grown_ms; /* monotonic: when it was last seen to grow */
	bool damaged;     /* it was stated that a compressed file cannot be read further */
	bool ended;       /* a compressed file's end was reached: it goes on when it has changed */
};

/* Where a file was seen by the last scan, and what it was: so that only changes are looked at. */
struct file_entry {
	char *path;
	uint32_t pattern; /* which named it first */
	uint64_t device, inode;
	uint64_t size;
	int64_t modified_ns;
	bool compressed;
	bool judged; /* it is known, or has become a stream: nothing to do until it changes */
};

/* Where a stream stands in a plain file. inode 0: nothing is known. */
struct file_place {
	uint64_t device, inode, offset;
};

struct file_stream {
	struct source_stream stream; /* what the pipeline sees */
	struct file_source *source;
	struct source_memory_stream *record;
	char *path;       /* where its newest file is looked for: the path first seen, but for an adopted stream */
	uint32_t pattern; /* place of its pattern in the configuration */
	/* reading */
	uint32_t incarnation;    /* of the part being read; one past the last when all are read */
	uint64_t offset;         /* in that part's file: of the next line */
	bool repeats;            /* what is read may have been handed out before, as part of what it is part of now */
	uint32_t looked_back;    /* the incarnation that `before` is of */
	struct weir_text before; /* the first lines of its file, until they are given */
	bool before_given;
	struct open_file **open; /* the part's file, and those that may get late lines */
	size_t open_count;
	bool hot;             /* there may be lines */
	bool missed;          /* there may be a file that was rotated away unseen */
	bool away;            /* the current file does not lie at the path */
	uint32_t looks;       /* how many scans more look for such files */
	int64_t successor_ms; /* monotonic: when the successor was first seen to have lines; 0: it has none */
	int64_t restless_ms;  /* monotonic: since when the directory has been changing; 0: it is at rest */
	int64_t retry_ms;     /* monotonic: not to be asked before */
	int64_t wait_ms;      /* how long the last pause after a failure was; 0: all is well */
	struct stat sign;     /* of what lay at the path when no file was open and nothing came next; all 0: nothing */
	uint64_t created_scan;
	bool scratch; /* the record is this stream's own: a pattern that names nothing */
	bool done;    /* will give no more: not followed, and read to its end or failed */
	/* guarded by source->mutex: for status(), which any thread may ask */
	struct source_status status;
	int64_t caught_up_ms;    /* when the stream was last at its end */
	struct file_place place; /* the current file: what it has grown by meanwhile is waiting */
};

/* In ms; tests make them shorter. */
struct file_timing {
	int64_t poll;        /* between scans, whatever inotify says */
	int64_t quiet;       /* a rotated file had no new line for so long before its successor begins ... */
	int64_t patience;    /* ... but after this long with lines in the successor it begins all the same */
	int64_t rest;        /* a directory has not changed for so long before it is read for successors, within patience */
	int64_t grace;       /* how long a file left behind is watched for late lines after its last */
	int64_t idle;        /* a followed file without new lines is closed after this */
	int64_t complete;    /* a compressed file is read once it has not changed for so long */
	int64_t retry_least; /* after a failure; doubled up to retry_most */
	int64_t retry_most;
};

struct file_source {
	struct source source;
	char **patterns;
	size_t pattern_count;
	bool follow;
	enum source_at_start start;
	size_t line_max;
	struct file_timing timing;
	struct source_memory *memory;
	bool memory_owned;
	bool fresh; /* the memory held no stream of these patterns: this is the first run */
	struct file_stream **streams;
	struct source_stream **handles; /* the same, for streams() */
	size_t stream_count;
	struct file_entry *entries; /* of the last scan, by path bytes */
	size_t entry_count;
	struct file_watch *watch; /* NULL where nothing is followed */
	uint64_t scans;           /* how many there were */
	int64_t scanned_ms;       /* monotonic: when the last one ended */
	int64_t scan_ms;          /* when the next is due */
	int64_t house_ms;         /* when events are looked at next */
	size_t turn;              /* the stream that collect(NULL) asks next */
	int64_t forget_ms;        /* when files that are gone are next looked for in the memory */
	bool *names_none;         /* a pattern names no file; guarded by mutex */
	bool full;                /* the memory holds no more streams; guarded by mutex */
	pthread_mutex_t mutex;
};

static inline struct file_source *file_source_of(struct source *source)
{
	return (struct file_source *)(void *)source;
}

/* ---- source_file_config.c ---- */

WEIR_MUST_USE enum weir_status file_source_configure(struct file_source *source, const struct weir_json *config,
                                                     const struct source_context *context, struct weir_error *error);

/* ---- source_file.c ---- */

/** Adds a stream for a record that it claims. */
struct file_stream *file_source_add(struct file_source *source, struct source_memory_stream *record, const char *path,
                                    uint32_t pattern);

int64_t file_modified_ns(const struct stat *about);

/* ---- source_file_scan.c ---- */

/** Looks for files: new ones become streams, streams whose files changed become hot. */
void file_source_scan(struct file_source *source, int64_t now_ms);

/** Whether a path is one that the pattern names. */
bool file_pattern_names(const char *pattern, const char *path);

/** Which of the patterns names a path: its place, or -1. */
int file_source_pattern(const struct file_source *source, const char *path);

/* ---- source_file_judge.c ---- */

const char *file_base(const char *path);

enum file_rotated {
	FILE_ROTATED_NOT = 0,
	FILE_ROTATED,       /* base.1, base-20240131.gz, base.old, base.gz and the like */
	FILE_ROTATED_MAYBE, /* stem-1.ext: or another log of the same kind */
};

/** Whether a name is that of a file rotated away from base. */
enum file_rotated file_name_rotated(const char *base, const char *name);

/* What opening a path gives: its input, behind its first bytes. */
struct file_beginning {
	struct input *input; /* returned */
	struct stat about;
	char head[FINGERPRINT_HEAD_BYTES];
	size_t length;
	struct fingerprint fingerprint; /* of these bytes */
};

enum file_opening { FILE_OPENING_DONE, FILE_OPENING_ABSENT, FILE_OPENING_FAILED };

/** @param fd  taken */
enum file_opening file_open_fd(int fd, const char *path, bool growing, struct file_beginning *beginning,
                               struct weir_error *error);
enum file_opening file_open(const char *path, bool growing, struct file_beginning *beginning, struct weir_error *error);

bool file_has_inode(const struct source_memory_file *file, const struct stat *about);

enum file_verdict {
	FILE_NEW,
	FILE_KNOWN,      /* by device and inode, and it begins as it did */
	FILE_COPY,       /* it holds a known one's lines: compressed, or copied under a rotated name or to the same path */
	FILE_UNREADABLE, /* cannot be told just now */
	FILE_ABSENT,
};

/* Whose file lies at a path. */
struct file_judgement {
	enum file_verdict verdict;
	struct source_memory_stream *stream; /* of FILE_KNOWN and FILE_COPY */
	struct source_memory_file *file;
	struct stat about;
	enum input_kind kind;
	struct fingerprint fingerprint; /* its head */
};

void file_judge(const struct file_source *source, const char *path, struct file_judgement *judgement,
                struct weir_error *error);

/** Whether a new file can be begun: it is not empty, and if compressed no longer written to. */
bool file_judgement_ready(const struct file_source *source, const struct file_judgement *judgement);

/* A new file that may be begun. */
struct file_candidate {
	char *path; /* owned */
	uint64_t device, inode, size;
	int64_t modified_ns;
	bool compressed;
	bool ready; /* see file_judgement_ready() */
	struct fingerprint fingerprint;
};

void file_candidate_of(struct file_candidate *candidate, const char *path, const struct file_judgement *judgement);
void file_candidate_deinit(struct file_candidate *candidate);
/** Writes down which file it is. */
void file_candidate_remember(const struct file_candidate *candidate, struct source_memory_file *file);

/* ---- source_file_find.c ---- */

/* Files beside a stream's path that were rotated away from it and never seen. */
struct file_missed {
	struct file_candidate oldest; /* path NULL: there is none; else the caller's to deinit */
	size_t count;
};

/** @return WEIR_OK; WEIR_IO: the directory cannot be read; WEIR_END: there is none */
WEIR_MUST_USE enum weir_status file_find_missed(struct file_stream *stream, struct file_missed *missed,
                                                struct weir_error *error);

enum file_found {
	FOUND,
	FOUND_COPY,    /* under another inode: compressed, or copied */
	FOUND_SHORTER, /* its own file, but with fewer bytes than were read: cut, and otherwise the same */
	FOUND_NOWHERE,
	FOUND_NO_DIRECTORY, /* nowhere, with its directory */
	FOUND_UNKNOWN,      /* a directory or file cannot be read just now: the error says which */
};

/** Finds a known file and opens it at an offset: *opened is returned for FOUND, FOUND_COPY and FOUND_SHORTER. */
enum file_found file_find(struct file_stream *stream, struct source_memory_file *file, uint64_t offset,
                          bool copies_only, struct open_file **opened, struct weir_error *error);

/** Counts that a file was looked for in vain, as found says. @return whether that was the last time */
bool file_given_up(struct source_memory_file *file, enum file_found found);

/** How long ago a name came or went in the directory of a path: -1 where it cannot be told. */
int64_t file_directory_age_ms(const char *path);

/** Whether a file lies at a path, or one that was rotated away from it beside; true where it cannot be told. */
bool file_any_left(const char *path);

/** Remembers the rotated files that are there when a stream begins, so that they are never taken for missed ones. */
void file_remember_rotated(struct file_stream *stream);

/* ---- source_file_stream.c ---- */

enum file_step {
	FILE_STEP_LINES,
	FILE_STEP_AGAIN,   /* it went through many parts without a line: ask again */
	FILE_STEP_NOTHING, /* not just now */
	FILE_STEP_END,     /* no more, ever */
	FILE_STEP_FAILED,  /* no more, and that is an error; only where nothing is followed */
};

enum file_step file_stream_step(struct file_stream *stream, int64_t now_ms, struct source_chunk *chunk,
                                struct weir_error *error);

/** The open file of the part being read, or NULL. */
struct open_file *file_stream_current(const struct file_stream *stream);

/** Notes what lies at the path. */
void file_stream_sign(struct file_stream *stream);

/** Whether something else lies at the path than when the stream, with no file open, last found nothing to do. */
bool file_stream_sign_changed(const struct file_stream *stream);

/** Goes to a position: WEIR_INVALID where no part has it. */
enum weir_status file_stream_resume(struct file_stream *stream, uint64_t position, struct weir_error *error);

/* ---- source_file_open.c ---- */

/** @param beginning  its input is taken */
struct open_file *open_file_new(struct source_memory_file *file, struct file_beginning *beginning, const char *path,
                                const struct file_source *source);
void open_file_free(struct open_file *opened);
/** Notes that a compressed file's end was reached. */
void open_file_end(struct open_file *opened);
/** Goes past zeros at a file's beginning, which a truncation under a writer that does not append leaves there. */
void open_file_skip_hole(struct file_stream *stream, struct open_file *current);

/** Not compressed: it may grow, and be truncated. */
bool open_file_plain(const struct open_file *opened);

struct open_file *file_stream_opened(const struct file_stream *stream, const struct source_memory_file *file);
/** Takes an open file among the stream's. */
void file_stream_adopt(struct file_stream *stream, struct open_file *opened, int64_t now_ms);
/** @param opened  NULL: nothing */
void file_stream_close(struct file_stream *stream, struct open_file *opened);

/** States a problem and puts the next try off. */
void file_stream_trouble(struct file_stream *stream, int64_t now_ms, const char *format, ...) WEIR_PRINTF(3, 4);
void file_stream_well(struct file_stream *stream);
/** Counts bytes that were there and can no longer be read. */
void file_stream_lost(struct file_stream *stream, uint64_t bytes);
/** States where the stream stands. @param position  0: as before; at_end: all is read that is there */
void file_stream_note(struct file_stream *stream, const struct open_file *current, uint64_t position, bool at_end,
                      int64_t now_ms);

/** The part being read ends at an offset, and its file is in that state from then on. */
void file_stream_end_part(struct file_stream *stream, uint64_t to, enum source_file_state state);
/** Whether parts can be added: false while too many are not acknowledged. */
bool file_stream_has_room(const struct file_stream *stream);

/** Begins a file as the stream's next part. @return false: the stream cannot have more parts just now */
bool file_stream_begin(struct file_stream *stream, const struct file_candidate *candidate, bool from_end);
/** Adds a part of a file; the one before has its end. */
bool file_stream_add_part(struct file_stream *stream, struct source_memory_file *file, uint64_t from);

/* ---- source_file_plan.c ---- */

enum file_plan {
	PLAN_GO_ON, /* parts were added, or the file is to be read again */
	PLAN_WAIT,
	PLAN_BLOCKED, /* something cannot be read: stated as the stream's problem */
};

/** Decides what comes after the part that has no more lines. @param current  NULL: all parts are read */
enum file_plan file_plan_next(struct file_stream *stream, struct open_file *current, int64_t now_ms);

/** Whether something lies there to go on with, when the part's file is gone. */
bool file_plan_replaced(struct file_stream *stream, int64_t now_ms);

/* ---- source_file_cut.c ---- */

/** After a read of a followed file: whether what was read is the file's that it was. */
bool file_plan_intact(struct open_file *current);

/** The file's content was taken from it or replaced: the part ends here, and what is there begins another. */
enum file_plan file_plan_truncated(struct file_stream *stream, struct open_file *current, int64_t now_ms);

/** Whether the file no longer holds what was read of it. */
bool file_plan_is_truncated(struct open_file *current);

/* ---- source_file_late.c ---- */

/** Late lines in files left behind become parts of their own. @return whether there were any */
bool file_plan_late(struct file_stream *stream, int64_t now_ms);

/* ---- source_file_watch.c ---- */

/** NULL where the system has no such means; then a caller asks again and again. */
struct file_watch *file_watch_new(void);
void file_watch_free(struct file_watch *watch);
/** Pollable: readable when something has changed or a time has come. */
int file_watch_fd(const struct file_watch *watch);
/** The directories to hear of, in place of those before. Borrowed; sorted and without duplicates. */
void file_watch_directories(struct file_watch *watch, char *const *directories, size_t count);
/** Wakes at this time (monotonic ms), or at an earlier one that was asked for. */
void file_watch_wake(struct file_watch *watch, int64_t at_ms);
/**
 * Takes what has happened.
 *
 * @param changed  called for each: a file of the directory was written to (names = false), or came, went or was renamed
 *                 (names = true). name NULL: anything may have happened
 */
void file_watch_read(struct file_watch *watch, int64_t now_ms,
                     void (*changed)(void *context, const char *directory, const char *name, bool names),
                     void *context);

#endif
