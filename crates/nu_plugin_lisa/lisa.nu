# Everyday commands for Lisa: who is waiting, a prompt segment, and a live dashboard.
#
# The commands need the plugin, so add that first. Then install this file with one command:
#
#   mkdir ($nu.user-autoload-dirs | first); cp lisa.nu ($nu.user-autoload-dirs | first)
#
# To try it in one shell only: use lisa.nu *
#
# To show counts in the right prompt:
#
#   $env.PROMPT_COMMAND_RIGHT = {|| lisa prompt-segment }

# A module, because Nushell sources the files in an autoload directory: the helpers below stay private.
module lisa-for-every-day {
    # List the sessions that need you, longest idle first, with each prompt and its options.
    @example "Show who needs you" { lisa waiting }
    @example "Allow everything that is asked" { lisa waiting | where prompt != null | lisa session answer --choice allow_once }
    export def "lisa waiting" []: nothing -> table {
        let rows = (
            lisa session list
            | where attention == needs_you
            | sort-by idle --reverse
            | insert asks {|row| asks $row.prompt }
            | insert options {|row| $row.prompt?.options? | default [] | each {|o| $"($o.key) ($o.label)" } | str join ", " }
        )
        # A generated name is too long for the first column: nothing after it would fit.
        let first = (if ($rows | any {|row| ($row.name | str length) > 20 }) { [idle asks name] } else { [name idle asks] })
        $rows | select ...$first options state agent prompt project cwd
    }

    # Return a summary for the shell prompt, such as `1 waiting, 2 working`. Empty if there are no sessions.
    #
    # It never fails: an empty segment is better than an error in the prompt.
    @example "Show it on the right" { $env.PROMPT_COMMAND_RIGHT = {|| lisa prompt-segment } }
    export def "lisa prompt-segment" [
        --plain # Without colours.
    ]: nothing -> string {
        counts (try { lisa session list } catch { [] })
        | each {|part|
            let text = $"($part.count) ($part.word)"
            if $plain { $text } else { $"(ansi $part.color)($text)(ansi reset)" }
        }
        | str join ', '
    }

    # Show a live table of sessions, those that need you first. `q` or Ctrl-C quits.
    @example "Follow all sessions" { lisa dashboard }
    @example "Follow one agent, twice a second" { lisa dashboard --agent claude --interval 500ms }
    export def "lisa dashboard" [
        --agent (-a): string # Only sessions of this agent.
        --project (-p): string # Only sessions of this project.
        --interval (-i): duration = 1sec # How often to redraw.
        --once # Draw once and return the table as a string.
    ]: nothing -> any {
        if $once { return (draw $agent $project) }
        # The alternate screen, so that the previous contents come back afterwards.
        print --no-newline $"\e[?1049h(ansi cursor_off)(ansi clear_entire_screen)"
        let ended = (
            try {
                loop {
                    # Overwrite from the top left, then erase the rest, to avoid flicker.
                    let frame = (draw $agent $project | lines | each { $"($in)(ansi erase_line_from_cursor_to_end)" } | str join "\n")
                    print --no-newline $"(ansi home)($frame)(ansi clear_screen_from_cursor_to_end)"
                    if (ends $interval) { break }
                }
            } catch {|error| $error }
        )
        print --no-newline $"(ansi cursor_on)\e[?1049l"
        if $ended != null and $ended.msg !~ 'nterrupted' { error make $ended.raw }
    }

    # Waits until the next redraw. Returns whether the user quit with `q`, Escape or Ctrl-C (a key event here).
    def ends [interval: duration]: nothing -> bool {
        if not (is-terminal --stdin) {
            sleep $interval
            return false
        }
        let event = (try { input listen --types [key resize] --timeout $interval } catch { null })
        $event.type? == key and ($event.code in [q esc] or ($event.code == c and 'keymodifiers(control)' in $event.modifiers))
    }

