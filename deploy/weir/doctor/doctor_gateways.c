/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which gateways there are: those of the configuration, those of the service weir-subscribe@NAME beside it, and that of
 * the command line. What can be read back is held against the decisions; of the others only the address is asked.
 */
#include "deploy/weir/doctor/gateways.h"

#include "common/base/alloc.h"
#include "common/base/read_file.h"
#include "deploy/gateways/gateway/gateway_settings.h"
#include "deploy/weir/doctor/environment_file.h"
#include "deploy/weir/setup/nft_rules.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GATEWAYS_MOST = 64, ENV_MOST_BYTES = 64 << 10 };

static const char gateways_check[] = "gateways";

/* ---- which there are ---- */

static void deinit_gateway(struct doctor_gateway *gateway)
{
	struct weir_error ignored;
	if (gateway->target != NULL)
		(void)!gateway->target->ops->close(gateway->target, &ignored);
	list_words_deinit(&gateway->before);
	list_words_deinit(&gateway->now);
	list_words_deinit(&gateway->list);
	free(gateway->to);
	free(gateway->name);
	free(gateway->options);
	*gateway = (struct doctor_gateway){0};
}

/* To be followed by settle(), once its map is known: until then there is room for one more. */
static struct doctor_gateway *add(struct doctor_gateways *gateways, const char *to)
{
	struct doctor_gateway *gateway = &gateways->at[gateways->count++];
	gateway->to = weir_copy(to, strlen(to));
	gateway->settings = (struct gateway_settings){.to = gateway->to, .max = BLOCK_TABLE_MAX_DEFAULT};
	gateway->settings.zones = gateway->zones;
	return gateway;
}

/*
 * Drops the last one where it is there already, or is more than `most`. One target may have several maps, which are told
 * apart.
 */
static void settle(struct doctor_gateways *gateways, size_t most)
{
	struct doctor_gateway *last = &gateways->at[gateways->count - 1];
	for (size_t i = 0; i + 1 < gateways->count; i++)
		if (gateway_keeps(&gateways->at[i].settings, last->to, last->settings.map)) {
			deinit_gateway(last);
			gateways->count--;
			return;
		}
	if (gateways->count > most) {
		deinit_gateway(last);
		gateways->count--;
		gateways->left_out++;
		return;
	}
	for (size_t i = 0; i + 1 < gateways->count; i++)
		if (strcmp(gateways->at[i].to, last->to) == 0)
			gateways->at[i].settings.one_of_several = last->settings.one_of_several = true;
}

/* The value of an option, as "--NAME VALUE" or "--NAME=VALUE"; NULL: the word is none of it. */
static const char *value_of(const char *option, const char *before, const char *word)
{
	size_t length = strlen(option);
	if (before != NULL && strcmp(before, option) == 0)
		return word;
	return strncmp(word, option, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

/* Of the service's OPTIONS those that say what is in the list. */
static void take_options(struct doctor_gateway *gateway, struct weir_span text)
{
	gateway->options = environment_file_value(text, "OPTIONS");
	char *rest = gateway->options, *before = NULL, *word;
	while (rest != NULL && (word = environment_file_word(&rest)) != NULL) {
		const char *zone = value_of("--zone", before, word), *map = value_of("--map", before, word);
		if (zone != NULL && gateway->settings.zone_count < DOCTOR_ZONES_MOST)
			gateway->zones[gateway->settings.zone_count++] = zone;
		if (map != NULL)
			gateway->settings.map = map;
		before = word;
	}
}

/* "…/subscribe-NAME.target", and NAME's options. */
static void add_service(const struct weir_check *check, struct doctor_gateways *gateways, const char *path)
{
	struct weir_error error;
	char *to = NULL, *text, env[WEIR_PATH_BYTES];
	size_t length;
	if (weir_read_first_line(path, &to, &error) != WEIR_OK) {
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, gateways_check,
		                  "%s\nWhether its list blocks whom it should is not known\nrun the command with more rights: "
		                  "sudo weir doctor %s (runbook: gateway-not-blocking)",
		                  error.text, check->config_words);
		return;
	}
	struct doctor_gateway *gateway = to[0] != '\0' ? add(gateways, to) : NULL;
	free(to);
	if (gateway == NULL) /* no subscriber starts with it */
		return;
	if (weir_path_format(env, &error, "%.*s.env", (int)(strlen(path) - strlen(".target")), path) == WEIR_OK &&
	    weir_read_file(env, ENV_MOST_BYTES, &text, &length, &error) == WEIR_OK) {
		take_options(gateway, (struct weir_span){text, (uint32_t)length});
		free(text);
	}
	settle(gateways, GATEWAYS_MOST);
}

static void add_services(struct doctor *doctor, const struct weir_check *check, struct doctor_gateways *gateways)
{
	char directory[WEIR_PATH_BYTES], pattern[WEIR_PATH_BYTES];
	struct weir_error error;
	glob_t found = {0};
	if (weir_directory_of(doctor->path, directory, &error) != WEIR_OK ||
	    weir_path_format(pattern, &error, "%s/subscribe-*.target", directory) != WEIR_OK)
		return;
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++)
			add_service(check, gateways, found.gl_pathv[i]);
	globfree(&found);
}

