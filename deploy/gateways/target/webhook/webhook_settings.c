/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into headers and arguments of programs is plain: nothing in it can begin another header or an option. */
#include "deploy/gateways/target/webhook/webhook_settings.h"

#include "common/base/alloc.h"
#include "common/http_client/http_client.h"
#include "common/json/json.h"

#include <stdlib.h>

enum { GIVE_UP_AFTER_MS = 3600 * 1000, GIVE_UP_MOST_MS = 7 * 24 * 3600 * 1000 };

static void forget(char *secret)
{
	if (secret != NULL)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

void webhook_settings_deinit(struct webhook_settings *settings)
{
	forget(settings->url);
	forget(settings->secret);
	forget(settings->token);
	free(settings->name);
	free(settings->chat);
	free(settings->to);
	free(settings->from);
	free(settings->sendmail);
	free(settings->ca);
}

static bool has_control(const char *text)
{
	for (const char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at <= ' ' || *at == 0x7F)
			return true;
	return false;
}

static enum weir_status read_text(const struct weir_json *at, char **out, struct weir_error *error)
{
	const char *text = NULL;
	enum weir_status status = weir_json_string(at, &text, error);
	if (status != WEIR_OK || text == NULL)
		return status;
	if (text[0] == '\0' || text[0] == '-' || has_control(text))
		return weir_json_fail(at, error, "must not be empty, begin with a dash, or have blanks");
	*out = weir_copy(text, strlen(text));
	return WEIR_OK;
}

/* A chat's number is negative, so it may begin with a dash: it goes into JSON. */
static enum weir_status read_chat(const struct weir_json *at, char **out, struct weir_error *error)
{
	const char *text = NULL;
	enum weir_status status = weir_json_string(at, &text, error);
	if (status == WEIR_OK && text != NULL)
		*out = weir_copy(text, strlen(text));
	return status;
}

static enum weir_status read_secrets(const struct weir_json *root, struct webhook_settings *settings,
                                     struct weir_error *error)
{
	struct weir_json url = weir_json_member(root, "url"), secret = weir_json_member(root, "secret");
	struct weir_json token = weir_json_member(root, "token");
	enum weir_status status;
	if ((status = weir_json_secret(&url, &settings->url, error)) != WEIR_OK ||
	    (status = weir_json_password(&secret, &settings->secret, error)) != WEIR_OK ||
	    (status = weir_json_secret(&token, &settings->token, error)) != WEIR_OK)
		return status;
	if (settings->token != NULL && has_control(settings->token))
		return weir_json_fail(&token, error, "must not have blanks");
	return WEIR_OK;
}

static enum weir_status check(const struct weir_json *root, struct webhook_settings *settings, struct weir_error *error)
{
	struct weir_text name = {0};
	struct weir_json url = weir_json_member(root, "url"), to = weir_json_member(root, "to");
	struct weir_json chat = weir_json_member(root, "chat");
	if (settings->template == WEBHOOK_MAIL) {
		if (settings->to == NULL)
			return weir_json_require(&to, "say who gets the mail, such as \"ops@example.com\"", error);
		weir_text_printf(&name, "mail to %s", settings->to);
	} else if (settings->url == NULL) {
		return weir_json_require(&url, "say where to send, such as \"https://hooks.example/weir\"", error);
	} else if (has_control(settings->url) || !weir_http_address_host(settings->url, &name)) {
		weir_text_deinit(&name);
		return weir_json_fail(&url, error, "must be https://HOST[/PATH]; http:// only on this machine");
	}
	weir_text_append(&name, "", 1);
	settings->name = name.at; /* taken */
	if (settings->template == WEBHOOK_TELEGRAM && settings->chat == NULL)
		return weir_json_require(&chat, "say the chat's number, such as \"-1001234\"", error);
	return WEIR_OK;
}

static enum weir_status read_root(const struct weir_json *root, struct webhook_settings *settings,
                                  struct weir_error *error)
{
	static const char *const names[] = {"template", "url",      "secret", "token",         "chat", "to",
	                                    "from",     "sendmail", "ca",     "give_up_after", NULL};
	static const char *const templates[] = {"json", "slack", "discord", "telegram", "mail", NULL};
	struct weir_json template = weir_json_member(root, "template"), chat = weir_json_member(root, "chat");
	struct weir_json to = weir_json_member(root, "to"), from = weir_json_member(root, "from");
	struct weir_json give_up = weir_json_member(root, "give_up_after");
	struct weir_json sendmail = weir_json_member(root, "sendmail"), ca = weir_json_member(root, "ca");
	int word = WEBHOOK_JSON;
	enum weir_status status;
	if (!json_is_object(root->value))
		return weir_json_fail(root, error, "must be an object, such as {\"url\": \"https://hooks.example/weir\"}");
	if ((status = weir_json_only(root, names, error)) != WEIR_OK ||
	    (status = weir_json_word(&template, templates, &word, error)) != WEIR_OK ||
	    (status = read_secrets(root, settings, error)) != WEIR_OK ||
	    (status = read_chat(&chat, &settings->chat, error)) != WEIR_OK ||
	    (status = read_text(&to, &settings->to, error)) != WEIR_OK ||
	    (status = read_text(&from, &settings->from, error)) != WEIR_OK ||
	    (status = read_text(&sendmail, &settings->sendmail, error)) != WEIR_OK ||
	    (status = read_text(&ca, &settings->ca, error)) != WEIR_OK ||
	    (status = weir_json_duration(&give_up, 0, GIVE_UP_MOST_MS, &settings->give_up_after_ms, error)) != WEIR_OK)
		return status;
	settings->template = (enum webhook_template)word;
	return check(root, settings, error);
}

enum weir_status webhook_settings_read(const char *rest, struct webhook_settings *settings, struct weir_error *error)
{
	struct weir_json_document *document;
	struct weir_text name = {0};
	*settings = (struct webhook_settings){.give_up_after_ms = GIVE_UP_AFTER_MS};
	if (rest[0] == '/') {
		enum weir_status status = weir_json_load(rest, &document, error);
		if (status != WEIR_OK)
			return WEIR_INVALID;
		struct weir_json root = weir_json_root(document);
		status = read_root(&root, settings, error);
		weir_json_document_free(document);
		return status;
	}
	if (has_control(rest) || !weir_http_address_host(rest, &name)) {
		weir_text_deinit(&name);
		return weir_fail(
			error, WEIR_INVALID,
			"webhook: needs https://HOST[/PATH] (http:// only on this machine), or the path of a file of JSON that has the address");
	}
	weir_text_append(&name, "", 1);
	settings->name = name.at; /* taken */
	settings->url = weir_copy(rest, strlen(rest));
	return WEIR_OK;
}
