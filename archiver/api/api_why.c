/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/why: what a decision rests on, where this process has the log that it was made from. */
#include "archiver/api/api_resources.h"

#include <stdio.h>

bool api_why_answer(struct api_call *call)
{
	struct weir_span id = call->parameters.id;
	char text[API_ID_BYTES];
	struct weir_error error;
	if (id.at == NULL)
		return api_fault_set(&call->fault, 400, "id", "missing: expected a decision's id");
	if (api_hashes_keys(call->api))
		return api_fault_set(&call->fault, 404, NULL, "keys are hashed here, and lines show them: ask weir explain");
	if (api_is_open(call->api))
		return api_fault_set(
			&call->fault, 403, NULL,
			"this shows lines of logs, so it asks for a token: set archiver.tokens, or ask weir explain");
	snprintf(text, sizeof text, "%.*s", (int)id.length, id.at);
	switch (api_why(call->api, text, &call->reply->body, &error)) {
	case WEIR_OK: return true;
	case WEIR_END: return api_fault_set(&call->fault, 404, NULL, "this process has no log of events: ask weir explain");
	case WEIR_INVALID: return api_fault_set(&call->fault, 400, "id", "%.250s", error.text);
	default: return api_fault_set(&call->fault, 503, NULL, "cannot explain it now: %.220s", error.text);
	}
}
