//! Starting sessions.

use super::{Engine, next_step, now};
use crate::{
    api::*,
    disk::Lock,
    drive::{Driver, gate::Allows, seconds},
    error::{Error, Kind, Result},
    profile::{
        Profile,
        launch::{Launch, Template},
    },
    session::{
        find::{self, Sighting},
        plan::{self, Asker, Places, Plan},
        spawn::{self, Means, Started},
    },
    watch::record::{Note, Record, timestamp},
    words::{State, StateName},
};
use std::time::Duration;

/// How long a start may take that has to be seen through.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How many sessions that ended long ago are removed for each that is started.
const REMOVED_AT_START: usize = 5;
/// How long one resume waits for another of the same session.
const RESUME_LIMIT: Duration = Duration::from_secs(60);

impl Engine {
    /// Starts an agent in a session of its own.
    pub fn spawn(&self, request: &SpawnRequest) -> Result<SpawnResponse> {
        seconds(request.wait_ready_s, Duration::ZERO)?;
        let profile = self.profile(&request.agent)?;
        let launch = launch_of(&profile)?;
        let parent = self.parent()?;
        let asker = self.asker(parent.as_ref());
        let plan = Plan::new(request, launch, &self.inner.config, asker)?;
        let store = self.store()?;
        let template = plan::template(launch, request.mode, &request.agent)?;
        let started = spawn::spawn(plan, self.means(request, launch, template), &store, &self.inner.config)?;
        let turn = self.note_start(&started, request, EventKind::Spawned, 0).inspect_err(|_| {
            // A session that nobody could be told of is not left running.
            let _ = spawn::take_back(&started, self.tmux());
        })?;
        // Where nobody watches, those who start sessions remove the old ones.
        if let Err(error) = self.remove_old(REMOVED_AT_START) {
            tracing::warn!(%error, "sessions that ended long ago cannot be removed");
        }
        self.after_start(request, &started, turn)
    }

