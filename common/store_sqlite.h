/* The SQLite store's inside: what its two files share. */
#ifndef WEIR_COMMON_STORE_SQLITE_H
#define WEIR_COMMON_STORE_SQLITE_H

#include "common/store.h"

#include <sqlite3.h>

enum sql_name {
	SQL_BEGIN,
	SQL_COMMIT,
	SQL_ROLLBACK,
	SQL_TAKE,
	SQL_STATE,
	SQL_ADVANCE,
	SQL_EPOCH,
	SQL_WRITE,
	SQL_READ,
	SQL_LIST,
	SQL_CLEAN_OLD,
	SQL_CLEAN_DEAD,
	SQL_POLICY_GET,
	SQL_POLICY_PUT,
	SQL_POLICY_EACH,
	SQL_NOTE_GET,
	SQL_NOTE_PUT,
	SQL_NOTE_REMOVE,
	SQL_COUNT,
};

struct store_sqlite {
	struct weir_store base;
	char *path;
	sqlite3 *database;
	sqlite3_stmt *statements[SQL_COUNT]; /* prepared at first use */
	char *extra;                         /* of the state given last */
};

/** The database's own words behind ours. WEIR_INVALID: it is damaged or no database; else WEIR_IO. */
enum weir_status store_sqlite_fail(struct store_sqlite *store, struct weir_error *error, const char *what);

/** Settings of the connection, and the schema brought to this program's version. */
WEIR_MUST_USE enum weir_status store_sqlite_upgrade(struct store_sqlite *store, struct weir_error *error);

#endif
