/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What monitors of Redis ask: INFO, CONFIG GET, and after keys, of which there are none. What is told is so of weir: a figure that it
 * does not have is left out, and what it has no answer to is an error, as of a Redis that does not know the command.
 */
#include "common/match/wildcard.h"
#include "common/resp/resp_number.h"
#include "limiter/check/resp/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { DAY_S = 86400, HUMAN_BYTES = 24, VALUE_BYTES = 24, PATTERN_MAX_BYTES = 64, KIB = 1024, MEMORY_MS = 1000 };

static const char not_a_number[] = "ERR value is not an integer or out of range", syntax[] = "ERR syntax error";

static struct resp_totals sum_up(const struct resp_server *server)
{
	struct resp_totals totals = {0};
	if (server->options.sum != NULL)
		server->options.sum(server->options.sum_context, &totals);
	else
		resp_server_add(&server->base, &totals);
	return totals;
}

static uint64_t connections_max(const struct resp_server *server, const struct resp_totals *totals)
{
	return (uint64_t)server->base.options.connections * totals->servers;
}

/* ---- INFO ---- */

struct informing {
	const struct connection *connection;
	struct resp_server *server;
	struct resp_totals totals;
	struct weir_text *text;
};

/* As Redis writes it: "1.24M". */
static void put_bytes(struct weir_text *text, const char *name, uint64_t bytes)
{
	static const char units[] = "KMGTP";
	double value = (double)bytes;
	int unit = -1;
	while (value >= KIB && unit + 2 < (int)sizeof units) {
		value /= KIB;
		unit++;
	}
	weir_text_printf(text, "%s:%" PRIu64 "\r\n", name, bytes);
	if (unit < 0)
		weir_text_printf(text, "%s_human:%" PRIu64 "B\r\n", name, bytes);
	else
		weir_text_printf(text, "%s_human:%.2f%c\r\n", name, value, units[unit]);
}

static void tell_server(const struct informing *informing)
{
	const struct resp_server *server = informing->server;
	long long up_s = (long long)((server->base.now_ms - server->started_ms) / 1000);
	struct utsname system;
	struct nodes nodes;
	nodes_read(informing->connection, &nodes);
	weir_text_printf(informing->text, "redis_version:%s\r\nweir_version:%s\r\nredis_mode:cluster\r\n",
	                 RESP_AS_REDIS_VERSION, WEIR_VERSION);
	if (uname(&system) == 0)
		weir_text_printf(informing->text, "os:%s %s %s\r\n", system.sysname, system.release, system.machine);
	weir_text_printf(informing->text,
	                 "arch_bits:%zu\r\nprocess_id:%d\r\nrun_id:%s\r\ntcp_port:%u\r\nuptime_in_seconds:%lld\r\n"
	                 "uptime_in_days:%lld\r\n",
	                 8 * sizeof(void *), (int)getpid(), nodes.at[0].id, nodes.at[0].port, up_s, up_s / DAY_S);
	nodes_free(&nodes);
}

static void tell_clients(const struct informing *informing)
{
	weir_text_printf(informing->text,
	                 "connected_clients:%" PRIu64 "\r\nmaxclients:%" PRIu64 "\r\nblocked_clients:0\r\n",
	                 informing->totals.connections, connections_max(informing->server, &informing->totals));
}

/* A member of /proc/self/status in bytes. @return false: it is not there */
static bool read_status(const char *status, const char *name, uint64_t *bytes)
{
	const char *at = strstr(status, name);
	uint64_t kib;
	if (at == NULL || sscanf(at + strlen(name), " %" SCNu64, &kib) != 1)
		return false;
	*bytes = kib * KIB;
	return true;
}

/* It costs more than all else that is told: it is read at most once a second. */
static void read_memory(struct resp_memory *memory, int64_t now_ms)
{
	char status[4096];
	if (memory->read_ms > 0 && now_ms - memory->read_ms < MEMORY_MS)
		return;
	FILE *file = fopen("/proc/self/status", "re");
	size_t length = file != NULL ? fread(status, 1, sizeof status - 1, file) : 0;
	if (file != NULL)
		fclose(file);
	status[length] = '\0';
	*memory = (struct resp_memory){.read_ms = now_ms};
	if (!read_status(status, "\nVmRSS:", &memory->resident) || !read_status(status, "\nVmHWM:", &memory->peak))
		memory->resident = 0;
	memory->peak = memory->peak > memory->resident ? memory->peak : memory->resident;
}

/* All of the process is in memory that it has from the system itself, so that what is resident is what it uses. */
static void tell_memory(const struct informing *informing)
{
	struct resp_memory *memory = &informing->server->memory;
	read_memory(memory, informing->server->base.now_ms);
	if (memory->resident > 0) {
		put_bytes(informing->text, "used_memory", memory->resident);
		put_bytes(informing->text, "used_memory_rss", memory->resident);
		put_bytes(informing->text, "used_memory_peak", memory->peak);
	}
	weir_text_printf(informing->text, "mem_clients_normal:%" PRIu64 "\r\nmaxmemory_policy:noeviction\r\n",
	                 informing->totals.buffered_bytes);
}

