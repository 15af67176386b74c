/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of files made from a seed: names, rotations of every style, links, compressions; lines are written while
 * the source runs and while it is stopped. Compressed logs stall while they are written, are cut and replaced; logs are
 * rotated into a directory that nobody named; a link in the middle of a path changes. Every line is read once, or told
 * as lost.
 *
 * WEIR_SEED is the first seed, WEIR_SEEDS how many are tried.
 */
#include "tests/unit/rotation_fixture.h"

enum { ROTATED_MAX = 5, LOGS_MAX = 7, LINES_MAX = 4000, SEEDS = 200, KEPT = 40, SOON_MS = 500 };

enum style {
	NUMBERED,
	DATED,
	STEM,
	COPIED,
	MOVED,
	VAULTED, /* into a directory that nobody named */
	STYLES,
	PACKED = STYLES, /* it is compressed itself, and grows by members */
	RELEASED,        /* its directory is another one after each release */
};

/* What a log's rotated files are packed by. */
static struct log_bytes (*const packers[])(struct log_bytes) = {NULL, log_gzip, log_zstd, log_bzip2, log_xz};
static const char *const endings[] = {"", ".gz", ".zst", ".bz2", ".xz"};

struct log {
	const char *name; /* as it is configured */
	char real[32];    /* where its lines are written: elsewhere, if the name is a link */
	enum style style;
	int packer;
	int rotations, written;
	char rotated[KEPT][96]; /* by rotation, the oldest first; "" for one that was removed */
	int begun;              /* how many lines had been written when its file began */
	bool moved;             /* the source stopped before it knew the log's file, or that was rotated since */
	bool lossy;             /* a file that was not read to its end was removed */
	struct log_bytes whole; /* PACKED: all that it is to hold, ... */
	size_t there;           /* ... and how much of it is there */
	int releases;
};

struct world {
	uint64_t seed, state;
	struct log logs[LOGS_MAX];
	int log_count;
	const char *config;
	struct reader reader;
	bool running;
	char seen[LOGS_MAX][LINES_MAX]; /* how often each line was read */
	size_t told;                    /* losses ... */
	size_t counted;                 /* ... of which it is said how many bytes they are */
};

/* Names that look like one another's rotations. */
static const char *const names[] = {"web.log", "web-2.log", "site.443", "site", "x.log-old"};
static const char *const packed_name = "sites", *const released_name = "current/mid.log";

static uint32_t draw(struct world *world, uint32_t bound)
{
	world->state = world->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(world->state >> 33) % bound;
}

static void hear(void *context, const char *place, const char *words)
{
	(void)place;
	struct world *world = context;
	world->told += strstr(words, "lost") != NULL;
	world->counted += strstr(words, "bytes from position") != NULL;
	if (getenv("WEIR_SHOW") != NULL)
		fprintf(stderr, "told: %s\n", words);
}

/* ---- what is done to a log ---- */

enum { LINE_ROOM = 80 };

/* A line like no other: where bytes are alike, files are. @return its length */
static size_t put_line(struct world *world, int number, int line, char text[LINE_ROOM])
{
	size_t length = (size_t)snprintf(text, LINE_ROOM, "%d:%d:", number, line);
	uint64_t random = world->seed * 1000003 + (uint64_t)number * 10007 + (uint64_t)line + 1;
	for (int i = 1 + (int)draw(world, 40); i > 0; i--) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		text[length++] = (char)('a' + (random >> 33) % 26);
	}
	text[length] = '\n';
	text[length + 1] = '\0';
	return length + 1;
}

/* Some of what is missing of a compressed log, or all. */
static void write_packed(struct log *log, size_t count)
{
	size_t rest = log->whole.length - log->there;
	count = count < rest ? count : rest;
	log_write(log->real, O_APPEND, log->whole.at + log->there, count);
	log->there += count;
}

