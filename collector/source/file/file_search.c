/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding files in directories: where a known one has gone to, and which were
 * rotated away before they were seen.
 *
 * A listing is not one moment's: a name may be missed while files are renamed.
 * So a file counts as gone only when it was missed several times (by the
 * caller), and a rotated file that is overlooked once is found the next time.
 */
#include "collector/source/file/file_search.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	ABSENCES_MAX = 3,        /* a listing may miss a file that is being renamed: only then it counts as gone */
	ABSENCES_UNMOUNTED = 60, /* a second each: a missing directory may be mounted again, a short file be written anew */
	GROUNDS_MAX = 8,
	FOLDERS_MOST = 256, /* directories within the log's own that are searched ... */
	FOLDERS_DEEP = 3,   /* ... so far down */
	CLIMB_MOST = 2,     /* where that is gone, in one so far above */
};

/* ---- where files are looked for ---- */

/* Directories, each once, and the names that files there were rotated away from. */
struct grounds {
	char directories[GROUNDS_MAX][PATH_MAX]; /* with a slash, or "" */
	size_t count;
	int64_t
		since_ns[GROUNDS_MAX]; /* of those that nobody named: when the first file that was moved there was written to */
	const char *bases[2];
	size_t base_count;
};

/* The directory that a path lies in, with its slash; "" for the working directory. */
static bool directory_of(const char *path, char directory[PATH_MAX])
{
	size_t length = (size_t)(file_identity_base(path) - path);
	if (length >= PATH_MAX)
		return false;
	memcpy(directory, path, length);
	directory[length] = '\0';
	return true;
}

/* The path of a name; false where it is too long. */
static bool join(const char *directory, const char *name, char path[PATH_MAX])
{
	int used = snprintf(path, PATH_MAX, "%s%s", directory, name);
	return used >= 0 && used < PATH_MAX;
}

static void keep_ground(struct grounds *grounds)
{
	for (size_t i = 0; i < grounds->count; i++)
		if (strcmp(grounds->directories[i], grounds->directories[grounds->count]) == 0)
			return;
	grounds->count++;
}

static void add_ground_of(struct grounds *grounds, const char *path)
{
	if (grounds->count < GROUNDS_MAX && directory_of(path, grounds->directories[grounds->count]))
		keep_ground(grounds);
}

/* The directory that rotated files are moved to, from the log's own. */
static void add_olddir(struct grounds *grounds, const char *path, const char *olddir)
{
	char directory[PATH_MAX];
	if (olddir == NULL || grounds->count == GROUNDS_MAX || !directory_of(path, directory))
		return;
	if (join(olddir[0] == '/' ? "" : directory, olddir, grounds->directories[grounds->count]))
		keep_ground(grounds);
}

/*
 * Where a file was moved to, and others of its stream before: rotations go to one place. What was there when the first
 * of them came was never looked at, and is none of the stream's.
 */
static void add_homes(struct grounds *grounds, const struct source_memory_file *file)
{
	const struct source_memory_stream *stream = file->stream;
	size_t named = grounds->count;
	if (file->home != NULL)
		add_ground_of(grounds, file->home);
	for (size_t i = stream != NULL ? stream->file_count : 0; i-- > 0;)
		if (stream->files[i]->home != NULL)
			add_ground_of(grounds, stream->files[i]->home);
	for (size_t i = 0; stream != NULL && i < stream->file_count; i++) {
		const struct source_memory_file *known = stream->files[i];
		for (size_t k = named; known->home != NULL && k < grounds->count; k++)
			if (strcmp(known->home, grounds->directories[k]) == 0 &&
			    (grounds->since_ns[k] == 0 || known->modified_ns < grounds->since_ns[k]))
				grounds->since_ns[k] = known->modified_ns;
	}
}

/* @param file  NULL, or one that is looked for */
static void grounds_init(struct grounds *grounds, const struct file_shared *shared, const struct file_route *route,
                         const struct source_memory_file *file)
{
	grounds->count = 0;
	memset(grounds->since_ns, 0, sizeof grounds->since_ns);
	grounds->bases[0] = file_identity_base(route->path);
	grounds->base_count = 1;
	add_ground_of(grounds, route->path);
	if (route->real != NULL) {
		add_ground_of(grounds, route->real);
		grounds->bases[1] = file_identity_base(route->real);
		grounds->base_count += strcmp(grounds->bases[0], grounds->bases[1]) != 0;
	}
	add_olddir(grounds, route->path, shared->settings.olddir);
	if (route->real != NULL)
		add_olddir(grounds, route->real, shared->settings.olddir);
	if (file != NULL)
		add_homes(grounds, file);
}

