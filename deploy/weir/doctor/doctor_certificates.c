/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates that this configuration serves with. */
#include "common/base/clock.h"
#include "common/http/http.h"
#include "deploy/weir/doctor/internal.h"

enum { DAY_S = 86400, SOON_DAYS = 14 };

static void check_own(const struct weir_check *check, const struct weir_config_tls *tls, const char *prefix)
{
	const struct weir_http_tls files = {
		.certificate = tls->certificate, .key = tls->key, .client_ca = tls->client_ca, .prefix = prefix};
	struct weir_text doubts = {0};
	struct weir_error error;
	int64_t expires_s = 0;
	if (tls->certificate == NULL)
		return;
	enum weir_status status = weir_http_tls_check(&files, &doubts, &error);
	if (status == WEIR_OK)
		status = weir_http_tls_expiry(&files, &expires_s, &error);
	int64_t days = (expires_s - weir_wall_ms() / 1000) / DAY_S;
	if (status != WEIR_OK)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "certificates",
			"%s\nWho serves with it does not start\nrenew the certificate and its key (runbook: certificates)",
			error.text);
	else if (doubts.length > 0)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_PAGE, "certificates",
			"%.*s\nClients refuse the pages, or the key is not a secret\ndo what it says; it is read again within "
			"a second, without a restart (runbook: certificates)",
			(int)doubts.length - 1, doubts.at);
	else if (days < SOON_DAYS)
		weir_findings_add(
			check->findings, WEIR_SEVERITY_TICKET, "certificates",
			"%s expires in %lld days\nClients refuse the pages from then on\nrenew it; it is read again within a "
			"second, without a restart (runbook: certificates)",
			tls->certificate, (long long)days);
	else
		weir_findings_good(check->findings, "certificates: %s is valid for %lld days", tls->certificate,
		                   (long long)days);
	weir_text_deinit(&doubts);
}

void doctor_check_certificates(struct doctor *doctor, const struct weir_check *check)
{
	check_own(check, &doctor->config->listen.tls, "listen.");
	check_own(check, &doctor->config->archiver.api_tls, "archiver.api_");
	if (doctor->cluster)
		doctor_check_broker_certificates(check);
}
