/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands. Those that are asked for most come first; a name is found by its length and its letters. */
#include "limiter/check/resp/internal.h"

#include <strings.h>

static const struct command commands[] = {
	{"weir.check", -3, COMMAND_CHECK, 1, run_check_command, "WEIR.CHECK key zone [cost] [DURABLE]"},
	{"weir.allow", -3, COMMAND_CHECK, 1, run_allow, "WEIR.ALLOW key zone [cost] [DURABLE]"},
	{"cl.throttle", -5, COMMAND_CHECK, 1, run_throttle, "CL.THROTTLE key max_burst count period [quantity]"},
	{"weir.forward", 7, COMMAND_CHECK, 1, run_forward,
     "WEIR.FORWARD key zone cost flags number number: from one limiter to another, never further"},
	{"weir.peek", -3, COMMAND_CHECK, 1, run_peek, "WEIR.PEEK key zone [cost]"},
	{"weir.all", -5, COMMAND_CHECK, 2, run_all, "WEIR.ALL numchecks key zone cost [key zone cost ...] [DURABLE]"},
	{"weir.reserve", -4, COMMAND_CHECK, 1, run_reserve, "WEIR.RESERVE key zone cost [ttl_ms] [DURABLE]"},
	{"weir.settle", 5, COMMAND_CHECK, 1, run_settle, "WEIR.SETTLE key zone id cost"},
	{"weir.release", 4, COMMAND_CHECK, 1, run_release, "WEIR.RELEASE key zone id"},
	{"ping", -1, 0, 0, run_ping, "PING [message]"},
	{"multi", 1, COMMAND_NOW, 0, run_multi, "MULTI"},
	{"exec", 1, COMMAND_NOW, 0, run_exec, "EXEC"},
	{"discard", 1, COMMAND_NOW, 0, run_discard, "DISCARD"},
	{"hello", -1, COMMAND_OPEN, 0, run_hello, "HELLO [protover [AUTH user password] [SETNAME name]]"},
	{"auth", -2, COMMAND_OPEN, 0, run_auth, "AUTH [user] password"},
	{"acl", -2, 0, 0, run_acl, "ACL WHOAMI"},
	{"client", -2, 0, 0, run_client,
     "CLIENT ID|GETNAME|SETNAME|SETINFO|INFO|LIST|TRACKING|NO-EVICT|NO-TOUCH|REPLY ..."},
	{"command", -1, 0, 0, run_command, "COMMAND [COUNT|DOCS|INFO|LIST|GETKEYS ...]"},
	{"cluster", -2, 0, 0, run_cluster, "CLUSTER SLOTS|SHARDS|NODES|INFO|MYID|LINKS|KEYSLOT key|COUNTKEYSINSLOT slot"},
	{"config", -2, 0, 0, run_config, "CONFIG GET pattern [pattern ...]"},
	{"info", -1, 0, 0, run_info, "INFO [section ...]"},
	{"echo", 2, 0, 0, run_echo, "ECHO message"},
	{"select", 2, 0, 0, run_select, "SELECT 0"},
	{"dbsize", 1, 0, 0, run_dbsize, "DBSIZE"},
	{"scan", -2, 0, 0, run_scan, "SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]"},
	{"keys", 2, 0, 0, run_keys, "KEYS pattern"},
	{"slowlog", -2, 0, 0, run_slowlog, "SLOWLOG GET [count]|LEN|RESET"},
	{"latency", -2, 0, 0, run_latency, "LATENCY LATEST|HISTORY event|HISTOGRAM [command ...]|RESET [event ...]"},
	{"module", -2, 0, 0, run_module, "MODULE LIST"},
	{"readonly", 1, 0, 0, run_ok, "READONLY"},
	{"readwrite", 1, 0, 0, run_ok, "READWRITE"},
	{"asking", 1, 0, 0, run_ok, "ASKING"},
	{"reset", 1, COMMAND_OPEN | COMMAND_NOW, 0, run_reset, "RESET"},
	{"quit", -1, COMMAND_OPEN | COMMAND_NOW, 0, run_quit, "QUIT"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

_Static_assert(COMMAND_COUNT <= (int)LINK_KINDS_MAX, "each command has its counter");

bool word_is(struct weir_span word, const char *lower)
{
	return word.length == strlen(lower) && strncasecmp(word.at, lower, word.length) == 0;
}

const struct command *command_find(struct weir_span name)
{
	for (const struct command *at = commands; at < commands + COMMAND_COUNT; at++)
		if (word_is(name, at->name))
			return at;
	return NULL;
}

uint32_t command_index(const struct command *command)
{
	return (uint32_t)(command - commands);
}

uint32_t command_count(void)
{
	return COMMAND_COUNT;
}

const struct command *command_at(uint32_t index)
{
	return &commands[index];
}

const char *resp_command_name(uint32_t index)
{
	return index < COMMAND_COUNT ? commands[index].name : NULL;
}
