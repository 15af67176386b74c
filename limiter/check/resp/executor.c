/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in their order: which one is read next, what it waits for, and checks from being gathered to being answered. */
#include "limiter/check/resp/internal.h"
#include "limiter/check/told.h"

#include <assert.h>

/* Heads stand beside the longest text that a command may have: its buffer has room for them. */
enum { HEADS_BYTES = 64, TURN_MASK = INT32_MAX };

/* ---- slots ---- */

static struct slot *take_slot(struct resp_server *server)
{
	struct slot *slot = server->free_slots;
	if (slot != NULL)
		server->free_slots = slot->next;
	else
		slot = &server->slots[server->slots_used++];
	weir_counter_set(&server->base.figures.in_flight, weir_counter_read(&server->base.figures.in_flight) + 1);
	return slot;
}

/* It is answered. */
static void free_first_slot(struct connection *connection)
{
	struct resp_server *server = connection->server;
	struct slot *slot = connection->first;
	check_counts_add(server->base.counts, slot->counted, slot->answer.outcome);
	connection->first = slot->next;
	if (connection->first == NULL)
		connection->last = NULL;
	connection->slot_count--;
	slot->connection = NULL;
	slot->turn = (slot->turn + 1) % SLOT_TURNS;
	slot->next = server->free_slots;
	server->free_slots = slot;
	weir_counter_set(&server->base.figures.in_flight, weir_counter_read(&server->base.figures.in_flight) - 1);
}

bool slot_possible(const struct connection *connection)
{
	const struct resp_server *server = connection->server;
	return connection->slot_count < RESP_SLOTS_MAX && (server->free_slots != NULL || server->slots_used < SLOTS_MAX);
}

static bool have_slots(const struct connection *connection, uint32_t count)
{
	const struct resp_server *server = connection->server;
	return connection->slot_count + count <= RESP_SLOTS_MAX &&
	       weir_counter_read(&server->base.figures.in_flight) + count <= SLOTS_MAX;
}

bool slots_together(struct connection *connection, uint32_t count)
{
	struct resp_server *server = connection->server;
	if (server->ask_count + count > CHECK_GROUP_MAX || !have_slots(connection, count))
		server_ask(server);
	if (!have_slots(connection, count)) {
		server->starved |= connection->slot_count == 0;
		return false;
	}
	if (connection->keys_used + count * WEIR_KEY_MAX_BYTES <= BUFFER_BYTES)
		return true;
	if (!answers_are_out(connection))
		return false;
	connection->keys_used = 0;
	return true;
}

struct check_ask *slot_ask(struct connection *connection, enum reply_form form)
{
	struct resp_server *server = connection->server;
	if (server->ask_count == CHECK_GROUP_MAX)
		server_ask(server);
	struct slot *slot = take_slot(server);
	slot->connection = connection;
	slot->next = NULL;
	slot->answered = slot->shadow = false;
	slot->together = 0;
	slot->form = form;
	if (connection->last != NULL)
		connection->last->next = slot;
	else
		connection->first = slot;
	connection->last = slot;
	connection->slot_count++;
	struct check_ask *ask = &server->asks[server->ask_count];
	server->asked[server->ask_count++] = slot;
	*ask = (struct check_ask){.durable = server->base.options.durable,
	                          .ticket = (uint64_t)(slot->turn & TURN_MASK) << 32 | (uint64_t)(slot - server->slots)};
	return ask;
}

static int64_t whole_seconds(int64_t ms)
{
	return ms < 0 ? -1 : told_seconds(ms);
}

static void write_reservation(struct connection *connection, const int64_t *numbers, uint32_t count,
                              const struct check_answer *answer)
{
	char id[2 * WEIR_RESERVATION_ID_BYTES + 1];
	weir_resp_array(&connection->out, count + 1);
	for (uint32_t i = 0; i < count; i++)
		weir_resp_integer(&connection->out, numbers[i]);
	if (answer->reserved)
		weir_resp_bulk(&connection->out, weir_span_of(reservation_text(answer->reservation, id)));
	else
		weir_resp_nil(&connection->out, connection->protocol);
}

