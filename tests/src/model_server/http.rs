//! The web server: takes requests, asks the director, plays the reply step by step.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::director::Director;
use super::log::{End, Log, Recorder, What};
use super::request::{Api, Request};
use super::scenario::{Opening, Pace, Reply, Step, Stop, Usage};
use super::{anthropic, openai};

/// What the server's thread and its owner share.
pub(crate) struct Stage {
    pub(crate) director: Mutex<Director>,
    pub(crate) log: Log,
    /// The gates that are open.
    pub(crate) gates: watch::Sender<Vec<String>>,
}

impl Stage {
    pub(crate) fn direct<T>(&self, act: impl FnOnce(&mut Director) -> T) -> T {
        act(&mut self.director.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A kind of content that arrives in pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    Text,
    Thinking,
}

/// Writes the parts of a reply in an API's words.
pub(crate) trait Wire: Send + Sync {
    fn content_type(&self) -> &'static str {
        "text/event-stream"
    }
    fn open(&mut self, usage: &Usage) -> String;
    fn begin(&mut self, block: Block) -> String;
    fn piece(&mut self, block: Block, text: &str) -> String;
    fn finish(&mut self, block: Block, whole: &str) -> String;
    fn call(&mut self, name: &str, input: &Value) -> String;
    fn call_custom(&mut self, name: &str, input: &str) -> String;
    fn fail(&mut self, code: &str, message: &str) -> String;
    fn close(&mut self, stop: Stop, usage: &Usage) -> String;
}

/// A server-sent event, named by the `type` of its data.
pub(crate) fn sse(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

pub(crate) fn routes(stage: Arc<Stage>) -> Router {
    Router::new()
        .route("/v1/messages", post(messages))
        .route("/v1/responses", post(responses))
        .fallback(probe)
        .layer(DefaultBodyLimit::disable())
        .with_state(stage)
}

async fn messages(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    match serde_json::from_slice(&body) {
        Ok(body) => answer(stage, anthropic::read(&headers, body)).await,
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn responses(State(stage): State<Arc<Stage>>, headers: HeaderMap, body: Bytes) -> Response {
    match serde_json::from_slice(&body) {
        Ok(body) => answer(stage, openai::read(&headers, body)).await,
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Claude Code looks whether the server is there before anything else; nothing but `/` exists.
async fn probe(State(stage): State<Arc<Stage>>, method: Method, uri: Uri) -> StatusCode {
    stage.log.probe(format!("{method} {uri}"));
    if uri.path() == "/" { StatusCode::OK } else { StatusCode::NOT_FOUND }
}

async fn answer(stage: Arc<Stage>, request: Request) -> Response {
    let request = Arc::new(request);
    let recorder = stage.log.ask(request.clone());
    let (reply, source) = stage.direct(|director| director.choose(&request));
    recorder.note(What::Chosen(source));
    match &reply.opening {
        Opening::Stream => stream(stage, recorder, &request, reply),
        Opening::Error { status, message, retry_after } => {
            let body = match request.api {
                Api::Anthropic => anthropic::error_body(*status, message.as_deref()),
                Api::OpenAi => openai::error_body(*status, message.as_deref()),
            };
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut headers = vec![(header::CONTENT_TYPE, "application/json".to_owned())];
            headers.extend(retry_after.map(|seconds| (header::RETRY_AFTER, seconds.to_string())));
            recorder.note(What::Headers(status.as_u16()));
            recorder.end(End::Complete);
            (status, axum::response::AppendHeaders(headers), body.to_string()).into_response()
        }
        // The recorder waits here to be dropped with this future, when the client leaves.
        Opening::Hang | Opening::Given(_) => std::future::pending().await,
    }
}

fn stream(stage: Arc<Stage>, recorder: Recorder, request: &Request, reply: Reply) -> Response {
    let wire: Box<dyn Wire> = match request.api {
        Api::Anthropic if request.body["stream"] == true => {
            Box::new(anthropic::Stream::new(recorder.number(), request))
        }
        Api::Anthropic => Box::new(anthropic::Message::new(recorder.number(), request)),
        Api::OpenAi => Box::new(openai::Stream::new(recorder.number())),
    };
    let content_type = wire.content_type();
    let (frames, mut taken) = mpsc::channel(16);
    recorder.note(What::Headers(200));
    tokio::spawn(async move {
        let mut player = Player { wire, frames: &frames, open: None };
        let end = tokio::select! {
            end = player.play(&reply, &recorder, &stage) => end,
            () = frames.closed() => Err(Gone),
        };
        recorder.end(end.unwrap_or(End::ClientLeft));
    });
    let body = Body::from_stream(futures_util::stream::poll_fn(move |context| taken.poll_recv(context)));
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

/// The client is no longer there.
struct Gone;

struct Player<'a> {
    wire: Box<dyn Wire>,
    frames: &'a mpsc::Sender<io::Result<Bytes>>,
    /// The block that is being written, with its text so far.
    open: Option<(Block, String)>,
}

impl Player<'_> {
    async fn play(&mut self, reply: &Reply, recorder: &Recorder, stage: &Stage) -> Result<End, Gone> {
        let opening = self.wire.open(&reply.usage);
        self.send(opening).await?;
        for step in &reply.steps {
            recorder.note(What::Step(step.clone()));
            match step {
                Step::Text { text, pace } => self.write(Block::Text, text, *pace).await?,
                Step::Thinking { text, pace } => self.write(Block::Thinking, text, *pace).await?,
                Step::Call { name, input } => {
                    self.finish().await?;
                    let call = self.wire.call(name, input);
                    self.send(call).await?;
                }
                Step::CustomCall { name, input } => {
                    self.finish().await?;
                    let call = self.wire.call_custom(name, input);
                    self.send(call).await?;
                }
                Step::Pause(time) => tokio::time::sleep(*time).await,
                Step::Hold(gate) => {
                    let open = |gates: &Vec<String>| gates.contains(gate);
                    // An error means that the server is being dropped, and this task with it.
                    let _ = stage.gates.subscribe().wait_for(open).await;
                }
                Step::Hang => std::future::pending().await,
                Step::Cut => {
                    // What was written so far should arrive before the connection breaks.
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    let broken = io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script");
                    self.frames.send(Err(broken)).await.map_err(|_| Gone)?;
                    return Ok(End::Cut);
                }
                Step::Fail { code, message } => {
                    let failure = self.wire.fail(code, message);
                    self.send(failure).await?;
                    return Ok(End::Complete);
                }
            }
        }
        self.finish().await?;
        let closing = self.wire.close(reply.stop, &reply.usage);
        self.send(closing).await?;
        Ok(End::Complete)
    }

    async fn write(&mut self, block: Block, text: &str, pace: Pace) -> Result<(), Gone> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != block) {
            self.finish().await?;
            let beginning = self.wire.begin(block);
            self.send(beginning).await?;
            self.open = Some((block, String::new()));
        }
        let letters: Vec<char> = text.chars().collect();
        let size = if pace.chars == 0 { letters.len() } else { pace.chars };
        for (index, letters) in letters.chunks(size.max(1)).enumerate() {
            if index > 0 {
                tokio::time::sleep(pace.every).await;
            }
            let piece: String = letters.iter().collect();
            if let Some((_, whole)) = &mut self.open {
                whole.push_str(&piece);
            }
            let delta = self.wire.piece(block, &piece);
            self.send(delta).await?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<(), Gone> {
        if let Some((block, whole)) = self.open.take() {
            let end = self.wire.finish(block, &whole);
            self.send(end).await?;
        }
        Ok(())
    }

    async fn send(&self, events: String) -> Result<(), Gone> {
        if events.is_empty() {
            return Ok(());
        }
        self.frames.send(Ok(Bytes::from(events))).await.map_err(|_| Gone)
    }
}
