//! The reason for a verdict, in one word: the rule that decided.

words! {
    /// The reason for a verdict: the rule that decided, or what kept Lisa from applying the rules.
    Reason {
        /// The tmux server that the session was started in died, and the session with it.
        ServerDied = "server_died",
        /// tmux says that the pane's process has ended (with its exit code or signal), or no longer has the session.
        PaneDead = "pane_dead",
        /// The run's own done file, or the marker at the very end of its output, says that the run is over.
        RunDone = "run_done",
        /// The agent's process was seen before and is gone now, and a shell runs in its pane.
        AgentGone = "agent_gone",
        /// The agent is suspended and a shell is in the foreground: nothing moves until somebody resumes it.
        AgentSuspended = "agent_suspended",
        /// tmux could not be read, and the agent has said nothing recently that would still hold.
        PaneUnreadable = "pane_unreadable",
        /// The screen shows a dialog in the place where this agent shows dialogs.
        DialogShown = "dialog_shown",
        /// The agent's state file says that it waits for an answer.
        NativeAsking = "native_asking",
        /// The agent's title says that it waits for an answer, and the screen shows no input box.
        TitleAsking = "title_asking",
        /// The agent announced a prompt, nothing has answered it since, and nothing shows that it is closed.
        EventAsking = "event_asking",
        /// Agent and screen agree that the turn is over, although the agent still signals activity for background
        /// work.
        FinishedWithBackground = "finished_with_background",
        /// Title, state file or screen show a running turn, but nothing has moved for more than a minute.
        Frozen = "frozen",
        /// The agent's title shows a running turn.
        TitleWorking = "title_working",
        /// The agent's state file says that a turn is running, and title and screen don't both contradict it.
        NativeWorking = "native_working",
        /// The agent's last event belongs to a running turn, and no live channel has said idle since.
        EventWorking = "event_working",
        /// The screen shows a running turn in the place where this agent shows it, and no live channel has settled on
        /// idle.
        ScreenWorking = "screen_working",
        /// Lisa just submitted a prompt, and nothing shows yet what the agent did with it.
        JustSent = "just_sent",
        /// A turn was running at the last look, a moment ago. Only the title or the screen says that it is over, and
        /// only since then.
        Settling = "settling",
        /// A run in exec mode never waits for input: it is working as long as its process lives.
        ExecRunning = "exec_running",
        /// No turn is running, and something unknown to Lisa is where the input box was: a pager, an editor, a new
        /// dialog.
        InputCovered = "input_covered",
        /// The agent says that the turn failed for good, or its screen ends in an error and the agent doesn't
        /// contradict it.
        TurnFailed = "turn_failed",
        /// The agent says that somebody interrupted the turn, or its screen says so and the agent doesn't contradict
        /// it.
        TurnInterrupted = "turn_interrupted",
        /// The agent ended its turn and nothing says that another one has started.
        TurnOver = "turn_over",
        /// The agent takes input since a moment ago, and hasn't taken up the prompt that it was started with yet.
        PromptPending = "prompt_pending",
        /// The agent's live state is idle and it shows that it takes input.
        Idle = "idle",
        /// The screen shows an input box and signs that the agent is up, and nothing shows a running turn.
        InputReady = "input_ready",
        /// The agent writes plain text and draws no screen of its own: it is running, and nothing more can be said.
        PlainOutput = "plain_output",
        /// The session is young and nothing shows yet that the agent takes input.
        Starting = "starting",
        /// Some signals could not be read, and the others say nothing.
        SignalsFailed = "signals_failed",
        /// The agent is alive, no prompt is open, and nothing has moved for too long.
        NothingMoves = "nothing_moves",
        /// The process is alive but shows no structure that Lisa knows: it is running, and nothing more can be said.
        AgentAlive = "agent_alive",
        /// There is no evidence at all.
        NothingKnown = "nothing_known",
        /// Somebody is starting the session right now.
        BeingStarted = "being_started",
        /// The session's state could not be read or written, so Lisa gives no verdict that it could not report.
        StateUnwritable = "state_unwritable",
        /// Another process held the session's lock for too long.
        StateLockTimeout = "state_lock_timeout",
    }
}
