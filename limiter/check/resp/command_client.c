/* SPDX-License-Identifier: Apache-2.0 */
/* What clients say when they connect: who they are, which protocol they speak, and whether anyone is there. */
#include "common/bytes/secret.h"
#include "common/resp/resp_number.h"
#include "limiter/check/resp/internal.h"

#include <stdio.h>

enum { PEER_BYTES = WEIR_ADDRESS_TEXT_BYTES + 16 };

static const char default_user[] = "default";

static bool log_in(struct connection *connection, struct weir_span name, struct weir_span password)
{
	const struct resp_options *options = &connection->server->options;
	const struct resp_user *found = NULL;
	for (uint32_t i = 0; i < options->user_count; i++)
		if (weir_span_equal(weir_span_of(options->users[i].name), name) &&
		    weir_secret_is(weir_span_of(options->users[i].password), password))
			found = &options->users[i];
	if (found != NULL)
		connection->user = found;
	return found != NULL;
}

/* @return whether it logged in; else the error is written */
static bool try_to_log_in(struct connection *connection, struct weir_span name, struct weir_span password)
{
	bool wanted = connection->server->options.user_count > 0;
	if (wanted && log_in(connection, name, password))
		return true;
	link_connection_refuse(&connection->base, REFUSAL_LOGIN, NULL,
	                       wanted ? "the user or the password is wrong" : "it logs in, and there is no password",
	                       wanted ? "have it send checks.password, or the password of its user in checks.users"
	                              : "set checks.password, or have it connect without one");
	if (!wanted) {
		if (word_is(name, default_user))
			weir_resp_error(&connection->out, "ERR AUTH <password> called without any password configured for the "
			                                  "default user: set checks.password, or connect without one");
		else
			weir_resp_error(&connection->out, "WRONGPASS there are no users: connect without a name");
		return false;
	}
	weir_counter_add(&connection->server->base.figures.failed_logins, 1);
	weir_resp_error(&connection->out, "WRONGPASS invalid username-password pair or user is disabled.");
	return false;
}

bool run_auth(struct connection *connection, const struct weir_resp_command *words)
{
	bool named = words->count == 3;
	if (words->count > 3)
		weir_resp_error(&connection->out, "ERR syntax error: AUTH [user] password");
	else if (try_to_log_in(connection, named ? words->words[1] : weir_span_of(default_user),
	                       words->words[named ? 2 : 1]))
		weir_resp_simple(&connection->out, "OK");
	return true;
}

/* @return false: not a name, and the error is written */
static bool set_name(struct connection *connection, struct weir_span name)
{
	bool good = name.length <= NAME_MAX_BYTES;
	for (uint32_t i = 0; i < name.length && good; i++)
		good = name.at[i] > ' ' && name.at[i] < 0x7f;
	if (!good) {
		weir_resp_error(&connection->out, "ERR Client names cannot contain spaces, newlines or special characters, and "
		                                  "have at most 64 bytes.");
		return false;
	}
	memcpy(connection->name, name.at, name.length);
	connection->name[name.length] = '\0';
	return true;
}

static void greet(struct connection *connection)
{
	struct weir_text *out = &connection->out;
	weir_resp_map(out, 7, connection->protocol);
	weir_resp_string(out, "server");
	weir_resp_string(out, "redis");
	weir_resp_string(out, "version");
	weir_resp_string(out, RESP_AS_REDIS_VERSION);
	weir_resp_string(out, "proto");
	weir_resp_integer(out, connection->protocol);
	weir_resp_string(out, "id");
	weir_resp_integer(out, (int64_t)connection->id);
	weir_resp_string(out, "mode");
	weir_resp_string(out, "cluster");
	weir_resp_string(out, "role");
	weir_resp_string(out, "master");
	weir_resp_string(out, "modules");
	weir_resp_array(out, 0);
}

bool run_hello(struct connection *connection, const struct weir_resp_command *words)
{
	const struct weir_span *word = words->words;
	int64_t protocol = connection->protocol;
	if (words->count > 1 && !weir_resp_number(word[1], &protocol)) {
		weir_resp_error(&connection->out, "ERR Protocol version is not an integer or out of range");
		return true;
	}
	if (protocol < WEIR_RESP2 || protocol > WEIR_RESP3) {
		weir_resp_error(&connection->out, "NOPROTO unsupported protocol version");
		return true;
	}
	for (uint32_t i = 2; i < words->count;) {
		if (i + 2 < words->count && word_is(word[i], "auth")) {
			if (!try_to_log_in(connection, word[i + 1], word[i + 2]))
				return true;
			i += 3;
		} else if (i + 1 < words->count && word_is(word[i], "setname")) {
			if (!set_name(connection, word[i + 1]))
				return true;
			i += 2;
		} else {
			weir_resp_error(&connection->out, "ERR Syntax error in HELLO option: AUTH user password, SETNAME name");
			return true;
		}
	}
	if (connection->server->options.user_count > 0 && connection->user == NULL) {
		weir_resp_error(&connection->out,
		                "NOAUTH HELLO must be called with the client already authenticated, otherwise "
		                "the HELLO <proto> AUTH <user> <pass> option can be used");
		return true;
	}
	connection->protocol = (enum weir_resp_protocol)protocol;
	greet(connection);
	return true;
}