static void write_numbers(struct connection *connection, enum reply_form form, const struct check_answer *answer)
{
	bool limited = answer->outcome == CHECK_BLOCKED, seconds = form == REPLY_THROTTLE;
	const int64_t numbers[] = {limited, answer->limit, answer->remaining,
	                           seconds ? whole_seconds(answer->retry_after_ms) : answer->retry_after_ms,
	                           seconds ? whole_seconds(answer->reset_after_ms) : answer->reset_after_ms};
	if (form == REPLY_ONE)
		weir_resp_integer(&connection->out, !limited);
	else if (form == REPLY_RESERVATION)
		write_reservation(connection, numbers, sizeof numbers / sizeof *numbers, answer);
	else
		weir_resp_integers(&connection->out, numbers, sizeof numbers / sizeof *numbers);
}

static void write_unavailable(struct connection *connection, const struct slot *slot)
{
	struct check_answer answer = {.outcome = CHECK_PASSED, .retry_after_ms = -1};
	enum weir_on_unavailable told = connection->base.server->options.on_unavailable;
	/* A settlement is no question: neither pass nor block would say that nothing was given back. */
	if (slot->form == REPLY_SETTLED)
		told = WEIR_ON_UNAVAILABLE_ERROR;
	else if (slot->shadow)
		told = WEIR_ON_UNAVAILABLE_ALLOW;
	switch (told) {
	case WEIR_ON_UNAVAILABLE_ERROR:
		weir_resp_error(&connection->out, "UNAVAILABLE %s: ask again", check_why_word(slot->answer.why));
		return;
	case WEIR_ON_UNAVAILABLE_ALLOW: break;
	case WEIR_ON_UNAVAILABLE_DENY:
		answer.outcome = CHECK_BLOCKED;
		answer.retry_after_ms = TOLD_DENIED_AGAIN_MS;
		break;
	}
	write_numbers(connection, slot->form, &answer);
}

/* All that there is to say: what its caller is told, the other limiter says. */
static void write_whole(struct connection *connection, const struct check_answer *answer)
{
	int64_t numbers[] = {answer->outcome,
	                     answer->limit,
	                     answer->remaining,
	                     answer->retry_after_ms,
	                     answer->reset_after_ms,
	                     answer->why,
	                     0, /* the reservation's id */
	                     0,
	                     answer->window_ms};
	if (answer->reserved)
		memcpy(&numbers[6], answer->reservation, sizeof answer->reservation);
	weir_resp_integers(&connection->out, numbers, sizeof numbers / sizeof *numbers);
}

static void make_room_to_write(struct connection *connection)
{
	if (connection->out.at == NULL)
		connection->out = (struct weir_text){.at = buffer_take(connection->server), .capacity = BUFFER_BYTES};
}

static void write_answer(struct connection *connection, const struct slot *slot)
{
	make_room_to_write(connection);
	if (slot->form == REPLY_WHOLE) {
		write_whole(connection, &slot->answer);
		return;
	}
	switch (slot->answer.outcome) {
	case CHECK_PASSED:
	case CHECK_SETTLED:
	case CHECK_BLOCKED: write_numbers(connection, slot->form, &slot->answer); return;
	case CHECK_UNAVAILABLE: write_unavailable(connection, slot); return;
	case CHECK_NO_RESERVATION:
		weir_resp_error(&connection->out,
		                "ERR no such reservation of this key is open: it was settled, or its time is over");
		return;
	case CHECK_NO_ZONE:
	case CHECK_LATER: break;
	}
	weir_resp_error(&connection->out, "ERR the zone was removed just now: its name is in no policy any more");
}

