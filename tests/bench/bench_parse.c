/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to make a record of a log line.
 *
 * First the headline: combined lines from a file into records with the fields of usual zones, on one core, against
 * `LC_ALL=C grep -c POST FILE | cat` on the same file: runs of both by turns, the median of each. What counts is the
 * processor's time, reading included, so that neighbours on the machine weigh little. Then the same with fewer and with
 * more fields, and the other formats from memory. One JSON line a measurement.
 *
 *   bench_parse [FILE]      a combined log; else one is generated, in $TMPDIR
 *
 * WEIR_BENCH=smoke runs a small size, only to show that it works.
 */
#include "collector/format/format.h"
#include "collector/input/lines.h"
#include "common/base/alloc.h"
#include "tests/bench/log_lines.h"
#include "tests/bench/measure.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RUNS = 9, BUFFER_BYTES = 256 << 10, LINE_BYTES = 1024, TEXT_BYTES = 64 << 20 };

/* ---- measuring ---- */

static double cpu_seconds(int who)
{
	struct rusage usage;
	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* What a run saw: to be compared with other runs, and so that no work is left out as unused. */
struct seen {
	uint64_t lines, records, sum;
};

struct parser {
	struct weir_field_table fields;
	struct format *format;
	struct lines *lines;
};

static void parser_init(struct parser *parser, const char *config, const char *names)
{
	struct weir_json_document *document = NULL;
	struct weir_error error;
	char copy[256], *rest = copy;
	snprintf(copy, sizeof copy, "%s", names);
	weir_field_table_init(&parser->fields);
	for (char *name; (name = strtok_r(rest, " ", &rest)) != NULL;)
		weir_field_table_want(&parser->fields, name);
	if (weir_json_parse("config", config, strlen(config), &document, &error) != WEIR_OK)
		goto failed;
	struct weir_json root = weir_json_root(document);
	if (format_new(&root, &parser->fields, &parser->format, &error) != WEIR_OK)
		goto failed;
	weir_json_document_free(document);
	parser->lines = weir_alloc(1, sizeof *parser->lines);
	return;

failed:
	fprintf(stderr, "bench_parse: %s\n", error.text);
	exit(1);
}

static void parser_deinit(struct parser *parser)
{
	format_free(parser->format);
	weir_field_table_deinit(&parser->fields);
	free(parser->lines);
}

/* Parses the whole lines of a chunk; gives where the last one ended. */
static uint32_t parse_chunk(struct parser *parser, const char *data, uint32_t length, struct seen *seen)
{
	struct weir_record record;
	uint32_t begin = 0;
	for (uint32_t offset = 0; offset < length;) {
		offset = lines_find(data, length, offset, parser->lines);
		for (uint32_t i = 0; i < parser->lines->count; i++) {
			uint32_t end = parser->lines->ends[i];
			uint32_t bytes = lines_trim(data, begin, end);
			seen->lines++;
			if (format_parse(parser->format, data + begin, bytes, &record) == FORMAT_OK) {
				seen->records++;
				seen->sum += (uint64_t)record.time_ms + record.fields[WEIR_FIELD_IP].length;
			}
			begin = end + 1;
		}
	}
	return begin;
}

/* Reads a file to its end; parser NULL: only reads it. */
static struct seen parse_file(struct parser *parser, const char *path, char *buffer)
{
	struct seen seen = {0};
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t held = 0;
	for (ssize_t got; file >= 0 && (got = read(file, buffer + held, BUFFER_BYTES - held)) > 0;) {
		held += (size_t)got;
		size_t taken = parser != NULL ? parse_chunk(parser, buffer, (uint32_t)held, &seen) : held;
		memmove(buffer, buffer + taken, held - taken);
		held -= taken;
		if (held == BUFFER_BYTES)
			break; /* a line longer than the buffer: not this bench's business */
	}
	close(file);
	return seen;
}

/* Median of the processor's seconds for the file. */
static double measure_file(const char *config, const char *names, const char *path, int runs, struct seen *seen)
{
	double seconds[RUNS];
	struct parser parser;
	char *buffer = weir_alloc(BUFFER_BYTES, 1);
	parser_init(&parser, config, names);
	for (int i = 0; i < runs; i++) {
		double begin = cpu_seconds(RUSAGE_SELF);
		*seen = parse_file(&parser, path, buffer);
		seconds[i] = cpu_seconds(RUSAGE_SELF) - begin;
	}
	parser_deinit(&parser);
	free(buffer);
	return median(seconds, (size_t)runs);
}

static double grep_seconds(const char *path)
{
	double begin = cpu_seconds(RUSAGE_CHILDREN);
	pid_t child = fork();
	if (child == 0) {
		int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(nothing, STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", "LC_ALL=C grep -c POST \"$0\" | cat", path, (char *)NULL);
		_exit(127);
	}
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "bench_parse: grep failed\n");
		exit(1);
	}
	return cpu_seconds(RUSAGE_CHILDREN) - begin;
}

