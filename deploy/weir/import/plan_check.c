/* SPDX-License-Identifier: Apache-2.0 */
/* Whether weir reads what an import has made: as `weir validate` asks it, but no log is looked at. */
#include "collector/follow/inputs.h"
#include "common/config/config.h"
#include "common/exempt/exempt_list.h"
#include "deploy/weir/import/plan.h"

static enum weir_status read_back(const struct plan *plan, struct weir_error *error)
{
	struct weir_text text = {0};
	struct weir_config *config = NULL;
	plan_write_config(plan, &text);
	enum weir_status status = weir_config_parse("the configuration", text.at, text.length, &config, error);
	weir_text_deinit(&text);
	if (status != WEIR_OK)
		return status;
	struct weir_exempt_lists *lists = weir_exempt_lists_new(NULL, NULL);
	status = inputs_check(config, lists, error);
	weir_exempt_lists_free(lists);
	weir_config_free(config);
	return status;
}

void plan_check(struct plan *plan)
{
	struct weir_error error;
	if (plan->zone_count == 0 || read_back(plan, &error) == WEIR_OK)
		return;
	/* The words stand in the configuration, too, as a line of their own: they name lines behind it. */
	plan->refused = "";
	if (read_back(plan, &error) != WEIR_OK)
		plan->refused = plan_print(plan, "%s", error.text);
}
