//! Sessions as resources: `lisa://sessions`, and the screen, transcript and events of each.

use crate::{fit, prompts, server::Lisa};
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

const ALL: &str = "lisa://sessions";
const ONE: &str = "lisa://session/";

/// Sessions on one page of `resources/list`; each has three resources.
const PAGE: usize = 30;

/// A part of a session that can be read as a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What the terminal shows.
    Screen,
    /// The conversation.
    Transcript,
    /// What happened to it.
    Events,
}

impl Part {
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
            Self::Screen => "What the terminal shows",
            Self::Transcript => "The conversation, its newest part",
            Self::Events => "What happened to the session",
        }
    }
}

/// What a resource address means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uri {
    /// The list of all sessions.
    Sessions,
    /// A part of one session.
    Session {
        /// The session's name.
        name: String,
        /// Which part of it.
        part: Part,
    },
}

impl Uri {
    /// Reads an address; one that is none of Lisa's is a resource that does not exist.
    pub fn parse(uri: &str) -> Result<Self, ErrorData> {
        if uri == ALL {
            return Ok(Self::Sessions);
        }
        let found = uri.strip_prefix(ONE).and_then(|rest| {
            let (name, part) = rest.split_once('/')?;
            let part = Part::ALL.into_iter().find(|known| known.as_str() == part)?;
            let plain =
                !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            plain.then(|| Self::Session { name: name.to_owned(), part })
        });
        found.ok_or_else(|| {
            not_found(
                uri,
                "it is none of lisa://sessions, lisa://session/{name}/screen, …/transcript, …/events",
            )
        })
    }

    /// Whether an event may have changed what stands there.
    pub fn is_changed_by(&self, event: &Event) -> bool {
        match self {
            Self::Sessions => true,
            Self::Session { name, .. } => *name == event.session,
        }
    }
}

fn address(name: &str, part: Part) -> String {
    format!("{ONE}{name}/{}", part.as_str())
}

fn not_found(uri: &str, why: &str) -> ErrorData {
    let shown = lisa_engine::error::printable(uri);
    ErrorData::resource_not_found(format!("there is no resource `{shown}`: {why}"), None)
}

fn internal(uri: &str, error: &Error) -> ErrorData {
    match error.kind() {
        Kind::SessionNotFound | Kind::AmbiguousSession | Kind::InvalidName => {
            not_found(uri, &error.to_string())
        }
        kind => ErrorData::internal_error(format!("{}: {error}", kind.as_str()), None),
    }
}

/// The list of all sessions, and the parts of each, a page at a time.
pub(crate) async fn list(lisa: &Lisa, cursor: Option<String>) -> Result<ListResourcesResult, ErrorData> {
    let mut names = lisa.run(|engine| engine.names()).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the sessions could not be listed");
        Vec::new()
    });
    names.sort();
    let mut resources = Vec::new();
    if cursor.is_none() {
        resources.push(
            Resource::new(ALL, "sessions")
                .with_title("All sessions")
                .with_description("Every session with its status, as JSON.")
                .with_mime_type("application/json"),
        );
    }
    let mut rest = names.into_iter().filter(|name| cursor.as_ref().is_none_or(|after| name > after));
    let page: Vec<String> = rest.by_ref().take(PAGE).collect();
    for name in &page {
        resources.extend(Part::ALL.into_iter().map(|part| {
            Resource::new(address(name, part), format!("{name}/{}", part.as_str()))
                .with_title(format!("{name}: {}", part.as_str()))
                .with_description(part.title())
                .with_mime_type("text/plain")
        }));
    }
    let mut result = ListResourcesResult::with_all_items(resources);
    result.next_cursor = rest.next().and_then(|_| page.last().cloned());
    Ok(result)
}

/// The parts of a session, by name.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    Part::ALL
        .into_iter()
        .map(|part| {
            ResourceTemplate::new(format!("{ONE}{{name}}/{}", part.as_str()), part.as_str())
                .with_title(part.title())
                .with_description(format!("{}; name is a session's exact name.", part.title()))
                .with_mime_type("text/plain")
        })
        .collect()
}

/// What stands at an address.
pub(crate) async fn read(lisa: &Lisa, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match Uri::parse(uri)? {
        Uri::Sessions => {
            let request = ListRequest { limit: Some(100), ..ListRequest::default() };
            let mut answer =
                lisa.run(move |engine| engine.list(&request)).await.map_err(|e| internal(uri, &e))?;
            fit::list(&mut answer);
            let text = serde_json::to_string(&answer)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        Uri::Session { name, part } => {
            let request = ReadRequest {
                session: name,
                view: part.view(),
                max_lines: Some(2000),
                ..ReadRequest::default()
            };
            let answer = lisa
                .run(move |engine| fit::read(&request, |request| engine.read(request)))
                .await
                .map_err(|e| internal(uri, &e))?;
            ResourceContents::text(answer.text, uri)
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Names of sessions for the templates, ids of agents for the prompt.
pub(crate) async fn complete(
    lisa: &Lisa,
    request: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let known = match (&request.r#ref, request.argument.name.as_str()) {
        (Reference::Resource(template), "name") if template.uri.starts_with(ONE) => {
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
    fn addresses_are_read_and_written_alike() {
        assert_eq!(Uri::parse("lisa://sessions").unwrap(), Uri::Sessions);
        for part in Part::ALL {
            let uri = Uri::parse(&address("fix-login", part)).unwrap();
            assert_eq!(uri, Uri::Session { name: "fix-login".into(), part });
        }
    }

    #[test]
    fn foreign_and_broken_addresses_are_not_found() {
        for uri in [
            "lisa://",
            "lisa://session/a",
            "lisa://session//screen",
            "lisa://session/../screen/x",
            "file:///x",
        ] {
            assert_eq!(
                Uri::parse(uri).unwrap_err().code,
                rmcp::model::ErrorCode::RESOURCE_NOT_FOUND,
                "{uri}"
            );
        }
    }

    #[test]
    fn templates_name_the_three_parts() {
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
