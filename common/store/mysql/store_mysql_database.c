/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections and transactions.
 *
 * Whatever fails and is not known to pass costs the connection: the next call
 * makes a new one. That is the one way out of a connection that broke, of a
 * session that was killed, of a server that became a replica, and of results
 * that nobody has read.
 *
 * Every session has bounds of its own. A client that vanished in the middle of
 * a transaction would keep its rows locked until the server notices, by default
 * after hours, and its partition could not be taken over.
 */
#include "common/store/mysql/store_mysql_client.h"

#include "common/base/alloc.h"
#include "common/store/mysql/store_mysql_failures.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	CONNECT_TIMEOUT_S = 5,
	IO_TIMEOUT_S = 10,
	TRIES = 5,
	NAP_MS = 20, /* before the second try; each later one waits longer by as much */
	PACKET_LEAST_BYTES = 4 << 20,
	PACKET_REST_BYTES = 64 << 10, /* a statement's, beside its parameters */
};

/* MariaDB alone can bound a transaction that stands still; MySQL bounds a session that does. */
static const char *const session[] = {
	"SET NAMES utf8mb4", /* the collation that libmysqlclient names at connecting is one that MariaDB does not know */
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	"SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', autocommit = 1",
	WEIR_MYSQL_ROW_WAIT,
	"SET SESSION lock_wait_timeout = 9, net_read_timeout = 15, net_write_timeout = 60",
	"SET SESSION /*M! idle_transaction_timeout = 15, */ wait_timeout = 28800",
};

static const char bounded_mysql[] = "SET SESSION wait_timeout = 60";

static void name_server(struct weir_mysql *mysql)
{
	struct weir_text name = {0};
	const struct weir_config *config = mysql->config;
	if (config->store.socket != NULL)
		weir_text_printf(&name, "%s@%s/%s", config->store.user, config->store.socket, config->store.database);
	else
		weir_text_printf(&name, "%s@%s:%" PRId64 "/%s", config->store.user, config->store.host, config->store.port,
		                 config->store.database);
	mysql->name = weir_copy(name.at, name.length);
	weir_text_deinit(&name);
}

struct weir_mysql *weir_mysql_new(const struct weir_config *config, const struct weir_mysql_sql *statements,
                                  size_t statement_count)
{
	struct weir_mysql *mysql = weir_alloc(1, sizeof *mysql);
	mysql->config = config;
	mysql->statements = statements;
	mysql->statement_count = statement_count;
	mysql->prepared = weir_alloc(statement_count, sizeof *mysql->prepared);
	name_server(mysql);
	return mysql;
}

void weir_mysql_free(struct weir_mysql *mysql)
{
	if (mysql == NULL)
		return;
	weir_mysql_disconnect(mysql);
	free(mysql->prepared);
	free(mysql->name);
	free(mysql);
}

const char *weir_mysql_name(const struct weir_mysql *mysql)
{
	return mysql->name;
}

unsigned weir_mysql_error_number(const struct weir_mysql *mysql)
{
	return mysql->error_number;
}

uint64_t weir_mysql_connection(const struct weir_mysql *mysql)
{
	return mysql->connections;
}

size_t weir_mysql_room(const struct weir_mysql *mysql)
{
	return mysql->room;
}

bool weir_mysql_takes_rows(const struct weir_mysql *mysql)
{
	return mysql->takes_rows;
}

enum weir_status weir_mysql_failed(struct weir_mysql *mysql, unsigned number, const char *words,
                                   struct weir_error *error)
{
	const struct weir_mysql_failure *failure = weir_mysql_failure(number);
	mysql->error_number = number;
	enum weir_status status = weir_fail(&mysql->last, WEIR_IO, "%s: %s%s (%u): %s (runbook: %s)", mysql->name, words,
	                                    weir_errno_advice(words), number, failure->words, failure->runbook);
	if (error != NULL)
		*error = mysql->last;
	return status;
}

/* ---- connecting ---- */

