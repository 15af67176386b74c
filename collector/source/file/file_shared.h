/* SPDX-License-Identifier: Apache-2.0 */
/* What the streams of one source have in common. Owned by the source. */
#ifndef COLLECTOR_SOURCE_FILE_SHARED_H
#define COLLECTOR_SOURCE_FILE_SHARED_H

#include "collector/source/file/file_listing.h"
#include "collector/source/source_memory.h"

#include <pthread.h>

struct file_shared {
	struct file_settings settings;
	struct source_memory *memory;
	struct file_listing listing;
	size_t stream_count;
	pthread_mutex_t mutex; /* guards what status() shows: any thread may ask */
};

#endif
