/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of an HDFS, read by WebHDFS or HttpFS.
 *
 * A file is known by its fileId (inode number) and read by it, as /.reserved/.inodes/ID: renames, a failover to another
 * NameNode, and another file under its old name change nothing.
 *
 * The NameNode's length of an open file lags behind, and it refuses to open a file there. The DataNode does not: the
 * address of one is asked for once, and gives every byte that was flushed (hflush) from whatever offset.
 */
#ifndef COLLECTOR_SOURCE_WEBHDFS_H
#define COLLECTOR_SOURCE_WEBHDFS_H

#include "collector/source/source.h"

extern const struct source_ops source_webhdfs_ops;

#endif
