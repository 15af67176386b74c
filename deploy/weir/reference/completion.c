/* SPDX-License-Identifier: Apache-2.0 */
/* What a shell can complete: commands, options, the words that an option or an operand may be, and names of files. */
#include "deploy/weir/command.h"
#include "deploy/weir/reference/internal.h"

#include <stdbool.h>
#include <string.h>

static const char *short_name(const struct weir_command_line *line)
{
	const char *blank = strchr(line->name, ' ');
	return blank != NULL ? blank + 1 : line->name;
}

static void put_words(const char *const *words, FILE *out)
{
	for (size_t i = 0; words[i] != NULL; i++)
		fprintf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

/* Calls it for each command of `weir`, then for each daemon. */
static void each_line(void (*put)(const struct weir_command_line *line, FILE *out), FILE *out)
{
	for (size_t i = 0; weir_commands[i] != NULL; i++)
		put(weir_commands[i]->line, out);
	for (size_t i = 0; reference_daemons[i] != NULL; i++)
		put(reference_daemons[i], out);
}

static void put_program_names(FILE *out)
{
	fputs("weir", out);
	for (size_t i = 0; reference_daemons[i] != NULL; i++)
		fprintf(out, " %s", reference_daemons[i]->name);
}

/* Text within quotes of a shell; @param escaped  what its own rules ask to be escaped, too */
static void put_quoted(const char *text, const char *escaped, const char *quote, FILE *out)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputs(quote, out);
		else
			fprintf(out, "%s%c", strchr(escaped, *text) != NULL ? "\\" : "", *text);
	}
}

/* ---- bash ---- */

static void put_bash_values(const struct weir_command_line *line, FILE *out)
{
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++) {
		if (option->value == NULL)
			continue;
		fprintf(out, "    '%s --%s'", line->name, option->name);
		if (option->letter != 0)
			fprintf(out, " | '%s -%c'", line->name, option->letter);
		fputs(") ", out);
		if (option->choices != NULL) {
			fputs("words='", out);
			put_words(option->choices, out);
			fputs("'", out);
		} else {
			static const char *const kinds[] = {
				[REFERENCE_OTHER] = ":", [REFERENCE_FILE] = "names=-f", [REFERENCE_DIRECTORY] = "names=-d"};
			fputs(kinds[reference_value_of(option->value)], out);
		}
		fputs(" ;;\n", out);
	}
}

static void put_bash_line(const struct weir_command_line *line, FILE *out)
{
	fprintf(out, "    '%s')\n      options='", line->name);
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++)
		fprintf(out, "--%s ", option->name);
	fputs("--help'\n", out);
	if (line->operand.choices != NULL) {
		fputs("      words='", out);
		put_words(line->operand.choices, out);
		fputs("'\n", out);
	} else if (reference_value_of(line->operand.word) == REFERENCE_FILE) {
		fputs("      names=-f\n", out);
	}
	fputs("      ;;\n", out);
}

void reference_bash(FILE *out)
{
	fputs("# bash completion for weir and its daemons, made by: weir reference bash\n\n"
	      "_weir() {\n"
	      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[0]##*/}\n"
	      "  local options='' words='' names=''\n"
	      "  COMPREPLY=()\n"
	      "  if [[ $command == weir ]]; then\n"
	      "    if ((COMP_CWORD == 1)); then\n"
	      "      mapfile -t COMPREPLY < <(compgen -W '",
	      out);
	for (size_t i = 0; weir_commands[i] != NULL; i++)
		fprintf(out, "%s ", short_name(weir_commands[i]->line));
	fputs("help --help --version' -- \"$word\")\n"
	      "      return\n"
	      "    fi\n"
	      "    command=\"weir ${COMP_WORDS[1]}\"\n"
	      "  fi\n"
	      "  # --name=VALUE is three words here.\n"
	      "  [[ $word != = ]] || word=''\n"
	      "  [[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD-2]}\n"
	      "  case \"$command $before\" in\n",
	      out);
	each_line(put_bash_values, out);
	fputs("    *) before='' ;;\n"
	      "  esac\n"
	      "  if [[ -z $before ]]; then\n"
	      "    case $command in\n",
	      out);
	each_line(put_bash_line, out);
	fputs("    esac\n"
	      "    [[ $word != -* ]] || words=$options names=''\n"
	      "  fi\n"
	      "  if [[ -n $names ]]; then\n"
	      "    compopt -o filenames 2>/dev/null\n"
	      "    mapfile -t COMPREPLY < <(compgen \"$names\" -- \"$word\")\n"
	      "  else\n"
	      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
	      "  fi\n"
	      "}\n"
	      "complete -F _weir ",
	      out);
	put_program_names(out);
	fputc('\n', out);
}

/* ---- zsh ---- */

