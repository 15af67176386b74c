/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `weir import`: the rules of another program as a configuration of weir's. One file, or a few, for each program; what
 * they find goes into a plan, which is written at the end, or not at all.
 */
#include "common/config/arguments.h"
#include "deploy/weir/command.h"
#include "deploy/weir/import/readers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum option { ALL, ENFORCE, JSON, TIME_ZONE, OPTION_COUNT };

static const struct weir_argument_option options_table[] = {
	[ALL] = {.name = "all", .type = WEIR_ARGUMENT_FLAG, .help = "fail2ban: also the jails that are not enabled"},
	[ENFORCE] = {.name = "enforce",
                 .type = WEIR_ARGUMENT_FLAG,
                 .help = "write zones that block (default: \"mode\": \"shadow\", which decides and blocks nobody)"},
	[JSON] = {.name = "json",
              .type = WEIR_ARGUMENT_FLAG,
              .help = "print one JSON object instead: counts, items with their notes, and the configuration"},
	[TIME_ZONE] = {.name = "time-zone",
                   .value = "NAME",
                   .type = WEIR_ARGUMENT_TEXT,
                   .help = "the zone of times that name none, such as Europe/Berlin (default UTC)"},
	[OPTION_COUNT] = {.name = NULL},
};

struct origin {
	const char *name;
	enum weir_status (*read)(struct plan *plan, const struct import_options *options, struct weir_error *error);
};

static const struct origin origins[] = {
	{"fail2ban", import_fail2ban},
	{"crowdsec", import_crowdsec},
	{"sigma", import_sigma},
	{NULL, NULL},
};

static const struct weir_argument_section sections[] = {
	{"Origins", "  fail2ban DIR    /etc/fail2ban, or a copy: jails with their filters\n"
                "  crowdsec PATH   a scenario's YAML, or a directory of them\n"
                "  sigma PATH      rules that count events, in a file or a directory\n"},
	{"What it says",
     "Everything that is read becomes a zone, or is named with the reason why not: on standard error, and in comments "
     "of the configuration. \"Differs\" is what a zone does in another way; a \"note\" only explains.\n"
     "\n"
     "The configuration goes to standard output. `weir validate` explains it. deploy/import.md has what becomes of "
     "each option."},
	{NULL, NULL},
};

static const struct weir_argument_exit exits[] = {
	{WEIR_EXIT_DONE, "all came over whole"},
	{WEIR_EXIT_FAILED, "written, but something differs or is left out; or it could not be read or written"},
	{WEIR_EXIT_USAGE, "the command line, or what is to be imported, is wrong: nothing is written"},
	{WEIR_EXIT_DONE, NULL},
};

static const struct weir_command_line line = {
	.name = "weir import",
	.summary = "make zones of another program's rules, with a note for what differs",
	.usage = "weir import fail2ban DIR [OPTION...]\n"
			 "weir import crowdsec PATH [OPTION...]\n"
			 "weir import sigma PATH [OPTION...]",
	.about = "Reads the rules of another program, and writes a configuration that blocks the same clients.",
	.operand = {.word = "ORIGIN PATH", .help = "the program, and its directory or file", .most = 2},
	.options = options_table,
	.sections = sections,
	.examples = "weir import fail2ban /etc/fail2ban > weir.json\n"
				"weir validate --config weir.json\n"
				"weir run --once --config weir.json --shadow -\n"
				"weir import crowdsec /etc/crowdsec/scenarios --json | jq .counts",
	.exits = exits,
};

struct import {
	const char *origin;
	struct import_options options;
	bool json;
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct import *import = context;
	switch (option) {
	case ALL: import->options.all = true; break;
	case ENFORCE: import->options.mode = "enforce"; break;
	case JSON: import->json = true; break;
	case TIME_ZONE: import->options.time_zone = value->text; break;
	default:
		if (import->origin == NULL)
			import->origin = value->text;
		else
			import->options.path = value->text;
	}
	return WEIR_EXIT_NOT_YET;
}

static bool print(const struct weir_text *text, FILE *out)
{
	return fwrite(text->at, 1, text->length, out) == text->length && fflush(out) == 0;
}

static enum weir_exit finish(const struct import *import, const struct plan *plan)
{
	struct weir_text out = {0}, summary = {0};
	if (import->json)
		plan_write_json(plan, &out);
	else
		plan_write_config(plan, &out);
	plan_write_summary(plan, &summary);
	enum weir_exit code = plan->refused != NULL ? WEIR_EXIT_FAILED : WEIR_EXIT_DONE;
	for (size_t i = 0; i < plan->item_count; i++)
		if (plan_result(&plan->items[i]) != PLAN_WHOLE)
			code = WEIR_EXIT_FAILED;
	if (!print(&out, stdout)) {
		fprintf(stderr, "weir import: cannot write the configuration: %s\n", weir_errno_words(errno));
		code = WEIR_EXIT_FAILED;
	} else if (!import->json) {
		(void)print(&summary, stderr);
	}
	weir_text_deinit(&out);
	weir_text_deinit(&summary);
	return code;
}

static enum weir_exit run(int argc, char **argv)
{
	struct import import = {.options.mode = "shadow"};
	enum weir_exit code = weir_arguments_read(&line, argc, argv, take_option, &import);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (import.origin == NULL)
		return weir_arguments_refuse(&line, "missing ORIGIN: fail2ban, crowdsec or sigma");
	const struct origin *origin = origins;
	while (origin->name != NULL && strcmp(origin->name, import.origin) != 0)
		origin++;
	if (origin->name == NULL)
		return weir_arguments_refuse(&line, "unknown origin \"%s\": fail2ban, crowdsec or sigma", import.origin);
	if (import.options.path == NULL)
		return weir_arguments_refuse(&line, "missing PATH: what of %s to import", import.origin);
	struct weir_error error;
	struct plan plan = {.origin = origin->name, .shadow = strcmp(import.options.mode, "shadow") == 0};
	enum weir_status status = origin->read(&plan, &import.options, &error);
	if (status == WEIR_OK) {
		plan_check(&plan);
		code = finish(&import, &plan);
	} else {
		fprintf(stderr, "weir import: %s\n", error.text);
		code = weir_exit_of(status);
	}
	plan_deinit(&plan);
	return code;
}

const struct command command_import = {.line = &line, .run = run};
