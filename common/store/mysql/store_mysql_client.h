/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files that speak to the client library share: MariaDB Connector/C, or libmysqlclient 8. */
#ifndef WEIR_COMMON_STORE_MYSQL_CLIENT_H
#define WEIR_COMMON_STORE_MYSQL_CLIENT_H

#include "common/store/mysql/store_mysql_database.h"

#include <errmsg.h>
#include <mysql.h>

struct weir_mysql {
	const struct weir_config *config;
	const struct weir_mysql_sql *statements;
	struct weir_mysql_statement **prepared; /* of this connection */
	size_t statement_count;
	char *name;
	MYSQL *handle;        /* NULL: not connected */
	uint64_t connections; /* made so far */
	size_t room;
	bool takes_rows; /* of many rows the parameters at once */
	unsigned error_number;
	struct weir_error last;
};

/** Keeps the failure of the client library's last call in `last`, and tells it. */
enum weir_status weir_mysql_failed(struct weir_mysql *mysql, unsigned number, const char *words,
                                   struct weir_error *error);

#endif
