# kontekst in bash: Alt-k turns the line that you have typed into a command, which you can read, change and run.
# Nothing is run by this key. Another key: bind -x '"\C-g": _kontekst_propose'
_kontekst_propose() {
    [[ -n $READLINE_LINE ]] || return 0
    local proposal
    proposal=$(command kontekst propose-line bash -- "$READLINE_LINE" </dev/null) || return 0
    [[ -n $proposal ]] || return 0
    READLINE_LINE=$proposal
    READLINE_POINT=${#READLINE_LINE}
}
if [[ $- == *i* ]]; then
    bind -m emacs-standard -x '"\ek": _kontekst_propose'
    bind -m vi-insert -x '"\ek": _kontekst_propose'
fi
