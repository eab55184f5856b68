# Lisa for every day: who waits, a segment for your prompt, and a live table.
#
# The commands stand on the plugin, so add that first. Then install this file with one command:
#
#   mkdir ($nu.user-autoload-dirs | first); cp lisa.nu ($nu.user-autoload-dirs | first)
#
# or, to try it in one shell only: use lisa.nu *
#
# A right prompt with counts:
#
#   $env.PROMPT_COMMAND_RIGHT = {|| lisa prompt-segment }

# List the sessions that need you, the longest idle first, with what each asks.
@example "See who needs you" { lisa waiting }
@example "Allow everything that is asked" { lisa waiting | lisa session answer --choice allow_once }
export def "lisa waiting" []: nothing -> table {
    lisa session list
    | where attention == needs_you
    | sort-by idle --reverse
    | insert asks {|row| asks $row.prompt }
    | insert options {|row| $row.prompt?.options? | default [] | each {|option| $"($option.key) ($option.label)" } }
    | select name agent state idle asks options prompt project cwd
}

# Say in a few words how the sessions stand, for a prompt: `1 waiting, 2 working`. Empty when there is none.
#
# It never fails: a prompt that shows an error is worse than one that shows nothing.
@example "Show it on the right" { $env.PROMPT_COMMAND_RIGHT = {|| lisa prompt-segment } }
export def "lisa prompt-segment" [
    --plain # Without colours.
]: nothing -> string {
    let rows = (try { lisa session list } catch { [] })
    [
        {word: waiting, color: yellow, count: ($rows | where attention == needs_you | length)}
        {word: working, color: green, count: ($rows | where status in [in_progress just_started] | length)}
        {word: done, color: blue, count: ($rows | where attention == delivered | length)}
        {word: lost, color: red, count: ($rows | where status in [stuck degraded] and attention != needs_you | length)}
    ]
    | where count > 0
    | each {|part|
        let text = $"($part.count) ($part.word)"
        if $plain { $text } else { $"(ansi $part.color)($text)(ansi reset)" }
    }
    | str join ', '
}

# Draw the sessions as a table that keeps itself up to date, those that need you first. Ctrl-C ends it.
@example "Follow everything" { lisa dashboard }
@example "Follow one agent, twice a second" { lisa dashboard --agent claude --interval 500ms }
export def "lisa dashboard" [
    --agent (-a): string # Only sessions of this agent.
    --project (-p): string # Only sessions of this project.
    --interval (-i): duration = 1sec # How often to draw.
    --once # Draw once and return the table as text.
]: nothing -> any {
    if $once { return (draw $agent $project) }
    print --no-newline (ansi cursor_off) (ansi clear_entire_screen)
    try {
        loop {
            # From the top left over what is there, then clear the rest: no flicker.
            let frame = (draw $agent $project | lines | each {|line| $"($line)(ansi erase_line_from_cursor_to_end)" } | str join "\n")
            print --no-newline $"(ansi home)($frame)\n(ansi clear_screen_from_cursor_to_end)"
            sleep $interval
        }
    } catch {|error|
        print --no-newline (ansi cursor_on)
        if $error.msg !~ 'nterrupted' { error make $error.raw }
    }
}

def draw [agent, project]: nothing -> string {
    let rank = {needs_you: 0, delivered: 1, autonomous: 2}
    let rows = (
        lisa session list
        | where ($agent == null or agent == $agent) and ($project == null or project == $project)
        | sort-by {|row| $rank | get $row.attention } {|row| 0sec - $row.idle }
    )
    let table = (
        $rows
        | each {|row| {
            name: $row.name
            agent: $row.agent
            state: (painted $row)
            idle: $row.idle
            asks: (asks $row.prompt | default '')
        }}
        # A name that Lisa made is too long to stand first: everything after it would be cut off.
        | if ($in | any {|row| ($row.name | str length) > 20 }) { $in | move name --last } else { $in }
        | if ($in | is-empty) { 'No sessions.' } else { $in | table --index false }
    )
    $"(ansi attr_bold)Lisa(ansi reset)  (date now | format date '%H:%M:%S')  (lisa prompt-segment)\n($table)"
}

# What a prompt is about, in one line: what the agent wants to run or touch, the question, or the dialog's title.
def asks [prompt]: nothing -> any {
    if $prompt == null { return null }
    let about = ($prompt.command | default $prompt.file)
    if $about != null { return ([$prompt.tool $about] | compact | str join ': ' | lines | first) }
    $prompt.body | lines | where $it ends-with '?' | get 0? | default $prompt.title
}

def painted [row]: nothing -> string {
    let color = match $row.attention {
        needs_you => 'yellow'
        delivered => 'blue'
        _ => (if $row.status in [stuck degraded crashed] { 'red' } else { 'green' })
    }
    $"(ansi $color)($row.state)(ansi reset)"
}
