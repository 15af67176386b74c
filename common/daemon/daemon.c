/* SPDX-License-Identifier: Apache-2.0 */
/* Knows nothing about roles: the role passes in its pages and its help. */
#include "common/daemon/daemon.h"

#include "common/base/stop.h"
#include "common/daemon/certificate_metrics.h"
#include "common/daemon/heartbeat.h"
#include "common/daemon/process_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEAVE_MS = 15000 }; /* for what is closed once everything is stored */

const struct weir_argument_exit weir_daemon_exits[] = {
	{WEIR_EXIT_DONE, "stopped by a signal; with --check: it can start"},
	{WEIR_EXIT_FAILED, "it failed"},
	{WEIR_EXIT_USAGE, "the command line or the configuration is wrong"},
	{WEIR_EXIT_DONE, NULL},
};

static enum weir_exit take_option(void *context, int option, const struct weir_argument *value)
{
	struct weir_daemon *daemon = context;
	struct weir_error error;
	switch (option) {
	case WEIR_DAEMON_CONFIG: daemon->config_path = value->text; break;
	case WEIR_DAEMON_CHECK: daemon->check = true; break;
	case WEIR_DAEMON_VERSION: printf("%s " WEIR_VERSION "\n", daemon->name); return WEIR_EXIT_DONE;
	case WEIR_DAEMON_STATE:
		if (weir_path_format(daemon->state, &error, "%s", value->text) != WEIR_OK)
			return weir_arguments_refuse(daemon->line, "%s", error.text);
		break;
	default: break;
	}
	return WEIR_EXIT_NOT_YET;
}

static enum weir_exit begin(struct weir_daemon *daemon, const struct weir_command_line *line, int argc, char **argv)
{
	*daemon = (struct weir_daemon){.name = line->name, .line = line, .start_s = weir_process_start_s()};
	snprintf(daemon->state, sizeof daemon->state, "/var/lib/weir/%s", daemon->name);
	enum weir_exit code = weir_arguments_read(line, argc, argv, take_option, daemon);
	if (code == WEIR_EXIT_NOT_YET && !weir_config_find(&daemon->config_path))
		code = weir_arguments_refuse(line, WEIR_CONFIG_MISSING);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	if (!daemon->check)
		weir_stop_begin(WEIR_EXIT_DONE);
	struct weir_error error;
	if (weir_config_load(daemon->config_path, &daemon->config, &error) != WEIR_OK) {
		char prefix[64];
		snprintf(prefix, sizeof prefix, "%s: ", daemon->name);
		weir_config_print_mistakes(prefix, daemon->config_path, NULL, &error);
		return WEIR_EXIT_USAGE;
	}
	daemon->log = (struct weir_log){.fd = STDERR_FILENO,
	                                .level = (enum weir_log_level)daemon->config->log.level,
	                                .json = daemon->config->log.json != 0};
	return WEIR_EXIT_NOT_YET;
}

/* The state directory is made and locked; from here on a signal to stop sets a flag, as there is something to put away. */
static enum weir_status open_state(struct weir_daemon *daemon, struct weir_error *error)
{
	weir_stop_install();
	enum weir_status status = weir_directory_make(daemon->state, error);
	if (status == WEIR_OK)
		status = weir_directory_lock(daemon->state, &daemon->lock, error);
	daemon->locked = status == WEIR_OK;
	return status;
}

/* The sections that differ, but for "zones", which the policy topic brings, and the log's level. */
static void list_changed(const struct weir_config *running, const struct weir_config *next, struct weir_text *names)
{
	json_t *one = json_deep_copy(weir_json_root(running->document).value);
	json_t *other = json_deep_copy(weir_json_root(next->document).value);
	json_object_del(json_object_get(one, "log"), "level");
	json_object_del(json_object_get(other, "log"), "level");
	const char *name;
	json_t *value;
	json_object_foreach(one, name, value)
	{
		if (strcmp(name, "zones") != 0 && !json_equal(value, json_object_get(other, name)))
			weir_text_printf(names, "%s\"%s\"", names->length > 0 ? ", " : "", name);
	}
	json_object_foreach(other, name, value)
	{
		if (strcmp(name, "zones") != 0 && json_object_get(one, name) == NULL && json_object_size(value) > 0)
			weir_text_printf(names, "%s\"%s\"", names->length > 0 ? ", " : "", name);
	}
	json_decref(one);
	json_decref(other);
}