/* That of the command line, with its zones; without one the zones are those of redis.url. */
static void add_asked(struct doctor *doctor, const struct weir_check *check, struct doctor_gateways *gateways)
{
	struct weir_error error;
	char *line = NULL;
	const char *to = doctor->to;
	enum weir_status status = WEIR_OK;
	if (to == NULL && doctor->to_file != NULL)
		status = weir_read_first_line(doctor->to_file, &line, &error);
	else if (to == NULL && doctor->config->redis.url.value != NULL)
		status = weir_json_secret(&doctor->config->redis.url, &line, &error);
	if (status != WEIR_OK)
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, gateways_check,
		                  "%s\nWhether its list blocks whom it should is not known\nmend it, or run the command with "
		                  "more rights (runbook: gateway-not-blocking)",
		                  error.text);
	to = to != NULL ? to : line;
	struct doctor_gateway *gateway = status == WEIR_OK && to != NULL ? add(gateways, to) : NULL;
	if (gateway != NULL) {
		memcpy(gateway->zones, doctor->zones, sizeof gateway->zones);
		gateway->settings.zone_count = doctor->zone_count;
		gateway->settings.map = doctor->map;
		gateway->possible = doctor->to == NULL && doctor->to_file == NULL;
		settle(gateways, GATEWAYS_MOST + 1); /* however many others there are */
	}
	free(line);
}

static void free_all(struct doctor_gateways *gateways)
{
	for (size_t i = 0; i < gateways->count; i++)
		deinit_gateway(&gateways->at[i]);
	free(gateways->at);
}

/* ---- what only has an address ---- */

struct reaching {
	const struct weir_check *check;
	const char *name;
};

static void reach(void *context, const char *host, unsigned port)
{
	const struct reaching *reaching = context;
	const char *reason = doctor_reach(host, port);
	if (reason != NULL)
		weir_findings_add(
			reaching->check->findings, WEIR_SEVERITY_TICKET, gateways_check,
			"gateway %s cannot be reached: %s\nIt does not hear of new blocks\nstart it, or name the address that "
			"answers; what it missed is sent again (runbook: gateway-not-blocking)",
			reaching->name, reason);
	else
		weir_findings_good(reaching->check->findings,
		                   "gateways: %s answers; whom it blocks is not asked, as its list cannot be read back",
		                   reaching->name);
}

static void reach_webhook(const struct weir_check *check, const struct doctor_gateway *gateway)
{
	struct reaching reaching = {check, gateway->name};
	const char *at = strstr(gateway->to, "://");
	char place[300];
	if (at == NULL) {
		weir_findings_good(check->findings, "gateways: whom %s blocks is not asked, as its list cannot be read back",
		                   gateway->name);
		return;
	}
	bool secure = at - gateway->to >= 5 && memcmp(at - 5, "https", 5) == 0;
	snprintf(place, sizeof place, "%s", at + 3);
	place[strcspn(place, "/?#")] = '\0';
	char *host = strrchr(place, '@');
	host = host != NULL ? host + 1 : place;
	if (strrchr(host, ':') == NULL || host[strlen(host) - 1] == ']')
		snprintf(host + strlen(host), sizeof place - (size_t)(host - place) - strlen(host), secure ? ":443" : ":80");
	doctor_each_address(host, reach, &reaching);
}

