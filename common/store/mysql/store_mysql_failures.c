/* SPDX-License-Identifier: Apache-2.0 */
/* The server's words say what it refused, and seldom why or what to do. */
#include "common/store/mysql/store_mysql_failures.h"

#include <stdlib.h>
#include <string.h>

#define AWAY "store-away"
#define LOCKED "store-locked"
#define READ_ONLY "store-read-only"
#define CREDENTIALS "credentials"
#define TABLES "store-tables"
#define LIMITS "store-limits"

#define MAKE_ROOM "make room on the disk of the store's server: df -h there"
#define WRITABLE \
	"mariadb -e 'SET GLOBAL read_only = 0' on the server, or name the server that takes writes in \"store\""
#define PASSWORD "put the user and the password that the server knows into \"store\", then restart the daemons"
#define GRANT \
	"grant the user of \"store\" SELECT, INSERT, UPDATE and DELETE on its database; that of an archiver CREATE, ALTER and DROP, too"
#define RESTORE "restore the store's database from a copy; without one, name a new one in \"store.database\""
#define FIND_LOCK "mariadb -e 'SHOW ENGINE INNODB STATUS' on the server names who holds the lock"
#define NO_LIMITS                                                                                            \
	"ALTER USER of \"store\" WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 " \
	"MAX_USER_CONNECTIONS 0"
#define PACKET "mariadb -e 'SET GLOBAL max_allowed_packet = 16777216' on the server, and in its configuration"

static const struct weir_mysql_failure failures[] = {
	{144, TABLES, "a table is damaged: repair it, or restore the database", RESTORE, false},
	{145, TABLES, "a table is damaged: repair it, or restore the database", RESTORE, false},
	{1021, AWAY, "the server's disk is full: make room", MAKE_ROOM, false},
	{1034, TABLES, "a table is damaged: repair it, or restore the database", RESTORE, false},
	{1040, LIMITS, "it has no connection left: raise max_connections",
     "mariadb -e 'SET GLOBAL max_connections = 500' on the server; SHOW PROCESSLIST says who has them", false},
	{1044, CREDENTIALS, "the user has no rights on the database: grant them", GRANT, true},
	{1045, CREDENTIALS, "store.user or store.password is wrong", PASSWORD, true},
	{1054, TABLES, "a column is missing: restore the database", RESTORE, false},
	{1114, AWAY, "the server's disk, or a table's space, is full: make room", MAKE_ROOM, false},
	{1130, CREDENTIALS, "the server takes no users of this machine: grant it",
     "CREATE USER and GRANT for this machine on the store's server, or name another user in \"store\"", true},
	{1142, CREDENTIALS, "the user has no right to do that with the table: grant it", GRANT, true},
	{1143, CREDENTIALS, "the user has no right to do that with the column: grant it", GRANT, true},
	{1146, TABLES, "a table of weir's is missing: restore the database", RESTORE, false},
	{1153, LIMITS, "raise max_allowed_packet", PACKET, false},
	{1194, TABLES, "a table is damaged: repair it, or restore the database", RESTORE, false},
	{1195, TABLES, "a table is damaged: repair it, or restore the database", RESTORE, false},
	{1203, LIMITS, "the user has no connection left: raise max_user_connections", NO_LIMITS, false},
	{1205, LOCKED, "another transaction holds the lock: SHOW ENGINE INNODB STATUS names it", FIND_LOCK, false},
	{1206, LOCKED, "the server has no room for more locks: look for a large transaction", FIND_LOCK, false},
	{1213, LOCKED, "two transactions waited for each other; this one comes again", FIND_LOCK, false},
	{1223, LOCKED, "somebody holds a lock on all tables, as for a backup",
     "end the backup that holds FLUSH TABLES WITH READ LOCK", false},
	{1226, LIMITS, "the user has used up what it may do in an hour: raise that", NO_LIMITS, false},
	{1227, CREDENTIALS, "the user has no right to do that: grant it", GRANT, true},
	{1290, READ_ONLY,
     "the server is read-only: it is a replica, or was switched over. Let store.host name the primary, or make it writable",
     WRITABLE, false},
	{1698, CREDENTIALS, "store.user is not allowed here: grant it", PASSWORD, true},
	{1792, READ_ONLY, "the session is read-only: let store.host name the primary", WRITABLE, false},
	{1820, CREDENTIALS, "the password of store.user has expired: set a new one",
     "ALTER USER of \"store\" with a new password on the server, and put it into \"store.password\"", true},
	{1836, READ_ONLY, "the server is read-only: let store.host name the primary, or make it writable", WRITABLE, false},
	{1862, CREDENTIALS, "the password of store.user has expired: set a new one",
     "ALTER USER of \"store\" with a new password on the server, and put it into \"store.password\"", true},
	{1932, TABLES, "a table is damaged: restore the database", RESTORE, false},
	{1969, LIMITS, "the server ends what takes long: raise max_statement_time",
     "mariadb -e 'SET GLOBAL max_statement_time = 0' on the server, and in its configuration", false},
	{2020, LIMITS, "raise max_allowed_packet", PACKET, false},
	{2026, "certificates", "TLS failed: its certificate is not of store.tls_ca, is not for this name, or has expired",
     "renew the certificate of the store's server, or name its authority in \"store.tls_ca\"", false},
	{3024, LIMITS, "the server ends what takes long: raise max_execution_time",
     "SET GLOBAL max_execution_time = 0 on the server, and in its configuration", false},
	{3118, CREDENTIALS, "the account of store.user is locked: unlock it",
     "ALTER USER of \"store\" ACCOUNT UNLOCK on the server", true},
	{4151, CREDENTIALS, "the account of store.user is locked: unlock it",
     "ALTER USER of \"store\" ACCOUNT UNLOCK on the server", true},
};

/* The client library's own numbers: nobody answered. */
static const struct weir_mysql_failure unreached = {0, AWAY, "look whether the server runs, and can be reached",
                                                    "start the store", false};
static const struct weir_mysql_failure unknown = {0, AWAY, "look at the server's own log",
                                                  "look at the log of the store's server", false};

const struct weir_mysql_failure *weir_mysql_failure(unsigned number)
{
	for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
		if (failures[i].number == number)
			return &failures[i];
	return number >= 2000 && number < 3000 ? &unreached : &unknown;
}

const struct weir_mysql_failure *weir_mysql_failure_in(const char *text)
{
	const struct weir_mysql_failure *found = NULL;
	for (const char *at = strchr(text, '('); at != NULL; at = strchr(at + 1, '(')) {
		char *end;
		unsigned long number = strtoul(at + 1, &end, 10);
		if (end > at + 1 && strncmp(end, "): ", 3) == 0)
			found = weir_mysql_failure((unsigned)number);
	}
	return found;
}
