/* SPDX-License-Identifier: Apache-2.0 */
/* The author is the login user, under sudo too; the random number tells apart two equal commands. */
#include "deploy/weir/overrides/override_author.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { ID_BYTES = 16 };

/* Who has logged in, under sudo too; else whose process it is. */
static void find_login(char *name, size_t bytes)
{
	const struct passwd *user;
	if (getlogin_r(name, bytes) == 0 && name[0] != '\0')
		return;
	user = getpwuid(getuid());
	if (user != NULL)
		snprintf(name, bytes, "%s", user->pw_name);
	else
		snprintf(name, bytes, "uid %u", (unsigned)getuid());
}

enum weir_status override_author(const char *by, struct override_command *command, struct weir_error *error)
{
	unsigned char bytes[ID_BYTES];
	if (by != NULL)
		snprintf(command->by, sizeof command->by, "%s", by);
	else
		find_login(command->by, sizeof command->by);
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return weir_fail(error, WEIR_IO, "cannot get random bytes: %s", strerror(errno));
	for (int i = 0; i < ID_BYTES; i++)
		snprintf(command->id + (size_t)2 * (size_t)i, 3, "%02x", bytes[i]);
	return WEIR_OK;
}