/* ---- the headline ---- */

static void bench_combined(const char *path, int runs)
{
	static const char config[] = "{\"type\": \"combined\"}", usual[] = "ip user method path status";
	double parse[RUNS], grep[RUNS], reading[RUNS];
	struct parser parser;
	struct seen seen = {0};
	char *buffer = weir_alloc(BUFFER_BYTES, 1);
	parser_init(&parser, config, usual);
	parse_file(NULL, path, buffer); /* into the page cache */
	for (int i = 0; i < runs; i++) {
		grep[i] = grep_seconds(path);
		double begin = cpu_seconds(RUSAGE_SELF);
		seen = parse_file(&parser, path, buffer);
		parse[i] = cpu_seconds(RUSAGE_SELF) - begin;
		begin = cpu_seconds(RUSAGE_SELF);
		parse_file(NULL, path, buffer);
		reading[i] = cpu_seconds(RUSAGE_SELF) - begin;
	}
	parser_deinit(&parser);
	free(buffer);
	if (seen.lines == 0) {
		fprintf(stderr, "bench_parse: %s has no lines\n", path);
		exit(1);
	}

	struct seen other;
	double lines = (double)seen.lines, parse_s = median(parse, (size_t)runs), grep_s = median(grep, (size_t)runs);
	double ip_s = measure_file(config, "ip", path, runs, &other);
	double all_s = measure_file(config, "ip ident user method path status bytes referer agent xff", path, runs, &other);
	printf("{\"bench\":\"parse\",\"rate\":%.0f,\"ceiling\":%.0f,\"ratio\":%.2f,\"goal\":1.0,\"unit\":\"lines/s\","
	       "\"lines\":%.0f,\"records\":%llu,\"ns_line\":%.1f,\"ns_line_ip\":%.1f,\"ns_line_all_fields\":%.1f,"
	       "\"ns_line_reading\":%.1f,\"ns_line_grep\":%.1f}\n",
	       lines / parse_s, lines / grep_s, grep_s / parse_s, lines, (unsigned long long)seen.records,
	       parse_s / lines * 1e9, ip_s / lines * 1e9, all_s / lines * 1e9, median(reading, (size_t)runs) / lines * 1e9,
	       grep_s / lines * 1e9);
	fflush(stdout);
}

/* ---- the formats, from memory ---- */

enum { WHEN_BYTES = 40 };

static void write_when(const struct log_lines *lines, const char *form, char when[WHEN_BYTES])
{
	time_t seconds = (time_t)(lines->time_ms / 1000);
	struct tm tm;
	strftime(when, WHEN_BYTES, form, gmtime_r(&seconds, &tm));
}

static int write_combined(const struct log_lines *lines, char *text)
{
	char ip[16], when[WHEN_BYTES];
	log_lines_ip(lines, ip);
	write_when(lines, "%d/%b/%Y:%H:%M:%S +0000", when);
	return snprintf(text, LINE_BYTES, "%s - %s [%s] \"%s %s%u%s HTTP/1.1\" %u %u \"%s\" \"%s\"\n", ip, lines->user,
	                when, lines->method, lines->path, lines->item, lines->query, lines->status, lines->bytes,
	                lines->referer, lines->agent);
}