/* Whether what is in front can be written: of a bundle when all of it is answered. @param refused  see below; set, as is blocked */
static bool is_written_next(const struct slot *slot, const struct slot **refused, bool *blocked)
{
	uint32_t rest = slot->together > 0 ? slot->together : 1;
	*blocked = false;
	*refused = NULL;
	for (; rest > 0; rest--, slot = slot->next) {
		enum check_outcome outcome = slot->answer.outcome;
		if (!slot->answered)
			return false;
		*blocked |= outcome == CHECK_BLOCKED;
		bool told =
			outcome == CHECK_PASSED || outcome == CHECK_BLOCKED || (slot->shadow && outcome == CHECK_UNAVAILABLE);
		if (*refused == NULL && !told)
			*refused = slot;
	}
	return true;
}

/*
 * A bundle's reply begins with whether it is limited, and has the five numbers of each; or it is one error.
 *
 * @param refused  the first, not on trial, that neither passed nor was blocked; NULL: there is none
 */
static bool write_together(struct connection *connection, uint32_t together, const struct slot *refused, bool blocked)
{
	enum weir_on_unavailable on_unavailable = connection->base.server->options.on_unavailable;
	if (refused != NULL &&
	    (refused->answer.outcome != CHECK_UNAVAILABLE || on_unavailable == WEIR_ON_UNAVAILABLE_ERROR)) {
		write_answer(connection, refused);
		return false;
	}
	weir_resp_array(&connection->out, together + 1u);
	weir_resp_integer(&connection->out, blocked || (refused != NULL && on_unavailable == WEIR_ON_UNAVAILABLE_DENY));
	return true;
}

void slot_unavailable(struct connection *connection, enum reply_form form, uint32_t together)
{
	const struct slot slot = {.form = form, .answer = {.outcome = CHECK_UNAVAILABLE, .why = CHECK_WHY_LOADING}};
	uint32_t count = together > 0 ? together : 1;
	make_room_to_write(connection);
	if (together > 0 && !write_together(connection, together, &slot, false))
		return;
	for (uint32_t i = 0; i < count; i++)
		write_answer(connection, &slot);
}

/* Writes what is answered, from the front on. */
static void drain(struct connection *connection)
{
	const struct slot *refused;
	bool blocked;
	while (connection->first != NULL && connection->first->answered) {
		struct slot *slot = connection->first;
		uint32_t together = slot->together;
		if (together > 0 && !is_written_next(slot, &refused, &blocked))
			return;
		if (together > 0 && !connection->base.dead)
			make_room_to_write(connection);
		if (together > 0 && (connection->base.dead || !write_together(connection, together, refused, blocked))) {
			for (; together > 0; together--)
				free_first_slot(connection);
			continue;
		}
		slot->together = 0; /* its parts follow one by one */
		if (!connection->base.dead)
			write_answer(connection, connection->first);
		free_first_slot(connection);
	}
}

void server_ask(struct resp_server *server)
{
	struct check_answer answers[CHECK_GROUP_MAX];
	uint32_t count = server->ask_count;
	if (count == 0)
		return;
	server->ask_count = 0;
	link_server_judge(&server->base, server->asks, count, answers);
	for (uint32_t i = 0; i < count; i++) {
		server->asked[i]->answer = answers[i];
		server->asked[i]->answered = answers[i].outcome != CHECK_LATER;
	}
	for (uint32_t i = 0; i < count; i++)
		if (server->asked[i]->connection != NULL)
			drain(server->asked[i]->connection);
}

void server_answered(struct link_server *base, const struct check_answer *answer)
{
	struct resp_server *server = (struct resp_server *)base;
	uint32_t index = (uint32_t)answer->ticket, turn = (uint32_t)(answer->ticket >> 32);
	assert(index < server->slots_used);
	struct slot *slot = &server->slots[index];
	assert((slot->turn & TURN_MASK) == turn && slot->connection != NULL && !slot->answered);
	if ((slot->turn & TURN_MASK) != turn || slot->connection == NULL)
		return;
	struct connection *connection = slot->connection;
	slot->answer = *answer;
	slot->answered = true;
	drain(connection);
	connection->answered = true;
	link_connection_touch(&connection->base);
}

/* ---- commands ---- */

bool answers_are_out(struct connection *connection)
{
	if (connection->first != NULL)
		server_ask(connection->server);
	return connection->first == NULL;
}

