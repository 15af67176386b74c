/* SPDX-License-Identifier: Apache-2.0 */
/* What `weir validate --offline` says, and who else may write the file. Sources have a check of their own. */
#include "common/base/shell.h"
#include "common/bus/kafka/bus_kafka.h"
#include "deploy/weir/doctor/internal.h"
#include "deploy/weir/validate/validate_report.h"

#include <string.h>
#include <sys/stat.h>

static void check_rights(struct doctor *doctor, const struct weir_check *check)
{
	struct stat about;
	if (stat(doctor->path, &about) == 0 && (about.st_mode & S_IWOTH) != 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "configuration",
		                  "every user of this machine can change %s\nWhoever does decides who is blocked, and which "
		                  "commands run\nchmod o-w %s",
		                  doctor->path, weir_shell_word(doctor->path).text);
}

static void add_warnings(const struct weir_check *check, const struct validate_report *report)
{
	for (size_t i = 0; i < report->warning_count; i++) {
		const struct validate_warning *warning = &report->warnings[i];
		if (strncmp(warning->path, "sources", strlen("sources")) != 0)
			weir_findings_add(check->findings, WEIR_SEVERITY_NOTE, "configuration", "%s%s%s\n\n", warning->path,
			                  warning->path[0] != '\0' ? ": " : "", warning->words);
	}
}

void doctor_check_configuration(struct doctor *doctor, const struct weir_check *check)
{
	struct weir_config *config; /* one of its own: secrets that are not here are taken out of it */
	struct validate_report report = {0};
	struct weir_error error;
	if (weir_config_load(doctor->path, &config, &error) != WEIR_OK)
		return;
	enum weir_status status = validate_report_begin(config, doctor->path, doctor->state, &report, &error);
	if (status == WEIR_OK)
		validate_set_secrets_aside(&report);
	if (status == WEIR_OK && doctor->cluster)
		status = weir_bus_kafka_check(config, &error);
	if (status == WEIR_OK)
		status = validate_report_make(&report, &error);
	if (status == WEIR_OK)
		status = validate_secrets(&report, &error);
	doctor->refused = status == WEIR_INVALID;
	if (status != WEIR_OK)
		weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, "configuration",
		                  "%s\nNothing starts with this configuration\nmend it; weir validate %s explains it",
		                  error.text, check->config_words);
	else
		weir_findings_good(check->findings, "configuration: %s has no mistake", doctor->path);
	add_warnings(check, &report);
	check_rights(doctor, check);
	validate_report_deinit(&report);
	weir_config_free(config);
}
