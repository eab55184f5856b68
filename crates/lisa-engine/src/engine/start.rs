//! Starting sessions.

use super::{Engine, now};
use crate::{
    api::*,
    error::{Error, Kind, Result},
    judge::{self, Note, Record},
    profile::{Profile, launch::Launch},
    session::{
        end,
        find::Sighting,
        plan::{self, Asker, Places, Plan},
        spawn,
    },
    words::State,
};

impl Engine {
    /// Starts an agent in a session of its own.
    pub fn spawn(&self, request: &SpawnRequest) -> Result<SpawnResponse> {
        let profile = self.profile(&request.agent)?;
        let launch = launch_of(&profile)?;
        let parent = self.parent()?;
        let asker = self.asker(parent.as_ref());
        let plan = Plan::new(request, launch, &self.inner.config, asker)?;
        let store = self.store()?;
        let journal = self.journal()?;
        let started = spawn::spawn(
            plan,
            request,
            launch,
            &self.inner.caller.helper,
            (self.tmux(), &store, &self.inner.config),
        )?;
        let mut record = Record::fresh(&started.meta.run_id);
        let mut note = Note::line(format!("{} in {}", started.meta.agent, started.meta.cwd.display()));
        if request.prompt.is_some() && started.paste.is_none() {
            note.turn = Some(record.begin_turn(&started.meta.name, now()));
        }
        let turn = note.turn.clone();
        record.note(&started.meta.name, EventKind::Spawned, &State::Starting, now(), note, &journal);
        {
            let _lock = started.folder.lock(self.inner.config.lock_timeout)?;
            judge::write_record(&started.folder, &record)?;
        }
        judge::flush(&started.folder, &record, &journal)?;
        self.after_start(request, &started, turn)
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

    /// Ends one session, tells the journal, and says what was done.
    pub(super) fn end(&self, session: &Sighting, force: bool) -> Result<Action> {
        let journal = self.journal()?;
        let mut record = judge::read_record(&session.folder, &session.meta.run_id)
            .unwrap_or_else(|_| Record::fresh(&session.meta.run_id));
        let was = record.memory.verdict.as_ref().map_or(crate::words::Status::JustStarted, |v| v.status());
        let state = record.memory.verdict.as_ref().map_or(State::Starting, |verdict| verdict.state.clone());
        let killed = end::end(session, force, self.tmux())?;
        let mut note = Note::line(format!("was {was}"));
        note.turn = record.turn.as_ref().filter(|turn| turn.ended.is_none()).map(|turn| turn.id.clone());
        if note.turn.is_some() {
            let mut died = Note::line(TurnOutcome::Died.as_str());
            died.turn.clone_from(&note.turn);
            record.note(&session.meta.name, EventKind::TurnEnded, &state, now(), died, &journal);
        }
        record.note(&session.meta.name, EventKind::Killed, &state, now(), note, &journal);
        journal.append(&record.outbox, record.outbox_since)?;
        Ok(Action {
            name: session.meta.name.clone(),
            was,
            done: "killed".to_owned(),
            detail: (killed > 0)
                .then(|| format!("{killed} processes did not end by themselves and were killed")),
        })
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
