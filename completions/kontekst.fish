# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_kontekst_global_optspecs
    string join \n h/help V/version
end

function __fish_kontekst_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_kontekst_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_kontekst_using_subcommand
    set -l cmd (__fish_kontekst_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c kontekst -n "__fish_kontekst_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_needs_command" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "run" -d 'Asks the model and prints its answer'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "status" -d 'Shows the daemon and the model server'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "agents" -d 'List the agents, or show one'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "skills" -d 'List the skills, or show one'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "sessions" -d 'List, show, choose and delete conversations'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "daemon" -d 'Runs the daemon in this terminal, or looks after the one in the background'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "exec-child" -d 'Becomes a model server that dies with the daemon'
complete -c kontekst -n "__fish_kontekst_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s a -l agent -d 'The agent to ask [default: the session\'s, else `default`]' -r
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s s -l session -d 'The session to continue, created if it does not exist [default: the active one]' -r
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s C -l working-dir -d 'Where file tools work [default: the current directory]' -r -f -a "(__fish_complete_directories)"
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -l allow -d 'Approve calls of these tools without asking' -r
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -l on-deny -d 'What a refusal means: the run ends, or the model goes on without the tool' -r -f -a "end\t''
continue\t''"
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s n -l new -d 'Start a new session and make it the active one'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -l auto-approve -d 'Approve every tool call. Writes to files that run code or hold settings are still asked for'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -l no-stdin -d 'Do not read stdin'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -l no-skill -d 'Send a prompt that starts with `/` as it is'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -l json -d 'Print every event as a JSON line'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s q -l quiet -d 'Say nothing on stderr but errors'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s v -l verbose -d 'Show the model\'s thoughts, the tools\' results and the context meter on stderr'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_using_subcommand run" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand status" -l json -d 'Print one JSON object'
complete -c kontekst -n "__fish_kontekst_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_using_subcommand status" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and not __fish_seen_subcommand_from list show help" -l json -d 'Print JSON instead of a table'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and not __fish_seen_subcommand_from list show help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and not __fish_seen_subcommand_from list show help" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and not __fish_seen_subcommand_from list show help" -f -a "list" -d 'List the agents (what `agents` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and not __fish_seen_subcommand_from list show help" -f -a "show" -d 'Show an agent\'s settings and system prompt'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and not __fish_seen_subcommand_from list show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from list" -l json -d 'Print JSON instead of a table'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from show" -l json -d 'Print JSON instead of a table'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the agents (what `agents` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show an agent\'s settings and system prompt'
complete -c kontekst -n "__fish_kontekst_using_subcommand agents; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and not __fish_seen_subcommand_from list show help" -l json -d 'Print JSON instead of a table'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and not __fish_seen_subcommand_from list show help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and not __fish_seen_subcommand_from list show help" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and not __fish_seen_subcommand_from list show help" -f -a "list" -d 'List the skills (what `skills` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and not __fish_seen_subcommand_from list show help" -f -a "show" -d 'Show a skill\'s template'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and not __fish_seen_subcommand_from list show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from list" -l json -d 'Print JSON instead of a table'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from show" -l json -d 'Print JSON instead of a table'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the skills (what `skills` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a skill\'s template'
complete -c kontekst -n "__fish_kontekst_using_subcommand skills; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -l json -d 'Print JSON instead of text'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -f -a "list" -d 'List the sessions, newest first (what `sessions` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -f -a "show" -d 'Print a conversation'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -f -a "use" -d 'Make a session the one that `kontekst run` continues'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -f -a "delete" -d 'Delete sessions for good'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -f -a "set-agent" -d 'Choose the agent that runs of a session use'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and not __fish_seen_subcommand_from list show use delete set-agent help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from list" -l json -d 'Print JSON instead of text'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from list" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from show" -l json -d 'Print JSON instead of text'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from show" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from use" -l json -d 'Print JSON instead of text'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from use" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from use" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from delete" -l force -d 'Delete the active session too; no session is active then'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON instead of text'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from delete" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from set-agent" -l session -d 'The session; the active one when left out' -r
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from set-agent" -l json -d 'Print JSON instead of text'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from set-agent" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from set-agent" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the sessions, newest first (what `sessions` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print a conversation'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "use" -d 'Make a session the one that `kontekst run` continues'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete sessions for good'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "set-agent" -d 'Choose the agent that runs of a session use'
complete -c kontekst -n "__fish_kontekst_using_subcommand sessions; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -l spawned -d 'How a client starts it'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -f -a "stop" -d 'Stop the daemon; runs that are going end as cancelled'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -f -a "restart" -d 'Stop the daemon and start it again, for example after a change to config.toml'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -f -a "logs" -d 'Show the daemon\'s log'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and not __fish_seen_subcommand_from stop restart logs help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from stop" -l if-idle -d 'Only if no run is going'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from stop" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from stop" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from restart" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from restart" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from logs" -s n -l lines -d 'How many lines to start with' -r
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from logs" -s f -l follow -d 'Go on showing what is added'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from logs" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from logs" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from help" -f -a "stop" -d 'Stop the daemon; runs that are going end as cancelled'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from help" -f -a "restart" -d 'Stop the daemon and start it again, for example after a change to config.toml'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from help" -f -a "logs" -d 'Show the daemon\'s log'
complete -c kontekst -n "__fish_kontekst_using_subcommand daemon; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand exec-child" -s h -l help -d 'Print help'
complete -c kontekst -n "__fish_kontekst_using_subcommand exec-child" -s V -l version -d 'Print version'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "run" -d 'Asks the model and prints its answer'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "status" -d 'Shows the daemon and the model server'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "agents" -d 'List the agents, or show one'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "skills" -d 'List the skills, or show one'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "sessions" -d 'List, show, choose and delete conversations'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "daemon" -d 'Runs the daemon in this terminal, or looks after the one in the background'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "exec-child" -d 'Becomes a model server that dies with the daemon'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and not __fish_seen_subcommand_from run status agents skills sessions daemon exec-child help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from agents" -f -a "list" -d 'List the agents (what `agents` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from agents" -f -a "show" -d 'Show an agent\'s settings and system prompt'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from skills" -f -a "list" -d 'List the skills (what `skills` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from skills" -f -a "show" -d 'Show a skill\'s template'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "list" -d 'List the sessions, newest first (what `sessions` alone does)'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "show" -d 'Print a conversation'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "use" -d 'Make a session the one that `kontekst run` continues'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "delete" -d 'Delete sessions for good'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from sessions" -f -a "set-agent" -d 'Choose the agent that runs of a session use'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from daemon" -f -a "stop" -d 'Stop the daemon; runs that are going end as cancelled'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from daemon" -f -a "restart" -d 'Stop the daemon and start it again, for example after a change to config.toml'
complete -c kontekst -n "__fish_kontekst_using_subcommand help; and __fish_seen_subcommand_from daemon" -f -a "logs" -d 'Show the daemon\'s log'
