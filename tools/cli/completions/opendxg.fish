# SPDX-License-Identifier: MIT OR Apache-2.0
# Made by tools/cli/tests/man.rs. Do not edit: OPENDXG_UPDATE=1 cargo test -p opendxg-cli --test man
# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_opendxg_global_optspecs
    string join \n json proc= debugfs= h/help V/version
end

function __fish_opendxg_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_opendxg_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_opendxg_using_subcommand
    set -l cmd (__fish_opendxg_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c opendxg -n "__fish_opendxg_needs_command" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_needs_command" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_needs_command" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_needs_command" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_needs_command" -s V -l version -d 'Print version'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "overview" -d 'How much of everything there is'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "adapters" -d 'Adapters and who has them open'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "processes" -d 'Processes that have the device or an NT handle open'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "objects" -d 'Shareable objects with references, waiters, names and metadata'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "object" -d 'One object: every handle of it, and its metadata'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "handles" -d 'Local handles and NT handles, of all processes or of one'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "names" -d 'Named objects'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "info" -d 'Metadata entries, of all objects or of one'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "waiters" -d 'Who waits for what since when, and who is to blame that it does not end'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "why" -d 'The last calls of a process that were refused, and by which rules'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "queues" -d 'Queues of work for engines, of all processes or of one, and what they wait for'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "engines" -d 'Engines: what they run, what they have done, and the last fault'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "top" -d 'How busy engines are, and with whose work, again and again'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "report" -d 'What went wrong on adapters: hangs, resets and faults'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "trace" -d 'Run a command, and draw when its fences were queued, signalled and waited for'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "reset" -d 'Reset an adapter, or one engine of it: who has work there finds its device in error'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "stop" -d 'Stop an engine of a software GPU, as a debugger does'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "continue" -d 'Let an engine go on that was stopped'
complete -c opendxg -n "__fish_opendxg_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c opendxg -n "__fish_opendxg_using_subcommand overview" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand overview" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand overview" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand overview" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand adapters" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand adapters" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand adapters" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand adapters" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand processes" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand processes" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand processes" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand processes" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand objects" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand objects" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand objects" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand objects" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand object" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand object" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand object" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand object" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand handles" -l pid -d 'Only those of this process' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand handles" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand handles" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand handles" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand handles" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand names" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand names" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand names" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand names" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand info" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand info" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand info" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand info" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -l count -d 'Show it so many times' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -l delay -d 'Wait for so many seconds each time' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -l watch -d 'Show it again and again'
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand waiters" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand why" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand why" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand why" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand why" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand queues" -l pid -d 'Only those of this process' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand queues" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand queues" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand queues" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand queues" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand engines" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand engines" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand engines" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand engines" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -l count -d 'Show it so many times' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -l delay -d 'Measure for so many seconds each time' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -l once -d 'Show it once'
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand top" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand report" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand report" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand report" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand report" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -s o -l output -d 'Write a trace for Perfetto to this file' -r -F
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -l svg -d 'Write a picture to this file, too' -r -F
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -l buffer -d 'Room for events of each CPU that are not read yet, in KiB' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -l tracing -d 'Read this directory instead of /sys/kernel/tracing' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand trace" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand reset" -l node -d 'Only the engine of this node' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand reset" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand reset" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand reset" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand reset" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand stop" -l node -d 'The engine' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand stop" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand stop" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand stop" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand stop" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand continue" -l node -d 'The engine' -r
complete -c opendxg -n "__fish_opendxg_using_subcommand continue" -l proc -d 'Read this directory instead of /proc' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand continue" -l debugfs -d 'Read this directory instead of /sys/kernel/debug' -r -f -a "(__fish_complete_directories)"
complete -c opendxg -n "__fish_opendxg_using_subcommand continue" -l json -d 'Print JSON instead of a table'
complete -c opendxg -n "__fish_opendxg_using_subcommand continue" -s h -l help -d 'Print help'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "overview" -d 'How much of everything there is'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "adapters" -d 'Adapters and who has them open'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "processes" -d 'Processes that have the device or an NT handle open'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "objects" -d 'Shareable objects with references, waiters, names and metadata'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "object" -d 'One object: every handle of it, and its metadata'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "handles" -d 'Local handles and NT handles, of all processes or of one'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "names" -d 'Named objects'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "info" -d 'Metadata entries, of all objects or of one'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "waiters" -d 'Who waits for what since when, and who is to blame that it does not end'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "why" -d 'The last calls of a process that were refused, and by which rules'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "queues" -d 'Queues of work for engines, of all processes or of one, and what they wait for'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "engines" -d 'Engines: what they run, what they have done, and the last fault'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "top" -d 'How busy engines are, and with whose work, again and again'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "report" -d 'What went wrong on adapters: hangs, resets and faults'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "trace" -d 'Run a command, and draw when its fences were queued, signalled and waited for'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "reset" -d 'Reset an adapter, or one engine of it: who has work there finds its device in error'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "stop" -d 'Stop an engine of a software GPU, as a debugger does'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "continue" -d 'Let an engine go on that was stopped'
complete -c opendxg -n "__fish_opendxg_using_subcommand help; and not __fish_seen_subcommand_from overview adapters processes objects object handles names info waiters why queues engines top report trace reset stop continue help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
