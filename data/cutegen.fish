# Fish completion of cutegen. Commands and flags come from `cutegen help`, so this file does not list them.
function __cutegen_complete
    set -l tokens (commandline -opc)
    set -l current (commandline -ct)
    set -l prog $tokens[1]
    set -l cmd $tokens[2]
    set -l count (count $tokens)
    if test $count -eq 1; or test $count -eq 2 -a "$cmd" = help
        $prog help 2>/dev/null | sed -n 's/^  cutegen \([a-z]*\).*/\1/p' | sort -u
    else if test $count -eq 2; and contains -- "$cmd" simt edit server agent
        $prog help 2>/dev/null | sed -n "s/^  cutegen $cmd \([a-z]*\).*/\1/p"
    else if string match -q -- '-*' "$current"
        $prog help $cmd 2>/dev/null | sed -n 's/^  --\(\[no-\]\)\{0,1\}\([a-z-]*\).*/--\2/p'
    else if contains -- "$cmd" resume show report export
        echo last
        $prog runs 2>/dev/null | sed -n 's/^\([0-9][^ ]*\).*/\1/p'
    else
        __fish_complete_path "$current"
    end
end
complete -c cutegen -f -a '(__cutegen_complete)'
