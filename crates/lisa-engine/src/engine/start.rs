//! Starting sessions.

use super::Engine;
use crate::{
    api::{
        Next, seconds,
        words::{State, StateName},
        *,
    },
    classify::profile::{
        Profile,
        launch::{Launch, Template},
    },
    disk::Lock,
    drive::{Driver, gate::Allows},
    error::{Error, Kind, Result},
    observe::now,
    session::{
        find::{self, SessionSnapshot},
        plan::{self, Plan, Requester, SessionPaths},
        spawn::{self, SpawnContext, Started},
    },
    watch::{
        describe,
        record::{Note, Record, timestamp},
    },
};
use std::time::Duration;

/// Timeout of a start that Lisa handles to the end (dialogs, first prompt).
const START_LIMIT: Duration = Duration::from_secs(30);
/// How many old ended sessions a start removes at most.
const REMOVED_AT_START: usize = 100;
/// How long a resume waits for another resume of the same session.
const RESUME_LIMIT: Duration = Duration::from_secs(60);

impl Engine {
    /// Starts an agent in a new session.
    pub fn spawn(&self, request: &SpawnRequest) -> Result<SpawnResponse> {
        seconds(request.wait_ready_s, Duration::ZERO)?;
        let profile = self.profile(&request.agent)?;
        let launch = launch_of(&profile)?;
        let parent = self.parent()?;
        let requester = self.requester(parent.as_ref());
        let plan = Plan::new(request, &profile, launch, &self.context.config, requester)?;
        let store = self.context.store()?;
        let template = plan::template(launch, request.mode, &request.agent)?;
        let started = spawn::spawn(
            plan,
            self.spawn_context(request, (&profile, launch, template)),
            &store,
            &self.context.config,
        )?;
        let turn = self.note_start(&started, request, EventKind::Spawned, 0).inspect_err(|_| {
            // A session that can't be recorded isn't left running.
            let _ = spawn::discard(&started, self.context.tmux());
        })?;
        // Without an observer, starting a session also removes old ones.
        if let Err(error) = self.context.remove_old_if_due(REMOVED_AT_START) {
            tracing::warn!(%error, "could not remove sessions that ended long ago");
        }
        self.after_start(request, &started, turn)
    }