/* The server must show a certificate of that authority with the name, or the address, that we know it by. */
static void ask_for_tls(MYSQL *handle, const char *authority)
{
	mysql_options(handle, MYSQL_OPT_SSL_CA, authority);
#ifdef LIBMARIADB
	static const char yes = 1;
	mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &yes);
	mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
#else
	static const unsigned mode = SSL_MODE_VERIFY_IDENTITY;
	mysql_options(handle, MYSQL_OPT_SSL_MODE, &mode);
#endif
}

/*
 * MySQL takes a password over TLS, or enciphered with a key of the server's, once for as long as it runs.
 * MariaDB Connector/C asks for the key by itself; libmysqlclient also begins TLS, unverified, where the server has it.
 * Connector/C from 3.4 on would, too, and refuse a certificate that the server has made for itself.
 */
static void ask_for_key(MYSQL *handle)
{
#ifdef LIBMARIADB
	static const char no = 0;
	mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no);
#else
	static const bool yes = true;
	mysql_options(handle, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &yes);
#endif
}

static void set_options(MYSQL *handle, const struct weir_config *config)
{
	static const unsigned connect_s = CONNECT_TIMEOUT_S, io_s = IO_TIMEOUT_S, no = 0;
	static const unsigned long packet = 1UL << 30; /* what the server sends is bounded by the server */
	static const unsigned tcp = MYSQL_PROTOCOL_TCP;
	mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
	mysql_options(handle, MYSQL_OPT_READ_TIMEOUT, &io_s);
	mysql_options(handle, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
	mysql_options(handle, MYSQL_OPT_MAX_ALLOWED_PACKET, &packet);
	mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &no); /* no server reads our files */
	mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (config->store.socket == NULL)
		mysql_options(handle, MYSQL_OPT_PROTOCOL, &tcp); /* "localhost" would mean a socket */
	if (config->store.tls_ca != NULL)
		ask_for_tls(handle, config->store.tls_ca);
	else
		ask_for_key(handle);
}

static enum weir_status set_session(struct weir_mysql *mysql, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < sizeof session / sizeof *session && status == WEIR_OK; i++)
		status = weir_mysql_run(mysql, session[i], error);
	if (status == WEIR_OK && strstr(mysql_get_server_info(mysql->handle), "MariaDB") == NULL)
		status = weir_mysql_run(mysql, bounded_mysql, error);
	return status;
}

#ifdef LIBMARIADB
static bool learn_rows(MYSQL *handle)
{
	unsigned long usual = CLIENT_MYSQL, more = 0;
	mariadb_get_infov(handle, MARIADB_CONNECTION_SERVER_CAPABILITIES, &usual);
	mariadb_get_infov(handle, MARIADB_CONNECTION_EXTENDED_SERVER_CAPABILITIES, &more);
	return (usual & CLIENT_MYSQL) == 0 && (more & (MARIADB_CLIENT_STMT_BULK_OPERATIONS >> 32)) != 0;
}
#else
static bool learn_rows(MYSQL *handle)
{
	(void)handle;
	return false;
}
#endif

static enum weir_status learn_room(struct weir_mysql *mysql, struct weir_error *error)
{
	uint64_t packet = 0;
	enum weir_status status = weir_mysql_number(mysql, "SELECT @@max_allowed_packet", &packet, error);
	if (status != WEIR_OK)
		return status;
	if (packet < PACKET_LEAST_BYTES)
		return weir_fail(
			error, WEIR_INVALID,
			"%s: the server's max_allowed_packet is %" PRIu64
			" bytes: set it to %d or more (1153): below that, checkpoints do not fit (runbook: store-limits)",
			mysql->name, packet, PACKET_LEAST_BYTES);
	mysql->room = (size_t)packet - PACKET_REST_BYTES;
	return WEIR_OK;
}