int64_t file_search_directory_age_ms(const char *path)
{
	char directory[PATH_MAX];
	struct stat about;
	if (!directory_of(path, directory) || stat(directory[0] != '\0' ? directory : ".", &about) != 0)
		return -1;
	return weir_wall_ms() - file_identity_modified_ns(&about) / 1000000;
}

typedef bool each_name(void *context, const char *path, const struct file_name *name);

/* Calls for the names of a directory that begin as one of the bases does, until a call returns true. */
static bool each_rotated(const struct grounds *grounds, const struct file_names *names, each_name *call, void *context)
{
	char path[PATH_MAX];
	for (size_t b = 0; b < grounds->base_count; b++) {
		const char *base = grounds->bases[b];
		size_t stem = file_identity_stem(base);
		for (size_t i = file_names_from(names, base, stem);
		     i < names->count && strncmp(names->list[i].name, base, stem) == 0; i++) {
			const struct file_name *name = &names->list[i];
			if (!name->folder && file_identity_rotated(base, name->name) &&
			    (b == 0 || !file_identity_rotated(grounds->bases[0], name->name)) &&
			    join(names->directory, name->name, path) && call(context, path, name))
				return true;
		}
	}
	return false;
}

/* The file of that inode that was settled, and has not been written to since; NULL: there is none. */
static struct source_memory_file *unchanged(const struct source_memory *memory, const struct stat *about)
{
	struct source_memory_file *file = source_memory_file_with(memory, about->st_dev, about->st_ino);
	bool same =
		file != NULL && file->state == SOURCE_FILE_SETTLED && file->modified_ns == file_identity_modified_ns(about);
	return same ? file : NULL;
}

/* ---- where a known file is ---- */

struct search {
	struct file_shared *shared;
	const struct file_route *route;
	struct source_memory_file *file;
	uint64_t offset;
	bool copies;
	struct file_finding *finding;
	bool unknown; /* something could not be read */
	bool other;   /* its inode has other content */
	struct weir_error *error;
	struct grounds grounds;
};

/* Whether another known file has this inode: then it is no copy. */
static bool is_another(const struct search *search, const struct file_beginning *beginning, const char *path)
{
	const struct source_memory_file *file =
		source_memory_file_with(search->shared->memory, beginning->about.st_dev, beginning->about.st_ino);
	for (; file != NULL; file = source_memory_file_next(file))
		if (file != search->file && file_identity_may_be(file, path) &&
		    fingerprint_begins(&file->fingerprint, &beginning->fingerprint, beginning->head))
			return true;
	return false;
}

/* Another file, seen without its beginning, which is dear to read of one that is compressed. */
static bool is_seen_other(const struct search *search, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return false;
	if (!search->copies)
		return !file_identity_has_inode(search->file, &about);
	const struct source_memory_file *known = unchanged(search->shared->memory, &about);
	return known != NULL && known != search->file;
}

/* Tries a path. True: the search is over. */
static bool try_path(struct search *search, const char *path)
{
	struct file_beginning beginning;
	if (is_seen_other(search, path))
		return false;
	enum file_opening opening = file_identity_open(path, search->shared->settings.follow, &beginning, search->error);
	if (opening != FILE_OPENING_DONE) {
		/* What cannot be opened matters if it may be the file: others may well be out of reach. */
		struct stat about;
		if (opening == FILE_OPENING_FAILED)
			search->unknown =
				search->unknown || stat(path, &about) != 0 || file_identity_has_inode(search->file, &about);
		return false;
	}
	bool own = file_identity_has_inode(search->file, &beginning.about);
	if (own == search->copies ||
	    (search->copies && (search->file->fingerprint.head_bytes == 0 || is_another(search, &beginning, path)))) {
		input_free(beginning.input);
		return false;
	}
	enum fingerprint_match match =
		fingerprint_check(&search->file->fingerprint, beginning.input, search->offset, search->error);
	if (match == FINGERPRINT_OTHER && file_beginning_short(&beginning, search->file))
		match = FINGERPRINT_SHORTER;
	bool shorter = match == FINGERPRINT_SHORTER && own;
	search->unknown = search->unknown || match == FINGERPRINT_UNREADABLE;
	search->other = search->other || (own && match == FINGERPRINT_OTHER);
	if (match != FINGERPRINT_SAME && !shorter) {
		input_free(beginning.input);
		return false;
	}
	file_finding_deinit(search->finding);
	search->finding->path = weir_copy(path, strlen(path));
	search->finding->beginning = beginning;
	return !shorter;
}

