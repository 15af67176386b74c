/* SPDX-License-Identifier: Apache-2.0 */
/* Zones as a configuration has them, as text, for tests of policies. */
#ifndef TESTS_UNIT_POLICY_FIXTURE_H
#define TESTS_UNIT_POLICY_FIXTURE_H

#include "common/json/json.h"
#include "common/policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static enum weir_status parse(const char *zones, struct weir_policy **policy, struct weir_error *error)
{
	struct weir_json_document *document = NULL;
	enum weir_status status = weir_json_parse("weir.json", zones, strlen(zones), &document, error);
	if (status != WEIR_OK)
		fail_msg("%s", error->text);
	struct weir_json root = weir_json_root(document);
	status = weir_policy_parse(&root, NULL, policy, error);
	weir_json_document_free(document);
	return status;
}

static struct weir_policy *accept(const char *zones)
{
	struct weir_policy *policy = NULL;
	struct weir_error error;
	if (parse(zones, &policy, &error) != WEIR_OK)
		fail_msg("%s", error.text);
	return policy;
}

#endif