/* A member of these lines, of which some bytes may come later. */
static void write_member(struct world *world, int number, int count)
{
	struct log *log = &world->logs[number];
	struct log_bytes text = {.at = weir_alloc((size_t)count, LINE_ROOM)};
	for (int i = 0; i < count && log->written < LINES_MAX; i++, log->written++)
		text.length += put_line(world, number, log->written, text.at + text.length);
	struct log_bytes member = packers[log->packer](text), before = log->whole;
	log->whole = log_joined(before, NULL, 0, member);
	write_packed(log, draw(world, 3) == 0 ? SIZE_MAX : draw(world, (uint32_t)(log->whole.length - log->there)));
	free(text.at);
	free(member.at);
	free(before.at);
}

/* It goes on, is replaced by a copy that has all, or is cut, and begun anew perhaps. */
static void change_packed(struct world *world, struct log *log)
{
	switch (draw(world, 4)) {
	case 0:
	case 1: write_packed(log, draw(world, 2) == 0 ? SIZE_MAX : draw(world, 200)); break;
	case 2:
		log_write("copy", O_TRUNC, log->whole.at, log->whole.length);
		log_rename("copy", log->real);
		log->there = log->whole.length;
		break;
	default:
		if (world->running || log->there == 0)
			break;
		log->there = draw(world, (uint32_t)log->there);
		assert_int_equal(truncate(log_path(log->real), (off_t)log->there), 0);
		break;
	}
}

static void write_lines(struct world *world, int number, int count)
{
	struct log *log = &world->logs[number];
	if (log->style == PACKED) {
		write_member(world, number, count);
		return;
	}
	for (int i = 0; i < count && log->written < LINES_MAX; i++, log->written++) {
		char line[LINE_ROOM];
		put_line(world, number, log->written, line);
		log_append(log->real, line);
	}
}

/* Shifts those that have a number: the place of a rotation is how many came after it. */
static void shift(struct log *log)
{
	for (int i = 0; i < log->rotations; i++) {
		char next[96];
		if (log->rotated[i][0] == '\0')
			continue;
		const char *ending = strrchr(log->rotated[i], '.');
		bool packed = log->packer > 0 && strcmp(ending, endings[log->packer]) == 0;
		snprintf(next, sizeof next, "%s.%d%s", log->real, log->rotations - i + 1, packed ? ending : "");
		log_rename(log->rotated[i], next);
		memcpy(log->rotated[i], next, sizeof next);
	}
}

static void pack(struct log *log, int rotation)
{
	char packed[96];
	const char *name = log->rotated[rotation], *ending = strrchr(name, '.');
	if (log->packer == 0 || name[0] == '\0' || (ending != NULL && strcmp(ending, endings[log->packer]) == 0))
		return;
	snprintf(packed, sizeof packed, "%.80s%s", name, endings[log->packer]);
	log_pack_by(name, packed, packers[log->packer]);
	memcpy(log->rotated[rotation], packed, sizeof packed);
}

static void copy_file(const char *from, const char *to)
{
	struct log_bytes bytes = log_read(from);
	log_write(to, O_TRUNC, bytes.at, bytes.length);
	free(bytes.at);
}

static void rotate(struct world *world, int number)
{
	struct log *log = &world->logs[number];
	struct stat about;
	if (log->style >= STYLES || log->rotations == KEPT || stat(log_path(log->real), &about) != 0 || about.st_size == 0)
		return;
	char name[96], real[32];
	memcpy(real, log->real, sizeof real);
	int date = 20240101 + log->rotations;
	const char *dot = strrchr(log->real, '.');
	int stem = (int)(dot != NULL && strcmp(dot, ".log") == 0 ? dot - log->real : (int)strlen(log->real));
	switch (log->style) {
	case NUMBERED:
		shift(log);
		snprintf(name, sizeof name, "%s.1", real);
		break;
	case COPIED:
		shift(log);
		snprintf(name, sizeof name, "%s.1", real);
		break;
	case DATED: snprintf(name, sizeof name, "%s-%d", real, date); break;
	case STEM: snprintf(name, sizeof name, "%.*s-%d%s", stem, real, date, real + stem); break;
	default:
		snprintf(name, sizeof name, "%s/%s-%d", log->style == MOVED ? "old" : "vault", file_identity_base(real), date);
		break;
	}
	if (log->style == COPIED) {
		copy_file(log->real, name);
		assert_int_equal(truncate(log_path(log->real), 0), 0);
	} else {
		log_rename(log->real, name);
		if (draw(world, 2) == 0)
			log_append(log->real, "");
	}
	log->moved = true;
	log->begun = log->written;
	memcpy(log->rotated[log->rotations++], name, sizeof name);
	if (log->rotations > 1 && draw(world, 2) == 0)
		pack(log, log->rotations - 2);
	else if (draw(world, 4) == 0)
		pack(log, log->rotations - 1);
}