    # Renders the dashboard to fit the terminal.
    def draw [agent, project]: nothing -> string {
        let size = (term size)
        let rank = {needs_you: 0, delivered: 1, autonomous: 2}
        let rows = (
            lisa session list
            | where ($agent == null or agent == $agent) and ($project == null or project == $project)
            | sort-by {|row| $rank | get $row.attention } {|row| 0sec - $row.idle }
        )
        let counts = (counts $rows | each {|part| $"(ansi $part.color)($part.count) ($part.word)(ansi reset)" } | str join ', ')
        let title = $"(ansi attr_bold)Lisa(ansi reset)  (date now | format date '%H:%M:%S')  ($counts)"
        if ($rows | is-empty) { return $"($title)\nNo sessions." }
        # Minus the title, the table's three lines and its header, and the footer.
        let room = ([($size.rows - 6) 1] | math max)
        let shown = ($rows | first $room | each {|row| {
            name: (short $row.name $row.tag)
            agent: $row.agent
            state: $row.state
            idle: (rounded $row.idle)
            asks: (asks $row.prompt | default '')
            paint: (color $row)
        }})
        # The prompt is most important: in a narrow terminal, drop the agent column, then shorten long names.
        let tight = ($shown | reject agent | update name { str replace --regex '^lisa-.+-\d{6}-(?=\d{6}-\d{3}…)' '…' })
        let fitting = ([$shown ($shown | reject agent)] | where (room $it $size.columns) >= 24 | append [$tight] | first)
        let left = ([(room $fitting $size.columns) 4] | math max)
        let table = (
            $fitting
            | update asks {|row| cut $row.asks $left }
            | update state {|row| $"(ansi $row.paint)($row.state)(ansi reset)" }
            | reject paint
            | table --index false --width $size.columns
            | str trim --right --char "\n"
        )
        let more = ($rows | length) - ($shown | length)
        let below = (if $more > 0 { $"and ($more) more; q ends" } else { 'q ends' })
        $"($title)\n($table)\n(ansi attr_dimmed)($below)(ansi reset)"
    }

    # The width left for the column `asks` next to the other columns.
    def room [rows, columns: int]: nothing -> int {
        # Borders: three characters between two columns, two at each end.
        $rows | reject asks paint | columns | reduce --fold ($columns - 4) {|column, left|
            $left - 3 - ($rows | get $column | each { into string | str length --grapheme-clusters } | append ($column | str length) | math max)
        }
    }

    # Counts sessions that are waiting, working, done or lost.
    def counts [rows]: nothing -> table {
        [
            {word: waiting, color: yellow, count: ($rows | where attention == needs_you | length)}
            {word: working, color: green, count: ($rows | where status in [in_progress just_started] | length)}
            {word: done, color: blue, count: ($rows | where attention == delivered | length)}
            {word: lost, color: red, count: ($rows | where status in [stuck degraded] and attention != needs_you | length)}
        ]
        | where count > 0
    }

    # A prompt in one line: the command or file, the question, or the dialog's title.
    def asks [prompt]: nothing -> any {
        if $prompt == null { return null }
        let about = ($prompt.command | default $prompt.file)
        if $about != null { return ([$prompt.tool $about] | compact | str join ': ' | lines | first) }
        $prompt.body | lines | where $it ends-with '?' | get 0? | default $prompt.title
    }

    # A short name for display: a generated name becomes its unique prefix (which read-only commands accept) and its tag.
    def short [name: string, tag]: nothing -> string {
        let made = ($name | parse --regex '^(?<unique>lisa-.+-\d{6}-\d{6}-\d{3})\d{6}-' | get 0?)
        if $made == null { return $name }
        $"($made.unique)…($tag)"
    }

    # Truncates text to this many characters.
    def cut [text: string, most: int]: nothing -> string {
        if ($text | str length --grapheme-clusters) <= $most { return $text }
        $"($text | str substring --grapheme-clusters 0..($most - 2))…"
    }

    # Rounds a duration down to its largest unit.
    def rounded [idle: duration]: nothing -> duration {
        let unit = ([1day 1hr 1min] | where $it <= $idle | get 0? | default 1sec)
        ($idle // $unit) * $unit
    }

    def color [row]: nothing -> string {
        match $row.attention {
            needs_you => 'yellow'
            delivered => 'blue'
            _ => (if $row.status in [stuck degraded crashed] { 'red' } else { 'green' })
        }
    }
}

export use lisa-for-every-day *
