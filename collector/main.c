/* SPDX-License-Identifier: Apache-2.0 */
/* weir-collector: from what services write to events on the bus. */
#include "collector/daemon/service.h"

int main(int argc, char **argv)
{
	return weir_daemon_main(&collector_command_line, &collector_role, argc, argv);
}
