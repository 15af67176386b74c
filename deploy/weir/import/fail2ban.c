/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fail2ban: /etc/fail2ban as zones. A jail is a zone that counts by address: its filter is the source's format, maxretry
 * and findtime its limit, bantime its block.
 *
 * Fail2ban blocks with the maxretry-th failure, weir with the first that is more than the rate: so the rate is one less.
 */
#include "deploy/weir/import/fail2ban.h"

#include "common/base/alloc.h"
#include "common/json/units.h"
#include "deploy/weir/import/ini.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DAY_MS = 24 * 3600 * 1000, MAXRETRY_MAX = 1000000 };
static const int64_t longest_ms = INT64_C(366) * DAY_MS;

struct reader {
	struct plan *plan;
	const struct import_options *options;
	struct ini ini;
	struct jail *jails;
	size_t count;
	int64_t remembered_ms; /* how long fail2ban remembers blocks */
	/* of the jail that is read */
	const char *section;
	struct plan_item *item;
};

/* ---- files, in fail2ban's order ---- */

static int ends_with(const struct dirent *entry, const char *end)
{
	size_t length = strlen(entry->d_name), more = strlen(end);
	return entry->d_name[0] != '.' && length > more && strcmp(entry->d_name + length - more, end) == 0;
}

static int is_conf(const struct dirent *entry)
{
	return ends_with(entry, ".conf");
}

static int is_local(const struct dirent *entry)
{
	return ends_with(entry, ".local");
}

static enum weir_status read_folder(struct reader *reader, int (*wanted)(const struct dirent *), bool *any,
                                    struct weir_error *error)
{
	char *folder = plan_print(reader->plan, "%s/jail.d", reader->options->path);
	struct dirent **names = NULL;
	int count = scandir(folder, &names, wanted, alphasort);
	enum weir_status status = WEIR_OK;
	for (int i = 0; i < count; i++) {
		if (status == WEIR_OK)
			status = ini_read(&reader->ini, plan_print(reader->plan, "%s/%s", folder, names[i]->d_name), true, error);
		*any = true;
		free(names[i]);
	}
	free(names);
	return status;
}

static enum weir_status read_one(struct reader *reader, const char *name, bool *any, struct weir_error *error)
{
	char *path = plan_print(reader->plan, "%s/%s", reader->options->path, name);
	*any |= access(path, F_OK) == 0;
	return ini_read(&reader->ini, path, false, error);
}

static enum weir_status read_files(struct reader *reader, struct weir_error *error)
{
	bool any = false;
	enum weir_status status = read_one(reader, "jail.conf", &any, error);
	if (status == WEIR_OK)
		status = read_folder(reader, is_conf, &any, error);
	if (status == WEIR_OK)
		status = read_one(reader, "jail.local", &any, error);
	if (status == WEIR_OK)
		status = read_folder(reader, is_local, &any, error);
	if (status == WEIR_OK && !any)
		return weir_fail(
			error, WEIR_INVALID,
			"%s: has neither jail.conf nor jail.local nor jail.d/*.conf: name fail2ban's directory, such as "
			"/etc/fail2ban",
			reader->options->path);
	return status;
}

/* fail2ban.conf says how long blocks are remembered. */
static void read_memory(struct reader *reader)
{
	struct ini ini = {.plan = reader->plan};
	struct weir_error error;
	reader->remembered_ms = DAY_MS;
	const char *value = NULL;
	if (ini_read(&ini, plan_print(reader->plan, "%s/fail2ban.conf", reader->options->path), false, &error) == WEIR_OK &&
	    ini_read(&ini, plan_print(reader->plan, "%s/fail2ban.local", reader->options->path), false, &error) ==
	        WEIR_OK &&
	    ini_value(&ini, "Definition", "dbpurgeage", &value, &error) == WEIR_OK && value != NULL)
		(void)fail2ban_duration(value, &reader->remembered_ms);
	ini_deinit(&ini);
}

/* ---- options of a jail ---- */

/* NULL: it is not there, or cannot be read, which is noted. */
static const char *option(struct reader *reader, const char *name)
{
	struct weir_error error;
	const char *value = NULL;
	if (ini_value(&reader->ini, reader->section, name, &value, &error) != WEIR_OK) {
		plan_loss(reader->plan, reader->item, "%s is left out: %s", name, error.text);
		return NULL;
	}
	return value;
}

