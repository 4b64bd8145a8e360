#compdef kontekst
# Completion of kontekst for zsh. kontekst itself answers, so that agents, sessions, models, tools and skills are known.
_kontekst() {
    local -a found
    found=("${(@f)$(kontekst complete-line zsh $((CURRENT - 1)) 9 -- "${words[@]}" 2>/dev/null)}")
    if [[ -n ${found[1]} ]]; then
        _describe -V -t values 'value' found
    else
        _files
    fi
}
if [[ ${funcstack[1]} == _kontekst ]]; then
    _kontekst "$@"
else
    compdef _kontekst kontekst
fi