bool run_acl(struct connection *connection, const struct weir_resp_command *words)
{
	if (word_is(words->words[1], "whoami"))
		weir_resp_string(&connection->out, connection->user != NULL ? connection->user->name : default_user);
	else
		weir_resp_error(&connection->out, "ERR weir answers ACL WHOAMI alone: users are in the configuration");
	return true;
}

/* ---- CLIENT ---- */

static void format_peer(const struct connection *connection, bool local, char text[PEER_BYTES])
{
	struct link_end end = link_end_of(&connection->base.link, local);
	snprintf(text, PEER_BYTES, end.v6 ? "[%s]:%u" : "%s:%u", end.host, end.port);
}

static void answer_info(struct connection *connection)
{
	char line[1024], peer[PEER_BYTES], local[PEER_BYTES];
	const struct resp_server *server = connection->server;
	format_peer(connection, false, peer);
	format_peer(connection, true, local);
	/* Every member that Redis 7 has: some clients want them all. */
	snprintf(
		line, sizeof line,
		"id=%llu addr=%s laddr=%s fd=%d name=%s age=%lld idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=%zu "
		"qbuf-free=%zu argv-mem=0 multi-mem=%zu rbs=0 rbp=0 obl=0 oll=0 omem=%zu tot-mem=%zu events=r "
		"cmd=client|info user=%s redir=-1 resp=%d lib-name= lib-ver=\n",
		(unsigned long long)connection->id, peer, local, connection->base.link.fd, connection->name,
		(long long)((server->base.now_ms - connection->base.opened_ms) / 1000),
		connection->in_end - connection->in_start, connection->in_room - connection->in_end,
		connection->queued.capacity, connection->out.capacity, connection->base.counted,
		connection->user != NULL ? connection->user->name : default_user, connection->protocol);
	weir_resp_string(&connection->out, line);
}

bool run_client(struct connection *connection, const struct weir_resp_command *words)
{
	struct weir_text *out = &connection->out;
	struct weir_span sub = words->words[1];
	bool more = words->count > 2;
	/* TRACKING: nothing that a client may keep is ever given. NO-EVICT, NO-TOUCH: there is nothing to evict. */
	if ((word_is(sub, "setinfo") && words->count == 4) || (word_is(sub, "tracking") && more) ||
	    (word_is(sub, "no-evict") && more) || (word_is(sub, "no-touch") && more) ||
	    (word_is(sub, "reply") && more && word_is(words->words[2], "on"))) {
		weir_resp_simple(out, "OK");
	} else if (word_is(sub, "setname") && words->count == 3) {
		if (set_name(connection, words->words[2]))
			weir_resp_simple(out, "OK");
	} else if (word_is(sub, "id")) {
		weir_resp_integer(out, (int64_t)connection->id);
	} else if (word_is(sub, "getname")) {
		if (*connection->name == '\0')
			weir_resp_nil(out, connection->protocol);
		else
			weir_resp_string(out, connection->name);
	} else if (word_is(sub, "info") || word_is(sub, "list")) {
		answer_info(connection); /* of the list, the caller's own line: who else asks is no business of his */
	} else {
		/* MAINT_NOTIFICATIONS and REPLY OFF would promise what is not kept: clients go on without. */
		weir_resp_error(out, "ERR unknown subcommand '%.*s'. weir answers %s",
		                (int)(sub.length < NAME_MAX_BYTES ? sub.length : NAME_MAX_BYTES), sub.at,
		                "CLIENT ID, GETNAME, SETNAME, SETINFO, INFO, LIST, TRACKING, NO-EVICT, NO-TOUCH, REPLY ON");
	}
	return true;
}

/* ---- small ones ---- */

bool run_ping(struct connection *connection, const struct weir_resp_command *words)
{
	if (words->count > 2)
		weir_resp_error(&connection->out, "ERR wrong number of arguments for 'ping' command: PING [message]");
	else if (words->count == 2)
		weir_resp_bulk(&connection->out, words->words[1]);
	else
		weir_resp_simple(&connection->out, "PONG");
	return true;
}

bool run_echo(struct connection *connection, const struct weir_resp_command *words)
{
	weir_resp_bulk(&connection->out, words->words[1]);
	return true;
}

bool run_select(struct connection *connection, const struct weir_resp_command *words)
{
	if (word_is(words->words[1], "0"))
		weir_resp_simple(&connection->out, "OK");
	else
		weir_resp_error(&connection->out, "ERR DB index is out of range: there is database 0 alone");
	return true;
}

bool run_ok(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	weir_resp_simple(&connection->out, "OK");
	return true;
}

bool run_quit(struct connection *connection, const struct weir_resp_command *words)
{
	connection->stop = STOP_FINISHED;
	return run_ok(connection, words);
}

bool run_reset(struct connection *connection, const struct weir_resp_command *words)
{
	(void)words;
	multi_clear(connection);
	connection->protocol = WEIR_RESP2;
	if (connection->user != NULL) /* else it would put its login off for ever */
		connection->greets_ms = connection->server->base.now_ms;
	connection->user = NULL;
	connection->name[0] = '\0';
	weir_resp_simple(&connection->out, "RESET");
	return true;
}