/* As Zeek writes them: many members of which few are wanted. */
static int write_json(const struct log_lines *lines, char *text)
{
	char ip[16], when[WHEN_BYTES];
	log_lines_ip(lines, ip);
	write_when(lines, "%Y-%m-%dT%H:%M:%S", when);
	return snprintf(
		text, LINE_BYTES,
		"{\"_path\":\"http\",\"ts\":\"%s.%06uZ\",\"uid\":\"C%xqst53mF%x\",\"id.orig_h\":\"%s\",\"id.orig_p\":%u,"
		"\"id.resp_h\":\"10.0.0.100\",\"id.resp_p\":80,\"trans_depth\":1,\"method\":\"%s\",\"host\":"
		"\"www.example.com\",\"uri\":\"%s%u%s\",\"referrer\":\"%s\",\"version\":\"1.1\",\"user_agent\":\"%s\","
		"\"request_body_len\":0,\"response_body_len\":%u,\"status_code\":%u,\"status_msg\":\"OK\",\"tags\":[],"
		"\"resp_fuids\":[\"F%xMF3det3eDV9\"],\"rtt\":0.000869989,\"rejected\":false}\n",
		when, lines->item * 7, lines->ip, lines->item, ip, lines->item % 65536, lines->method, lines->path, lines->item,
		lines->query, lines->referer, lines->agent, lines->bytes, lines->status, lines->ip);
}

/* As Fluent Bit sends what a container wrote: a line of the log above in an object. */
static int write_envelope(const struct log_lines *lines, char *text)
{
	char ip[16], when[WHEN_BYTES];
	log_lines_ip(lines, ip);
	write_when(lines, "%d/%b/%Y:%H:%M:%S +0000", when);
	return snprintf(
		text, LINE_BYTES,
		"{\"date\":%lld.25,\"time\":\"2024-05-01T12:00:00.25Z\",\"stream\":\"stdout\",\"logtag\":\"F\",\"log\":"
		"\"%s - %s [%s] \\\"%s %s%u%s HTTP/1.1\\\" %u %u \\\"-\\\" \\\"curl\\\"\",\"kubernetes\":{\"pod_name\":"
		"\"web-%u\",\"namespace_name\":\"shop\",\"pod_id\":\"9f1c\",\"host\":\"node1\",\"container_name\":\"nginx\","
		"\"docker_id\":\"0123456789abcdef\",\"container_image\":\"nginx:1.27\"}}\n",
		(long long)(lines->time_ms / 1000), ip, lines->user, when, lines->method, lines->path, lines->item,
		lines->query, lines->status, lines->bytes, lines->item % 8);
}

static int write_logfmt(const struct log_lines *lines, char *text)
{
	char ip[16];
	log_lines_ip(lines, ip);
	return snprintf(
		text, LINE_BYTES,
		"time=%lld.%03d level=info msg=\"request done\" method=%s path=%s%u status=%u bytes=%u ip=%s agent=\"%s\" "
		"duration=12.7ms\n",
		(long long)(lines->time_ms / 1000), (int)(lines->time_ms % 1000), lines->method, lines->path, lines->item,
		lines->status, lines->bytes, ip, lines->agent);
}

static int write_delimited(const struct log_lines *lines, char *text)
{
	char ip[16];
	log_lines_ip(lines, ip);
	return snprintf(text, LINE_BYTES, "%s\t-\t%lld\t%s\t%s%u\t%u\t%u\t%s\t%s\n", ip, (long long)(lines->time_ms / 1000),
	                lines->method, lines->path, lines->item, lines->status, lines->bytes, lines->referer, lines->agent);
}

static int write_haproxy(const struct log_lines *lines, char *text)
{
	char ip[16], when[WHEN_BYTES];
	log_lines_ip(lines, ip);
	write_when(lines, "%d/%b/%Y:%H:%M:%S", when);
	return snprintf(text, LINE_BYTES,
	                "May  1 12:00:00 lb1 haproxy[14389]: %s:%u [%s.%03d] http-in app/app%u 0/0/1/20/21 %u %u - - ---- "
	                "2/2/0/0/0 0/0 \"%s %s%u%s HTTP/1.1\"\n",
	                ip, lines->item % 65536, when, (int)(lines->time_ms % 1000), lines->item % 8, lines->status,
	                lines->bytes, lines->method, lines->path, lines->item, lines->query);
}

/* Lines in memory. */
struct text {
	char *data; /* owned */
	uint32_t length, lines;
};

static struct text text_write(int (*write)(const struct log_lines *lines, char *text), uint32_t count)
{
	struct log_lines lines = {.random = 1, .time_ms = INT64_C(1714564800000), .users = 200000};
	struct text text = {.data = weir_alloc(count + 1, LINE_BYTES / 2)};
	for (; text.lines < count && text.length < (count - 1) * (LINE_BYTES / 2); text.lines++) {
		log_lines_next(&lines);
		text.length += (uint32_t)write(&lines, text.data + text.length);
	}
	return text;
}

