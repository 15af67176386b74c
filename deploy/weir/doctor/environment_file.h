/* SPDX-License-Identifier: Apache-2.0 */
/* A file of variables, as systemd reads what EnvironmentFile= names, and the words of a variable in a command line. */
#ifndef DEPLOY_WEIR_DOCTOR_ENVIRONMENT_FILE_H
#define DEPLOY_WEIR_DOCTOR_ENVIRONMENT_FILE_H

#include "common/base/span.h"

/** The value of a variable: the last one that is set. @return returned, terminated; NULL: it is not set */
char *environment_file_value(struct weir_span text, const char *name);

/** The next word of a value, without its quotes. @param rest  cut in place @return NULL: there is none */
char *environment_file_word(char **rest);

#endif