    fn spawn_context<'a>(
        &'a self,
        request: &'a SpawnRequest,
        (profile, launch, template): (&'a Profile, &'a Launch, &'a Template),
    ) -> SpawnContext<'a> {
        SpawnContext {
            request,
            profile,
            launch,
            template,
            helper: &self.context.caller.helper,
            tmux: self.context.tmux(),
        }
    }

    /// Writes the first record of a run and tells the journal; a prompt given at the start begins a turn.
    fn note_start(
        &self,
        started: &Started,
        request: &SpawnRequest,
        kind: EventKind,
        turns: u64,
    ) -> Result<Option<String>> {
        let journal = self.context.journal()?;
        let snapshot = started.snapshot();
        let fresh = Record { turns, ..Record::fresh(&started.meta.run_id) };
        let mut change = self.context.writer(&journal).begin(&snapshot, fresh)?;
        let mut note = Note::line(format!("{} in {}", started.meta.agent, started.meta.cwd.display()));
        if request.prompt.is_some() && started.paste.is_none() {
            note.turn = Some(change.record.begin_turn(&started.meta.name, started.meta.started_at));
        }
        let turn = note.turn.clone();
        change.note(kind, &State::Starting, now(), note);
        // A session that can't be recorded isn't left running.
        change.commit()?.untold.map_or(Ok(turn), Err)
    }

    /// Handles a session's start: answers dialogs that the caller has consented to, and sends a prompt that isn't one
    /// of the arguments.
    fn after_start(
        &self,
        request: &SpawnRequest,
        started: &Started,
        turn: Option<String>,
    ) -> Result<SpawnResponse> {
        let asked = seconds(request.wait_ready_s, Duration::ZERO)?;
        let needed = request.trust || request.dangerous || started.paste.is_some();
        let limit = if needed { asked.max(START_LIMIT) } else { asked };
        let mut receipt = turn.map(|turn| Receipt {
            turn: Some(turn),
            delivered: Delivery::Submitted,
            evidence: Some("given to the agent at its start".to_owned()),
            at: timestamp(now()),
            refusal: None,
            hint: None,
            recorded: true,
        });
        if !limit.is_zero() {
            let driver = Driver::acquire(&self.context, &self.cancel, &started.meta.name)?;
            driver.handle_startup(request, limit)?;
            if let Some(prompt) = &started.paste {
                receipt = Some(driver.send_text(prompt, Allows::default(), limit)?);
            }
        }
        // A moment after its start it shows nothing yet, so what tmux reported about its pane is enough.
        let (snapshot, judged) = match limit.is_zero() {
            true => self.context.look_at_start(started)?,
            false => self.context.look_at(&started.meta.name)?,
        };
        let session = describe(&snapshot, &judged, false);
        let began = judged.record.turn.as_ref().is_some_and(|turn| turn.running);
        let held_back = session.prompt.as_ref().is_some_and(|prompt| prompt.dialog.is_some()) && !began;
        if let Some(receipt) =
            receipt.as_mut().filter(|receipt| held_back && receipt.delivered == Delivery::Submitted)
        {
            receipt.delivered = Delivery::Queued;
            receipt.hint = Some("the agent takes it up after the open dialog has been answered".to_owned());
        }
        let cursor = self.cursor()?;
        Ok(SpawnResponse { next: next_step(&session, cursor), session, receipt, cursor })
    }

    /// Resumes the agent's own conversation after the agent has ended.
    pub fn resume(&self, request: &ResumeRequest) -> Result<ActResponse> {
        seconds(request.wait_ready_s, Duration::ZERO)?;
        let store = self.context.store_with(&request.session)?;
        let (dir, _) = find::stored(&store, &request.session)?;
        // If two processes resume the same session, the second one finds it running (race).
        let _lock = Lock::take(&dir.file("resume.lock"), RESUME_LIMIT)?;
        let (session, judged) = self.context.look_at(&request.session)?;
        let was = judged.outcome.verdict.status();
        if session.alive() {
            let described = describe(&session, &judged, false);
            let action = Action {
                name: request.session.clone(),
                was,
                done: "already_running".to_owned(),
                detail: Some("send more to continue".to_owned()),
                recorded: true,
            };
            let cursor = self.cursor()?;
            return Ok(ActResponse {
                action,
                next: next_step(&described, cursor),
                session: Some(described),
                cursor,
            });
        }
        let profile = self.profile(&session.meta.agent)?;
        let launch = launch_of(&profile)?;
        let template = launch.resume.as_ref().ok_or_else(|| {
            Error::new(
                Kind::NotOffered,
                format!("`{}` cannot resume conversations", profile.id),
                "start a new session instead",
            )
        })?;
        let id =
            judged.record.memory.session_id().map(str::to_owned).or(session.meta.agent_session_id.clone());
        let id = id.ok_or_else(|| {
            Error::new(
                Kind::NotOffered,
                format!("`{}` had no conversation that could be resumed", request.session),
                "start a new session instead",
            )
        })?;
        let again = spawn_request(&session, request);
        let parent = session.meta.parent.clone().map(|name| (name, session.meta.depth.saturating_sub(1)));
        let mut plan = Plan::with(
            &again,
            (&profile, launch, template),
            &self.context.config,
            self.requester(parent.as_ref()),
        )?;
        plan.meta.agent_session_id = Some(id);
        plan.meta.tag.clone_from(&session.meta.tag);
        let spawn_context = self.spawn_context(&again, (&profile, launch, template));
        let started = spawn::respawn(plan, spawn_context, &session, &store, &self.context.config)?;
        let turn = self.note_start(&started, &again, EventKind::Resumed, judged.record.turns)?;
        let response = self.after_start(&again, &started, turn)?;
        let action = Action {
            name: request.session.clone(),
            was,
            done: "resumed".to_owned(),
            detail: None,
            recorded: true,
        };
        // Its result was read before it ended.
        let next = match (response.session.state, &request.prompt) {
            (StateName::Ready, None) => Next::Send { session: request.session.clone() },
            _ => response.next,
        };
        Ok(ActResponse { action, next, session: Some(response.session), cursor: response.cursor })
    }

    /// The session that the caller runs in, with its nesting depth.
    fn parent(&self) -> Result<Option<(String, u32)>> {
        let Some(name) = self.context.caller.env.text("LISA_SESSION") else { return Ok(None) };
        // A parent that Lisa doesn't know (any more) still counts.
        let depth = self.context.store()?.load(name).ok().flatten().map_or(0, |(_, meta)| meta.depth);
        Ok(Some((name.to_owned(), depth)))
    }

    fn requester<'a>(&'a self, parent: Option<&'a (String, u32)>) -> Requester<'a> {
        Requester {
            env: &self.context.caller.env,
            cwd: &self.context.caller.cwd,
            beside: self.beside(),
            parent: parent.map(|(name, depth)| (name.as_str(), *depth)),
            now: jiff::Timestamp::now(),
        }
    }

    /// The command that a spawn would run.
    pub fn build_command(&self, request: &BuildCommandRequest) -> Result<Vec<String>> {
        let profile = self.profile(&request.agent)?;
        let launch = launch_of(&profile)?;
        let request = SpawnRequest {
            agent: request.agent.clone(),
            mode: request.mode,
            prompt: request.prompt.clone(),
            model: request.model.clone(),
            args: request.args.clone(),
            ..SpawnRequest::default()
        };
        let mut plan = Plan::new(&request, &profile, launch, &self.context.config, self.requester(None))?;
        let dir = self.context.config.state_dir.join("sessions").join(&plan.meta.name);
        let settings =
            launch.settings.as_ref().map(|settings| dir.join(&settings.file).display().to_string());
        let paths = SessionPaths { dir: dir.display().to_string(), settings };
        plan.fill(&request, plan::template(launch, request.mode, &request.agent)?, launch, &paths);
        Ok(plan.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }
}

/// The request that a session was started with, as far as known.
fn spawn_request(session: &SessionSnapshot, request: &ResumeRequest) -> SpawnRequest {
    SpawnRequest {
        agent: session.meta.agent.clone(),
        prompt: request.prompt.clone(),
        cwd: Some(session.meta.cwd.display().to_string()),
        name: Some(session.meta.name.clone()),
        model: session.meta.model.clone(),
        size: Some(session.meta.size),
        policy: session.meta.policy.clone(),
        trust: session.meta.trust,
        dangerous: session.meta.dangerous,
        wait_ready_s: request.wait_ready_s,
        ..SpawnRequest::default()
    }
}

/// How to start an agent, if its profile says.
pub(super) fn launch_of(profile: &Profile) -> Result<&Launch> {
    profile.launch.as_ref().ok_or_else(|| {
        Error::new(
            Kind::NotOffered,
            format!("the profile `{}` does not say how to start it", profile.id),
            "add a [launch] table to it",
        )
    })
}
