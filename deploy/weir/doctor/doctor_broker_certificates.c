/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates that brokers show: expired, of another authority, of another name, or soon to expire. */
#include "common/base/clock.h"
#include "common/http_client/http_client.h"
#include "deploy/weir/doctor/internal.h"

#include <string.h>

enum { DAY_S = 86400, SOON_DAYS = 14, BROKERS_MOST = 5, LOOK_MS = 3000 };

struct looking {
	const struct weir_check *check;
	const char *ca;
	unsigned looked;
};

static void look_at_broker(void *context, const char *host, unsigned port)
{
	struct looking *looking = context;
	struct weir_http_certificate shown;
	struct weir_error error;
	if (looking->looked++ >= BROKERS_MOST ||
	    weir_http_client_look(host, port, looking->ca, LOOK_MS, &shown, &error) != WEIR_OK || !shown.shown)
		return; /* that it does not answer is told by the brokers' check */
	int64_t left_s = shown.expires_s - weir_wall_ms() / 1000;
	if (shown.expires_s > 0 && left_s <= 0)
		weir_findings_add(
			looking->check->findings, WEIR_SEVERITY_PAGE, "certificates",
			"the certificate of broker %s:%u expired %lld days ago\nNo daemon that starts now reaches it; what is "
			"connected works until its connection ends\nrenew the broker's certificate, and restart the broker "
			"(runbook: certificates)",
			host, port, (long long)(-left_s / DAY_S));
	else if (shown.refusal[0] != '\0')
		weir_findings_add(
			looking->check->findings, WEIR_SEVERITY_PAGE, "certificates",
			"the certificate of broker %s:%u is not trusted: %s\nNo daemon that starts now reaches it\nname the "
			"authority that signed it in \"bus.kafka\" (ssl.ca.location), or the broker by the name that the "
			"certificate has (runbook: certificates)",
			host, port, shown.refusal);
	else if (shown.expires_s > 0 && left_s < SOON_DAYS * DAY_S)
		weir_findings_add(
			looking->check->findings, WEIR_SEVERITY_TICKET, "certificates",
			"the certificate of broker %s:%u expires in %lld days\nFrom then on no daemon that starts reaches "
			"it\nrenew the broker's certificate, and restart the broker (runbook: certificates)",
			host, port, (long long)(left_s / DAY_S));
	else if (shown.expires_s > 0)
		weir_findings_good(looking->check->findings, "certificates: broker %s:%u has one for %lld days", host, port,
		                   (long long)(left_s / DAY_S));
}

void doctor_check_broker_certificates(const struct weir_check *check)
{
	const struct weir_config *config = check->config;
	struct weir_json protocol = weir_json_member(&config->bus.kafka, "security.protocol");
	struct weir_json ca = weir_json_member(&config->bus.kafka, "ssl.ca.location");
	const char *name = json_string_value(protocol.value);
	struct looking looking = {.check = check, .ca = json_string_value(ca.value)};
	if (name != NULL && strcasestr(name, "ssl") != NULL)
		doctor_each_address(config->bus.brokers, look_at_broker, &looking);
}
