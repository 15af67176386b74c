/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unit weir-subscribe@NAME reads its target and its options from two files. It may not reload a gateway, and it writes
 * in two folders alone.
 */
#include "deploy/weir/setup/setup_subscriber.h"

#include "common/base/shell.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNITS_CONFIG "/etc/weir/weir.json"

static void put_option(struct weir_text *text, const char *name, const char *value)
{
	weir_text_printf(text, "%s%s ", text->length > 0 ? " " : "", name);
	weir_shell_append(text, value);
}

/* What says which blocks, and what they are called there; terminated. */
static struct weir_text options_of(const struct setup_plan *plan, const char *const *zones, size_t zone_count)
{
	struct weir_text text = {0};
	for (size_t i = 0; i < zone_count; i++)
		put_option(&text, "--zone", zones[i]);
	if (plan->map[0] != '\0')
		put_option(&text, "--map", plan->map);
	weir_text_append(&text, "", 1);
	return text;
}

static void note_command(struct setup_plan *plan, const char *config_path, const char *options)
{
	struct weir_text line = {0};
	put_option(&line, "weir subscribe --config", config_path);
	put_option(&line, "--to", plan->to);
	if (options[0] != '\0')
		weir_text_printf(&line, " %s", options);
	if (plan->reload[0] != '\0')
		put_option(&line, "--reload", plan->reload);
	weir_text_append(&line, "\n", sizeof "\n");
	weir_text_puts(&plan->notes, line.at);
	weir_text_deinit(&line);
}

/* Whether the unit may write the list where it lies. */
static bool unit_may_write(const struct setup_plan *plan)
{
	static const char common[] = "/var/lib/weir/gateways/";
	char own[WEIR_PATH_BYTES];
	snprintf(own, sizeof own, "/var/lib/weir/subscribe-%s/", plan->kind);
	return strstr(plan->to, plan->list) == NULL || strncmp(plan->list, common, strlen(common)) == 0 ||
	       strncmp(plan->list, own, strlen(own)) == 0;
}

static void note_unit(struct setup_plan *plan, const char *options)
{
	struct weir_text *notes = &plan->notes;
	struct weir_text words = {0};
	weir_text_printf(&words, "OPTIONS=%s", options);
	weir_text_append(&words, "", 1);
	weir_text_printf(notes,
	                 "In a cluster weir-subscribe@%s keeps this list. Type as root, once all below is done:\n  echo ",
	                 plan->kind);
	weir_shell_append(notes, plan->to);
	weir_text_printf(notes, " >/etc/weir/subscribe-%s.target\n  echo ", plan->kind);
	weir_shell_append(notes, words.at);
	weir_text_printf(notes, " >/etc/weir/subscribe-%s.env\n", plan->kind);
	if (!unit_may_write(plan))
		weir_text_printf(notes,
		                 "  systemctl edit weir-subscribe@%s    # [Service] ReadWritePaths= with the folder of %s, "
		                 "which user weir must own\n",
		                 plan->kind, plan->list);
	weir_text_printf(notes,
	                 "  systemctl enable weir-subscribe@%s && systemctl restart weir-subscribe@%s\n"
	                 "Without systemd, start here: ",
	                 plan->kind, plan->kind);
	weir_text_deinit(&words);
}

void setup_note_subscriber(struct setup_plan *plan, const char *config_path, const char *const *zones,
                           size_t zone_count)
{
	char path[PATH_MAX];
	if (plan->remove) {
		weir_text_printf(&plan->notes,
		                 "In a cluster end the subscriber that keeps this list, too: systemctl disable --now "
		                 "weir-subscribe@%s, and remove /etc/weir/subscribe-%s.*\n",
		                 plan->kind, plan->kind);
		return;
	}
	if (config_path[0] == '/' || realpath(config_path, path) == NULL)
		snprintf(path, sizeof path, "%s", config_path);
	struct weir_text options = options_of(plan, zones, zone_count);
	bool unit = access("/run/systemd/system", F_OK) == 0 && strcmp(path, UNITS_CONFIG) == 0 && !plan->file_given;
	if (unit && plan->reload[0] == '\0')
		note_unit(plan, options.at);
	else
		weir_text_puts(&plan->notes, "In a cluster, start here: ");
	note_command(plan, path, options.at);
	weir_text_deinit(&options);
}
