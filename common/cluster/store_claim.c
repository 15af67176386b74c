/* SPDX-License-Identifier: Apache-2.0 */
/* A note that the first process puts. A store of before has none: the first process that works on it claims it. */
#include "common/cluster/store_claim.h"

#include "common/cluster/put_if_absent.h"

#include <stdlib.h>
#include <string.h>

#define PREFIX_NOTE "prefix"

/* WEIR_END: nobody has claimed it. */
static enum weir_status look(struct weir_store *store, const struct weir_config *config, struct weir_error *error)
{
	char *note;
	size_t length;
	enum weir_status status = store->ops->note_get(store, PREFIX_NOTE, &note, &length, error);
	if (status != WEIR_OK)
		return status;
	if (note == NULL)
		return WEIR_END;
	const struct weir_span prefix = {.at = note, .length = (uint32_t)length};
	if (!weir_span_equal(prefix, weir_span_of(config->bus.prefix)))
		status = weir_fail(
			error, WEIR_INVALID,
			"the store \"%s\" belongs to the cluster whose \"bus.prefix\" is \"%.*s\", but here it is \"%s\": set that "
			"prefix, or give this cluster a \"store.database\" of its own (runbook: prefix-changed)",
			config->store.database, (int)length, note, config->bus.prefix);
	free(note);
	return status;
}

enum weir_status weir_store_check_claim(struct weir_store *store, const struct weir_config *config,
                                        struct weir_error *error)
{
	enum weir_status status = look(store, config, error);
	return status == WEIR_END ? WEIR_OK : status;
}

enum weir_status weir_store_claim(struct weir_store *store, const struct weir_config *config, struct weir_error *error)
{
	static const char *const names[] = {PREFIX_NOTE};
	enum weir_status status = look(store, config, error);
	if (status != WEIR_END)
		return status;
	const struct weir_span value = weir_span_of(config->bus.prefix);
	status = weir_put_if_absent(store, names, &value, 1, error);
	return status == WEIR_OK ? weir_store_check_claim(store, config, error) : status;
}