static void refuse(struct connection *connection)
{
	if (connection->multi == MULTI_QUEUES)
		connection->multi = MULTI_SPOILT;
}

/* A browser that a page sends to this port by HTTP is no client. */
static bool is_http(struct weir_span name)
{
	return word_is(name, "post") || word_is(name, "host:");
}

static void tell_refusal(const struct connection *connection, enum refusal_reason reason, const char *what,
                         const char *detail)
{
	link_connection_refuse(&connection->base, reason, NULL, what, detail);
}

/* Whether it was meant as a question: clients of Redis ask for much else that weir does not know, and go on without. */
static bool is_question(struct weir_span name)
{
	static const char prefix[] = "weir.";
	return name.length >= sizeof prefix - 1 &&
	       word_is((struct weir_span){.at = name.at, .length = sizeof prefix - 1}, prefix);
}

static void answer_unknown(struct connection *connection, struct weir_span name)
{
	weir_counter_add(&connection->server->base.figures.unknown, 1);
	refuse(connection);
	if (is_http(name)) {
		connection->stop = STOP_FINISHED;
		return;
	}
	if (is_question(name))
		tell_refusal(connection, REFUSAL_UNKNOWN, "there is no command of this name that begins with WEIR.",
		             "ask by WEIR.CHECK key zone [cost], or another command of limiter/checks.md");
	weir_resp_error(
		&connection->out,
		"ERR unknown command '%.*s': this is weir, which answers checks (WEIR.CHECK key zone [cost]) and keeps "
		"no data",
		(int)(name.length < NAME_MAX_BYTES ? name.length : NAME_MAX_BYTES), name.at);
}

static bool must_log_in(const struct connection *connection, const struct command *command)
{
	return connection->server->options.user_count > 0 && connection->user == NULL &&
	       (command->flags & COMMAND_OPEN) == 0;
}

static bool has_its_words(const struct command *command, const struct weir_resp_command *words)
{
	bool as_many =
		command->arity > 0 ? words->count == (uint32_t)command->arity : words->count >= (uint32_t)-command->arity;
	return as_many && words->count <= WEIR_RESP_WORDS_KEPT;
}

static void answer_refusal(struct connection *connection, const struct command *command,
                           const struct weir_resp_command *words)
{
	bool stranger = must_log_in(connection, command);
	if (command->flags & COMMAND_CHECK)
		tell_refusal(connection, stranger ? REFUSAL_LOGIN : REFUSAL_ASKED,
		             stranger ? "it has not logged in" : "a command has too few words, or too many",
		             stranger ? "send AUTH [user] password first, as checks.password or checks.users says"
		                      : command->summary);
	if (stranger)
		weir_resp_error(&connection->out, "NOAUTH Authentication required: send AUTH [user] password first");
	else if (words->count > WEIR_RESP_WORDS_KEPT)
		weir_resp_error(&connection->out, "ERR a command has at most %d words", WEIR_RESP_WORDS_KEPT);
	else
		weir_resp_error(&connection->out, "ERR wrong number of arguments for '%s' command: %s", command->name,
		                command->summary);
	refuse(connection);
}

/* @return false: it has to be read again when answers have come */
static bool perform(struct connection *connection, const struct command *command, const struct weir_resp_command *words,
                    const char *bytes)
{
	if (connection->out.at == NULL)
		connection->out = (struct weir_text){.at = buffer_take(connection->server), .capacity = BUFFER_BYTES};
	if (command == NULL) {
		answer_unknown(connection, words->words[0]);
		return true;
	}
	if (must_log_in(connection, command) || !has_its_words(command, words)) {
		if (!answers_are_out(connection))
			return false;
		answer_refusal(connection, command, words);
		return true;
	}
	bool queues = connection->multi == MULTI_QUEUES || connection->multi == MULTI_SPOILT;
	if (queues && (command->flags & COMMAND_NOW) == 0)
		multi_queue(connection, bytes, words->bytes);
	else if (!command->run(connection, words))
		return false;
	weir_counter_add(&connection->server->base.figures.kinds[command_index(command)], 1);
	return true;
}

