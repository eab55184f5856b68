//! A session in a play: driven by somebody's hands, followed by the second pair of eyes.

use std::thread;
use std::time::Duration;

use lisa_engine::api::{AnswerRequest, SendRequest, SpawnRequest, View};

use super::Scene;
use crate::hands::{Answered, Asked, Done, Hands, Seen, Sent, Spawned, Told, Until};
use crate::lab::{Eyes, Judgement, Lab, PATIENCE};
use crate::model_server::Exchange;
use crate::truth::{Deed, Doing};

/// How long a state is left as it is before the play goes on: longer than Lisa may take to see it.
pub(super) const A_WHILE: Duration = Duration::from_millis(1_500);

/// A session in a play.
pub struct Actor<'a> {
    lab: &'a Lab,
    hands: &'a dyn Hands,
    /// Its name.
    pub name: String,
    /// What the spawn answered.
    pub spawned: Spawned,
    /// The second pair of eyes.
    pub eyes: Eyes<'a>,
}

impl<'a> Actor<'a> {
    pub(super) fn spawn(lab: &'a Lab, hands: &'a dyn Hands, scene: &Scene, request: &SpawnRequest) -> Self {
        let name = request.name.clone().unwrap();
        let eyes = Eyes::open(lab, &name);
        eyes.scene(scene.id, scene.asks, scene.ends);
        let spawned = hands.spawn(request).unwrap_or_else(|why| panic!("{name} did not start: {why}"));
        eyes.record();
        Self { lab, hands, name, spawned, eyes }
    }

    pub(super) fn scene(&self, scene: &Scene) {
        self.eyes.scene(scene.id, scene.asks, scene.ends);
    }

    fn must<T>(&self, told: Told<T>, what: &str) -> T {
        told.unwrap_or_else(|why| panic!("{what} {}: {why}\n{}", self.name, self.eyes.explained()))
    }

    /// Fails with everything that helps to see why, unless it holds.
    #[track_caller]
    pub fn check(&self, holds: bool, what: &str) {
        assert!(holds, "{}: {what}\n{}", self.name, self.eyes.explained());
    }

    /// What Lisa says now.
    pub fn status(&self) -> Seen {
        self.must(self.hands.status(&self.name), "status of")
    }

    /// Waits for a state, a status or `attention`.
    pub fn until(&self, word: &str) -> Seen {
        let told = self.hands.wait(&self.name, &Until::Word(word), PATIENCE.as_secs_f64());
        self.must(told, &format!("waiting for {word} of"));
        if word != "working" {
            linger();
        }
        self.status()
    }

    /// Waits for the end of a turn.
    pub fn turn(&self, turn: &str) -> Seen {
        let told = self.hands.wait(&self.name, &Until::Turn(turn), PATIENCE.as_secs_f64());
        self.must(told, "waiting for the turn of");
        self.status()
    }

    /// Sends a prompt, which must be taken.
    pub fn send(&self, text: &str) -> Sent {
        let sent = self.offer(text);
        let proven = sent.delivered == "submitted" && sent.evidence.is_some();
        self.check(proven, &format!("the prompt was not taken: {sent:?}"));
        sent
    }

    /// Sends a prompt, whatever comes of it.
    pub fn offer(&self, text: &str) -> Sent {
        let request =
            SendRequest { session: self.name.clone(), text: Some(text.to_owned()), ..SendRequest::default() };
        let began = crate::lab::now_ms();
        let sent = self.must(self.hands.send(&request), "sending to");
        if sent.delivered != "refused" {
            // From the first key to the request that tells of it, no log says what the agent does.
            self.eyes.did_at(began, Deed::Meddled);
        }
        sent
    }

    /// Presses keys.
    pub fn keys(&self, keys: &[&str]) {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        let request = SendRequest { session: self.name.clone(), keys, ..SendRequest::default() };
        self.must(self.hands.send(&request), "pressing keys of");
    }

    /// Waits until something is asked, and leaves it unanswered for a while.
    pub fn blocked(&self, state: &str) -> Asked {
        self.until(state);
        thread::sleep(2 * A_WHILE);
        let seen = self.status();
        self.check(seen.state.as_str() == state, &format!("it was {state}, and is {seen:?}"));
        seen.prompt.unwrap_or_else(|| panic!("{} asks nothing\n{}", self.name, self.eyes.explained()))
    }

    /// Answers what is asked, if it is still this.
    pub fn answer(&self, asked: &Asked, choice: &str, deed: Deed) -> Answered {
        let request = AnswerRequest {
            session: self.name.clone(),
            choice: Some(choice.to_owned()),
            prompt_id: Some(asked.id.clone()),
            ..AnswerRequest::default()
        };
        let began = crate::lab::now_ms();
        self.eyes.did_at(began, deed);
        // Some hands are slow: only when they are done has the agent certainly been told.
        self.eyes.did_at(began + 1, Deed::Meddled);
        let answered = self.must(self.hands.answer(&request), "answering");
        if deed == Deed::Declined {
            self.eyes.did(Deed::Known(Doing::Stopped));
        }
        answered
    }

    /// Waits for the end of the turn with these last words.
    pub fn says(&self, words: &str) -> Seen {
        let seen = self.until("ready");
        self.check(
            seen.last_message.as_deref() == Some(words),
            &format!("it should say {words:?}: {seen:?}"),
        );
        seen
    }

    /// A prompt, its receipt, and the end of its turn with these words.
    pub fn converses(&self, prompt: &str, words: &str) -> Seen {
        let sent = self.send(prompt);
        let turn = sent.turn.unwrap_or_else(|| panic!("the receipt names no turn"));
        self.turn(&turn);
        let seen = self.says(words);
        linger();
        seen
    }

    /// Waits until the model is asked for this prompt; the exchange so far.
    pub fn asked(&self, prompt: &str) -> Exchange {
        let of = |exchanges: Vec<Exchange>| exchanges.into_iter().find(|item| item.request.prompt == prompt);
        let seen =
            self.lab.server.wait(PATIENCE, |events| of(crate::model_server::exchanges(events)).is_some());
        self.check(seen, &format!("the model was not asked {prompt:?}"));
        of(self.lab.server.exchanges()).unwrap()
    }

    /// Stops the turn.
    pub fn interrupt(&self) -> Done {
        self.eyes.did(Deed::Meddled);
        let done = self.must(self.hands.interrupt(&self.name), "interrupting");
        self.eyes.did(Deed::Interrupted);
        done
    }

    /// Takes the conversation up again.
    pub fn resume(&self, prompt: Option<&str>) -> Done {
        self.eyes.did(Deed::Meddled);
        self.must(self.hands.resume(&self.name, prompt), "resuming")
    }

    /// One of the views of the session.
    pub fn read(&self, view: View) -> String {
        self.must(self.hands.read(&self.name, view), "reading")
    }

    /// What is known of the agent from elsewhere than the model's log.
    pub fn is_known(&self, doing: Doing) {
        self.eyes.did(Deed::Known(doing));
    }

    /// Ends the session and removes it.
    pub fn kill(&self) {
        self.eyes.close();
        let done = self.must(self.hands.kill(&self.name), "killing");
        self.check(done.done == "killed", &format!("it was not killed: {done:?}"));
    }

    pub(super) fn judge(&self) -> Judgement {
        self.eyes.judge()
    }
}

/// A recording must show what came, and not only that it came: what is judged in it has lasted for a while.
fn linger() {
    if crate::record::asked() {
        thread::sleep(2 * A_WHILE);
    }
}
