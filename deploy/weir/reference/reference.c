/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir reference`: manual pages, completions and the schemas of configurations and of their tests, from the tables that
 * command lines and files are read by. So none of them can say what the programs do not do.
 */
#include "archiver/daemon/process.h"
#include "collector/daemon/service.h"
#include "collector/format/format.h"
#include "collector/source/kinds/source_kinds.h"
#include "common/files/durable_file.h"
#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/weir/command.h"
#include "deploy/weir/reference/internal.h"
#include "deploy/weir/test/test_file.h"
#include "limiter/daemon/limiter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum what { BASH, FISH, SCHEMA, TEST_SCHEMA, ZSH };
enum option { DIRECTORY, OPTION_COUNT };

static const char *const whats[] = {
	[BASH] = "bash", [FISH] = "fish", [SCHEMA] = "schema", [TEST_SCHEMA] = "test-schema", [ZSH] = "zsh", NULL};

static const struct weir_argument_option options_table[] = {
	[DIRECTORY] = {.name = "dir",
                   .value = "DIR",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "write all of it under this directory, as it lies under /usr/share"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "done"},
	{WEIR_EXIT_FAILED, "it could not be written"},
	{WEIR_EXIT_USAGE, "the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir reference",
	.summary = "write manual pages, completions and the schemas of files",
	.usage = "weir reference bash|fish|zsh|schema|test-schema\n"
			 "weir reference --dir DIR",
	.about =
		"Prints the completion of a shell, the JSON Schema of the configuration, or that of the files that weir test "
		"reads.\n"
		"\n"
		"With --dir it writes all of them as files, and the manual pages. An editor that is told of the "
		"schema completes a file and shows what is wrong with it: \"$schema\" at its top names the "
		"schema's file.",
	.operand = {.word = "WHAT", .help = "bash, fish, zsh, schema or test-schema", .most = 1, .choices = whats},
	.options = options_table,
	.examples = "source <(weir reference bash)\n"
				"weir reference schema > weir.schema.json\n"
				"weir reference --dir /usr/local/share",
	.exits = exits,
};

const struct weir_command_line *const reference_daemons[] = {&collector_command_line, &limiter_command_line,
                                                             &archiver_command_line, NULL};

struct reference_options {
	const char *what, *directory;
};

static enum weir_exit take(void *context, int option, const struct weir_argument *value)
{
	struct reference_options *options = context;
	if (option == DIRECTORY)
		options->directory = value->text;
	else
		options->what = value->text;
	return WEIR_EXIT_NOT_YET;
}

enum reference_value reference_value_of(const char *word)
{
	static const char *const files[] = {"FILE", "LOG", "PATH"};
	for (size_t i = 0; word != NULL && i < sizeof files / sizeof *files; i++)
		if (strcmp(word, files[i]) == 0)
			return REFERENCE_FILE;
	return word != NULL && strcmp(word, "DIR") == 0 ? REFERENCE_DIRECTORY : REFERENCE_OTHER;
}

static json_t *make_schema(void)
{
	const struct weir_config_shapes shapes = {
		.source = source_shape(), .format = format_shape(), .gateway = gateway_shape()};
	return weir_config_schema(&shapes);
}

/* @param schema  taken */
static void put_json(json_t *schema, FILE *out)
{
	json_dumpf(schema, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(schema);
}

static void put_schema(FILE *out)
{
	put_json(make_schema(), out);
}

static void put_test_schema(FILE *out)
{
	put_json(test_file_schema(format_shape()), out);
}

static enum weir_exit print(const char *what)
{
	static void (*const writers[])(FILE *) = {[BASH] = reference_bash,
	                                          [FISH] = reference_fish,
	                                          [SCHEMA] = put_schema,
	                                          [TEST_SCHEMA] = put_test_schema,
	                                          [ZSH] = reference_zsh};
	size_t i = 0;
	while (strcmp(whats[i], what) != 0)
		i++;
	writers[i](stdout);
	return WEIR_EXIT_DONE;
}

/* ---- files ---- */

/* The tree that is being written; after a failure nothing more is. */
struct tree {
	const char *root;
	char date[16];
	enum weir_status status;
	struct weir_error error;
};

/* The directories are for everyone to read, whatever the umask. */
static enum weir_status make_directories(char *path, struct weir_error *error)
{
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
		int reason = errno;
		*slash = '/';
		if (!made)
			return weir_fail(error, WEIR_IO, "cannot make the directory of %s: %s", path, weir_errno_words(reason));
	}
	return WEIR_OK;
}

static FILE *open_in(struct tree *tree, const char *name)
{
	char path[WEIR_PATH_BYTES];
	if (tree->status == WEIR_OK)
		tree->status = weir_path_format(path, &tree->error, "%s/%s", tree->root, name);
	if (tree->status == WEIR_OK)
		tree->status = make_directories(path, &tree->error);
	FILE *file = tree->status == WEIR_OK ? fopen(path, "we") : NULL;
	if (tree->status == WEIR_OK && file == NULL)
		tree->status = weir_fail(&tree->error, WEIR_IO, "cannot write %s: %s", path, weir_errno_words(errno));
	return file;
}

static void close_in(struct tree *tree, FILE *file)
{
	bool failed = ferror(file) != 0;
	if ((fclose(file) != 0 || failed) && tree->status == WEIR_OK)
		tree->status = weir_fail(&tree->error, WEIR_IO, "cannot write to %s: %s", tree->root, weir_errno_words(errno));
}

static void write_one(struct tree *tree, const char *name, void (*put)(FILE *))
{
	FILE *file = open_in(tree, name);
	if (file == NULL)
		return;
	put(file);
	close_in(tree, file);
}

static void write_page(struct tree *tree, const struct weir_command_line *page, int section)
{
	char name[128];
	snprintf(name, sizeof name, "man/man%d/%s.%d", section, page->name, section);
	for (char *at = name; *at != '\0'; at++)
		*at = *at == ' ' ? '-' : *at;
	FILE *file = open_in(tree, name);
	if (file == NULL)
		return;
	reference_man(page, section, tree->date, file);
	close_in(tree, file);
}

static void write_config_page(struct tree *tree)
{
	FILE *file = open_in(tree, "man/man5/weir.json.5");
	if (file == NULL)
		return;
	json_t *schema = make_schema();
	reference_man_config(schema, tree->date, file);
	json_decref(schema);
	close_in(tree, file);
}

/* The day of the pages: today, or what SOURCE_DATE_EPOCH says, by which two builds give the same bytes. */
static void set_date(struct tree *tree)
{
	const char *epoch = getenv("SOURCE_DATE_EPOCH");
	time_t at = epoch != NULL ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
	struct tm day;
	if (gmtime_r(&at, &day) == NULL || strftime(tree->date, sizeof tree->date, "%Y-%m-%d", &day) == 0)
		tree->date[0] = '\0';
}

static enum weir_exit write_all(const char *root)
{
	struct tree tree = {.root = root, .status = WEIR_OK};
	set_date(&tree);
	write_page(&tree, &weir_program, 1);
	for (size_t i = 0; weir_commands[i] != NULL; i++)
		write_page(&tree, weir_commands[i]->line, 1);
	for (size_t i = 0; reference_daemons[i] != NULL; i++)
		write_page(&tree, reference_daemons[i], 8);
	write_config_page(&tree);
	write_one(&tree, "bash-completion/completions/weir", reference_bash);
	write_one(&tree, "zsh/site-functions/_weir", reference_zsh);
	write_one(&tree, "fish/vendor_completions.d/weir.fish", reference_fish);
	write_one(&tree, "weir/weir.schema.json", put_schema);
	write_one(&tree, "weir/weir.test.schema.json", put_test_schema);
	if (tree.status != WEIR_OK)
		fprintf(stderr, "weir reference: %s\n", tree.error.text);
	return weir_exit_of(tree.status);
}

static enum weir_exit reference_main(int argc, char **argv)
{
	struct reference_options options = {NULL, NULL};
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take, &options);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if ((options.what == NULL) == (options.directory == NULL))
		return weir_arguments_refuse(&line,
		                             "give bash, fish, zsh, schema or test-schema, or --dir DIR for all of them");
	return options.directory != NULL ? write_all(options.directory) : print(options.what);
}

const struct command command_reference = {&line, reference_main};
