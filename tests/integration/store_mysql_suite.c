/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MySQL store does what every store must do.
 *
 * usage: store_mysql_suite CONFIG — a configuration with the section "store";
 * each test makes a database of its own, beside the one that is named there.
 */
#include "common/base/text.h"
#include "common/store/mysql/store_mysql.h"
#include "common/store/mysql/store_mysql_database.h"
#include "tests/support/store_suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *config_path;

static int fail(const struct weir_error *error)
{
	fprintf(stderr, "%s\n", error->text);
	return -1;
}

static int setup(void **state)
{
	static unsigned number;
	struct weir_error error;
	struct weir_config *config;
	if (weir_config_load(config_path, &config, &error) != WEIR_OK)
		return fail(&error);
	char name[64];
	snprintf(name, sizeof name, "weir_suite_%d_%u", (int)getpid(), ++number);
	free(config->store.database);
	config->store.database = strdup(name);
	*state = config;
	return 0;
}

static int teardown(void **state)
{
	struct weir_config *config = *state;
	struct weir_error error;
	char sql[128];
	snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s", config->store.database);
	struct weir_mysql *mysql = weir_mysql_new(config, NULL, 0);
	enum weir_status status = weir_mysql_connect(mysql, false, &error);
	if (status == WEIR_OK)
		status = weir_mysql_run(mysql, sql, &error);
	weir_mysql_free(mysql);
	weir_config_free(config);
	return status == WEIR_OK ? 0 : fail(&error);
}

static enum weir_status open_mysql(void *place, struct weir_store **store, struct weir_error *error)
{
	return weir_store_mysql_open(place, store, error);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: store_mysql_suite CONFIG\n");
		return 2;
	}
	config_path = argv[1];
	const struct store_suite suite = {"store_mysql", setup, teardown, open_mysql};
	return store_suite_run(&suite);
}
