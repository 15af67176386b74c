/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The XML that S3 answers with, element by element: names, and the text of those that hold no others. Attributes,
 * comments and instructions are passed over. A document type is refused, with all that it could define; so is HTML.
 *
 * @thread one at a time
 */
#ifndef COLLECTOR_REMOTE_S3_XML_H
#define COLLECTOR_REMOTE_S3_XML_H

#include "common/base/text.h"

enum { S3_XML_DEPTH_MOST = 16 };

enum s3_xml_event {
	S3_XML_OPEN,  /* an element begins; depth counts it */
	S3_XML_CLOSE, /* it ends: value is its text, of what stands behind its last inner element; depth counts it no more */
	S3_XML_END,   /* the document is whole */
	S3_XML_BROKEN, /* `broken` says why; there are no further events */
};

struct s3_xml {
	struct weir_span rest;                    /* of the document; borrowed */
	struct weir_span open[S3_XML_DEPTH_MOST]; /* the names of the elements that are open, without namespace */
	unsigned depth;
	bool closed;            /* the last event was an end: the value is no longer needed */
	bool begun;             /* the outermost element was there */
	bool empty;             /* the element that was just opened has no end of its own: "<Prefix/>" */
	struct weir_span name;  /* of the element that the event is about */
	struct weir_text value; /* owned */
	const char *broken;
};

/** @param document  borrowed until s3_xml_deinit() */
void s3_xml_init(struct s3_xml *xml, struct weir_span document);
void s3_xml_deinit(struct s3_xml *xml);

/** The next event. Each takes time in proportion to the bytes that it passes. */
enum s3_xml_event s3_xml_next(struct s3_xml *xml);

#endif
