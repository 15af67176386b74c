/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source "s3": objects of a bucket, each read once as it lies there, also those that come late.
 *
 * Objects do not change; one that is written again under its key has another ETag and is another object. What lies below
 * the floor of its prefix is settled and is not listed again.
 */
#ifndef COLLECTOR_SOURCE_S3_H
#define COLLECTOR_SOURCE_S3_H

#include "collector/source/source.h"

extern const struct source_ops source_s3_ops;

#endif