/* Only what the jail itself says, not [DEFAULT]: fail2ban's filters have these. */
static const char *own(struct reader *reader, const char *name)
{
	const char *value = option(reader, name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_true(const char *value)
{
	return value != NULL && (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0 ||
	                         strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0);
}

static int64_t duration(struct reader *reader, const char *name, int64_t usual_ms)
{
	const char *value = own(reader, name);
	int64_t duration_ms = usual_ms;
	if (value != NULL && !fail2ban_duration(value, &duration_ms)) {
		char usual[24];
		plan_loss(reader->plan, reader->item, "%s = %.60s is no time such as 10m; taken as %s", name, value,
		          weir_format_duration(usual_ms, usual, sizeof usual));
		duration_ms = usual_ms;
	}
	return duration_ms;
}

static void read_limit(struct reader *reader, struct jail *jail)
{
	const char *value = own(reader, "maxretry");
	long most = value != NULL ? strtol(value, NULL, 10) : 5;
	if (most <= 1) {
		plan_loss(reader->plan, reader->item,
		          "maxretry = %.20s blocks with the first failure; a limit of weir's lets one pass, so the zone blocks "
		          "with the second",
		          value);
		most = 2;
	}
	if (most > MAXRETRY_MAX) {
		plan_loss(reader->plan, reader->item, "maxretry = %.20s is taken as %d", value, MAXRETRY_MAX);
		most = MAXRETRY_MAX;
	}
	jail->rate = (uint64_t)most - 1;
	jail->window_ms = duration(reader, "findtime", 600000);
	if (jail->window_ms <= 0 || jail->window_ms > longest_ms) {
		plan_loss(reader->plan, reader->item, "findtime is out of range: taken as 366 days");
		jail->window_ms = longest_ms;
	}
}

/* Blocks that become longer: each is the first one times a factor. */
static void read_increment(struct reader *reader, struct jail *jail)
{
	if (!is_true(own(reader, "bantime.increment")))
		return;
	const char *factor_text = own(reader, "bantime.factor"), *list = own(reader, "bantime.multipliers");
	double factor = factor_text != NULL ? strtod(factor_text, NULL) : 1;
	if (!(factor > 0 && factor < (double)longest_ms)) {
		plan_loss(reader->plan, reader->item, "bantime.factor = %.20s is taken as 1", factor_text);
		factor = 1;
	}
	int64_t most_ms = duration(reader, "bantime.maxtime", longest_ms);
	if (own(reader, "bantime.formula") != NULL && list == NULL)
		plan_loss(reader->plan, reader->item,
		          "bantime.formula is left out: each block lasts twice as long as the last");
	if (own(reader, "bantime.rndtime") != NULL)
		plan_loss(reader->plan, reader->item, "bantime.rndtime is left out: blocks last as long as they should");
	if (is_true(own(reader, "bantime.overalljails")))
		plan_loss(reader->plan, reader->item, "bantime.overalljails is left out: each zone counts its own blocks");
	double base = (double)jail->blocks_ms[0];
	while (jail->block_count < JAIL_BLOCKS_MAX) {
		double times = (double)(1 << jail->block_count) * factor;
		if (list != NULL) {
			char *end;
			if (jail->block_count == 1)
				(void)strtod(list, &end), list = end; /* the first block is the first one's */
			times = strtod(list, &end) * factor;
			if (end == list)
				break;
			list = end;
		}
		double next = base * times;
		int64_t before = jail->blocks_ms[jail->block_count - 1];
		int64_t next_ms = !(next >= (double)before) ? before : next > (double)most_ms ? most_ms : (int64_t)next;
		if (next_ms < before)
			next_ms = before;
		jail->blocks_ms[jail->block_count++] = next_ms;
		if (next_ms == most_ms)
			break;
	}
	jail->forgive_ms = reader->remembered_ms;
}

static void read_blocks(struct reader *reader, struct jail *jail)
{
	int64_t first_ms = duration(reader, "bantime", 600000);
	jail->block_count = 1;
	if (first_ms < 0 || first_ms > longest_ms) {
		plan_loss(reader->plan, reader->item, "%s: the longest block of weir is 366 days; `weir block` has no end",
		          first_ms < 0 ? "bantime is for ever" : "bantime is too long");
		first_ms = longest_ms;
	}
	jail->blocks_ms[0] = first_ms < 1000 ? 1000 : first_ms;
	read_increment(reader, jail);
	if (jail->blocks_ms[0] < jail->window_ms)
		plan_loss(
			reader->plan, reader->item,
			"bantime is shorter than findtime: fail2ban forgets failures with a block, weir blocks until the limit "
			"would pass again");
}

static void read_exempt(struct reader *reader, struct jail *jail)
{
	const char *self = own(reader, "ignoreself"), *list = own(reader, "ignoreip");
	if (self == NULL || is_true(self)) {
		fail2ban_exempt("127.0.0.0/8", &jail->exempt);
		fail2ban_exempt("::1", &jail->exempt);
		plan_remark(reader->plan, "ignoreself: name this machine's own addresses in \"exempt\"; loopback is there");
	}
	if (list != NULL) {
		char *copy = plan_keep(reader->plan, list, strlen(list)), *rest = NULL;
		for (char *entry = strtok_r(copy, " ,\n\t", &rest); entry != NULL; entry = strtok_r(NULL, " ,\n\t", &rest))
			if (strcmp(entry, "127.0.0.1/8") != 0 && strcmp(entry, "::1") != 0 &&
			    !fail2ban_exempt(entry, &jail->exempt))
				plan_loss(reader->plan, reader->item, "ignoreip: %.80s is no address or network, and weir asks no DNS",
				          entry);
			else if ((strcmp(entry, "127.0.0.1/8") == 0 || strcmp(entry, "::1") == 0) && self != NULL && !is_true(self))
				fail2ban_exempt(entry, &jail->exempt);
	}
	const char *command = own(reader, "ignorecommand");
	if (command != NULL)
		plan_loss(reader->plan, reader->item, "ignorecommand is left out: %.80s", command);
}

/* Lines hours away from the clock block nobody. */
static void read_zone(struct reader *reader, const char *zone)
{
	const char *given = reader->options->time_zone;
	if (given != NULL)
		plan_explain(reader->plan, reader->item, "logtimezone = %.30s: --time-zone %.60s stands for it", zone, given);
	else if (strcasecmp(zone, "UTC") != 0 && strcasecmp(zone, "GMT") != 0 && strcasecmp(zone, "Z") != 0)
		plan_loss(reader->plan, reader->item,
		          "logtimezone = %.30s: its times are read as UTC, which blocks nobody or too long; give the zone with "
		          "--time-zone",
		          zone);
}

/* Options that say how fail2ban works, not whom it blocks: actions are gateways' affair here. */
static void read_rest(struct reader *reader)
{
	static const char *const differs[] = {"ignorecache", NULL};
	const char *encoding = own(reader, "logencoding"), *zone = own(reader, "logtimezone");
	if (encoding != NULL && strcasecmp(encoding, "auto") != 0 && strncasecmp(encoding, "utf", 3) != 0 &&
	    strcasecmp(encoding, "ascii") != 0)
		plan_explain(reader->plan, reader->item, "logencoding = %.30s: weir matches bytes", encoding);
	if (zone != NULL)
		read_zone(reader, zone);
	const char *dns = own(reader, "usedns");
	if (dns != NULL && strcasecmp(dns, "no") != 0)
		plan_remark(reader->plan,
		            "usedns: a client that a line names by its host name is not counted, as weir asks no DNS");
	for (const char *const *name = differs; *name != NULL; name++)
		if (own(reader, *name) != NULL)
			plan_explain(reader->plan, reader->item, "%s has no counterpart, and needs none", *name);
	const struct ini_option *action = ini_option(&reader->ini, reader->section, "action");
	const struct ini_section *section = ini_section(&reader->ini, reader->section);
	for (size_t i = 0; i < section->option_count; i++)
		if (action == &section->options[i])
			plan_loss(reader->plan, reader->item,
			          "action is left out: zones only decide. A gateway blocks, and \"webhook:\" tells others: %.60s",
			          action->value);
	plan_remark(reader->plan, "actions, banaction, port: zones only decide. `weir setup nft` makes nft block their "
	                          "addresses, on all ports");
}

/* ---- where its lines come from ---- */

static void read_paths(struct reader *reader, struct jail *jail)
{
	const char *backend = own(reader, "backend"), *list = own(reader, "logpath");
	jail->journal = backend != NULL && strncmp(backend, "systemd", 7) == 0;
	if (jail->journal || list == NULL)
		return;
	char *copy = plan_keep(reader->plan, list, strlen(list)), *rest = NULL;
	for (char *path = strtok_r(copy, "\n", &rest); path != NULL; path = strtok_r(NULL, "\n", &rest)) {
		char *tail = strstr(path, " tail"), *head = strstr(path, " head");
		if (tail != NULL && tail[5] == '\0') {
			jail->tail = true;
			*tail = '\0';
		} else if (head != NULL && head[5] == '\0') {
			*head = '\0';
		}
		if (jail->path_count == JAIL_PATHS_MAX) {
			plan_loss(reader->plan, reader->item, "logpath has more than %d files; the others are left out",
			          JAIL_PATHS_MAX);
			return;
		}
		jail->paths[jail->path_count++] = path;
	}
}

static enum weir_status read_filter(struct reader *reader, struct jail *jail, struct weir_error *error)
{
	const char *spec = own(reader, "filter");
	struct filter_request request = {
		.plan = reader->plan,
		.item = reader->item,
		.folder = reader->options->path,
		.spec = spec != NULL ? spec : "",
		.failregex = own(reader, "failregex"),
		.ignoreregex = own(reader, "ignoreregex"),
		.prefregex = own(reader, "prefregex"),
		.datepattern = own(reader, "datepattern"),
		.journalmatch = own(reader, "journalmatch"),
		.journal = jail->journal,
		.number = (unsigned)reader->count,
	};
	enum weir_status status = filter_read(&request, &jail->filter, error);
	jail->native = native_of(&jail->filter);
	jail->recidive = !jail->filter.changed && strcmp(jail->filter.name, "recidive") == 0;
	if (status == WEIR_OK && !jail->filter.changed && native_is_edited(&jail->filter))
		plan_explain(reader->plan, reader->item,
		             "filter.d/%s.conf is as no fail2ban has it that weir knows (0x%016" PRIx64
		             "): its own expressions are taken",
		             jail->filter.name, jail->filter.fingerprint);
	return status;
}

static enum weir_status read_jail(struct reader *reader, const struct ini_section *section, struct weir_error *error)
{
	reader->section = section->name;
	reader->item = plan_item(reader->plan, section->name, section->file, section->line);
	reader->jails = weir_realloc(reader->jails, reader->count + 1, sizeof *reader->jails);
	struct jail *jail = &reader->jails[reader->count];
	*jail = (struct jail){.item = reader->plan->item_count - 1};
	jail->name = plan_zone_name(reader->plan, section->name);
	read_limit(reader, jail);
	read_blocks(reader, jail);
	read_exempt(reader, jail);
	read_paths(reader, jail);
	read_rest(reader);
	enum weir_status status = read_filter(reader, jail, error);
	reader->count++;
	return status;
}

/* One whose option cannot be read is an item that says so: fail2ban does not start with it. */
static bool is_enabled(struct reader *reader, const struct ini_section *section)
{
	struct weir_error error;
	const char *value = NULL;
	if (ini_value(&reader->ini, section->name, "enabled", &value, &error) == WEIR_OK) {
		reader->plan->not_enabled += !is_true(value);
		return is_true(value);
	}
	struct plan_item *item = plan_item(reader->plan, section->name, section->file, section->line);
	plan_loss(reader->plan, item, "enabled cannot be read: %s", error.text);
	return false;
}

static enum weir_status read_jails(struct reader *reader, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	for (size_t i = 0; i < reader->ini.section_count && status == WEIR_OK; i++) {
		const struct ini_section *section = &reader->ini.sections[i];
		if (strcmp(section->name, "DEFAULT") == 0 || strcmp(section->name, "INCLUDES") == 0 ||
		    strcmp(section->name, "Init") == 0)
			continue;
		if (plan_is_full(reader->plan))
			status = weir_fail(error, WEIR_INVALID, "%s: the configuration is larger than an import takes",
			                   reader->options->path);
		else if (reader->options->all || is_enabled(reader, section))
			status = read_jail(reader, section, error);
	}
	return status;
}

enum weir_status import_fail2ban(struct plan *plan, const struct import_options *options, struct weir_error *error)
{
	struct reader reader = {.plan = plan, .options = options, .ini = {.plan = plan}};
	plan->aside = "jails that are not enabled (--all takes them, too)";
	enum weir_status status = read_files(&reader, error);
	if (status == WEIR_OK) {
		read_memory(&reader);
		status = read_jails(&reader, error);
	}
	if (status == WEIR_OK)
		fail2ban_write(plan, options, reader.jails, reader.count);
	for (size_t i = 0; i < reader.count; i++)
		weir_text_deinit(&reader.jails[i].exempt);
	free(reader.jails);
	ini_deinit(&reader.ini);
	return status;
}
