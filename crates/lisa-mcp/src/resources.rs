//! Sessions as MCP resources: `lisa://sessions`, and the screen, transcript and events of each session.

use crate::{prompts, server::Lisa, truncate};
use lisa_engine::{
    api::{Event, ListRequest, ReadRequest, View},
    error::{Error, Kind},
};
use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ListResourcesResult, ReadResourceResult,
        Reference, Resource, ResourceContents, ResourceTemplate,
    },
};

const SESSIONS_URI: &str = "lisa://sessions";
const SESSION_PREFIX: &str = "lisa://session/";

/// Number of sessions on a page of `resources/list`. Each has three resources.
const PAGE_SIZE: usize = 30;

/// A resource of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionResource {
    /// The terminal's screen.
    Screen,
    /// The conversation.
    Transcript,
    /// The session's events.
    Events,
}

impl SessionResource {
    const ALL: [Self; 3] = [Self::Screen, Self::Transcript, Self::Events];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Screen => "screen",
            Self::Transcript => "transcript",
            Self::Events => "events",
        }
    }

    const fn view(self) -> View {
        match self {
            Self::Screen => View::Screen,
            Self::Transcript => View::Transcript,
            Self::Events => View::Events,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Screen => "The terminal's screen",
            Self::Transcript => "The newest part of the conversation",
            Self::Events => "The session's events",
        }
    }
}

/// A parsed resource URI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceUri {
    /// The list of all sessions.
    Sessions,
    /// A resource of one session.
    Session {
        /// The session's name.
        name: String,
        /// Which resource of the session.
        part: SessionResource,
    },
}

impl ResourceUri {
    /// Parses a URI. Unknown URIs are `RESOURCE_NOT_FOUND` errors.
    pub fn parse(uri: &str) -> Result<Self, ErrorData> {
        if uri == SESSIONS_URI {
            return Ok(Self::Sessions);
        }
        let found = uri.strip_prefix(SESSION_PREFIX).and_then(|rest| {
            let (name, part) = rest.split_once('/')?;
            let part = SessionResource::ALL.into_iter().find(|known| known.as_str() == part)?;
            let plain =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            plain.then(|| Self::Session { name: name.to_owned(), part })
        });
        found.ok_or_else(|| {
            not_found(
                uri,
                "valid URIs are lisa://sessions and lisa://session/{name}/screen, …/transcript, …/events",
            )
        })
    }

    /// Whether an event may have changed the contents of this resource.
    pub fn is_changed_by(&self, event: &Event) -> bool {
        match self {
            Self::Sessions => true,
            Self::Session { name, .. } => *name == event.session,
        }
    }
}

fn session_uri(name: &str, part: SessionResource) -> String {
    format!("{SESSION_PREFIX}{name}/{}", part.as_str())
}

fn not_found(uri: &str, why: &str) -> ErrorData {
    let shown = lisa_engine::error::printable(uri);
    ErrorData::resource_not_found(format!("resource not found: `{shown}`; {why}"), None)
}

fn read_error(uri: &str, error: &Error) -> ErrorData {
    match error.kind() {
        Kind::SessionNotFound | Kind::AmbiguousSession | Kind::InvalidName => {
            not_found(uri, &error.to_string())
        }
        kind => ErrorData::internal_error(format!("{}: {error}", kind.as_str()), None),
    }
}