static bool try_name(void *context, const char *path, const struct file_name *name)
{
	(void)name;
	return try_path(context, path);
}

/* The file itself, where it should be. */
static bool search_known(struct search *search)
{
	const struct source_memory_file *file = search->file;
	return file->inode != 0 &&
	       ((file->where != NULL && try_path(search, file->where)) || try_path(search, search->route->path));
}

static bool try_inode(struct search *search, const struct file_names *names)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < names->count; i++)
		if (names->list[i].inode == search->file->inode && !names->list[i].folder &&
		    join(names->directory, names->list[i].name, path) && file_identity_may_be(search->file, path) &&
		    try_path(search, path))
			return true;
	return false;
}

/* Where a directory's inode numbers are not those of its files (overlays), rotated names are tried as well. */
static bool search_own(struct search *search, const struct file_names *names)
{
	return search->file->inode != 0 &&
	       (try_inode(search, names) || each_rotated(&search->grounds, names, try_name, search));
}

static bool search_copies(struct search *search, const struct file_names *names)
{
	char path[PATH_MAX];
	search->copies = true;
	for (size_t b = 0; b < search->grounds.base_count; b++)
		if (join(names->directory, search->grounds.bases[b], path) && try_path(search, path))
			return true;
	return each_rotated(&search->grounds, names, try_name, search);
}

static bool search_packed(struct search *search)
{
	const struct file_listing *listing = &search->shared->listing;
	search->copies = true;
	for (size_t i = 0; i < listing->count; i++)
		if (listing->entries[i].compressed && try_path(search, listing->entries[i].path))
			return true;
	return false;
}

/* Directories that are to be searched, those further up first. */
struct folders {
	struct folder {
		char *path; /* owned; with its slash, or "" */
		int depth;
	} list[FOLDERS_MOST];
	size_t count;
};

static void add_folder(struct folders *folders, const char *path, size_t length, const char *name, int depth)
{
	size_t room = length + strlen(name) + 2;
	if (folders->count == FOLDERS_MOST || depth > FOLDERS_DEEP || room > PATH_MAX)
		return;
	char *folder = weir_alloc(room, 1);
	snprintf(folder, room, "%.*s%s%s", (int)length, path, name, name[0] != '\0' ? "/" : "");
	folders->list[folders->count++] = (struct folder){folder, depth};
}

/* The log's own directory, or the nearest above that is there; never "/" unless it is the log's own. */
static void add_nearest(struct folders *folders, const char *directory)
{
	struct stat about;
	size_t length = strlen(directory);
	for (int climb = 0; climb <= CLIMB_MOST; climb++) {
		char path[PATH_MAX];
		snprintf(path, sizeof path, "%.*s", (int)length, directory);
		if (stat(length > 0 ? path : ".", &about) == 0) {
			add_folder(folders, directory, length, "", 0);
			return;
		}
		while (length > 0 && directory[length - 1] == '/')
			length--;
		while (length > 0 && directory[length - 1] != '/')
			length--;
		if (length == 1 && directory[0] == '/')
			return;
	}
}

/* The file itself in directories around: it may have been moved to one that nobody named, or its directory itself. */
static bool search_folders(struct search *search)
{
	if (search->file->inode == 0)
		return false;
	struct folders *folders = weir_alloc(1, sizeof *folders);
	bool found = false;
	add_nearest(folders, search->grounds.directories[0]);
	for (size_t i = 0; i < folders->count && !found; i++) {
		const struct file_names *names;
		const struct folder folder = folders->list[i];
		if (file_names_read(&search->shared->names, folder.path, &names, NULL) != WEIR_OK)
			continue;
		for (size_t k = 0; k < names->count; k++)
			if (names->list[k].folder)
				add_folder(folders, folder.path, strlen(folder.path), names->list[k].name, folder.depth + 1);
		found = try_inode(search, names);
	}
	for (size_t i = 0; i < folders->count; i++)
		free(folders->list[i].path);
	free(folders);
	return found;
}

