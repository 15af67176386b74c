/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies of requests as lines: what each protocol of log shippers sends, taken apart by a function each.
 *
 * Lines and JSON values pass as they are: whatever is wrong with one is said of that line, later. A document that holds
 * many events is taken as a whole or refused, as nobody could tell where the next event begins. What becomes an object
 * here is written by us: no text of a stranger is read as a member.
 *
 * What lies around many events, such as OTLP's resource, is written into each of their lines: so a small body can become
 * any number of bytes, and each decoder ends at a bound.
 *
 * @thread any
 */
#ifndef COLLECTOR_SOURCE_PUSH_DECODE_H
#define COLLECTOR_SOURCE_PUSH_DECODE_H

#include "common/base/span.h"
#include "common/base/status.h"
#include "common/base/text.h"

/* Of an answer that tells of each event. */
#define DECODE_ANSWER_MOST_BYTES ((size_t)64 << 20)

/**
 * Takes a whole body apart.
 *
 * @param most    bytes that the lines may have; passed by a small multiple of the body at most, before it is noticed
 * @param lines   appended to, each ended by '\n'
 * @param answer  appended to, where the protocol's answer tells of each event; the others leave it as it is
 * @return WEIR_OK; WEIR_INVALID: it is not what it should be; WEIR_FULL: its lines, or the answer, are
 *         too long. In words
 */
typedef enum weir_status push_decode(struct weir_span body, size_t most, struct weir_text *lines,
                                     struct weir_text *answer, struct weir_error *error);

/** Lines as they are; the last one may lack its newline. */
push_decode decode_lines;
/** JSON values one after another, or in an array, each a line, without the white space between their parts. */
push_decode decode_json;
/** Firehose's {"records": [{"data": BASE64}]}: each is a line, or some. The answer: the requestId. */
push_decode decode_firehose;
/** OTLP's logs as JSON: {"time", "severity", "message", "attributes", "resource", "scope", "trace_id", "span_id"}. */
push_decode decode_otlp;
/** Loki's streams as JSON: {"time", "message", "labels", "metadata"}. */
push_decode decode_loki;
/** Elasticsearch's _bulk: the documents. The answer: its items, and whether one was refused. */
push_decode decode_bulk;
/** The journal's export format, entries as `journalctl -o json` prints them. An entry that is not whole is left out. */
push_decode decode_journal;

/** @return WEIR_OK; WEIR_FULL, in words: so many bytes of lines are too many */
WEIR_MUST_USE enum weir_status decode_fits(const struct weir_text *lines, size_t most, struct weir_error *error);

/** How many bytes of a body in the journal's export format are whole entries. */
size_t decode_journal_whole(struct weir_span body);

/** Appends what base64 text means. @return false: it is none */
bool decode_base64(struct weir_span text, struct weir_text *bytes);

#endif