static void tell_persistence(const struct informing *informing)
{
	weir_text_puts(informing->text,
	               "loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\naof_rewrite_in_progress:0\r\n");
}

static void tell_stats(const struct informing *informing)
{
	const struct resp_totals *totals = &informing->totals;
	weir_text_printf(informing->text,
	                 "total_connections_received:%" PRIu64 "\r\ntotal_commands_processed:%" PRIu64
	                 "\r\nrejected_connections:%" PRIu64 "\r\nchecks_in_flight:%" PRIu64 "\r\nbuffered_bytes:%" PRIu64
	                 "\r\n",
	                 totals->accepted, totals->commands, totals->refused, totals->in_flight, totals->buffered_bytes);
}

static void tell_replication(const struct informing *informing)
{
	weir_text_puts(informing->text, "role:master\r\nconnected_slaves:0\r\n");
}

static void tell_cpu(const struct informing *informing)
{
	static const struct {
		int who;
		const char *suffix;
	} parts[] = {{RUSAGE_SELF, ""}, {RUSAGE_CHILDREN, "_children"}};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		struct rusage usage;
		if (getrusage(parts[i].who, &usage) != 0)
			continue;
		weir_text_printf(informing->text, "used_cpu_sys%s:%lld.%06ld\r\nused_cpu_user%s:%lld.%06ld\r\n",
		                 parts[i].suffix, (long long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec,
		                 parts[i].suffix, (long long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
	}
}

static void tell_cluster(const struct informing *informing)
{
	weir_text_puts(informing->text, "cluster_enabled:1\r\n");
}

/* In their order; one without a function has nothing to tell. */
static const struct {
	const char *name, *title;
	void (*tell)(const struct informing *informing);
} sections[] = {
	{"server", "Server", tell_server},
	{"clients", "Clients", tell_clients},
	{"memory", "Memory", tell_memory},
	{"persistence", "Persistence", tell_persistence},
	{"stats", "Stats", tell_stats},
	{"replication", "Replication", tell_replication},
	{"cpu", "CPU", tell_cpu},
	{"modules", "Modules", NULL},
	{"cluster", "Cluster", tell_cluster},
	{"keyspace", "Keyspace", NULL},
};

static bool is_wanted(const struct weir_resp_command *words, const char *section)
{
	static const char *const all[] = {"all", "everything", "default"};
	for (uint32_t i = 1; i < words->count; i++) {
		if (word_is(words->words[i], section))
			return true;
		for (size_t k = 0; k < sizeof all / sizeof *all; k++)
			if (word_is(words->words[i], all[k]))
				return true;
	}
	return words->count == 1;
}

bool run_info(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_text text = {0};
	const struct informing informing = {
		.connection = connection, .server = connection->server, .totals = sum_up(connection->server), .text = &text};
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!is_wanted(words, sections[i].name))
			continue;
		weir_text_printf(&text, "%s# %s\r\n", text.length > 0 ? "\r\n" : "", sections[i].title);
		if (sections[i].tell != NULL)
			sections[i].tell(&informing);
	}
	weir_resp_bulk(&connection->out, weir_text_span(&text));
	weir_text_deinit(&text);
	return true;
}

/* ---- CONFIG ---- */

/* What stands for a setting of Redis here. A value of NULL is a number of this server. */
static const struct {
	const char *name, *value;
} settings[] = {
	{"appendonly", "no"},
	{"cluster-enabled", "yes"},
	{"databases", "1"},
	{"latency-monitor-threshold", "0"},
	{"latency-tracking", "no"},
	{"maxclients", NULL},
	{"maxmemory-policy", "noeviction"},
	{"save", ""},
	{"slowlog-log-slower-than", "-1"},
	{"slowlog-max-len", "0"},
};

enum { SETTINGS = sizeof settings / sizeof *settings };

/* Of what Redis' patterns may have, `*` alone. */
static bool is_matched(struct weir_span pattern, const char *name)
{
	char lower[PATTERN_MAX_BYTES];
	if (pattern.length > sizeof lower)
		return false;
	for (uint32_t i = 0; i < pattern.length; i++)
		lower[i] = (char)tolower((unsigned char)pattern.at[i]);
	pattern.at = lower;
	if (pattern.length == 0 || memchr(lower, '*', pattern.length) == NULL)
		return weir_span_equal(pattern, weir_span_of(name));
	struct wildcard wildcard;
	wildcard_init(&wildcard, pattern);
	bool matched = wildcard_match(&wildcard, weir_span_of(name));
	wildcard_deinit(&wildcard);
	return matched;
}

