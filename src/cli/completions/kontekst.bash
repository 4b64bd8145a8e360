# Completion of kontekst for bash. kontekst itself answers, so that agents, sessions, models, tools and skills are known.
_kontekst() {
    local reply
    mapfile -t reply < <(kontekst complete-line bash "$COMP_CWORD" "${COMP_TYPE:-9}" -- "${COMP_WORDS[@]}" 2>/dev/null)
    COMPREPLY=("${reply[@]}")
    # A directory goes on, so no space follows it.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o bashdefault -o default -o nosort -F _kontekst kontekst
