/* SPDX-License-Identifier: Apache-2.0 */
/* weir-limiter: judges its share of the events topic, together with its like. */
#include "limiter/daemon/limiter.h"

int main(int argc, char **argv)
{
	return weir_daemon_main(&limiter_command_line, &limiter_role, argc, argv);
}