/* A packed log beside the tree, no more than TEXT_BYTES of it; nothing where it is not there. */
static struct text text_unpack(const char *name)
{
	const char *folder = getenv("WEIR_DATA");
	char command[4200];
	struct text text = {.data = weir_alloc(TEXT_BYTES, 1)};
	snprintf(command, sizeof command, "gzip -dc '%s/%s' 2>/dev/null", folder != NULL ? folder : "../shared/data", name);
	FILE *pipe = popen(command, "r");
	if (pipe != NULL) {
		text.length = (uint32_t)fread(text.data, 1, TEXT_BYTES, pipe);
		pclose(pipe);
	}
	for (uint32_t i = 0; i < text.length; i++)
		text.lines += text.data[i] == '\n';
	return text;
}

/* Measures and frees the text. */
static void bench_format(const char *name, const char *config, const char *names, struct text text, int runs)
{
	double seconds[RUNS];
	struct parser parser;
	struct seen seen = {0};
	parser_init(&parser, config, names);
	for (int i = 0; i < runs; i++) {
		seen = (struct seen){0};
		double begin = cpu_seconds(RUSAGE_SELF);
		parse_chunk(&parser, text.data, text.length, &seen);
		seconds[i] = cpu_seconds(RUSAGE_SELF) - begin;
	}
	parser_deinit(&parser);
	free(text.data);
	if (text.lines == 0)
		return;
	double per_line = median(seconds, (size_t)runs) / text.lines;
	printf("{\"bench\":\"parse_%s\",\"rate\":%.0f,\"unit\":\"lines/s\",\"lines\":%u,\"records\":%llu,"
	       "\"ns_line\":%.1f,\"line_bytes\":%.0f}\n",
	       name, 1 / per_line, text.lines, (unsigned long long)seen.records, per_line * 1e9,
	       (double)text.length / text.lines);
	fflush(stdout);
}

/* A combined log of so many lines; the caller removes it. */
static void write_log(char *path, size_t path_bytes, uint32_t count)
{
	const char *folder = getenv("TMPDIR");
	struct log_lines lines = {.random = 1, .time_ms = INT64_C(1714564800000), .users = 200000};
	snprintf(path, path_bytes, "%s/weir-bench-parse-XXXXXX", folder != NULL ? folder : "/tmp");
	int descriptor = mkstemp(path);
	FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
	char text[LINE_BYTES];
	for (uint32_t i = 0; file != NULL && i < count; i++) {
		log_lines_next(&lines);
		fwrite(text, 1, (size_t)write_combined(&lines, text), file);
	}
	if (file == NULL || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	bool smoke = is_smoke();
	int runs = smoke ? 1 : RUNS;
	uint32_t count = smoke ? 20000 : 2000000, some = smoke ? 5000 : 200000;
	if (argc > 1) {
		bench_combined(argv[1], runs);
	} else {
		char path[4096];
		write_log(path, sizeof path, count);
		bench_combined(path, runs);
		unlink(path);
	}
	static const char json[] = "{\"type\": \"json\", \"time\": \"ts\", \"fields\": {\"ip\": \"id.orig_h\", "
							   "\"path\": \"uri\", \"status\": \"status_code\"}}";
	static const char delimited[] =
		"{\"type\": \"delimited\", \"header\": false, \"columns\": [\"ip\", \"user\", \"time\", "
		"\"method\", \"path\", \"status\", \"bytes\", \"referer\", \"agent\"]}";
	static const char usual[] = "ip method path status";
	bench_format("json", json, usual, text_write(write_json, some), runs);
	bench_format("json_zeek", json, "ip query proto", text_unpack("zeek-dns-2018.json.gz"), runs);
	bench_format("json_message", "{\"type\": \"json\", \"message\": \"combined\"}", usual,
	             text_write(write_envelope, some), runs);
	bench_format("logfmt", "{\"type\": \"logfmt\"}", usual, text_write(write_logfmt, some), runs);
	bench_format("delimited", delimited, usual, text_write(write_delimited, some), runs);
	bench_format("pattern", "{\"type\": \"haproxy\"}", usual, text_write(write_haproxy, some), runs);
	return 0;
}