/* The file that was read when the source stopped: what was written since is lost, and the source must say so. */
static void remove_unread(struct world *world, int number)
{
	struct log *log = &world->logs[number];
	if (world->running || log->style >= STYLES || log->moved || log->rotations == KEPT)
		return;
	write_lines(world, number, 1);
	rotate(world, number);
	if (!log->moved)
		return;
	log_remove(log->rotated[log->rotations - 1]);
	log->rotated[log->rotations - 1][0] = '\0';
	log->lossy = true;
	write_lines(world, number, 1 + (int)draw(world, 5));
}

/* ---- the source ---- */

static void count_lines(struct world *world)
{
	for (char *at = world->reader.text; *at != '\0';) {
		int number, line, used = 0;
		char *end = strchrnul(at, '\n');
		if (sscanf(at, "%d:%d:%n", &number, &line, &used) == 2 && used > 0 && number < LOGS_MAX && line < LINES_MAX)
			world->seen[number][line]++;
		else
			fail_msg("seed %llu: not a line: %.*s", (unsigned long long)world->seed, (int)(end - at), at);
		at = *end == '\n' ? end + 1 : end;
	}
	world->reader.length = 0;
	world->reader.text[0] = '\0';
}

static void start(struct world *world)
{
	reader_open(&world->reader, world->config, false, memory);
	world->running = true;
}

/* Whether the source knows the file that a log's lines are written to: it has read the newest of them. */
static bool is_known(const struct world *world, int number)
{
	const struct log *log = &world->logs[number];
	return log->written > log->begun && world->seen[number][log->written - 1] > 0;
}

static void halt(struct world *world)
{
	count_lines(world);
	for (int i = 0; i < world->log_count; i++)
		world->logs[i].moved = !is_known(world, i);
	stop(&world->reader);
	world->running = false;
}

/* @param sure  of logs alone of which nothing may be lost */
static bool all_seen(struct world *world, bool sure)
{
	count_lines(world);
	for (int i = 0; i < world->log_count; i++)
		for (int j = 0; j < world->logs[i].written && !(sure && world->logs[i].lossy); j++)
			if (world->seen[i][j] == 0)
				return false;
	return true;
}

/* "current" leads to another release, which logs anew: once what it led to is known. */
static void release(struct world *world, int number)
{
	struct log *log = &world->logs[number];
	char directory[32];
	if (world->running)
		count_lines(world);
	if (!is_known(world, number))
		return;
	snprintf(directory, sizeof directory, "release-%d", ++log->releases);
	assert_int_equal(mkdir(log_path(directory), 0700), 0);
	assert_int_equal(symlink(directory, log_path("next")), 0);
	if (draw(world, 2) == 0)
		write_lines(world, number, 1 + (int)draw(world, 5));
	log_rename("next", "current");
	snprintf(log->real, sizeof log->real, "release-%d/mid.log", log->releases);
	log->begun = log->written;
	if (draw(world, 3) > 0)
		write_lines(world, number, 1 + (int)draw(world, 5));
}

/* A file that is gone may come back while nothing else lies at its path: that is stated as long as it lasts. */
static bool is_stated(struct world *world)
{
	bool stated = world->told > 0;
	for (size_t i = 0; i < reader_stream_count(&world->reader); i++)
		stated = stated || strstr(reader_status(&world->reader, i).problem, "was deleted") != NULL;
	return stated;
}