typedef bool search_names(struct search *search, const struct file_names *names);

/* Looks through all directories. @param listed  what the first one's listing came to; WEIR_IO ends it */
static bool search_all(struct search *search, search_names *call, enum weir_status *listed)
{
	for (size_t i = 0; i < search->grounds.count; i++) {
		const struct file_names *names;
		enum weir_status status =
			file_names_read(&search->shared->names, search->grounds.directories[i], &names, search->error);
		if (i == 0 || status == WEIR_IO)
			*listed = status;
		if (status == WEIR_IO)
			return false;
		if (status == WEIR_OK && call(search, names))
			return true;
	}
	return false;
}

void file_search_find(struct file_shared *shared, const struct file_route *route, struct source_memory_file *file,
                      uint64_t offset, bool copies_only, struct file_finding *finding, struct weir_error *error)
{
	struct search *search = weir_alloc(1, sizeof *search);
	*search = (struct search){
		.shared = shared, .route = route, .file = file, .offset = offset, .finding = finding, .error = error};
	*finding = (struct file_finding){.found = FOUND_NOWHERE};
	grounds_init(&search->grounds, shared, route, file);
	enum weir_status listed = WEIR_OK;
	enum file_found found = FOUND_NOWHERE;
	if (!copies_only && (search_known(search) || search_all(search, search_own, &listed) ||
	                     (listed != WEIR_IO && search_folders(search))))
		found = FOUND;
	else if (listed != WEIR_IO && (search_all(search, search_copies, &listed) || search_packed(search)))
		found = FOUND_COPY;
	else if (listed != WEIR_IO && finding->path != NULL)
		found = FOUND_SHORTER;
	else if (listed == WEIR_IO || search->unknown)
		found = FOUND_UNKNOWN;
	else if (listed == WEIR_END)
		found = FOUND_NO_DIRECTORY;
	if (found == FOUND_UNKNOWN)
		file_finding_deinit(finding);
	if ((found == FOUND_NOWHERE || found == FOUND_NO_DIRECTORY) && search->other)
		source_memory_file_place(shared->memory, file, 0, 0); /* what lies there is another file */
	finding->found = found;
	free(search);
}

void file_finding_deinit(struct file_finding *finding)
{
	if (finding->beginning.input != NULL)
		input_free(finding->beginning.input);
	free(finding->path);
	finding->path = NULL;
	finding->beginning = (struct file_beginning){0};
}

bool file_search_is_last(const struct source_memory_file *file, enum file_found found)
{
	return file->absences + 1 >= (found == FOUND_NOWHERE ? ABSENCES_MAX : ABSENCES_UNMOUNTED);
}

/* ---- files rotated away unseen ---- */

/* "access.log.2" was rotated before "access.log.1": small numbers count places, larger ones are dates. */
static long place_of(const char *base, const char *path)
{
	const char *name = file_identity_base(path);
	size_t length = strlen(base);
	if (strncmp(name, base, length) != 0 || name[length] == '\0')
		return 0;
	char *end;
	long number = strtol(name + length + 1, &end, 10);
	return number < 1000 ? number : -number;
}

static bool is_older(const char *base, const struct file_candidate *a, const struct file_candidate *b)
{
	if (a->modified_ns != b->modified_ns)
		return a->modified_ns < b->modified_ns;
	long place_a = place_of(base, a->path), place_b = place_of(base, b->path);
	return place_a != place_b ? place_a > place_b : strcmp(a->path, b->path) < 0;
}

/* One look for such files. */
struct miss {
	struct file_shared *shared;
	const struct grounds *grounds;
	struct source_memory_stream *record; /* of file_search_remember_rotated() */
	int64_t since_ns;                    /* what was last written before, or then, was not missed */
	const struct source_memory_stream *stream;
	char own[NAME_MAX + 1]; /* what the stream's newest file is called; "": that is not known */
	struct file_missed *missed;
};

