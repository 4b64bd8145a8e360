# kontekst in fish: Alt-k turns the line that you have typed into a command, which you can read, change and run.
# Nothing is run by this key, and undo (Ctrl-z) brings back what you typed. Another key: bind \cg _kontekst_propose
function _kontekst_propose
    set -l typed (commandline | string collect)
    test -n "$typed"; or return 0
    set -l proposal (command kontekst propose-line fish -- $typed </dev/null | string collect)
    test -n "$proposal"; and commandline --replace -- $proposal
    commandline -f repaint
end
if status is-interactive
    bind \ek _kontekst_propose
    bind -M insert \ek _kontekst_propose
end