static void put_zsh_value(const char *word, const char *const *choices, FILE *out)
{
	static const char *const kinds[] = {
		[REFERENCE_OTHER] = " ", [REFERENCE_FILE] = "_files", [REFERENCE_DIRECTORY] = "_files -/"};
	fputs(":", out);
	put_quoted(word, "\\:[]", "'\\''", out);
	fputs(":", out);
	if (choices != NULL) {
		fputs("(", out);
		put_words(choices, out);
		fputs(")", out);
	} else {
		fputs(kinds[reference_value_of(word)], out);
	}
}

static void put_zsh_option(const struct weir_argument_option *option, FILE *out)
{
	const char *star = option->repeatable ? "*" : "";
	for (int form = option->letter != 0 ? 0 : 1; form < 2; form++) {
		if (form == 0)
			fprintf(out, " \\\n        '%s-%c[", star, option->letter);
		else
			fprintf(out, " \\\n        '%s--%s[", star, option->name);
		put_quoted(option->help, "\\:[]", "'\\''", out);
		fputs("]", out);
		if (option->value != NULL)
			put_zsh_value(option->value, option->choices, out);
		fputs("'", out);
	}
}

static void put_zsh_line(const struct weir_command_line *line, FILE *out)
{
	fprintf(out, "    %s)\n      _arguments -s", short_name(line));
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++)
		put_zsh_option(option, out);
	fputs(" \\\n        '(- *)'{-h,--help}'[print a help page]'", out);
	if (line->operand.word != NULL) {
		fprintf(out, " \\\n        '%s", line->operand.most == 1 ? "" : "*");
		put_zsh_value(line->operand.word, line->operand.choices, out);
		fputs("'", out);
	}
	fputs("\n      ;;\n", out);
}

void reference_zsh(FILE *out)
{
	fputs("#compdef ", out);
	put_program_names(out);
	fputs("\n# zsh completion for weir and its daemons, made by: weir reference zsh\n\n"
	      "_weir() {\n"
	      "  local command=$service\n"
	      "  local -a commands\n"
	      "  if [[ $service == weir ]]; then\n"
	      "    if ((CURRENT == 2)); then\n"
	      "      commands=(\n",
	      out);
	for (size_t i = 0; weir_commands[i] != NULL; i++) {
		fprintf(out, "        '%s:", short_name(weir_commands[i]->line));
		put_quoted(weir_commands[i]->line->summary, "\\:", "'\\''", out);
		fputs("'\n", out);
	}
	fputs("      )\n"
	      "      _describe command commands\n"
	      "      return\n"
	      "    fi\n"
	      "    command=$words[2]\n"
	      "    shift words\n"
	      "    ((CURRENT--))\n"
	      "  fi\n"
	      "  case $command in\n",
	      out);
	each_line(put_zsh_line, out);
	fputs("  esac\n}\n\n_weir \"$@\"\n", out);
}

/* ---- fish ---- */

static void put_fish_start(const struct weir_command_line *line, FILE *out)
{
	if (strchr(line->name, ' ') != NULL)
		fprintf(out, "complete -c weir -n '__fish_seen_subcommand_from %s'", short_name(line));
	else
		fprintf(out, "complete -c %s", line->name);
}

static void put_fish_choices(const char *const *choices, FILE *out)
{
	fputs(" -x -a '", out);
	put_words(choices, out);
	fputs("'", out);
}

static void put_fish_option(const struct weir_command_line *line, const struct weir_argument_option *option, FILE *out)
{
	static const char *const kinds[] = {[REFERENCE_OTHER] = " -x",
	                                    [REFERENCE_FILE] = " -r -F",
	                                    [REFERENCE_DIRECTORY] = " -x -a '(__fish_complete_directories)'"};
	put_fish_start(line, out);
	fprintf(out, " -l %s", option->name);
	if (option->letter != 0)
		fprintf(out, " -s %c", option->letter);
	if (option->choices != NULL)
		put_fish_choices(option->choices, out);
	else if (option->value != NULL)
		fputs(kinds[reference_value_of(option->value)], out);
	fputs(" -d '", out);
	put_quoted(option->help, "\\", "\\'", out);
	fputs("'\n", out);
}

static void put_fish_line(const struct weir_command_line *line, FILE *out)
{
	bool files = line->operand.choices == NULL && reference_value_of(line->operand.word) == REFERENCE_FILE;
	put_fish_start(line, out);
	if (line->operand.choices != NULL)
		put_fish_choices(line->operand.choices, out);
	else
		fputs(files ? " -F" : " -f", out);
	fputc('\n', out);
	for (const struct weir_argument_option *option = line->options; option->name != NULL; option++)
		put_fish_option(line, option, out);
	put_fish_start(line, out);
	fputs(" -s h -l help -d 'print a help page'\n", out);
}

void reference_fish(FILE *out)
{
	fputs("# fish completion for weir and its daemons, made by: weir reference fish\n\n", out);
	for (size_t i = 0; weir_commands[i] != NULL; i++) {
		fprintf(out, "complete -c weir -n __fish_use_subcommand -f -a %s -d '", short_name(weir_commands[i]->line));
		put_quoted(weir_commands[i]->line->summary, "\\", "\\'", out);
		fputs("'\n", out);
	}
	each_line(put_fish_line, out);
}
