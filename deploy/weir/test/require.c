/* SPDX-License-Identifier: Apache-2.0 */
/* All files are read before the first case runs: so a mistake in the last of them is known at once, and how many there are. */
#include "deploy/weir/test/require.h"

#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "deploy/weir/test/expectations.h"
#include "deploy/weir/test/internal.h"

#include <stdlib.h>
#include <string.h>

/* The folder of a path with its slash, or "". */
static void folder_of(const char *path, char folder[WEIR_PATH_BYTES])
{
	const char *slash = strrchr(path, '/');
	size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
	if (length >= WEIR_PATH_BYTES)
		length = 0;
	memcpy(folder, path, length);
	folder[length] = '\0';
}

static enum weir_status read_file(struct test_report *report, struct weir_error *error)
{
	struct weir_json_document *document;
	enum weir_status status = weir_json_load(report->path, &document, error);
	if (status == WEIR_OK)
		status = test_file_read(document, &report->file, error);
	if (status != WEIR_OK)
		return status;
	report->count = report->file->case_count;
	report->results = weir_alloc(report->count + 1, sizeof *report->results);
	for (size_t i = 0; i < report->count; i++)
		report->results[i].name = report->file->cases[i].name;
	return WEIR_OK;
}

/* The path of the configuration under test. */
static enum weir_status find_config(struct test_report *report, const char *config_path, struct weir_error *error)
{
	char folder[WEIR_PATH_BYTES];
	const char *own = report->file->config;
	struct weir_json root = weir_json_root(report->file->document), at = weir_json_member(&root, "config");
	if (config_path != NULL)
		return weir_path_format(report->config, error, "%s", config_path);
	if (own == NULL)
		return weir_json_require(&at, "name the configuration with the policy, or give it by --config", error);
	folder_of(report->path, folder);
	return weir_path_format(report->config, error, "%s%s", own[0] == '/' ? "" : folder, own);
}

static void run_cases(struct test_report *report, const struct subject *subject)
{
	char folder[WEIR_PATH_BYTES];
	folder_of(report->path, folder);
	for (size_t i = 0; i < report->count; i++) {
		int64_t began_ms = weir_monotonic_ms();
		expectations_check(subject, &report->file->cases[i], folder, &report->results[i]);
		report->results[i].seconds = (double)(weir_monotonic_ms() - began_ms) / 1000.0;
	}
}

static enum weir_status run_file(struct test_report *report, const struct weir_config *config, const char *config_path,
                                 struct weir_error *error)
{
	struct weir_config *own = NULL;
	struct subject subject;
	enum weir_status status = find_config(report, config_path, error);
	if (status == WEIR_OK && config == NULL)
		status = weir_config_load(report->config, &own, error);
	if (status != WEIR_OK)
		return status;
	status = subject_init(&subject, config != NULL ? config : own, error);
	if (status == WEIR_OK)
		run_cases(report, &subject);
	subject_deinit(&subject);
	weir_config_free(own);
	return status;
}

static void count_results(struct test_run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		const struct test_report *report = &run->reports[i];
		run->unusable += report->unusable[0] != '\0';
		for (size_t j = 0; report->unusable[0] == '\0' && j < report->count; j++) {
			const struct test_result *result = &report->results[j];
			run->unusable += result->unusable[0] != '\0';
			run->passed += test_result_passed(result);
			run->failed += result->unusable[0] == '\0' && result->failure_count > 0;
		}
	}
}

enum weir_exit test_run_new(const char *const *paths, size_t count, const struct weir_config *config,
                            const char *config_path, struct test_run **out)
{
	struct test_run *run = weir_alloc(1, sizeof *run);
	struct weir_error error;
	run->reports = weir_alloc(count + 1, sizeof *run->reports);
	run->count = count;
	for (size_t i = 0; i < count; i++) {
		run->reports[i].path = paths[i];
		if (read_file(&run->reports[i], &error) != WEIR_OK)
			memcpy(run->reports[i].unusable, error.text, sizeof error.text);
	}
	for (size_t i = 0; i < count; i++)
		if (run->reports[i].unusable[0] == '\0' && run_file(&run->reports[i], config, config_path, &error) != WEIR_OK)
			memcpy(run->reports[i].unusable, error.text, sizeof error.text);
	count_results(run);
	*out = run;
	return run->unusable > 0 ? WEIR_EXIT_USAGE : run->failed > 0 ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
}

void test_run_free(struct test_run *run)
{
	if (run == NULL)
		return;
	for (size_t i = 0; i < run->count; i++)
		test_report_deinit(&run->reports[i]);
	free(run->reports);
	free(run);
}