enum weir_status weir_mysql_connect(struct weir_mysql *mysql, bool database, struct weir_error *error)
{
	if (mysql->handle != NULL)
		return WEIR_OK;
	MYSQL *handle = mysql_init(NULL);
	if (handle == NULL)
		return weir_fail(error, WEIR_IO, "%s: out of memory", mysql->name);
	const struct weir_config *config = mysql->config;
	bool socket = config->store.socket != NULL;
	char *password = NULL;
	/* One that is being replaced is there at the next try. */
	if (weir_json_secret(&config->store.password, &password, error) != WEIR_OK) {
		mysql_close(handle);
		return WEIR_IO;
	}
	set_options(handle, config);
	MYSQL *connected =
		mysql_real_connect(handle, socket ? NULL : config->store.host, config->store.user, password,
	                       database ? config->store.database : NULL, socket ? 0 : (unsigned)config->store.port,
	                       config->store.socket, CLIENT_FOUND_ROWS);
	free(password);
	if (connected == NULL) {
		enum weir_status status = weir_mysql_failed(mysql, mysql_errno(handle), mysql_error(handle), error);
		mysql_close(handle);
		return status;
	}
	mysql->handle = handle;
	mysql->connections++;
	mysql->takes_rows = learn_rows(handle);
	enum weir_status status = set_session(mysql, error);
	if (status == WEIR_OK)
		status = learn_room(mysql, error);
	if (status != WEIR_OK)
		weir_mysql_disconnect(mysql);
	return status;
}

void weir_mysql_disconnect(struct weir_mysql *mysql)
{
	for (size_t i = 0; i < mysql->statement_count; i++) {
		weir_mysql_statement_free(mysql->prepared[i]);
		mysql->prepared[i] = NULL;
	}
	if (mysql->handle != NULL)
		mysql_close(mysql->handle);
	mysql->handle = NULL;
}

/* ---- plain SQL ---- */

enum weir_status weir_mysql_run(struct weir_mysql *mysql, const char *sql, struct weir_error *error)
{
	/* Between two transactions, as here may be, the end of the first may have cost the connection. */
	if (mysql->handle == NULL)
		return weir_mysql_failed(mysql, CR_SERVER_LOST, "the connection was lost", error);
	if (mysql_real_query(mysql->handle, sql, (unsigned long)strlen(sql)) == 0)
		return WEIR_OK;
	return weir_mysql_failed(mysql, mysql_errno(mysql->handle), mysql_error(mysql->handle), error);
}

enum weir_status weir_mysql_number(struct weir_mysql *mysql, const char *sql, uint64_t *number,
                                   struct weir_error *error)
{
	enum weir_status status = weir_mysql_run(mysql, sql, error);
	if (status != WEIR_OK)
		return status;
	MYSQL_RES *result = mysql_store_result(mysql->handle);
	if (result == NULL)
		return weir_mysql_failed(mysql, mysql_errno(mysql->handle), mysql_error(mysql->handle), error);
	MYSQL_ROW row = mysql_fetch_row(result);
	if (row != NULL && row[0] != NULL)
		*number = strtoull(row[0], NULL, 10);
	else
		status = WEIR_END;
	mysql_free_result(result);
	return status;
}

/* ---- transactions ---- */

struct kind {
	const char *begin[3];
	bool writes;
};

static const struct kind writing = {.begin = {"START TRANSACTION"}, .writes = true};
static const struct kind reading = {.begin = {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                                              "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"}};

enum { ROW_STAYED_LOCKED = 1205 };

/* Whether another try may succeed on the same connection: somebody else held a row, or was preferred. */
static bool passes(unsigned number)
{
	return number == 1213 /* deadlock; with several servers also: another one was first */
	       || number == ROW_STAYED_LOCKED || number == 1020 /* a row has changed since it was read */
	       || number == 1062                                /* another one has just made the row */
	       || number == 3101 /* the group of servers refused the commit */;
}

/* Whether nobody knows what became of what the server was asked: all else it has refused. */
static bool is_lost(unsigned number)
{
	return number == CR_SERVER_GONE_ERROR || number == CR_SERVER_LOST ||
	       number == 2055 /* lost, with a system's error */;
}

