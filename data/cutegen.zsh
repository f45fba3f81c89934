#compdef cutegen
# Zsh completion of cutegen. Commands and flags come from `cutegen help`, so this file does not list them.
_cutegen()
{
    local cmd=${words[2]-} prog=${words[1]-cutegen}
    local -a found
    if ((CURRENT == 2)) || { ((CURRENT == 3)) && [[ $cmd == help ]]; }; then
        found=(${(f)"$($prog help 2>/dev/null | sed -n 's/^  cutegen \([a-z]*\).*/\1/p' | sort -u)"})
    elif ((CURRENT == 3)) && [[ $cmd == (simt|edit|server|agent) ]]; then
        found=(${(f)"$($prog help 2>/dev/null | sed -n "s/^  cutegen $cmd \([a-z]*\).*/\1/p")"})
    elif [[ ${words[CURRENT]-} == -* ]]; then
        found=(${(f)"$($prog help $cmd 2>/dev/null | sed -n 's/^  --\(\[no-\]\)\{0,1\}\([a-z-]*\).*/--\2/p')"})
    elif [[ $cmd == (resume|show|report|export) && ${words[CURRENT-1]-} != --* ]]; then
        found=(last ${(f)"$($prog runs 2>/dev/null | sed -n 's/^\([0-9][^ ]*\).*/\1/p')"})
    fi
    if (($#found)); then
        compadd -- $found
    else
        _files
    fi
}
compdef _cutegen cutegen
