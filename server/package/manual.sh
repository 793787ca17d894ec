#!/bin/sh
# The manual page and the completion for bash, from what the program says itself.
# Usage: manual.sh RIGSTEP FOLDER; writes rigstep.1 and rigstep.bash
set -eu
rigstep=$1
folder=$2

# options_of HELP, subcommands_of HELP: in one line
options_of() { printf '%s\n' "$1" | sed -n 's/^  \(-[a-z],\)\{0,1\}\(--[a-z-]*\).*/\2/p' | xargs; }
subcommands_of() { printf '%s\n' "$1" | sed -n '/^Subcommands:$/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | xargs; }

# text as it stands: without what troff takes for its own
verbatim() {
  echo .nf
  sed -e 's/\\/\\e/g' -e 's/-/\\-/g' -e "s/^[.']/\\\\\&&/"
  echo .fi
}

# page WORDS...: the help of a command and of those below it, as sections of the manual
page() {
  help=$("$rigstep" "$@" --help)
  echo ".SH rigstep $*"
  printf '%s\n' "$help" | verbatim
  for below in $(subcommands_of "$help"); do (page "$@" "$below"); done
}

# case_of WORDS...: what completes after a command, and after those below it
case_of() {
  help=$("$rigstep" "$@" --help)
  below=$(subcommands_of "$help")
  printf '    "%s") commands="%s" options="%s" ;;\n' "$*" "$below" "$(options_of "$help")"
  for command in $below; do (case_of "$@" "$command"); done
}

top=$("$rigstep" --help)
{
  echo '.TH RIGSTEP 1 "" "Rigstep" "User Commands"'
  echo '.SH NAME'
  printf 'rigstep \\- %s\n' "$(printf '%s\n' "$top" | sed -n '1s/^Rigstep: //p')"
  echo '.SH SYNOPSIS'
  printf '%s\n' "$top" | sed -n 's/^Usage: //p' | verbatim
  echo '.SH COMMANDS'
  printf '%s\n' "$top" | sed '1,/^Usage:/d' | verbatim
  for command in $(subcommands_of "$top"); do page "$command"; done
} >"$folder/rigstep.1"

{
  cat <<'END'
# Completion of rigstep for bash, made from its --help.
_rigstep() {
  local word=${COMP_WORDS[COMP_CWORD]} command= commands= options= i
  for ((i = 1; i < COMP_CWORD; ++i)); do
    _rigstep_words "${command:+$command }${COMP_WORDS[i]}" || break
    command="${command:+$command }${COMP_WORDS[i]}"
  done
  _rigstep_words "$command"
  [[ $word == -* ]] && commands=$options
  COMPREPLY=($(compgen -W "$commands" -- "$word"))
}
# Sets commands and options of those of the caller.
_rigstep_words() {
  case $1 in
END
  printf '    "") commands="%s" options="%s" ;;\n' "$(subcommands_of "$top")" "$(options_of "$top")"
  for command in $(subcommands_of "$top"); do case_of "$command"; done
  cat <<'END'
    *) return 1 ;;
  esac
}
complete -o bashdefault -o default -F _rigstep rigstep
END
} >"$folder/rigstep.bash"