    fn means<'a>(
        &'a self,
        request: &'a SpawnRequest,
        launch: &'a Launch,
        template: &'a Template,
    ) -> Means<'a> {
        Means { request, launch, template, helper: &self.inner.caller.helper, tmux: self.tmux() }
    }

    /// Writes the first record of a run and tells the journal; a prompt that went with the start begins a turn.
    fn note_start(
        &self,
        started: &Started,
        request: &SpawnRequest,
        kind: EventKind,
        turns: u64,
    ) -> Result<Option<String>> {
        let journal = self.journal()?;
        let sighting = started.sighting();
        let fresh = Record { turns, ..Record::fresh(&started.meta.run_id) };
        let mut change = self.writer(&journal).begin(&sighting, fresh)?;
        let mut note = Note::line(format!("{} in {}", started.meta.agent, started.meta.cwd.display()));
        if request.prompt.is_some() && started.paste.is_none() {
            note.turn = Some(change.record.begin_turn(&started.meta.name, started.meta.started_at));
        }
        let turn = note.turn.clone();
        change.note(kind, &State::Starting, now(), note);
        // A session that nobody could be told of is not left running.
        change.commit()?.untold.map_or(Ok(turn), Err)
    }

    /// Sees a session through its start: dialogs that the caller said yes to beforehand are answered, a prompt that
    /// does not go by the arguments is sent.
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
            let driver = Driver::take(self, &started.meta.name)?;
            driver.see_through_start(request, limit)?;
            if let Some(prompt) = &started.paste {
                receipt = Some(driver.send_text(prompt, Allows::default(), limit)?);
            }
        }
        // A moment after its start it shows nothing yet: what tmux said of its pane is all there is to see.
        let (sighting, judged) = match limit.is_zero() {
            true => self.look_at_start(started)?,
            false => self.look_at(&started.meta.name)?,
        };
        let session = self.describe(&sighting, &judged, false);
        let began = judged.record.turn.as_ref().is_some_and(|turn| turn.running);
        let held_back = session.prompt.as_ref().is_some_and(|prompt| prompt.dialog.is_some()) && !began;
        if let Some(receipt) =
            receipt.as_mut().filter(|receipt| held_back && receipt.delivered == Delivery::Submitted)
        {
            receipt.delivered = Delivery::Queued;
            receipt.hint =
                Some("the agent takes it up once the dialog that is open has been answered".to_owned());
        }
        let cursor = self.cursor()?;
        Ok(SpawnResponse { next: next_step(&session, cursor), session, receipt, cursor })
    }

    /// Takes up the agent's own conversation again after it has ended.
    pub fn resume(&self, request: &ResumeRequest) -> Result<ActResponse> {
        seconds(request.wait_ready_s, Duration::ZERO)?;
        let store = self.store_with(&request.session)?;
        let (folder, _) = find::stored(&store, &request.session)?;
        // Two who resume the same session: the second finds it running.
        let _lock = Lock::take(&folder.file("resume.lock"), RESUME_LIMIT)?;
        let (session, judged) = self.look_at(&request.session)?;
        let was = judged.outcome.verdict.status();
        if session.alive() {
            let described = self.describe(&session, &judged, false);
            let action = Action {
                name: request.session.clone(),
                was,
                done: "already_running".to_owned(),
                detail: Some("send_input goes on with it".to_owned()),
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
                format!("`{}` can not take up a conversation again", profile.id),
                "start a new session instead",
            )
        })?;
        let id =
            judged.record.memory.session_id().map(str::to_owned).or(session.meta.agent_session_id.clone());
        let id = id.ok_or_else(|| {
            Error::new(
                Kind::NotOffered,
                format!("`{}` had no conversation that could be taken up", request.session),
                "start a new session instead",
            )
        })?;
        let again = spawn_request(&session, request);
        let parent = session.meta.parent.clone().map(|name| (name, session.meta.depth.saturating_sub(1)));
        let mut plan = Plan::with(&again, launch, template, &self.inner.config, self.asker(parent.as_ref()))?;
        plan.meta.agent_session_id = Some(id);
        plan.meta.tag.clone_from(&session.meta.tag);
        let means = self.means(&again, launch, template);
        let started = spawn::respawn(plan, means, &session, &store, &self.inner.config)?;
        let turn = self.note_start(&started, &again, EventKind::Resumed, judged.record.turns)?;
        let response = self.after_start(&again, &started, turn)?;
        let action = Action {
            name: request.session.clone(),
            was,
            done: "resumed".to_owned(),
            detail: None,
            recorded: true,
        };
        // What it shows as delivered was read before it ended.
        let next = match (response.session.state, &request.prompt) {
            (StateName::Ready, None) => format!("send_input to {} goes on with it", request.session),
            _ => response.next,
        };
        Ok(ActResponse { action, next, session: Some(response.session), cursor: response.cursor })
    }

    /// The session that the caller itself is, with how deep it is nested.
    fn parent(&self) -> Result<Option<(String, u32)>> {
        let Some(name) = self.inner.caller.env.text("LISA_SESSION") else { return Ok(None) };
        // A parent that Lisa does not know (any more) still counts as one.
        let depth = self.store()?.load(name).ok().flatten().map_or(0, |(_, meta)| meta.depth);
        Ok(Some((name.to_owned(), depth)))
    }

    fn asker<'a>(&'a self, parent: Option<&'a (String, u32)>) -> Asker<'a> {
        Asker {
            env: &self.inner.caller.env,
            cwd: &self.inner.caller.cwd,
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
        let mut plan = Plan::new(&request, launch, &self.inner.config, self.asker(None))?;
        let folder = self.inner.config.state_dir.join("sessions").join(&plan.meta.name);
        let settings =
            launch.settings.as_ref().map(|settings| folder.join(&settings.file).display().to_string());
        let places = Places { folder: folder.display().to_string(), settings };
        plan.fill(&request, plan::template(launch, request.mode, &request.agent)?, launch, &places);
        Ok(plan.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }
}

/// The request that a session was started with, as far as it is known.
fn spawn_request(session: &Sighting, request: &ResumeRequest) -> SpawnRequest {
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

/// How an agent is started, where its profile says.
pub(super) fn launch_of(profile: &Profile) -> Result<&Launch> {
    profile.launch.as_ref().ok_or_else(|| {
        Error::new(
            Kind::NotOffered,
            format!("the profile `{}` does not say how to start it", profile.id),
            "add a [launch] table to it",
        )
    })
}
