/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon on this machine says of itself, where the configuration says where. */
#include "common/http_client/http_client.h"
#include "deploy/weir/doctor/internal.h"

#include <stdio.h>
#include <string.h>

enum { CONNECT_MS = 2000, ANSWER_MS = 4000, BODY_BYTES = 16 << 10, SHOWN_BYTES = 400 };

/* Its lines as one. */
static void flatten(const struct weir_text *body, char words[SHOWN_BYTES])
{
	size_t length = body->length < SHOWN_BYTES - 1 ? body->length : SHOWN_BYTES - 1;
	while (length > 0 && body->at[length - 1] == '\n')
		length--;
	for (size_t i = 0; i < length; i++)
		words[i] = (unsigned char)body->at[i] < 0x20 ? ';' : body->at[i];
	words[length] = '\0';
}

static void tell(struct doctor *doctor, const struct weir_check *check, const char *address,
                 const struct weir_http_answer *answer)
{
	char words[SHOWN_BYTES];
	(void)doctor;
	flatten(&answer->body, words);
	if (answer->code == 200)
		weir_findings_good(check->findings, "pages: %s says ok", address);
	else
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "pages",
			"%s says %ld: %s\nThis daemon does not do its work now\ndo what the other findings say; its log has "
			"more (runbook: is-it-over)",
			address, answer->code, words);
}

void doctor_check_pages(struct doctor *doctor, const struct weir_check *check)
{
	const struct weir_http_client_options options = {.connect_ms = CONNECT_MS,
	                                                 .answer_ms = ANSWER_MS,
	                                                 .body_most_bytes = BODY_BYTES,
	                                                 .agent = "weir-doctor",
	                                                 .ca_file = doctor->config->listen.tls.certificate};
	const char *host = doctor->config->listen.http_host;
	bool secure = doctor->config->listen.tls.certificate != NULL;
	struct weir_http_answer answer = {0};
	struct weir_http_client *client;
	struct weir_error error;
	char address[300];
	if (host == NULL || doctor->config->listen.http_port == 0 || doctor->config->listen.tls.client_ca != NULL)
		return; /* whom a page asks for a certificate of their own, they have none */
	if (strcmp(host, "*") == 0)
		host = "127.0.0.1";
	snprintf(address, sizeof address, strchr(host, ':') != NULL ? "%s://[%s]:%u/readyz" : "%s://%s:%u/readyz",
	         secure ? "https" : "http", host, doctor->config->listen.http_port);
	const struct weir_http_call call = {.address = address};
	if (weir_http_client_new(&options, &client, &error) != WEIR_OK)
		return;
	if (weir_http_client_call(client, &call, &answer, &error) == WEIR_OK)
		tell(doctor, check, address, &answer);
	else
		weir_findings_add(check->findings, WEIR_SEVERITY_TICKET, "pages",
		                  "%s does not answer: %s\nThe daemon of this configuration does not run on this machine, or "
		                  "hangs\nsystemctl status 'weir*' says which (runbook: process-down)",
		                  address, error.text);
	weir_text_deinit(&answer.body);
	weir_http_client_free(client);
}
