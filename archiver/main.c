/* SPDX-License-Identifier: Apache-2.0 */
/* weir-archiver: keeps counts and histories of what its share of the partitions' judged frames say. */
#include "archiver/daemon/process.h"

int main(int argc, char **argv)
{
	return weir_daemon_main(&archiver_command_line, &archiver_role, argc, argv);
}
