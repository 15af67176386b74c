/* SPDX-License-Identifier: Apache-2.0 */
/* What HAProxy's own configuration does with the list, where it is the usual file of this machine. */
#include "common/base/alloc.h"
#include "deploy/weir/doctor/gateways.h"
#include "deploy/weir/setup/haproxy_conf.h"

#include <stdlib.h>

void doctor_check_haproxy(const struct weir_check *check, const struct doctor_gateway *gateway)
{
	struct setup_files files = {0};
	struct setup_file *file;
	struct weir_error ignored;
	struct haproxy_conf *conf = weir_alloc(1, sizeof *conf);
	const struct haproxy_section *late = NULL;
	if (setup_files_read(&files, HAPROXY_CONF_FILE, &file, &ignored) == WEIR_OK && file->before != NULL) {
		haproxy_conf_read(conf, file);
		late = haproxy_conf_find_late(conf);
	}
	if (late != NULL)
		weir_findings_add(
			check->findings, late->kind == 'b' ? WEIR_SEVERITY_NOTE : WEIR_SEVERITY_TICKET, "gateways",
			"%s looks up who is blocked before the set-src of section %.*s sets the client's address: gateway %s "
			"asks for whoever connects, such as a CDN, unless the address was right before\n"
			"Clients that are blocked get in there\n"
			"put weir's lines behind the last set-src, as weir setup haproxy --apply --reload does; move one of a "
			"backend to the frontend (runbook: gateway-not-blocking)",
			HAPROXY_CONF_FILE, (int)late->name.length, late->name.at, gateway->name);
	setup_files_deinit(&files);
	free(conf);
}
