# kontekst in zsh: Alt-k turns the line that you have typed into a command, which you can read, change and run.
# Nothing is run by this key, and undo (Ctrl-_) brings back what you typed. Another key: bindkey '^g' _kontekst_propose
_kontekst_propose() {
    emulate -L zsh
    [[ -n $BUFFER ]] || return 0
    local proposal
    zle -I
    proposal=$(command kontekst propose-line zsh -- "$BUFFER" </dev/null) || return 0
    [[ -n $proposal ]] || return 0
    BUFFER=$proposal
    CURSOR=${#BUFFER}
}
if [[ -o interactive ]]; then
    zle -N _kontekst_propose
    bindkey -M emacs '\ek' _kontekst_propose
    bindkey -M viins '\ek' _kontekst_propose
fi
