/* SPDX-License-Identifier: Apache-2.0 */
/* A state directory as a source, by the API's own answers; and what both kinds of source have in common. */
#include "deploy/weir/top/top_source.h"

#include "common/base/alloc.h"
#include "deploy/weir/backend/state_directory.h"

#include <stdlib.h>

struct state_source {
	struct top_source source;
	struct weir_log log;
	struct api_options options;
};

static enum weir_status open_state(void *context, struct weir_store **store, struct weir_error *error)
{
	const struct top_source *source = context;
	return state_directory_open_archive(source->name, store, error);
}

static enum weir_status get_state(struct top_source *base, const char *path, const struct api_argument *arguments,
                                  size_t count, struct weir_text *body, struct weir_error *error)
{
	struct state_source *source = (struct state_source *)base;
	return api_ask(&source->options, path, arguments, count, body, error);
}

static void close_state(struct top_source *base)
{
	free(base);
}

struct top_source *top_source_state(const char *directory)
{
	struct state_source *made = weir_alloc(1, sizeof *made);
	made->source = (struct top_source){get_state, close_state, directory};
	made->log.fd = -1; /* what is wrong is told by errors */
	made->log.level = WEIR_LOG_ERROR;
	made->options.log = &made->log;
	made->options.open_store = open_state;
	made->options.context = &made->source;
	return &made->source;
}

enum weir_status top_source_ask(struct top_source *source, const char *path, const struct api_argument *arguments,
                                size_t count, json_t **answer, struct weir_error *error)
{
	struct weir_text body = {0};
	*answer = NULL;
	enum weir_status status = source->get(source, path, arguments, count, &body, error);
	if (status == WEIR_OK) {
		*answer = json_loadb(body.at, body.length, JSON_ALLOW_NUL, NULL);
		if (!json_is_object(*answer)) {
			json_decref(*answer);
			*answer = NULL;
			status = weir_fail(error, WEIR_INVALID, "%s: the answer of %s is not JSON: is it an archiver's API?",
			                   source->name, path);
		}
	}
	weir_text_deinit(&body);
	return status;
}