/* Moves behind a command. */
static void pass(struct connection *connection, bool from_queue, size_t bytes)
{
	if (!from_queue) {
		connection->in_start += bytes;
		connection->base.partial_ms = 0;
		connection->heard_ms = connection->server->base.now_ms;
	} else if (connection->multi == MULTI_RUNS) {
		connection->queued_at += bytes;
		if (connection->queued_at == connection->queued.length)
			connection->multi = MULTI_NONE; /* its bytes stay until all is answered */
	}
}

/* What is to be read next: what came, or what EXEC runs. */
static struct weir_span unread(const struct connection *connection)
{
	if (connection->multi == MULTI_RUNS)
		return (struct weir_span){.at = connection->queued.at + connection->queued_at,
		                          .length = (uint32_t)(connection->queued.length - connection->queued_at)};
	if (connection->in_start == connection->in_end)
		return (struct weir_span){0};
	return (struct weir_span){.at = connection->in + connection->in_start,
	                          .length = (uint32_t)(connection->in_end - connection->in_start)};
}

static void answer_protocol_error(struct connection *connection, const char *why)
{
	weir_counter_add(&connection->server->base.figures.protocol_errors, 1);
	tell_refusal(connection, REFUSAL_PROTOCOL, why, NULL);
	weir_resp_error(&connection->out, "ERR Protocol error: %s", why);
	connection->stop = STOP_FINISHED;
}

_Static_assert((int)BUFFER_BYTES >= (int)WEIR_RESP_LINE_MAX_BYTES, "a line's words have room in a buffer");

/* Checks in flight may stand in the room that the words need. @return false: answers must come first */
static bool take_quotes_off(struct connection *connection, struct weir_resp_command *words)
{
	if (!answers_are_out(connection))
		return false;
	if (connection->unquoted == NULL)
		connection->unquoted = buffer_take(connection->server);
	weir_resp_command_unquote(words, connection->unquoted);
	return true;
}

static bool run_next(struct connection *connection)
{
	struct weir_resp_command words;
	const char *why = NULL;
	bool from_queue = connection->multi == MULTI_RUNS;
	bool logged_in = connection->server->options.user_count == 0 || connection->user != NULL;
	size_t most = (logged_in ? RESP_COMMAND_MAX_BYTES : RESP_GREETING_MAX_BYTES) - HEADS_BYTES;
	struct weir_span bytes = unread(connection);
	enum weir_status status = weir_resp_command_read(bytes.at, bytes.length, most, &words, &why);
	if (status == WEIR_AGAIN)
		return false;
	if (status == WEIR_OK && words.quoted && !take_quotes_off(connection, &words)) {
		connection->stop = STOP_ANSWERS;
		return false;
	}
	bool any = status == WEIR_OK && words.count > 0;
	const struct command *command = any ? command_find(words.words[0]) : NULL;
	bool is_check = command != NULL && (command->flags & COMMAND_CHECK) != 0;
	if ((!is_check && !answers_are_out(connection)) || (any && !perform(connection, command, &words, bytes.at))) {
		connection->stop = STOP_ANSWERS;
		return false;
	}
	if (status == WEIR_INVALID) {
		answer_protocol_error(connection, why);
		return false;
	}
	pass(connection, from_queue, words.bytes);
	return true;
}

void connection_run(struct connection *connection)
{
	connection->answered = false;
	if (connection->stop == STOP_ANSWERS)
		connection->stop = STOP_NONE;
	if (connection->server->base.stopping)
		connection->stop = STOP_FINISHED;
	if (connection->stop == STOP_NONE && link_pending(&connection->base.link))
		connection_read(&connection->base);
	while (connection->stop == STOP_NONE && !connection->base.dead) {
		if (connection->out.length - connection->sent > RESP_OUTPUT_MAX_BYTES)
			connection->stop = STOP_OUTPUT;
		else if (!run_next(connection))
			break;
	}
	if (connection->stop == STOP_NONE && connection->in_end > connection->in_start && connection->base.partial_ms == 0)
		connection->base.partial_ms = connection->server->base.now_ms;
}
