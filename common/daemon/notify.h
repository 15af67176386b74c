/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the service manager (systemd, Type=notify) how far a daemon is. */
#ifndef WEIR_COMMON_NOTIFY_H
#define WEIR_COMMON_NOTIFY_H

/** "READY=1", "STOPPING=1", "STATUS=words", lines of them. Of no effect where NOTIFY_SOCKET is not set. @thread any */
void weir_notify(const char *state);

#endif
