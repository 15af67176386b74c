/* SPDX-License-Identifier: Apache-2.0 */
/* The login name says who it is under sudo too. */
#include "deploy/weir/terminal/author.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

void author_name(const char *by, char *name, size_t bytes)
{
	const struct passwd *user;
	if (by != NULL) {
		snprintf(name, bytes, "%s", by);
		return;
	}
	if (getlogin_r(name, bytes) == 0 && name[0] != '\0')
		return;
	user = getpwuid(getuid());
	if (user != NULL)
		snprintf(name, bytes, "%s", user->pw_name);
	else
		snprintf(name, bytes, "uid %u", (unsigned)getuid());
}