static void show_metrics(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	const struct weir_daemon *daemon = context;
	const char *dash = strchr(daemon->name, '-');
	reply->content_type = "text/plain; version=0.0.4; charset=utf-8";
	daemon->pages->metrics(daemon->pages->context, &reply->body);
	weir_process_metrics(dash != NULL ? dash + 1 : daemon->name, daemon->start_s, &reply->body);
	weir_http_metrics(request, &reply->body);
	weir_certificate_metrics(daemon->config, NULL, &reply->body);
}

static void show_state(bool good, struct weir_http_reply *reply)
{
	reply->status = good ? 200 : 503;
	if (good) {
		weir_text_clear(&reply->body);
		weir_text_puts(&reply->body, "ok\n");
	}
}

static void show_health(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct weir_daemon_pages *pages = ((const struct weir_daemon *)context)->pages;
	show_state(pages->healthy(pages->context, &reply->body), reply);
}

static void show_readiness(void *context, const struct weir_http_request *request, struct weir_http_reply *reply)
{
	(void)request;
	const struct weir_daemon_pages *pages = ((const struct weir_daemon *)context)->pages;
	show_state(pages->ready(pages->context, &reply->body), reply);
}

struct weir_http_tls weir_daemon_tls(const struct weir_config *config)
{
	return (struct weir_http_tls){.certificate = config->listen.tls.certificate,
	                              .key = config->listen.tls.key,
	                              .client_ca = config->listen.tls.client_ca,
	                              .prefix = "listen."};
}

/* Before the servers are waited for. @param doubts  appended to */
static enum weir_status check_pages(const struct weir_config *config, struct weir_text *doubts,
                                    struct weir_error *error)
{
	const struct weir_http_tls tls = weir_daemon_tls(config);
	return config->listen.http_host != NULL ? weir_http_tls_check(&tls, doubts, error) : WEIR_OK;
}

static enum weir_status serve(struct weir_daemon *daemon, const struct weir_daemon_pages *pages,
                              struct weir_error *error)
{
	if (daemon->config->listen.http_host == NULL)
		return WEIR_OK;
	daemon->pages = pages;
	const struct weir_http_path paths[] = {
		{"/metrics", show_metrics, daemon},
		{"/healthz", show_health, daemon},
		{"/readyz", show_readiness, daemon},
	};
	struct weir_http_options http = {.host = daemon->config->listen.http_host,
	                                 .port = daemon->config->listen.http_port,
	                                 .paths = paths,
	                                 .path_count = sizeof paths / sizeof *paths,
	                                 .tls = weir_daemon_tls(daemon->config),
	                                 .log = &daemon->log};
	enum weir_status status = weir_http_start(&http, &daemon->http, error);
	if (status == WEIR_OK)
		weir_log(&daemon->log, WEIR_LOG_INFO, "http", "listening on %s port %u", http.host,
		         weir_http_port(daemon->http));
	return status;
}

void weir_daemon_silence(struct weir_daemon *daemon)
{
	weir_http_stop(daemon->http);
	daemon->http = NULL;
}

static void end(struct weir_daemon *daemon)
{
	weir_daemon_silence(daemon);
	if (daemon->locked)
		weir_directory_unlock(&daemon->lock);
	weir_config_free(daemon->config);
	daemon->config = NULL;
}

/* What a start would refuse of it. */
static enum weir_status check_next(const struct weir_daemon *daemon, const struct weir_config *next,
                                   struct weir_error *error)
{
	const struct weir_config *running = daemon->config;
	struct weir_text doubts = {0};
	enum weir_status status = daemon->role->accept(next, daemon->name, error); /* of Kafka, so it has brokers */
	/* of other brokers, or by another prefix, topics may have another number */
	if (status == WEIR_OK && next->bus.partitions != running->bus.partitions &&
	    strcmp(next->bus.prefix, running->bus.prefix) == 0 && strcmp(next->bus.brokers, running->bus.brokers) == 0)
		status = weir_fail(error, WEIR_INVALID, "bus.partitions: topic %s.%s has %" PRId64 " partitions, not %" PRId64,
		                   running->bus.prefix, "events", running->bus.partitions, next->bus.partitions);
	if (status == WEIR_OK)
		status = check_pages(next, &doubts, error);
	weir_text_deinit(&doubts);
	return status;
}

