/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nftables: a table of weir's own, whose chain looks before all others do, in a file that the machine's rules include.
 * Loaded by itself it touches no other table. weir puts the list back into sets that were made anew.
 */
#include "deploy/weir/setup/setup_plan.h"

#include <string.h>
#include <unistd.h>

static const char head[] = "# Drops the packets of whoever weir blocks: `weir setup nft` made this.\n"
						   "table inet weir\n"
						   "delete table inet weir\n"
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
						   "        type filter hook prerouting priority raw; policy accept;\n";

static void put_rules(struct weir_text *text, const struct setup_plan *plan)
{
	for (int v6 = 0; v6 <= 1; v6++) {
		weir_text_puts(text, "        ");
		for (size_t i = 0; i < plan->port_count; i++)
			weir_text_printf(text, "%s%u", i == 0 ? "tcp dport { " : ", ", plan->ports[i]);
		weir_text_printf(text, "%s%s saddr @blocked%d drop\n", plan->port_count > 0 ? " } " : "", v6 ? "ip6" : "ip",
		                 v6 ? 6 : 4);
	}
	weir_text_puts(text, "    }\n}\n");
}

/* Behind the last line: what the machine's rules flush before is made again. */
static void include(struct setup_plan *plan, struct setup_file *file, const char *mark)
{
	char line[WEIR_PATH_BYTES + 32];
	setup_file_strip(file, mark);
	if (plan->remove)
		return;
	size_t end = file->after.length;
	snprintf(line, sizeof line, "\n%s", mark);
	setup_file_insert(file, end > 0 && file->after.at[end - 1] == '\n' ? end - 1 : end, line);
}

/* weir.service has no right to change rules before a gateway asks for it. */
#define RIGHT "/etc/systemd/system/weir.service.d/nft.conf"

static enum weir_status grant(struct setup_plan *plan, struct weir_error *error)
{
	struct setup_file *file;
	if (plan->file_given || access("/run/systemd/system", F_OK) != 0)
		return WEIR_OK;
	enum weir_status status = setup_files_read(&plan->files, RIGHT, &file, error);
	if (status != WEIR_OK)
		return status;
	setup_file_set(file, "# weir.service keeps a list of nftables: `weir setup nft` made this.\n"
	                     "[Service]\n"
	                     "RestrictAddressFamilies=AF_NETLINK\n"
	                     "CapabilityBoundingSet=CAP_NET_ADMIN\n"
	                     "AmbientCapabilities=CAP_NET_ADMIN\n");
	file->gone = plan->remove;
	plan->reloads[plan->reload_count++] = (struct setup_command){{"systemctl", "daemon-reload", NULL}};
	return WEIR_OK;
}

enum weir_status setup_nft(struct setup_plan *plan, struct weir_error *error)
{
	char directory[WEIR_PATH_BYTES], mark[WEIR_PATH_BYTES + 16];
	struct setup_file *own, *main_file;
	enum weir_status status;
	if (plan->file[0] == '\0')
		snprintf(plan->file, sizeof plan->file, "%s",
		         access("/etc/sysconfig/nftables.conf", F_OK) == 0 ? "/etc/sysconfig/nftables.conf"
		                                                           : "/etc/nftables.conf");
	if ((status = weir_directory_of(plan->file, directory, error)) != WEIR_OK ||
	    (status = weir_path_format(plan->own, error, "%s/nftables-weir.conf", directory)) != WEIR_OK ||
	    (status = weir_path_format(plan->to, error, "nft:inet/weir/blocked4,blocked6")) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->own, &own, error)) != WEIR_OK ||
	    (status = setup_files_read(&plan->files, plan->file, &main_file, error)) != WEIR_OK)
		return status;
	weir_text_clear(&own->after);
	weir_text_puts(&own->after, head);
	put_rules(&own->after, plan);
	own->gone = plan->remove;
	snprintf(mark, sizeof mark, "include \"%s\"", plan->own);
	if (main_file->before != NULL) {
		include(plan, main_file, mark);
		plan->checks[plan->check_count++] = (struct setup_command){{"nft", "-c", "-f", plan->file, NULL}};
	} else {
		main_file->gone = true; /* it is none, and stays so */
		weir_text_printf(&plan->notes, "There is no %s: load %s yourself after each start of the machine.\n",
		                 plan->file, plan->own);
	}
	if (plan->remove) {
		plan->reloads[plan->reload_count++] =
			(struct setup_command){{"nft", "add table inet weir; delete table inet weir", NULL}};
		return grant(plan, error);
	}
	plan->checks[plan->check_count++] = (struct setup_command){{"nft", "-c", "-f", plan->own, NULL}};
	plan->reloads[plan->reload_count++] = (struct setup_command){{"nft", "-f", plan->own, NULL}};
	return grant(plan, error);
}