static void get_settings(struct connection *connection, const struct weir_resp_command *words)
{
	const struct resp_totals totals = sum_up(connection->server);
	bool matched[SETTINGS] = {false};
	uint32_t count = 0;
	for (uint32_t i = 0; i < SETTINGS; i++) {
		for (uint32_t k = 2; k < words->count && !matched[i]; k++)
			matched[i] = is_matched(words->words[k], settings[i].name);
		count += matched[i];
	}
	weir_resp_map(&connection->out, count, connection->protocol);
	for (uint32_t i = 0; i < SETTINGS; i++) {
		char number[VALUE_BYTES];
		if (!matched[i])
			continue;
		snprintf(number, sizeof number, "%" PRIu64, connections_max(connection->server, &totals));
		weir_resp_string(&connection->out, settings[i].name);
		weir_resp_string(&connection->out, settings[i].value != NULL ? settings[i].value : number);
	}
}

bool run_config(struct connection *connection, const struct weir_resp_command *words)
{
	if (!word_is(words->words[1], "get"))
		weir_resp_error(&connection->out, "ERR settings are in weir's configuration, and are not changed here");
	else if (words->count < 3)
		weir_resp_error(&connection->out, "ERR wrong number of arguments for 'config|get' command");
	else
		get_settings(connection, words);
	return true;
}

/* ---- keys: there are none ---- */

bool run_dbsize(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	weir_resp_integer(&connection->out, 0);
	return true;
}

bool run_keys(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	weir_resp_array(&connection->out, 0);
	return true;
}

static bool is_cursor(struct weir_span word)
{
	for (uint32_t i = 0; i < word.length; i++)
		if (!isdigit((unsigned char)word.at[i]))
			return false;
	return word.length > 0;
}

/* @return why it is none; NULL: it is one */
static const char *refuse_scan(const struct weir_resp_command *words)
{
	int64_t count;
	if (!is_cursor(words->words[1]))
		return "ERR invalid cursor";
	for (uint32_t i = 2; i < words->count; i += 2) {
		bool counts = word_is(words->words[i], "count");
		if (i + 1 == words->count ||
		    (!counts && !word_is(words->words[i], "match") && !word_is(words->words[i], "type")))
			return syntax;
		if (counts && !weir_resp_number(words->words[i + 1], &count))
			return not_a_number;
		if (counts && count < 1)
			return syntax;
	}
	return NULL;
}

bool run_scan(struct connection *connection, const struct weir_resp_command *words)
{
	const char *why = refuse_scan(words);
	if (why != NULL) {
		weir_resp_error(&connection->out, "%s", why);
		return true;
	}
	weir_resp_array(&connection->out, 2);
	weir_resp_string(&connection->out, "0");
	weir_resp_array(&connection->out, 0);
	return true;
}

/* ---- what a Redis keeps in lists, which are empty where it is told to keep nothing, as CONFIG says ---- */

static void refuse_sub(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_span sub = words->words[1];
	weir_resp_error(&connection->out, "ERR unknown subcommand or wrong number of arguments for '%.*s'. weir answers %s",
	                (int)(sub.length < NAME_MAX_BYTES ? sub.length : NAME_MAX_BYTES), sub.at,
	                command_find(words->words[0])->summary);
}

bool run_slowlog(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_span sub = words->words[1];
	int64_t count = 0;
	bool gets = word_is(sub, "get") && words->count <= 3;
	if (gets && words->count == 3 && !weir_resp_number(words->words[2], &count))
		weir_resp_error(&connection->out, "%s", not_a_number);
	else if (gets && count < -1)
		weir_resp_error(&connection->out, "ERR count should be greater than or equal to -1");
	else if (gets)
		weir_resp_array(&connection->out, 0);
	else if (word_is(sub, "len") && words->count == 2)
		weir_resp_integer(&connection->out, 0);
	else if (word_is(sub, "reset") && words->count == 2)
		weir_resp_simple(&connection->out, "OK");
	else
		refuse_sub(connection, words);
	return true;
}

bool run_latency(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_span sub = words->words[1];
	if ((word_is(sub, "latest") && words->count == 2) || (word_is(sub, "history") && words->count == 3))
		weir_resp_array(&connection->out, 0);
	else if (word_is(sub, "histogram"))
		weir_resp_map(&connection->out, 0, connection->protocol);
	else if (word_is(sub, "reset"))
		weir_resp_integer(&connection->out, 0);
	else
		refuse_sub(connection, words);
	return true;
}

bool run_module(struct connection *connection, const struct weir_resp_command *words)
{
	if (word_is(words->words[1], "list") && words->count == 2)
		weir_resp_array(&connection->out, 0);
	else
		refuse_sub(connection, words);
	return true;
}
