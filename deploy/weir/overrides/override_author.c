/* SPDX-License-Identifier: Apache-2.0 */
/* The random number tells apart two equal commands. */
#include "deploy/weir/overrides/override_author.h"

#include "common/bytes/hex.h"
#include "deploy/weir/terminal/author.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum { ID_BYTES = 16 };

enum weir_status override_author(const char *by, struct override_command *command, struct weir_error *error)
{
	unsigned char bytes[ID_BYTES];
	author_name(by, command->by, sizeof command->by);
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return weir_fail(error, WEIR_IO, "cannot get random bytes: %s", weir_errno_words(errno));
	*weir_hex_put(command->id, bytes, sizeof bytes) = '\0';
	return WEIR_OK;
}