/* Whether a path, of a longer name than the stream's own, is named by a source, or has the file and the name of another. */
static void *is_of_another(void *context, const char *path)
{
	const struct miss *miss = context;
	const char *name = file_identity_base(path);
	struct stat about;
	if (strlen(name) <= strlen(miss->grounds->bases[0]))
		return NULL;
	if (source_memory_named(miss->shared->memory, path))
		return context;
	if (stat(path, &about) != 0)
		return NULL;
	/* By the name too: a file that is gone may have left its inode to this one. */
	const struct source_memory_file *file = source_memory_file_with(miss->shared->memory, about.st_dev, about.st_ino);
	for (; file != NULL; file = source_memory_file_next(file))
		if (file->stream != miss->stream && strcmp(file_identity_base(file->stream->path), name) == 0)
			return context;
	return NULL;
}

/*
 * A file that some source names is this stream's only where it follows the stream's own. So is one that was rotated away
 * from a file that another stream has: "site.443.1", beside "site.443", is none of "site".
 */
static bool is_named_otherwise(struct miss *miss, const char *path, const char *name)
{
	if (!source_memory_named(miss->shared->memory, path) && file_identity_each_base(path, is_of_another, miss) == NULL)
		return false;
	for (size_t i = 0; i < miss->grounds->base_count; i++)
		if (file_identity_follows(miss->grounds->bases[i], miss->own, name))
			return false;
	return true;
}

/* Seen without its beginning, which is dear to read of one that is compressed: nothing of it can have been missed. */
static bool is_seen(const struct miss *miss, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0)
		return false;
	if (about.st_size == 0 || file_identity_modified_ns(&about) <= miss->since_ns)
		return true;
	struct source_memory_file *file = unchanged(miss->shared->memory, &about);
	if (file == NULL)
		return false;
	file->seen_s = weir_wall_ms() / 1000;
	return true;
}

static bool take_missed(void *context, const char *path, const struct file_name *name)
{
	struct miss *miss = context;
	struct file_judgement judgement;
	struct file_candidate candidate;
	struct file_missed *missed = miss->missed;
	if (is_named_otherwise(miss, path, name->name) || is_seen(miss, path))
		return false;
	file_identity_judge(&miss->shared->settings, miss->shared->memory, path, miss->stream, &judgement, NULL);
	if (judgement.verdict != FILE_NEW)
		return false;
	file_candidate_init(&candidate, path, &judgement);
	candidate.ready = file_judgement_ready(&judgement, &miss->shared->settings);
	if (missed->count++ == 0 || is_older(miss->grounds->bases[0], &candidate, &missed->oldest)) {
		file_candidate_deinit(&missed->oldest);
		missed->oldest = candidate;
	} else {
		file_candidate_deinit(&candidate);
	}
	return false;
}

/* In a directory that files are moved to, one may have kept its name. */
static void take_kept_names(struct miss *miss, const struct file_names *names)
{
	char path[PATH_MAX];
	for (size_t b = 0; b < miss->grounds->base_count; b++) {
		const char *base = miss->grounds->bases[b];
		size_t i = file_names_from(names, base, strlen(base));
		if (i < names->count && strcmp(names->list[i].name, base) == 0 && !names->list[i].folder &&
		    join(names->directory, base, path))
			take_missed(miss, path, &names->list[i]);
	}
}

/* What the stream's newest file is called by now: as a scan has found it, or by its inode in a directory. */
static void find_own(struct miss *miss, const struct file_names *names, const struct file_route *route)
{
	const struct source_memory_part *last = source_memory_last_part(miss->stream);
	const struct source_memory_file *file = last != NULL ? source_memory_file(miss->stream, last->file) : NULL;
	const char *own = file != NULL && file->where != NULL ? file->where : "";
	if (own[0] == '\0' || strcmp(own, route->path) == 0 || (route->real != NULL && strcmp(own, route->real) == 0))
		for (size_t i = 0; file != NULL && file->inode != 0 && i < names->count; i++)
			if (names->list[i].inode == file->inode)
				own = names->list[i].name;
	own = file_identity_base(own);
	snprintf(miss->own, sizeof miss->own, "%s", own);
}