/* What there is to see when a line is missing. */
static void show(struct world *world)
{
	char command[128];
	for (size_t i = 0; i < reader_stream_count(&world->reader); i++) {
		struct source_status status = reader_status(&world->reader, i);
		fprintf(stderr, "%s: position %llu, %s\n", status.name, (unsigned long long)status.position, status.problem);
	}
	for (size_t i = 0; i < memory->stream_count; i++)
		for (size_t j = 0; j < memory->streams[i]->file_count; j++) {
			const struct source_memory_file *file = memory->streams[i]->files[j];
			fprintf(stderr, "%s: file %u, state %d, inode %llu, taken %llu of %llu, at %s\n", memory->streams[i]->path,
			        file->number, (int)file->state, (unsigned long long)file->inode, (unsigned long long)file->taken,
			        (unsigned long long)file->size, file->where != NULL ? file->where : "?");
		}
	snprintf(command, sizeof command, "ls -lRi %s >&2", log_directory);
	if (system(command) != 0)
		fprintf(stderr, "no listing\n");
}

/*
 * Whether the source names rotated files that are packed, and reads one as a log of its own. The log that it was rotated
 * away from, unseen, cannot know that yet: it tells of bytes that the other reads.
 */
static bool reads_packed(void)
{
	for (size_t i = 0; i < memory->stream_count; i++)
		for (size_t k = 1; k < sizeof endings / sizeof *endings; k++) {
			const char *path = memory->streams[i]->path, *ending = strstr(path, endings[k]);
			if (ending != NULL && strcmp(ending, endings[k]) == 0)
				return true;
		}
	return false;
}

static void check(struct world *world)
{
	for (int i = 0; i < world->log_count; i++)
		if (world->logs[i].style == PACKED)
			write_packed(&world->logs[i], SIZE_MAX);
	int64_t end_ms = weir_monotonic_ms() + READER_WAIT_MS;
	bool lossy = false;
	for (int i = 0; i < world->log_count; i++)
		lossy = lossy || world->logs[i].lossy;
	/* What is lost never comes: once that is told, and all is here that must be, what else there is comes soon. */
	while (!all_seen(world, false) && weir_monotonic_ms() < end_ms) {
		if (lossy && is_stated(world) && all_seen(world, true) && end_ms > weir_monotonic_ms() + SOON_MS)
			end_ms = weir_monotonic_ms() + SOON_MS;
		reader_run(&world->reader, 5);
	}
	reader_run(&world->reader, 30);
	count_lines(world);
	if (!lossy && world->counted > 0 && !reads_packed()) {
		show(world);
		fail_msg("seed %llu: bytes were told as lost, and none are", (unsigned long long)world->seed);
	}
	for (int i = 0; i < world->log_count; i++)
		for (int j = 0; j < world->logs[i].written; j++)
			if (world->seen[i][j] > 1 || (world->seen[i][j] == 0 && !(world->logs[i].lossy && is_stated(world)))) {
				show(world);
				fail_msg("seed %llu: line %d of %s (style %d, packer %d, %d rotations, %d lines) was read %d times; %s",
				         (unsigned long long)world->seed, j, world->logs[i].name, world->logs[i].style,
				         world->logs[i].packer, world->logs[i].rotations, world->logs[i].written, world->seen[i][j],
				         world->config);
			}
}

/* ---- one world ---- */

static const char *const configs[] = {
	"{\"type\":\"file\",\"follow\":true,\"olddir\":\"old\",\"path\":[\"%s/*.log\",\"%s/site*\",\"%s/x.log-old\","
	"\"%s/current/mid.log\"],"
	"\"exclude\":[\"*-????????*\",\"site.[1-9]\",\"site.[1-9][0-9]\",\"site.*.*\"]}",
	"{\"type\":\"file\",\"follow\":true,\"olddir\":\"old\",\"path\":[\"%s/*.log*\",\"%s/site*\",\"%s/current/mid.log\"]}",
};

/* A log that is no rotating one. */
static struct log *make_special(struct world *world, const char *name, enum style style)
{
	struct log *log = &world->logs[world->log_count++];
	log->name = name;
	log->style = style;
	log->packer = 1 + (int)draw(world, 4);
	snprintf(log->real, sizeof log->real, "%s", name);
	return log;
}

