/* SPDX-License-Identifier: Apache-2.0 */
/* What is imported, whatever it is, is a configuration that weir reads; else it is refused in words. */
#ifndef TESTS_FUZZ_IMPORT_TARGET_H
#define TESTS_FUZZ_IMPORT_TARGET_H

#include "common/config/config.h"
#include "deploy/weir/import/readers.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef enum weir_status import_read(struct plan *plan, const struct import_options *options, struct weir_error *error);

static void check_config(const struct plan *plan, const struct weir_text *text)
{
	struct weir_error error = {.text = ""};
	struct weir_json_document *document = NULL;
	enum weir_status status = weir_json_parse_file("imported", text->at, text->length, &document, &error);
	if (status == WEIR_OK) {
		weir_json_document_free(document);
		bool zones = false;
		for (size_t i = 0; i < plan->item_count; i++)
			zones |= plan->items[i].zone_count > 0;
		struct weir_config *config = NULL;
		if (zones)
			status = weir_config_parse("imported", text->at, text->length, &config, &error);
		if (status == WEIR_OK && zones)
			weir_config_free(config);
	}
	if (status != WEIR_OK) {
		fprintf(stderr, "%s\n%.*s\n", error.text, (int)text->length, text->at);
		abort();
	}
}

static inline void import_whole(import_read *read, const char *path)
{
	struct plan plan = {.origin = "fuzz", .shadow = true};
	struct import_options options = {.path = path, .mode = "shadow", .all = true};
	struct weir_error error = {.text = ""};
	if (read(&plan, &options, &error) == WEIR_OK) {
		struct weir_text text = {0}, json = {0}, summary = {0};
		plan_check(&plan); /* what weir refuses of a source, as a path or a zone of times, is said */
		plan_write_config(&plan, &text);
		plan_write_json(&plan, &json);
		plan_write_summary(&plan, &summary);
		check_config(&plan, &text);
		weir_text_deinit(&text);
		weir_text_deinit(&json);
		weir_text_deinit(&summary);
	} else {
		assert(error.text[0] != '\0');
	}
	plan_deinit(&plan);
}

static inline void write_file(const char *path, const uint8_t *data, size_t size)
{
	FILE *file = fopen(path, "wb");
	assert(file != NULL && fwrite(data, 1, size, file) == size);
	fclose(file);
}

/* Any bytes as a file of YAML. */
static inline void import_yaml(import_read *read, const uint8_t *data, size_t size)
{
	int fd = memfd_create("import", 0);
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	write_file(path, data, size);
	import_whole(read, path);
	close(fd);
}

#endif