/* Zones that stand in the cluster's policy alone are not looked at. */
static void check_misses(const struct doctor *doctor, const struct weir_check *check,
                         const struct doctor_gateway *gateway)
{
	const struct weir_policy *policy = doctor->config->policy;
	for (uint32_t i = 0; policy != NULL && i < policy->zone_count; i++) {
		struct weir_text words = {0};
		if (gateway_misses(&gateway->settings, &policy->zones[i], &words))
			weir_findings_add(
				check->findings, WEIR_SEVERITY_TICKET, gateways_check,
				"%.*s\nClients that are blocked get in there\nweir setup nginx writes what nginx needs for "
				"nginx-geo (runbook: gateway-not-blocking)",
				(int)words.length, words.at);
		weir_text_deinit(&words);
	}
}

static void check_nft(const struct weir_check *check, const struct doctor_gateway *gateway)
{
	const struct nft_rules_faults faults = nft_rules_find_faults();
	if (faults.drop_loopback)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_NOTE, gateways_check,
			"the rules of `weir setup nft` do not spare loopback: gateway %s drops what this machine says "
			"to itself once it holds one of its own addresses\n"
			"A block of 127.0.0.1 or ::1 cuts off databases and name servers here\n"
			"weir setup nft --apply --reload, with the --port and --zone of the first time (runbook: "
			"gateway-not-blocking)",
			gateway->name);
	if (faults.pass_udp)
		weir_findings_add(check->findings, WEIR_SEVERITY_NOTE, gateways_check,
		                  "the rules of `weir setup nft` for gateway %s drop only TCP\n"
		                  "Where the site speaks HTTP/3 (UDP), clients that are blocked get in\n"
		                  "weir setup nft --apply --reload, with the --port and --zone of the first time (runbook: "
		                  "gateway-not-blocking)",
		                  gateway->name);
}

/* ---- */

static void tell_left_out(const struct weir_check *check, size_t count)
{
	if (count > 0)
		weir_findings_add(check->findings, WEIR_SEVERITY_NOTE, gateways_check,
		                  "%zu more gateways were not looked at, as there are more than %d\nWhether their lists block "
		                  "whom they should is not known\nname one at a time with --to (runbook: gateway-not-blocking)",
		                  count, GATEWAYS_MOST);
}

/* Its target, where it can be read back. */
static bool open_target(const struct doctor *doctor, const struct weir_check *check, struct doctor_gateway *gateway)
{
	struct weir_error error;
	if (gateway_open(&gateway->settings, (uint32_t)doctor->config->bus.partitions, check->log, NULL, &gateway->target,
	                 &error) == WEIR_OK)
		return gateway->target->ops->read != NULL;
	weir_findings_add(check->findings, WEIR_SEVERITY_PAGE, gateways_check,
	                  "gateway %s: %s\nNo subscriber of it starts\nmend the target (runbook: gateway-not-blocking)",
	                  gateway->name, error.text);
	return false;
}

void doctor_check_gateways(struct doctor *doctor, const struct weir_check *check)
{
	struct gateway_list list = {0};
	struct doctor_gateways gateways = {.at = weir_alloc(GATEWAYS_MOST + 2, sizeof *gateways.at)};
	struct weir_error error;
	if (gateway_list_read(doctor->config, &list, &error) == WEIR_OK)
		for (size_t i = 0; i < list.count; i++) {
			add(&gateways, list.at[i].to)->settings = list.at[i];
			settle(&gateways, GATEWAYS_MOST);
		}
	add_services(doctor, check, &gateways);
	add_asked(doctor, check, &gateways);
	tell_left_out(check, gateways.left_out);
	for (size_t i = 0; i < gateways.count; i++)
		gateways.at[i].name = gateway_settings_name(&gateways.at[i].settings);
	for (size_t i = 0; i < gateways.count; i++)
		if (!open_target(doctor, check, &gateways.at[i]) && gateways.at[i].target != NULL)
			reach_webhook(check, &gateways.at[i]);
	doctor_compare_lists(doctor, check, &gateways);
	for (size_t i = 0; i < gateways.count; i++) {
		const char *to = gateways.at[i].settings.to;
		check_misses(doctor, check, &gateways.at[i]);
		if (gateways.at[i].read && strncmp(to, "nginx-", strlen("nginx-")) == 0)
			doctor_check_nginx(check, &gateways.at[i], to + strlen("nginx-map:"));
		if (strncmp(to, "nft:inet/weir/blocked4", strlen("nft:inet/weir/blocked4")) == 0)
			check_nft(check, &gateways.at[i]);
		if (strncmp(to, "haproxy:", strlen("haproxy:")) == 0)
			doctor_check_haproxy(check, &gateways.at[i]);
	}
	gateway_list_deinit(&list);
	free_all(&gateways);
}
