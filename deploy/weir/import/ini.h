/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fail2ban's configuration files: sections of options, of which later files replace earlier ones, as Python's
 * configparser reads them, with fail2ban's own [INCLUDES], .local files and %(name)s.
 */
#ifndef DEPLOY_WEIR_IMPORT_INI_H
#define DEPLOY_WEIR_IMPORT_INI_H

#include "deploy/weir/import/plan.h"

struct ini_option {
	char *name, *value; /* lines of a value are joined by \n, without blanks around them */
	char *file;
	unsigned line;
	struct ini_option *known; /* what it replaced: %(known/NAME)s; NULL: nothing */
};

struct ini_section {
	char *name;
	char *file; /* where it began */
	unsigned line;
	struct ini_option *options;
	size_t option_count;
};

struct ini {
	struct plan *plan; /* keeps the texts */
	struct ini_section *sections;
	size_t section_count;
	unsigned files; /* read so far */
	/* Values that are set for this reading, as fail2ban's filter[name=value]: they go before the file's own. */
	const struct ini_option *given;
	size_t given_count;
	unsigned work; /* names that were replaced, bounded */
};

void ini_deinit(struct ini *ini);

/** A text's sections over those that are there. @return WEIR_INVALID: "FILE:LINE: words" */
WEIR_MUST_USE enum weir_status ini_parse(struct ini *ini, const char *file, const char *text, size_t length,
                                         struct weir_error *error);
/**
 * A file with what it includes, and their .local ones, over what is there.
 *
 * @param needed  false: WEIR_OK where there is no such file
 */
WEIR_MUST_USE enum weir_status ini_read(struct ini *ini, const char *path, bool needed, struct weir_error *error);

const struct ini_section *ini_section(const struct ini *ini, const char *name);
/** A number that stands for all that was read, without remarks and blanks around values. */
uint64_t ini_fingerprint(const struct ini *ini);
/** The section's own option, or that of [DEFAULT]; NULL: there is none. */
const struct ini_option *ini_option(const struct ini *ini, const char *section, const char *name);

/**
 * An option's value with every %(name)s replaced.
 *
 * @param value  returned, kept by the plan; NULL: there is no such option
 * @return WEIR_INVALID: a name is not defined, or the value grows without end
 */
WEIR_MUST_USE enum weir_status ini_value(struct ini *ini, const char *section, const char *name, const char **value,
                                         struct weir_error *error);

#endif
