# Completion for bash. What the program says of itself is what is offered: it is never out of date.
_parley() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} program=${COMP_WORDS[0]} command=() i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} == -* ]] && break
    command+=("${COMP_WORDS[i]}")
  done
  case $before in
    --set)
      mapfile -t COMPREPLY < <(compgen -W "$("$program" check-config /dev/null 2>/dev/null |
        awk '/^\[/ { section = substr($1, 2, length($1) - 2) } / = / { print section "." $1 "=" }')" -- "$word")
      compopt -o nospace
      return ;;
    --tls) mapfile -t COMPREPLY < <(compgen -W "off auto file" -- "$word"); return ;;
    --config | --model | --wav | --save | --image | --frames | --goldens | --out | --ca | --json | --plot | check-config)
      mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
  esac
  local help
  help=$("$program" "${command[@]}" --help 2>/dev/null)
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(grep -oE -- '--[a-z][a-z-]*' <<<"$help" | sort -u)" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -W "$(awk '/^Subcommands:/ { on = 1; next } on && NF { print $1 }' <<<"$help")" -- "$word")
  fi
}
complete -F _parley parley