void weir_daemon_reload(struct weir_daemon *daemon)
{
	struct weir_config *next;
	struct weir_error error;
	enum weir_status status = weir_config_load(daemon->config_path, &next, &error);
	if (status == WEIR_OK) {
		status = check_next(daemon, next, &error);
		if (status != WEIR_OK)
			weir_config_free(next);
	}
	if (status != WEIR_OK) {
		weir_log(&daemon->log, WEIR_LOG_ERROR, "reload",
		         "%s. The previous configuration stays in use: mend it, and reload again", error.text);
		return;
	}
	struct weir_text names = {0};
	list_changed(daemon->config, next, &names);
	enum weir_log_level level = (enum weir_log_level)next->log.level;
	weir_config_free(next);
	if (level < daemon->log.level) /* what is said here is to be seen at either level */
		daemon->log.level = level;
	if (names.length > 0)
		weir_log(&daemon->log, WEIR_LOG_WARNING, "reload", "%.*s: changed; takes effect at a restart",
		         (int)names.length, names.at);
	else
		weir_log(&daemon->log, WEIR_LOG_INFO, "reload", "configuration reloaded");
	daemon->log.level = level;
	weir_text_deinit(&names);
}

/* ---- the life of a daemon ---- */

static enum weir_exit fail(const struct weir_daemon *daemon, const struct weir_error *error, enum weir_exit code)
{
	weir_log(&daemon->log, WEIR_LOG_ERROR, daemon->role->log_name, "%s", error->text);
	return code;
}

static enum weir_exit check(const struct weir_daemon *daemon, void *self)
{
	struct weir_error error;
	struct weir_text doubts = {0};
	enum weir_status status = check_pages(daemon->config, &doubts, &error);
	if (doubts.length > 0)
		printf("pages: %.*s\n", (int)doubts.length, doubts.at);
	weir_text_deinit(&doubts);
	if (status == WEIR_OK)
		status = daemon->role->check(self, &error);
	if (status != WEIR_OK)
		fprintf(stderr, "%s: %s\n", daemon->name, error.text);
	return weir_exit_of(status);
}

static enum weir_exit run(const struct weir_daemon *daemon, void *self)
{
	const struct weir_daemon_role *role = daemon->role;
	struct weir_error error;
	enum weir_status status = role->start(self, &error);
	if (status == WEIR_END)
		return WEIR_EXIT_DONE;
	if (status != WEIR_OK)
		return fail(daemon, &error, weir_exit_of(status));
	enum weir_exit code = WEIR_EXIT_DONE;
	if (role->watch(self, &error) != WEIR_OK)
		code = fail(daemon, &error, WEIR_EXIT_FAILED);
	return role->stop(self) ? code : WEIR_EXIT_FAILED;
}

static enum weir_exit work(struct weir_daemon *daemon, void *self)
{
	const struct weir_daemon_role *role = daemon->role;
	struct weir_error error;
	struct weir_text doubts = {0}; /* the server says them when it starts */
	enum weir_status status = check_pages(daemon->config, &doubts, &error);
	weir_text_deinit(&doubts);
	if (status != WEIR_OK)
		return fail(daemon, &error, WEIR_EXIT_USAGE);
	if (open_state(daemon, &error) != WEIR_OK || (role->open != NULL && role->open(self, &error) != WEIR_OK) ||
	    serve(daemon, role->pages(self), &error) != WEIR_OK)
		return fail(daemon, &error, WEIR_EXIT_FAILED);
	struct weir_heartbeat *heartbeat = weir_heartbeat_start(&daemon->log, daemon->state, &daemon->lock);
	enum weir_exit code = run(daemon, self);
	weir_heartbeat_stop(heartbeat);
	return code;
}

enum weir_exit weir_daemon_main(const struct weir_command_line *line, const struct weir_daemon_role *role, int argc,
                                char **argv)
{
	struct weir_daemon daemon;
	struct weir_error error;
	void *self = NULL;
	enum weir_exit code = begin(&daemon, line, argc, argv);
	if (code != WEIR_EXIT_NOT_YET)
		return code;
	daemon.role = role;
	if (role->accept(daemon.config, daemon.name, &error) != WEIR_OK || role->prepare(&daemon, &self, &error) != WEIR_OK)
		code = fail(&daemon, &error, WEIR_EXIT_USAGE);
	else
		code = daemon.check ? check(&daemon, self) : work(&daemon, self);
	if (role->close == NULL) {
		fflush(stdout);
		_exit(code); /* the servers' libraries may take their time, and everything that counts is stored */
	}
	if (!daemon.check)
		weir_stop_within(LEAVE_MS, code);
	if (self != NULL) /* else its configuration was refused, and nothing was made */
		role->close(self);
	end(&daemon);
	return code;
}
