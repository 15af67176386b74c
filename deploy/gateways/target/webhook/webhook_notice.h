/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks in words, as people read them in a chat or a mail, and the bodies that carry such words. Whoever is blocked may
 * have chosen the key: nothing in it becomes a mention, a link's disguise, a line of its own, or a header.
 */
#ifndef DEPLOY_GATEWAYS_TARGET_WEBHOOK_WEBHOOK_NOTICE_H
#define DEPLOY_GATEWAYS_TARGET_WEBHOOK_WEBHOOK_NOTICE_H

#include "deploy/gateways/table/block_table.h"
#include "deploy/gateways/target/webhook/webhook_settings.h"

enum { WEBHOOK_KEY_SHOWN_BYTES = 120 };

/** Appends "blocked 203.0.113.9 in zone ssh until 2026-11-26 03:10:00 UTC" and a line's end; or "lifted …". */
void webhook_notice_line(struct weir_text *text, const struct block_entry *entry);

/** The body of a message for a template of a chat. */
void webhook_notice_body(struct weir_text *body, const struct webhook_settings *settings, struct weir_span words);

/** A whole mail, headers first. */
void webhook_notice_mail(struct weir_text *mail, const struct webhook_settings *settings, struct weir_span words,
                         size_t count);

#endif