static void make(struct world *world)
{
	assert_int_equal(mkdir(log_path("vault"), 0700), 0);
	assert_int_equal(mkdir(log_path("old"), 0700), 0);
	assert_int_equal(mkdir(log_path("elsewhere"), 0700), 0);
	assert_int_equal(mkdir(log_path("elsewhere/old"), 0700), 0);
	world->config = configs[draw(world, 2)];
	world->log_count = 1 + (int)draw(world, ROTATED_MAX);
	for (int i = 0; i < world->log_count; i++) {
		struct log *log = &world->logs[i];
		log->name = names[i];
		log->style = (enum style)draw(world, STYLES);
		log->packer = log->style == VAULTED ? 0 : (int)draw(world, 5);
		bool linked = draw(world, 4) == 0;
		snprintf(log->real, sizeof log->real, "%s%s", linked ? "elsewhere/" : "", log->name);
		if (linked)
			assert_int_equal(symlink(log->real, log_path(log->name)), 0);
		write_lines(world, i, 1 + (int)draw(world, 20));
	}
	if (draw(world, 2) == 0) {
		make_special(world, packed_name, PACKED);
		write_lines(world, world->log_count - 1, 1 + (int)draw(world, 20));
	}
	if (draw(world, 2) == 0) {
		struct log *log = make_special(world, released_name, RELEASED);
		assert_int_equal(mkdir(log_path("release-0"), 0700), 0);
		assert_int_equal(symlink("release-0", log_path("current")), 0);
		snprintf(log->real, sizeof log->real, "release-0/mid.log");
		write_lines(world, world->log_count - 1, 1 + (int)draw(world, 20));
	}
}

static void act(struct world *world)
{
	int number = (int)draw(world, (uint32_t)world->log_count), deed = (int)draw(world, 9);
	if (getenv("WEIR_SHOW") != NULL)
		fprintf(stderr, "%s: deed %d (%s), %d lines, %d rotations\n", world->logs[number].name, deed,
		        world->running ? "running" : "stopped", world->logs[number].written, world->logs[number].rotations);
	switch (deed) {
	case 0:
	case 1:
	case 2: write_lines(world, number, 1 + (int)draw(world, 30)); break;
	case 3:
		if (world->logs[number].style == PACKED)
			change_packed(world, &world->logs[number]);
		else if (world->logs[number].style == RELEASED)
			release(world, number);
		else
			rotate(world, number);
		break;
	case 4:
		rotate(world, number);
		write_lines(world, number, 1 + (int)draw(world, 5));
		rotate(world, number);
		write_lines(world, number, 1 + (int)draw(world, 5));
		break;
	case 5:
		if (world->running)
			halt(world);
		else
			start(world);
		break;
	case 6:
		if (draw(world, 4) == 0)
			remove_unread(world, number);
		break;
	default:
		if (world->running)
			reader_run(&world->reader, 1 + (int)draw(world, 15));
		else
			write_lines(world, number, 1);
		break;
	}
}

static void try_seed(uint64_t seed)
{
	struct world *world = weir_alloc(1, sizeof *world);
	begin();
	*world = (struct world){.seed = seed, .state = seed * 2654435761U + 1};
	reader_tell = hear;
	reader_tell_context = world;
	make(world);
	start(world);
	reader_run(&world->reader, 15); /* what is rotated is known then: earlier files are none of the stream's */
	for (int i = 5 + (int)draw(world, 25); i > 0; i--)
		act(world);
	if (!world->running)
		start(world);
	check(world);
	reader_close(&world->reader);
	end();
	reader_tell = NULL;
	for (int i = 0; i < world->log_count; i++)
		free(world->logs[i].whole.at);
	free(world);
}

static void every_line_is_read_once_or_told(void **state)
{
	(void)state;
	const char *first = getenv("WEIR_SEED"), *count = getenv("WEIR_SEEDS");
	uint64_t seed = first != NULL ? strtoull(first, NULL, 10) : 1;
	uint64_t end_seed = seed + (count != NULL ? strtoull(count, NULL, 10) : SEEDS);
	for (; seed < end_seed; seed++)
		try_seed(seed);
}

/* Worlds that once went wrong: the copy site.443.1 was taken for a rotated file of site, too. */
static void worlds_that_went_wrong_go_right(void **state)
{
	(void)state;
	static const uint64_t seeds[] = {511077};
	for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
		try_seed(seeds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worlds_that_went_wrong_go_right),
		cmocka_unit_test(every_line_is_read_once_or_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
