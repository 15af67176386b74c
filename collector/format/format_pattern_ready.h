/* The patterns that have a name: logs that are met often and have no simpler format. */
#ifndef COLLECTOR_FORMAT_PATTERN_READY_H
#define COLLECTOR_FORMAT_PATTERN_READY_H

/** The expression of "nginx_error", "haproxy" or "sshd"; NULL for any other name. */
const char *format_pattern_ready(const char *type);

#endif
