/* SPDX-License-Identifier: Apache-2.0 */
/* A state that cannot be looked at is a warning: the configuration may be meant for another machine, or another user. */
#include "deploy/weir/validate/validate_state.h"

#include "collector/follow/state_check.h"
#include "common/bus/local/bus_local.h"
#include "common/bus/local/bus_local_scan.h"
#include "common/files/file_damage.h"
#include "deploy/weir/backend/backend.h"
#include "deploy/weir/policy/policy_changes.h"
#include "deploy/weir/policy/policy_check.h"

#include <string.h>
#include <unistd.h>

/* Whether the files of a log are of the configured number, and the file that says another one is the damaged one. */
static bool has_the_number(const struct weir_config *config, const char *log)
{
	const struct weir_bus_local_options options = {.partitions = (uint32_t)config->bus.partitions};
	struct weir_error error = {.text = ""};
	const char *remedy =
		weir_bus_local_check(log, &options, &error) != WEIR_OK ? weir_damage_find_remedy(error.text, NULL) : NULL;
	return remedy != NULL && strncmp(remedy, "mv ", 3) == 0;
}

static enum weir_status check_partitions(const struct weir_config *config, const char *state_path,
                                         struct weir_error *error)
{
	char path[WEIR_PATH_BYTES];
	uint32_t partitions;
	struct weir_json root = weir_json_root(config->document);
	struct weir_json bus = weir_json_member(&root, "bus"), at = weir_json_member(&bus, "partitions");
	if (weir_path_format(path, error, "%s/log", state_path) != WEIR_OK || access(path, F_OK) != 0 ||
	    weir_bus_scan_partitions(path, &partitions, error) != WEIR_OK || partitions == config->bus.partitions ||
	    has_the_number(config, path))
		return WEIR_OK;
	return weir_json_fail(&at, error, "must be %u, as %s was made with: or choose another --state directory",
	                      partitions, state_path);
}

/* Against all that was in force there before. */
static enum weir_status check_history(struct weir_config *config, const struct backend *backend,
                                      struct validate_report *report, struct weir_error *error)
{
	struct weir_json root = weir_json_root(config->document), zones = weir_json_member(&root, "zones");
	struct weir_policy_history history;
	struct weir_error why;
	enum weir_status status = weir_policy_history_load(backend->store, &history, error);
	if (status != WEIR_OK)
		return status;
	const struct weir_policy *const *policies = (const struct weir_policy *const *)history.policies;
	weir_policy_stay_armed(config->policy, history.count > 0 ? policies[history.count - 1] : NULL);
	status = weir_policy_follow(config->policy, policies, history.count, &why);
	validate_report_name_zones(report);
	if (status != WEIR_OK) {
		status = weir_json_fail(&zones, error, "%s", why.text);
	} else if (history.count > 0) {
		const struct weir_policy *newest = policies[history.count - 1];
		report->in_force = newest->version;
		report->differs = policy_words_changes(&report->changes, newest, config->policy);
	}
	weir_policy_history_deinit(&history);
	return status;
}

static void warn_unknown(struct validate_report *report, const char *path, const struct weir_error *why)
{
	struct weir_text words = {0};
	weir_text_puts(&words, "what a start would refuse is not known: ");
	weir_text_puts(&words, why->text);
	validate_warn(report, path, &words);
}

static void warn_damaged(void *context, const struct weir_error *error)
{
	struct weir_text words = {0};
	weir_text_puts(&words, "a start would refuse: ");
	weir_text_puts(&words, error->text);
	validate_warn(context, "state", &words);
}

/* Files at which a start ends, whatever the configuration. */
static void check_files(const struct weir_config *config, const char *state_path, struct validate_report *report)
{
	const struct weir_bus_local_options options = {.partitions = (uint32_t)config->bus.partitions};
	char path[WEIR_PATH_BYTES];
	struct weir_error error;
	if (state_directory_is_closed(state_path)) {
		(void)weir_fail(&error, WEIR_IO, "%s belongs to another user, and this one may not read all of it", state_path);
		warn_unknown(report, "state", &error);
		return;
	}
	if (weir_path_format(path, &error, "%s/log", state_path) == WEIR_OK &&
	    weir_bus_local_check(path, &options, &error) != WEIR_OK)
		warn_damaged(report, &error);
	state_check(state_path, config, warn_damaged, report);
}

enum weir_status validate_state(struct weir_config *config, const char *state_path, struct validate_report *report,
                                struct weir_error *error)
{
	bool cluster = config->bus.type == WEIR_BUS_KAFKA;
	struct backend backend = {0};
	struct weir_error why;
	bool told = false;
	if (config->policy == NULL)
		return WEIR_OK;
	enum weir_status status = cluster ? policy_check_cluster(config->policy, error) : WEIR_OK;
	if (status != WEIR_OK)
		return status;
	if (backend_look(&backend, "weir validate", config, state_path, &why) == WEIR_OK) {
		status = cluster ? WEIR_OK : check_partitions(config, backend.state_path, error);
		if (status == WEIR_OK)
			status = check_history(config, &backend, report, error);
	} else if (!backend.absent) {
		told = !cluster && backend.state_path != NULL && state_directory_is_closed(backend.state_path);
		warn_unknown(report, cluster ? "store" : "state", &why);
	}
	if (status == WEIR_OK && !cluster && !backend.absent && backend.state_path != NULL && !told)
		check_files(config, backend.state_path, report);
	backend_close(&backend);
	return status;
}
