/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The archiver's API and page by themselves, for scripts that fill the store by SQL.
 *
 * usage: archiver_api CONFIG [STATE]
 *
 * Makes the store's tables, prints "PORT" when it listens, and ends on SIGTERM.
 * STATE is where a store of SQLite lies.
 */
#include "archiver/page/page.h"
#include "common/base/stop.h"
#include "common/store/mysql/store_mysql.h"
#include "common/store/sqlite/store_sqlite.h"

#include <stdio.h>
#include <unistd.h>

enum { NAP_US = 20000 };

struct driver {
	struct weir_config *config;
	const char *state;
};

static enum weir_status open_store(void *context, struct weir_store **store, struct weir_error *error)
{
	const struct driver *driver = context;
	if (driver->config->store.type == WEIR_STORE_MYSQL)
		return weir_store_mysql_open(driver->config, store, error);
	return weir_store_sqlite_open(driver->state, store, error);
}

static int failed(const struct weir_error *error)
{
	fprintf(stderr, "archiver_api: %s\n", error->text);
	return 1;
}

static void write_figures(void *context, struct weir_text *members)
{
	(void)context;
	weir_text_puts(members, "\"weir_test_figure\":42");
}

static void tell_troubles(void *context, struct weir_text *lines)
{
	(void)context;
	weir_text_puts(lines, "partition 3 is stopped: a gap\nnot ready\n");
}

int main(int argc, char **argv)
{
	struct driver driver = {.state = argc > 2 ? argv[2] : "."};
	struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_INFO};
	struct weir_store *store;
	struct weir_error error;
	struct weir_key_hash *hash = NULL;
	struct api *api = NULL;
	if (argc < 2 || weir_config_load(argv[1], &driver.config, &error) != WEIR_OK)
		return argc < 2 ? 2 : failed(&error);
	weir_stop_install();
	if (weir_key_hash_open(driver.config->archiver.hash_keys, &hash, &error) != WEIR_OK ||
	    open_store(&driver, &store, &error) != WEIR_OK)
		return failed(&error);
	store->ops->close(store);
	struct api_options options = {.config = driver.config,
	                              .hash = hash,
	                              .log = &log,
	                              .open_store = open_store,
	                              .context = &driver,
	                              .figures = write_figures,
	                              .troubles = argc > 3 ? tell_troubles : NULL,
	                              .files = page_files,
	                              .file_count = page_file_count};
	if (api_start(&options, &api, &error) != WEIR_OK)
		return failed(&error);
	printf("%u\n", api != NULL ? api_port(api) : 0);
	fflush(stdout);
	while (!*weir_stop_flag())
		usleep(NAP_US);
	api_stop(api);
	weir_key_hash_free(hash);
	weir_config_free(driver.config);
	return 0;
}
