/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a target "webhook:" says: an address, or the path of a file of JSON, in which secrets are safe from command
 * lines and lists of processes:
 *
 *   {"url": "https://hooks.example/weir", "secret": {"file": "/etc/weir/hook-secret"}}
 *   {"template": "telegram", "url": {"env": "TELEGRAM_URL"}, "chat": "-100123"}
 *   {"template": "mail", "to": "ops@example.com"}
 */
#ifndef DEPLOY_GATEWAYS_TARGET_WEBHOOK_WEBHOOK_SETTINGS_H
#define DEPLOY_GATEWAYS_TARGET_WEBHOOK_WEBHOOK_SETTINGS_H

#include "common/base/text.h"

enum webhook_template { WEBHOOK_JSON, WEBHOOK_SLACK, WEBHOOK_DISCORD, WEBHOOK_TELEGRAM, WEBHOOK_MAIL };

/* All owned; NULL: not set. */
struct webhook_settings {
	enum webhook_template template;
	char *url;                  /* of mail none */
	char *name;                 /* what may be shown of it */
	char *secret;               /* signs what is sent */
	char *token;                /* sent as "Authorization: Bearer" */
	char *chat;                 /* telegram */
	char *to, *from, *sendmail; /* mail */
	char *ca;
	int64_t give_up_after_ms; /* what people could not be told for so long, as it was refused, is not said any more */
};

/** @return WEIR_OK; WEIR_INVALID: the words show no secret. In both cases webhook_settings_deinit() is due */
WEIR_MUST_USE enum weir_status webhook_settings_read(const char *rest, struct webhook_settings *settings,
                                                     struct weir_error *error);
void webhook_settings_deinit(struct webhook_settings *settings);

#endif