/// Handles `resources/list`: the list of sessions, and the resources of each session, in pages.
pub(crate) async fn list(lisa: &Lisa, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let mut names = lisa.run(|engine| engine.names()).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot list the sessions");
        Vec::new()
    });
    names.sort();
    let mut resources = Vec::new();
    if cursor.is_none() {
        resources.push(
            Resource::new(SESSIONS_URI, "sessions")
                .with_title("All sessions")
                .with_description("Every session with its status, as JSON.")
                .with_mime_type("application/json"),
        );
    }
    let mut rest = names.into_iter().filter(|name| cursor.as_ref().is_none_or(|after| name > after));
    let page: Vec<String> = rest.by_ref().take(PAGE_SIZE).collect();
    for name in &page {
        resources.extend(SessionResource::ALL.into_iter().map(|part| {
            Resource::new(session_uri(name, part), format!("{name}/{}", part.as_str()))
                .with_title(format!("{name}: {}", part.as_str()))
                .with_description(part.title())
                .with_mime_type("text/plain")
        }));
    }
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = rest.next().and_then(|_| page.last().cloned());
    Ok(result)
}

/// Handles `resources/templates/list`.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    SessionResource::ALL
        .into_iter()
        .map(|part| {
            ResourceTemplate::new(format!("{SESSION_PREFIX}{{name}}/{}", part.as_str()), part.as_str())
                .with_title(part.title())
                .with_description(format!("{}; `name` is the exact name of a session.", part.title()))
                .with_mime_type("text/plain")
        })
        .collect()
}

/// Handles `resources/read`.
pub(crate) async fn read(lisa: &Lisa, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match ResourceUri::parse(uri)? {
        ResourceUri::Sessions => {
            let request = ListRequest { limit: Some(100), ..ListRequest::default() };
            let mut answer =
                lisa.run(move |engine| engine.list(&request)).await.map_err(|e| read_error(uri, &e))?;
            truncate::list(&mut answer);
            let text = serde_json::to_string(&answer)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        ResourceUri::Session { name, part } => {
            let request = ReadRequest {
                session: name,
                view: part.view(),
                max_lines: Some(2000),
                ..ReadRequest::default()
            };
            let answer = lisa
                .run(move |engine| truncate::read(&request, |request| engine.read(request)))
                .await
                .map_err(|e| read_error(uri, &e))?;
            ResourceContents::text(answer.text, uri)
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Handles `completion/complete`: session names for the templates, agent ids for the prompt.
pub(crate) async fn complete(
    lisa: &Lisa,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let known = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Resource(template), "name") if template.uri.starts_with(SESSION_PREFIX) => {
            lisa.run(|engine| engine.names()).await
        }
        (Reference::Prompt(prompt), "agent") if prompt.name == prompts::DELEGATE => {
            lisa.run(|engine| Ok(engine.agents()?.into_iter().map(|agent| agent.id).collect())).await
        }
        _ => Ok(Vec::new()),
    };
    let mut values = known.unwrap_or_default();
    values.retain(|value| value.starts_with(&request.argument.value));
    values.sort();
    let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
    let more = values.len() > CompletionInfo::MAX_VALUES;
    values.truncate(CompletionInfo::MAX_VALUES);
    let info = CompletionInfo::with_pagination(values, Some(total), more)
        .map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(info))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_round_trip() {
        assert_eq!(ResourceUri::parse("lisa://sessions").unwrap(), ResourceUri::Sessions);
        for part in SessionResource::ALL {
            let uri = ResourceUri::parse(&session_uri("fix-login", part)).unwrap();
            assert_eq!(uri, ResourceUri::Session { name: "fix-login".into(), part });
        }
    }

    #[test]
    fn unknown_and_malformed_uris_are_not_found() {
        for uri in [
            "lisa://",
            "lisa://session/a",
            "lisa://session//screen",
            "lisa://session/../screen/x",
            "file:///x",
        ] {
            assert_eq!(
                ResourceUri::parse(uri).unwrap_err().code,
                rmcp::model::ErrorCode::RESOURCE_NOT_FOUND,
                "{uri}"
            );
        }
    }

    #[test]
    fn there_are_three_templates() {
        let uris: Vec<String> = templates().into_iter().map(|t| t.uri_template).collect();
        assert_eq!(
            uris,
            [
                "lisa://session/{name}/screen",
                "lisa://session/{name}/transcript",
                "lisa://session/{name}/events"
            ]
        );
    }
}
