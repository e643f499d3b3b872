# Completion of regatta(1) in bash. The commands and options come from `regatta COMMAND --help`.

_regatta() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} word help
  local -a path=()
  help=$("$program" --help 2>/dev/null)
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    grep -q "^  $word  " <<<"$(_regatta_commands "$help")" || break
    path+=("$word")
    help=$("$program" "${path[@]}" --help 2>/dev/null)
  done
  local options
  options=$(grep -oE -- '^  (-[a-z],)?--[a-z0-9-]+' <<<"$help" | grep -oE -- '--[a-z0-9-]+')
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [ ${#path[@]} -eq $((COMP_CWORD - 1)) ]; then
    word=$(_regatta_commands "$help" | cut -d ' ' -f 3)
    mapfile -t COMPREPLY < <(compgen -W "$word" -- "$current")
  fi
}

# The lines of the commands in the text of a --help.
_regatta_commands() {
  sed -n '/^Commands:$/,/^$/p' <<<"$1" | grep -E '^  [a-z]'
}

complete -o default -F _regatta regatta