enum weir_status file_search_missed(struct file_shared *shared, const struct file_route *route,
                                    const struct source_memory_stream *record, struct file_missed *missed,
                                    struct weir_error *error)
{
	struct grounds *grounds = weir_alloc(1, sizeof *grounds);
	struct miss miss = {.shared = shared, .grounds = grounds, .stream = record, .missed = missed};
	const struct source_memory_part *last = source_memory_last_part(record);
	const struct source_memory_file *newest = last != NULL ? source_memory_file(record, last->file) : NULL;
	*missed = (struct file_missed){.count = 0};
	grounds_init(grounds, shared, route, newest);
	enum weir_status listed = WEIR_OK;
	for (size_t i = 0; i < grounds->count && listed != WEIR_IO; i++) {
		const struct file_names *names;
		enum weir_status status = file_names_read(&shared->names, grounds->directories[i], &names, error);
		if (i == 0 || status == WEIR_IO)
			listed = status;
		if (status != WEIR_OK)
			continue;
		find_own(&miss, names, route);
		miss.since_ns = record->forgotten_ns < grounds->since_ns[i] ? grounds->since_ns[i] - 1 : record->forgotten_ns;
		each_rotated(grounds, names, take_missed, &miss);
		if (grounds->since_ns[i] > 0)
			take_kept_names(&miss, names);
	}
	free(grounds);
	return listed;
}

static bool is_left(void *context, const char *path, const struct file_name *name)
{
	(void)context, (void)path, (void)name;
	return true;
}

bool file_search_any_left(struct file_shared *shared, const char *path)
{
	struct grounds *grounds = weir_alloc(1, sizeof *grounds);
	const struct file_names *names;
	struct file_route route = {.path = path, .real = NULL};
	struct stat about;
	grounds_init(grounds, shared, &route, NULL);
	bool any = lstat(path, &about) == 0;
	for (size_t i = 0; i < grounds->count && !any; i++) {
		enum weir_status status = file_names_read(&shared->names, grounds->directories[i], &names, NULL);
		any = status == WEIR_IO || (status == WEIR_OK && each_rotated(grounds, names, is_left, NULL));
	}
	free(grounds);
	return any;
}

/* Enough to know it again within a run: where it is, and when it was written. */
static void remember_place(const struct miss *miss, const char *path)
{
	struct stat about;
	if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) ||
	    source_memory_file_with(miss->shared->memory, about.st_dev, about.st_ino) != NULL)
		return;
	struct source_memory_file *file = source_memory_file_add(miss->shared->memory, miss->record);
	source_memory_file_place(miss->shared->memory, file, about.st_dev, about.st_ino);
	file->modified_ns = file_identity_modified_ns(&about);
	file->seen_s = weir_wall_ms() / 1000;
	file->state = SOURCE_FILE_SETTLED;
	file->taken = SOURCE_OFFSET_END;
	file->beside = true;
}

static bool remember(void *context, const char *path, const struct file_name *name)
{
	(void)name;
	struct miss *miss = context;
	struct source_memory *memory = miss->shared->memory;
	struct file_judgement judgement;
	struct file_candidate candidate;
	if (source_memory_named(memory, path))
		return false;
	if (miss->shared->settings.forgets) {
		remember_place(miss, path);
		return false;
	}
	file_identity_judge(&miss->shared->settings, memory, path, NULL, &judgement, NULL);
	if (judgement.verdict != FILE_NEW)
		return false;
	struct source_memory_file *file = source_memory_file_add(memory, miss->record);
	file_candidate_init(&candidate, path, &judgement);
	file_candidate_remember(&candidate, memory, file);
	file->state = SOURCE_FILE_SETTLED;
	file->taken = SOURCE_OFFSET_END;
	file->beside = true;
	file_candidate_deinit(&candidate);
	return false;
}

void file_search_remember_rotated(struct file_shared *shared, const struct file_route *route,
                                  struct source_memory_stream *record)
{
	struct grounds grounds; /* not cleared: it is asked for each new stream */
	struct miss miss = {.shared = shared, .grounds = &grounds, .record = record};
	grounds_init(&grounds, shared, route, NULL);
	for (size_t i = 0; i < grounds.count; i++) {
		const struct file_names *names;
		if (file_names_read(&shared->names, grounds.directories[i], &names, NULL) == WEIR_OK)
			each_rotated(&grounds, names, remember, &miss);
	}
}
