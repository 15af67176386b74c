/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nftables: a table of weir's own, whose chain looks before all others do, in a file that the machine's rules include.
 * Loaded by itself it touches no other table, and it keeps what its sets hold.
 *
 * Logs name the machine's own addresses too, behind a proxy that runs here or of a monitor, and a zone counts them as any.
 * What it says to itself is spared: else one such block would cut off its databases and its name server.
 */
#include "deploy/weir/setup/nft_rules.h"
#include "deploy/weir/setup/setup_plan.h"

#include <string.h>
#include <unistd.h>

#define SPARES_LOOPBACK "        iif \"lo\" accept\n"
#define OF_TCP "        tcp dport "
#define OF_BOTH "        meta l4proto { tcp, udp } th dport "

static const char head[] = "# Drops the packets of whoever weir blocks: `weir setup nft` made this.\n"
						   "table inet weir {\n"
						   "    set blocked4 {\n"
						   "        type ipv4_addr\n"
						   "        flags interval, timeout\n"
						   "    }\n"
						   "    set blocked6 {\n"
						   "        type ipv6_addr\n"
						   "        flags interval, timeout\n"
						   "    }\n"
						   "    chain early {\n"
						   "        type filter hook prerouting priority raw; policy accept;\n"
						   "    }\n"
						   "}\n"
						   "flush chain inet weir early\n"
						   "table inet weir {\n"
						   "    chain early {\n" SPARES_LOOPBACK;

struct nft_rules_faults nft_rules_find_faults(void)
{
	static const char *const places[] = {"/etc/nftables-weir.conf", "/etc/sysconfig/nftables-weir.conf"};
	struct nft_rules_faults found = {0};
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct setup_files files = {0};
		struct setup_file *file;
		struct weir_error ignored;
		if (setup_files_read(&files, places[i], &file, &ignored) == WEIR_OK && file->before != NULL &&
		    setup_file_is_own(file, head)) {
			found.drop_loopback |= strstr(file->before, SPARES_LOOPBACK) == NULL;
			found.pass_udp |= strstr(file->before, OF_TCP) != NULL;
		}
		setup_files_deinit(&files);
	}
	return found;
}

/* A site that speaks HTTP/3 takes it at the same port, by UDP. */
static void put_rules(struct weir_text *text, const struct setup_plan *plan)
{
	weir_text_puts(text, head);
	for (int v6 = 0; v6 <= 1; v6++) {
		if (plan->port_count == 0)
			weir_text_puts(text, "       ");
		for (size_t i = 0; i < plan->port_count; i++)
			weir_text_printf(text, "%s%u", i == 0 ? OF_BOTH "{ " : ", ", plan->ports[i]);
		weir_text_printf(text, "%s %s saddr @blocked%d drop\n", plan->port_count > 0 ? " }" : "", v6 ? "ip6" : "ip",
		                 v6 ? 6 : 4);
	}
	weir_text_append(text, "    }\n}\n", sizeof "    }\n}\n");
}

/* Behind the last line: what the machine's rules flush before is made again. */
static void include(struct setup_plan *plan, struct setup_file *file)
{
	char line[WEIR_PATH_BYTES + 32], mark[WEIR_PATH_BYTES + 16];
	snprintf(mark, sizeof mark, "include \"%s\"", plan->own);
	setup_file_strip(file, SETUP_LINE_BEGINS, mark);
	if (plan->remove)
		return;
	size_t end = file->after.length;
	snprintf(line, sizeof line, "\n%s", mark);
	setup_file_insert(file, end > 0 && file->after.at[end - 1] == '\n' ? end - 1 : end, line);
}

/*
 * A service has no right to change rules before a gateway asks for it. It loads the table before it starts, as on many
 * machines nothing loads the machine's rules. It is one of these, as the list is kept on one machine or in a cluster.
 */
static const char *const services[] = {"weir.service", "weir-subscribe@nft.service"};

static enum weir_status grant_one(struct setup_plan *plan, const char *service, bool gone, struct weir_error *error)
{
	char lines[2 * WEIR_PATH_BYTES], path[WEIR_PATH_BYTES];
	struct setup_file *file;
	bool own;
	snprintf(path, sizeof path, "/etc/systemd/system/%s.d/nft.conf", service);
	snprintf(lines, sizeof lines,
	         "# %s keeps a list of nftables: `weir setup nft` made this.\n"
	         "[Service]\n"
	         "ExecStartPre=-+nft -f %s\n"
	         "RestrictAddressFamilies=AF_NETLINK\n"
	         "CapabilityBoundingSet=CAP_NET_ADMIN\n"
	         "AmbientCapabilities=CAP_NET_ADMIN\n",
	         service, plan->own);
	enum weir_status status = setup_files_own(&plan->files, path, lines, gone, &own, error);
	if (status == WEIR_OK)
		status = setup_files_read(&plan->files, path, &file, error);
	if (status == WEIR_OK && (!gone || (plan->remove && setup_file_changes(file))))
		plan->right = file;
	return status;
}

static enum weir_status grant(struct setup_plan *plan, struct weir_error *error)
{
	enum weir_status status = WEIR_OK;
	if (plan->file_given || access("/run/systemd/system", F_OK) != 0)
		return WEIR_OK;
	for (size_t i = 0; i < sizeof services / sizeof *services && status == WEIR_OK; i++)
		status = grant_one(plan, services[i], plan->remove || plan->cluster != (i == 1), error);
	if (status != WEIR_OK)
		return status;
	plan->reloads[plan->reload_count++] = (struct setup_command){{"systemctl", "daemon-reload", NULL}};
	return WEIR_OK;
}

enum weir_status setup_nft(struct setup_plan *plan, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES];
	struct weir_text lines = {0};
	struct setup_file *main_file;
	enum weir_status status;
	bool own;
	if (plan->file[0] == '\0')
		snprintf(plan->file, sizeof plan->file, "%s",
		         access("/etc/sysconfig/nftables.conf", F_OK) == 0 ? "/etc/sysconfig/nftables.conf"
		                                                           : "/etc/nftables.conf");
	if ((status = weir_directory_of(plan->file, directory, error)) != WEIR_OK ||
	    (status = weir_path_format(plan->own, error, "%s/nftables-weir.conf", directory)) != WEIR_OK ||
	    (status = weir_path_format(plan->to, error, "nft:inet/weir/blocked4,blocked6")) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->file, &main_file, error)) != WEIR_OK)
		return status;
	put_rules(&lines, plan);
	status = setup_files_own(&plan->files, plan->own, lines.at, plan->remove, &own, error);
	weir_text_deinit(&lines);
	if (status != WEIR_OK)
		return status;
	if (main_file->before != NULL) {
		if (own)
			include(plan, main_file);
		plan->checks[plan->check_count++] = (struct setup_command){{"nft", "-c", "-f", plan->file, NULL}};
	} else if (!plan->remove) {
		weir_text_printf(&plan->notes, "There is no %s: load %s yourself after each start of the machine.\n",
		                 plan->file, plan->own);
	}
	if (plan->remove && own && access(plan->own, F_OK) == 0)
		plan->reloads[plan->reload_count++] =
			(struct setup_command){{"nft", "add table inet weir; delete table inet weir", NULL}};
	if (plan->remove)
		return grant(plan, error);
	plan->checks[plan->check_count++] = (struct setup_command){{"nft", "-c", "-f", plan->own, NULL}};
	plan->reloads[plan->reload_count++] = (struct setup_command){{"nft", "-f", plan->own, NULL}};
	return grant(plan, error);
}
