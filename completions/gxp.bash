# bash completion for gxp. Written by `gxp help --write-docs`; do not edit.
_gxp() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} words=""
  [[ $COMP_CWORD -eq 1 ]] && command=""
  case $command in
    "") words="help -h --help --version" ;;
    help) words="help" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
  return 0
}
complete -o default -F _gxp gxp
