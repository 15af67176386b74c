/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's own check of its sources; and of sources that are topics, whether their brokers answer.
 *
 * Files are of the machine of a collector. Where none has left its state, they are most likely another machine's: what
 * is missing here is only noted.
 */
#include "collector/follow/source_check.h"
#include "deploy/weir/doctor/internal.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 64, ENTRY_BYTES = 4096 };

static const char usual_state[] = "/var/lib/weir/weir-collector";
static const char unknown_user[] = "the collector's user";

/* Whose state this is. @return whether there may be one here */
static bool find_owner(const char *directory, const char *name, char user[NAME_BYTES])
{
	char path[WEIR_PATH_BYTES], words[ENTRY_BYTES];
	struct weir_error error;
	struct stat about;
	struct passwd entry, *found = NULL;
	if (weir_path_format(path, &error, "%s/%s", directory, name) != WEIR_OK)
		return false;
	if (stat(path, &about) != 0)
		return errno == EACCES;
	if (getpwuid_r(about.st_uid, &entry, words, sizeof words, &found) == 0 && found != NULL)
		snprintf(user, NAME_BYTES, "%s", entry.pw_name);
	else
		snprintf(user, NAME_BYTES, "uid %u", (unsigned)about.st_uid);
	return true;
}

/* @return whether a collector, or `weir run`, may work on this machine, by its state */
static bool find_collector(const struct doctor *doctor, char user[NAME_BYTES])
{
	snprintf(user, NAME_BYTES, "%s", unknown_user);
	if (!doctor->cluster) {
		if (doctor->state != NULL)
			(void)find_owner(doctor->state, "weir.db", user);
		else if (doctor->closed_state != NULL)
			(void)find_owner(doctor->closed_state, ".", user);
		return true; /* where there is no state, its own check says so */
	}
	return (doctor->state != NULL && find_owner(doctor->state, "sources.json", user)) ||
	       find_owner(usual_state, "sources.json", user);
}

/* Everything that is wrong with files which are most likely another machine's. */
static void take_as_notes(const struct weir_check *check, struct weir_findings *findings)
{
	if (findings->count > 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_NOTE, "sources",
		                  "no collector has its state on this machine: the sources are most likely another's\nWhat is "
		                  "noted of them here says nothing there\nask on the collector's machine, or name its state "
		                  "with --state");
	for (size_t i = 0; i < findings->count; i++)
		findings->at[i].severity = WEIR_SEVERITY_NOTE;
}

struct brokers {
	const struct weir_check *check;
	const char *topic;
	size_t asked, away;
};

static void try_broker(void *context, const char *host, unsigned port)
{
	struct brokers *brokers = context;
	const char *reason = doctor_reach(host, port);
	brokers->asked++;
	brokers->away += reason != NULL;
	if (brokers->away == 1 && reason != NULL)
		weir_findings_add(
			brokers->check->findings, WEIR_SEVERITY_TICKET, "sources",
			"broker %s:%u of the source topic %s cannot be reached: %s\nIf no broker of it answers, no line of it is "
			"judged\nstart it, or name the one that answers in the source's \"brokers\" (runbook: "
			"source-unreadable)",
			host, port, brokers->topic, reason);
}

void doctor_check_sources(struct doctor *doctor, const struct weir_check *check)
{
	struct weir_findings findings = {0};
	struct weir_check files = *check;
	char user[NAME_BYTES];
	files.findings = &findings;
	bool here = find_collector(doctor, user);
	source_check(&files, user, doctor->state != NULL ? doctor->state : doctor->cluster ? usual_state : NULL);
	if (!here)
		take_as_notes(check, &findings);
	weir_findings_take(check->findings, &findings);
	for (size_t i = 0; i < doctor->config->source_count; i++) {
		struct weir_json source = weir_json_element(&doctor->config->sources, i);
		struct weir_json type = weir_json_member(&source, "type"), list = weir_json_member(&source, "brokers");
		struct weir_json topics = weir_json_member(&source, "topics"), topic = weir_json_element(&topics, 0);
		const char *name = json_string_value(topic.value);
		struct brokers brokers = {.check = check, .topic = name != NULL ? name : "?"};
		if (json_is_string(list.value) && strcmp(json_string_value(type.value), "kafka") == 0)
			doctor_each_address(json_string_value(list.value), try_broker, &brokers);
	}
}
