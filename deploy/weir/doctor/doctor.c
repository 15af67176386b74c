/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir doctor`: asks everything, and prints what is wrong first.
 *
 * A server that hangs must not keep the others' answers back: checks of one round run at the same time, each on a thread
 * with findings of its own. What has not answered when the time is over is said to be silent; its thread is left, and
 * ends with the process.
 */
#include "common/base/alloc.h"
#include "common/base/clock.h"
#include "common/base/deadline.h"
#include "common/config/config.h"
#include "deploy/weir/backend/state_directory.h"
#include "deploy/weir/command.h"
#include "deploy/weir/doctor/internal.h"
#include "deploy/weir/terminal/readable.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum option { CONFIG, STATE, TO, TO_FILE, ZONE, MAP, JSON, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[CONFIG] = {.name = "config", .value = "FILE", .type = WEIR_ARGUMENT_TEXT, .help = "the configuration"},
	[STATE] = {.name = "state",
               .value = "DIR",
               .type = WEIR_ARGUMENT_TEXT,
               .help = "the state directory of the daemon on this machine (default: that of weir run)"},
	[TO] = {.name = "to",
            .value = "TARGET",
            .type = WEIR_ARGUMENT_TEXT,
            .help = "look at this list too, as `weir subscribe` was given it"},
	[TO_FILE] = {.name = "to-file",
                 .value = "FILE",
                 .type = WEIR_ARGUMENT_TEXT,
                 .help = "a file whose first line is that"},
	[ZONE] = {.name = "zone",
              .value = "NAME",
              .type = WEIR_ARGUMENT_TEXT,
              .help = "it keeps only this zone's blocks, as `weir subscribe` was given it (default: all)",
              .repeatable = true,
              .expected = "a zone's name, at most 64 times"},
	[MAP] = {.name = "map", .value = "FILE", .type = WEIR_ARGUMENT_TEXT, .help = "haproxy: the map's file"},
	[JSON] = {.name = "json", .type = WEIR_ARGUMENT_FLAG, .help = "print it as one JSON object"},
	[OPTION_COUNT] = {.name = NULL},
};

static const struct weir_argument_section sections[] = {
	{"The object of --json", "    good      whether nothing is wrong\n"
                             "    findings  a list, the worst first, each with:\n"
                             "      severity  \"page\", \"ticket\" or \"note\"\n"
                             "      check     its subject: \"topics\", \"store\", ...\n"
                             "      what      what is wrong\n"
                             "      means     what it costs\n"
                             "      remedy    the command that ends it, or what to do\n"
                             "      runbook   the heading of the runbook, or null\n"
                             "    fine      a list of lines about what is good\n"},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "nothing is wrong; there may be notes"},
	{WEIR_EXIT_FAILED, "something is wrong, or could not be asked"},
	{WEIR_EXIT_USAGE, "the configuration or the command line is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir doctor",
	.summary = "find what is wrong now, and say what to do about it",
	.usage = "weir doctor [--config FILE] [--state DIR] [--to TARGET] [OPTION...]",
	.about =
		"Finds what is wrong now, and says what to do about it, the worst first.\n"
		"\n"
		"It asks the brokers, the topics, the store, the partitions, the sources, the gateways, the certificates, "
		"the clocks and the disks that the configuration names. Each thing that is wrong comes with what it means, "
		"the command that ends it, and the heading of the runbook. What is good stands below in short.\n"
		"\n"
		"A gateway's list is held against the decisions: of the gateways of the configuration, of redis.url, of "
		"each subscribe-NAME.target beside the configuration (weir-subscribe@NAME), and of --to.\n"
		"\n"
		"It only reads, and ends within 20 s: what does not answer is said to be silent. A page costs verdicts or "
		"data; a ticket can wait for the morning; a note is no fault.",
	.options = options_table,
	.sections = sections,
	.examples = "weir doctor --config weir.json\n"
				"weir doctor --config weir.json --to nft:inet/filter/blocked --zone site\n"
				"weir doctor --config weir.json --json | jq -r '.findings[].remedy'",
	.exits = exits,
};

enum { ALL_MS = 20000, ROUND_MS = 11000, WAIT_MS = 4000, CLUSTER = 1, LOCAL = 2, ROUNDS = 3 };

/* The checks, in the order in which what is equally bad is told: what other faults come from stands first. */
static const struct {
	const char *subject;
	doctor_check *check;
	int where;          /* CLUSTER, LOCAL */
	int round;          /* those of the later ones use what the first has opened; the store is one thread's at a time */
	const char *silent; /* where to read on, if it does not end */
} checks[] = {
	{"configuration", doctor_check_configuration, CLUSTER | LOCAL, 0, "runbook: process-down"},
	{"certificates", doctor_check_certificates, CLUSTER | LOCAL, 0, "runbook: certificates"},
	{"brokers", doctor_check_brokers, CLUSTER, 0, "runbook: broker-away"},
	{"store", doctor_check_store, CLUSTER, 0, "runbook: store-away"},
	{"state", doctor_check_state, LOCAL, 0, "runbook: positions-unsaved"},
	{"disk", doctor_check_disk, CLUSTER | LOCAL, 0, "runbook: positions-unsaved"},
	{"limiters", doctor_check_limiters, CLUSTER, 1, "runbook: limiter-lag"},
	{"collectors", doctor_check_collectors, CLUSTER, 1, "runbook: broker-away"},
	{"sources", doctor_check_sources, CLUSTER | LOCAL, 0, "runbook: source-unreadable"},
	{"pages", doctor_check_pages, CLUSTER | LOCAL, 1, "runbook: process-suspended"},
	{"gateways", doctor_check_gateways, CLUSTER | LOCAL, 1, "runbook: gateway-not-blocking"},
	{"archive", doctor_check_archivers, CLUSTER, 2, "runbook: archive-behind"},
};

enum { CHECKS = sizeof checks / sizeof *checks };

/* One check at work; allocated, and left to a thread that hangs. */
struct job {
	struct doctor *doctor;
	struct weir_check check;
	struct weir_findings findings;
	doctor_check *run;
	pthread_t thread;
	bool started;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool ended; /* under the mutex */
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct {
		struct doctor *doctor;
		bool *json;
	} *into = context;
	switch (option) {
	case STATE: into->doctor->state = value->text; break;
	case TO: into->doctor->to = value->text; break;
	case TO_FILE: into->doctor->to_file = value->text; break;
	case MAP: into->doctor->map = value->text; break;
	case ZONE:
		if (into->doctor->zone_count == DOCTOR_ZONES_MOST)
			return weir_arguments_refuse_value(&line, ZONE, value->text);
		into->doctor->zones[into->doctor->zone_count++] = value->text;
		break;
	case JSON: *into->json = true; break;
	default: into->doctor->path = value->text; break;
	}
	return WEIR_EXIT_NOT_YET;
}

/* ---- the rounds ---- */

static void *work(void *context)
{
	struct job *job = context;
	job->run(job->doctor, &job->check);
	pthread_mutex_lock(&job->mutex);
	job->ended = true;
	pthread_cond_signal(&job->changed);
	pthread_mutex_unlock(&job->mutex);
	return NULL;
}

static void start(struct job *job)
{
	pthread_mutex_init(&job->mutex, NULL);
	weir_condition_init(&job->changed);
	job->started = pthread_create(&job->thread, NULL, work, job) == 0;
	if (!job->started)
		work(job);
}

/* @return whether it has ended; then its thread is gone, too */
static bool wait_for(struct job *job, int64_t end_ms)
{
	struct weir_deadline deadline = weir_deadline_at_ms(end_ms);
	pthread_mutex_lock(&job->mutex);
	while (!job->ended && weir_condition_wait(&job->changed, &job->mutex, &deadline))
		;
	bool ended = job->ended;
	pthread_mutex_unlock(&job->mutex);
	if (ended && job->started)
		pthread_join(job->thread, NULL);
	return ended;
}

static void free_job(struct job *job)
{
	pthread_cond_destroy(&job->changed);
	pthread_mutex_destroy(&job->mutex);
	free(job);
}

static void run_round(struct doctor *doctor, const struct weir_check *model, int round, int64_t end_ms,
                      struct weir_findings findings[CHECKS])
{
	struct job *jobs[CHECKS] = {NULL};
	for (int i = 0; i < CHECKS; i++) {
		if (checks[i].round != round || (checks[i].where & (doctor->cluster ? CLUSTER : LOCAL)) == 0)
			continue;
		jobs[i] = weir_alloc(1, sizeof *jobs[i]);
		jobs[i]->doctor = doctor;
		jobs[i]->check = *model;
		jobs[i]->check.findings = &jobs[i]->findings;
		jobs[i]->check.end_ms = end_ms;
		jobs[i]->run = checks[i].check;
		start(jobs[i]);
	}
	for (int i = 0; i < CHECKS; i++) {
		if (jobs[i] == NULL)
			continue;
		if (wait_for(jobs[i], end_ms)) {
			findings[i] = jobs[i]->findings;
			free_job(jobs[i]);
			continue;
		}
		weir_findings_add(
			&findings[i], WEIR_SEVERITY_TICKET, checks[i].subject,
			"%s: no answer in time\nWhat is wrong there is not known\nlook whether its server hangs, and run "
			"the command again (%s)",
			checks[i].subject, checks[i].silent);
	}
}

static void run_all(struct doctor *doctor, const struct weir_log *log, struct weir_findings *all)
{
	struct weir_findings findings[CHECKS] = {0};
	int64_t begin_ms = weir_monotonic_ms();
	const struct weir_check model = {
		.config = doctor->config, .config_words = weir_config_words(doctor->config), .wait_ms = WAIT_MS, .log = log};
	for (int round = 0; round < ROUNDS; round++)
		run_round(doctor, &model, round, begin_ms + (round == 0 ? ROUND_MS : ALL_MS - 1000), findings);
	for (int i = 0; i < CHECKS; i++)
		weir_findings_take(all, &findings[i]);
	weir_findings_sort(all);
}

/* ---- the command ---- */

struct mistakes {
	struct weir_findings *findings;
	const char *path;
};

static void add_mistake(void *context, const char *words)
{
	const struct mistakes *mistakes = context;
	weir_findings_add(mistakes->findings, WEIR_SEVERITY_PAGE, "configuration",
	                  "%s\nNothing starts with this configuration\nmend it; weir validate %s explains it", words,
	                  mistakes->path);
}

static enum weir_exit report(const struct weir_findings *findings, bool json, bool refused)
{
	struct weir_text text = {0};
	size_t written;
	enum weir_exit code = weir_findings_count(findings, WEIR_SEVERITY_TICKET) > 0 ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
	if (json)
		doctor_json(&text, findings);
	else
		doctor_words(&text, findings, words_coloured(STDOUT_FILENO));
	if (weir_write_all(STDOUT_FILENO, text.at, text.length, &written) != 0) {
		perror("weir doctor: cannot write");
		code = WEIR_EXIT_FAILED;
	}
	weir_text_deinit(&text);
	return refused ? WEIR_EXIT_USAGE : code;
}

static enum weir_exit command_main(int argc, char **argv)
{
	struct doctor doctor = {0};
	struct weir_findings findings = {0};
	struct weir_log log = {.fd = STDERR_FILENO, .level = WEIR_LOG_ERROR};
	struct weir_error error;
	bool json = false;
	struct {
		struct doctor *doctor;
		bool *json;
	} into = {&doctor, &json};
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, &into);
	if (code == WEIR_EXIT_NOT_YET && !weir_config_find(&doctor.path))
		code = weir_arguments_refuse(&line, WEIR_CONFIG_MISSING);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (weir_config_load(doctor.path, &doctor.config, &error) != WEIR_OK) {
		struct mistakes mistakes = {&findings, doctor.path};
		weir_config_mistakes(doctor.path, NULL, &error, add_mistake, &mistakes);
		code = report(&findings, json, true);
		weir_findings_deinit(&findings);
		return code;
	}
	doctor.cluster = doctor.config->bus.type == WEIR_BUS_KAFKA;
	if (doctor.state == NULL && state_directory_default(doctor.state_usual, &error) == WEIR_OK)
		doctor.state = doctor.state_usual;
	if (!doctor.cluster && doctor.state != NULL && state_directory_is_closed(doctor.state)) {
		doctor.closed_state = doctor.state;
		doctor.state = NULL;
	}
	run_all(&doctor, &log, &findings);
	code = report(&findings, json, doctor.refused);
	_exit(code); /* threads of servers' libraries, and of what hangs, are left */
}

const struct command command_doctor = {&line, command_main};