static enum weir_status begin(struct weir_mysql *mysql, const char *const *sql, struct weir_error *error)
{
	/* A connection that has been idle may be gone without a word; nothing is lost yet by making a new one. */
	for (bool fresh = false;; fresh = true) {
		fresh |= mysql->handle == NULL;
		const char *const *next = sql;
		enum weir_status status = weir_mysql_connect(mysql, true, error);
		if (status != WEIR_OK)
			return WEIR_IO; /* what has been opened once has no fault that lasts */
		for (; *next != NULL && status == WEIR_OK; next++)
			status = weir_mysql_run(mysql, *next, error);
		if (status == WEIR_OK)
			return status;
		weir_mysql_disconnect(mysql);
		if (fresh)
			return status;
	}
}

static void give_up(struct weir_mysql *mysql)
{
	unsigned number = mysql->error_number;
	if (mysql->handle != NULL &&
	    ((number != 0 && !passes(number)) || weir_mysql_run(mysql, "ROLLBACK", NULL) != WEIR_OK))
		weir_mysql_disconnect(mysql);
	mysql->error_number = number;
}

/* A transaction that only read is as good without its end. */
static enum weir_status commit(struct weir_mysql *mysql, const struct kind *kind, struct weir_error *error)
{
	enum weir_status status = weir_mysql_run(mysql, "COMMIT", kind->writes ? error : NULL);
	if (status == WEIR_OK || kind->writes)
		return status;
	weir_mysql_disconnect(mysql);
	return WEIR_OK;
}

static enum weir_status try_transaction(struct weir_mysql *mysql, const struct kind *kind, weir_mysql_body *body,
                                        void *context, bool *committing, struct weir_error *error)
{
	*committing = false;
	enum weir_status status = begin(mysql, kind->begin, error);
	if (status != WEIR_OK)
		return status;
	mysql->error_number = 0;
	status = body(context, error);
	if (status == WEIR_OK) {
		*committing = true;
		status = commit(mysql, kind, error);
	}
	if (status != WEIR_OK)
		give_up(mysql);
	return status;
}

enum weir_status weir_mysql_read(struct weir_mysql *mysql, weir_mysql_body *body, void *context,
                                 struct weir_error *error)
{
	mysql_thread_init(); /* the thread may be another than the one that connected */
	bool committing;
	return try_transaction(mysql, &reading, body, context, &committing, error);
}

static enum weir_status write_patiently(struct weir_mysql *mysql, bool leaves_locked, weir_mysql_body *body,
                                        void *context, struct weir_error *error)
{
	mysql_thread_init();
	bool lost = false; /* the answer to a commit */
	for (int tries = 1;; tries++) {
		bool committing;
		enum weir_status status = try_transaction(mysql, &writing, body, context, &committing, error);
		if (status != WEIR_IO)
			return status;
		bool passing = passes(mysql->error_number);
		if (leaves_locked && mysql->error_number == ROW_STAYED_LOCKED)
			return status;
		if (tries == TRIES || (!committing && !passing)) {
			if ((lost && mysql->error_number != 0) || (committing && is_lost(mysql->error_number)))
				weir_error_prefix(error, "it is unknown whether the transaction was committed");
			return status;
		}
		lost |= committing && is_lost(mysql->error_number);
		nanosleep(&(struct timespec){.tv_nsec = tries * NAP_MS * 1000000L}, NULL);
	}
}

enum weir_status weir_mysql_write(struct weir_mysql *mysql, weir_mysql_body *body, void *context,
                                  struct weir_error *error)
{
	return write_patiently(mysql, false, body, context, error);
}

enum weir_status weir_mysql_write_or_leave(struct weir_mysql *mysql, weir_mysql_body *body, void *context,
                                           struct weir_error *error)
{
	return write_patiently(mysql, true, body, context, error);
}
