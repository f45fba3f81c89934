# Bash completion of cutegen. Commands and flags come from `cutegen help`, so
# that this file does not know them.
_cutegen()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} prog=${COMP_WORDS[0]}
    local cmd=${COMP_WORDS[1]-} words
    COMPREPLY=()
    case $cmd in
    simt) [ "$COMP_CWORD" = 2 ] && words="exec run" ;;
    edit) [ "$COMP_CWORD" = 2 ] && words=apply ;;
    agent) [ "$COMP_CWORD" = 2 ] && words=install ;;
    server) [ "$COMP_CWORD" = 2 ] && words="status stop" ;;
    esac
    if [ "$COMP_CWORD" = 1 ] || { [ "$COMP_CWORD" = 2 ] && [ "$cmd" = help ]; }; then
        words=$("$prog" help 2>/dev/null | sed -n 's/^  cutegen \([a-z]*\).*/\1/p')
    elif [[ $cur == -* ]]; then
        words=$("$prog" help "$cmd" 2>/dev/null | sed -n 's/^  --\(\[no-\]\)\{0,1\}\([a-z-]*\).*/--\2/p')
    elif [[ $cmd == @(resume|show|report|export) && $prev != --* ]]; then
        words="last $("$prog" runs 2>/dev/null | sed -n 's/^\([0-9][^ ]*\).*/\1/p')"
    fi
    if [ -n "${words-}" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -o filenames -F _cutegen cutegen
