# Completion of kontekst for fish. kontekst itself answers, so that agents, sessions, models, tools and skills are known.
function __kontekst_complete
    set -l before (commandline -opc)
    set -l word (commandline -ct)
    test -n "$word"; or set word ''
    set -l found (kontekst complete-line fish (count $before) 9 -- $before "$word" 2>/dev/null)
    if test -n "$found"
        printf '%s\n' $found
    else
        __fish_complete_path "$word"
    end
end
complete --keep-order --no-files --command kontekst --arguments '(__kontekst_complete)'
