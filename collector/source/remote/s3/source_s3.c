/* SPDX-License-Identifier: Apache-2.0 */
/* The source's table: what is read and remembered is the mechanism's (source_remote.c), which asks the bucket by it. */
#include "collector/source/remote/s3/source_s3.h"

#include "collector/source/remote/s3/internal.h"
#include "common/base/alloc.h"

static const struct remote_ops ops = {
	.noun = "object",
	.fixed = true,
	.ordered = true,
	.list = s3_list,
	.read = s3_read,
	.free = s3_free,
};

static enum weir_status create(const struct weir_json *json, const struct source_context *context,
                               struct source **source, struct weir_error *error)
{
	struct s3 *s3 = weir_alloc(1, sizeof *s3);
	struct remote_settings settings;
	enum weir_status status = s3_configure(s3, &settings, json, context, error);
	if (status != WEIR_OK) {
		s3_free(s3);
		return status;
	}
	return remote_source_new(&source_s3_ops, &ops, s3, &settings, s3->label, &s3->stop, json, context, source, error);
}

const struct source_ops source_s3_ops = {
	.type = "s3",
	.members = s3_members,
	.create = create,
	.apart = s3_apart,
	.describe = s3_describe,
	REMOTE_SOURCE_OPS,
};
