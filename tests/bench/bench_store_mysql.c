/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MySQL store: what the SQLite store's benchmark measures, on a real
 * server. The ceiling is the server's: the same bytes in rows of the same size,
 * by one plain INSERT each 4 MiB, and by one plain SELECT of them all.
 *
 * WEIR_STORE names a configuration with the section "store", such as the
 * weir.json of deploy/cluster/up; without one nothing is measured, and a line
 * says so. One JSON line a measurement. WEIR_BENCH=smoke runs each on a small
 * size. Its database, beside the one that is named there, is removed again.
 */
#include "common/store/mysql/store_mysql.h"
#include "common/store/mysql/store_mysql_database.h"
#include "tests/bench/store_bench.h"

#include <unistd.h>

enum { SKIPPED = 77, PLAIN_ROWS = 16, PLAIN_WRITE = 0, PLAIN_READ, PLAIN_STATEMENTS };

static const struct weir_mysql_sql plain_statements[PLAIN_STATEMENTS] = {
	[PLAIN_WRITE] = {"INSERT INTO plain (id, bytes) VALUES ", "(?, ?)", ", ", NULL, PLAIN_ROWS},
	[PLAIN_READ] = {.before = "SELECT id, bytes FROM plain"},
};

struct plain {
	struct weir_mysql *mysql;
	const struct store_bench *bench;
	size_t next, read;
};

static enum weir_status write_some(void *context, struct weir_error *error)
{
	struct plain *plain = context;
	size_t bytes = 0;
	enum weir_status status = WEIR_OK;
	while (status == WEIR_OK && plain->next < SEGMENTS && bytes < TRANSACTION_BYTES) {
		struct weir_mysql_statement *statement = weir_mysql_use(plain->mysql, PLAIN_WRITE);
		for (int i = 0; i < PLAIN_ROWS; i++) {
			weir_mysql_put_number(statement, plain->next++);
			weir_mysql_put_bytes(statement,
			                     (struct weir_span){plain->bench->bytes, (uint32_t)plain->bench->blob_bytes});
			bytes += plain->bench->blob_bytes;
		}
		status = weir_mysql_execute(plain->mysql, statement, NULL, error);
	}
	return status;
}

static enum weir_status read_everything(void *context, struct weir_error *error)
{
	struct plain *plain = context;
	struct weir_mysql_statement *statement = weir_mysql_use(plain->mysql, PLAIN_READ);
	enum weir_status status;
	while ((status = weir_mysql_step(plain->mysql, statement, error)) == WEIR_OK)
		plain->read += weir_mysql_row_bytes(statement, 1).length;
	weir_mysql_done(statement);
	return status == WEIR_END ? WEIR_OK : status;
}

static void measure_plain(const struct weir_config *config, const struct store_bench *bench, double *write,
                          double *read)
{
	struct weir_error error;
	struct weir_mysql *mysql = weir_mysql_new(config, plain_statements, PLAIN_STATEMENTS);
	struct plain plain = {mysql, bench, 0, 0};
	check(weir_mysql_connect(mysql, true, &error), &error);
	check(weir_mysql_run(mysql, "CREATE TABLE plain (id INT PRIMARY KEY, bytes LONGBLOB) ENGINE=InnoDB", &error),
	      &error);
	double start = wall_seconds();
	while (plain.next < SEGMENTS)
		check(weir_mysql_write(mysql, write_some, &plain, &error), &error);
	*write = wall_seconds() - start;
	start = wall_seconds();
	check(weir_mysql_read(mysql, read_everything, &plain, &error), &error);
	*read = wall_seconds() - start;
	if (plain.read != bench->total)
		exit(1);
	weir_mysql_free(mysql);
}

static void remove_database(const struct weir_config *config)
{
	struct weir_error error;
	char sql[128];
	snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s", config->store.database);
	struct weir_mysql *mysql = weir_mysql_new(config, NULL, 0);
	check(weir_mysql_connect(mysql, false, &error), &error);
	check(weir_mysql_run(mysql, sql, &error), &error);
	weir_mysql_free(mysql);
}

int main(void)
{
	const char *path = getenv("WEIR_STORE");
	if (path == NULL) {
		printf("{\"bench\":\"store_mysql\",\"skipped\":\"WEIR_STORE names no configuration of a server: "
		       "deploy/cluster/up makes one\"}\n");
		return SKIPPED;
	}
	struct weir_error error;
	struct weir_config *config;
	struct store_bench bench;
	double plain_write[RUNS], plain_read[RUNS];
	char name[64];
	check(weir_config_load(path, &config, &error), &error);
	snprintf(name, sizeof name, "weir_bench_%d", (int)getpid());
	free(config->store.database);
	config->store.database = weir_copy(name, strlen(name));
	store_bench_init(&bench);
	for (size_t run = 0; run < bench.runs; run++) {
		struct weir_store *store;
		check(weir_store_mysql_open(config, &store, &error), &error);
		measure_plain(config, &bench, &plain_write[run], &plain_read[run]);
		store_bench_run(&bench, store, run);
		store->ops->close(store);
		remove_database(config);
	}
	double written = median(plain_write, bench.runs), fetched = median(plain_read, bench.runs);
	print("store_mysql_write_million", median(bench.write, bench.runs), written, 0.8, bench.total);
	print("store_mysql_read_million", median(bench.read, bench.runs), fetched, 0.5, bench.total);
	print("store_mysql_write_delta_5_percent", median(bench.delta, bench.runs), written / 20, 0.2, bench.total / 20);
	print("store_mysql_list_million", median(bench.list, bench.runs), fetched, 1, bench.total);
	print("store_mysql_clean_million", median(bench.clean, bench.runs), written, 1, bench.total);
	free(bench.bytes);
	weir_config_free(config);
	return 0;
}
