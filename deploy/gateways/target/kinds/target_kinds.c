/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of targets by the word that their name begins with. */
#include "deploy/gateways/target/kinds/target_kinds.h"

#include "deploy/gateways/target/cloud/cloud.h"
#include "deploy/gateways/target/exec/target_exec.h"
#include "deploy/gateways/target/file/target_file.h"
#include "deploy/gateways/target/haproxy/target_haproxy.h"
#include "deploy/gateways/target/ipset/target_ipset.h"
#include "deploy/gateways/target/nft/target_nft.h"
#include "deploy/gateways/target/nginx/target_nginx.h"
#include "deploy/gateways/target/redis/target_redis.h"
#include "deploy/gateways/target/webhook/target_webhook.h"

struct kind {
	const char *prefix; /* with what ends it */
	bool whole;         /* the prefix is part of what the kind reads */
	target_make *make;
};

static const struct kind kinds[] = {
	{"redis://", true, target_redis_make},
	{"file:", false, target_file_make},
	{"nginx-map:", false, target_nginx_map_make},
	{"nginx-geo:", false, target_nginx_geo_make},
	{"haproxy:", false, target_haproxy_make},
	{"nft:", false, target_nft_make},
	{"exec:", false, target_exec_make},
	{"webhook:", false, target_webhook_make},
	{"ipset:", false, target_ipset_make},
	{"rediss://", true, target_redis_make},
	{"cloudflare-list:", false, target_cloudflare_make},
	{"aws-waf-ipset:", false, target_aws_make},
};

#define ACCEPTED                                                                                   \
	"redis[s]://HOST:PORT[/DATABASE], file:PATH, nginx-map:PATH, nginx-geo:PATH, haproxy:SOCKET, " \
	"nft:FAMILY/TABLE/SET, ipset:SET, cloudflare-list:FILE, aws-waf-ipset:FILE, webhook:ADDRESS or exec:COMMAND"

enum weir_status target_open(const char *name, const struct target_options *options, struct target **target,
                             struct weir_error *error)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		size_t length = strlen(kinds[i].prefix);
		if (strncmp(name, kinds[i].prefix, length) != 0)
			continue;
		if (name[length] == '\0')
			return weir_fail(error, WEIR_INVALID, "\"%s\" is incomplete; expected " ACCEPTED, kinds[i].prefix);
		struct target *made;
		enum weir_status status = kinds[i].make(name + (kinds[i].whole ? 0 : length), options, &made, error);
		if (status == WEIR_OK && options->reload != NULL && !made->ops->may_reload) {
			struct weir_error ignored;
			(void)!made->ops->close(made, &ignored);
			return weir_fail(error, WEIR_INVALID, "--reload only works with file:, nginx-map: and nginx-geo:");
		}
		if (status == WEIR_OK)
			*target = made;
		return status;
	}
	/* What stands behind the colon may be a secret. */
	return weir_fail(error, WEIR_INVALID, "unknown target \"%.*s...\"; expected " ACCEPTED,
	                 (int)(strcspn(name, ":") + (strchr(name, ':') != NULL)), name);
}
