//! The server: what it says about itself, and which part answers which request.

use crate::{
    prompts, resources,
    subscriptions::{Hub, Subscriptions},
    tasks, tools,
};
use lisa_engine::{
    engine::Engine,
    error::{Error, Kind, near_matches, printable},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    handler::server::tool::{ToolCallContext, ToolRouter},
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams,
        GetTaskResult, Implementation, JsonObject, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
    tool_handler,
};
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;

/// What the server tells a model about itself: the loop in a few lines, below the 2 KB that clients keep.
pub const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The server as one client sees it. Cloning shares everything but the client's subscriptions.
pub struct Lisa {
    pub(crate) engine: Engine,
    pub(crate) hub: Arc<Hub>,
    /// Raised when the client of a pipe has closed it.
    pub(crate) gone: CancellationToken,
    /// Raised when the server ends: calls in flight are answered and given up.
    ends: CancellationToken,
    /// Built by the first request that needs it: the handshake does not, and clients wait for that.
    tool_router: Arc<LazyLock<ToolRouter<Lisa>>>,
    subscriptions: Subscriptions,
}

impl Clone for Lisa {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            hub: self.hub.clone(),
            gone: self.gone.clone(),
            ends: self.ends.clone(),
            tool_router: self.tool_router.clone(),
            subscriptions: Subscriptions::default(),
        }
    }
}

impl Lisa {
    /// A server on an engine, for as long as the process lives.
    pub fn new(engine: Engine) -> Self {
        Self::until(engine, CancellationToken::new())
    }

    /// A server on an engine, until `ends` is raised.
    pub fn until(engine: Engine, ends: CancellationToken) -> Self {
        Self {
            hub: Arc::new(Hub::new(engine.clone())),
            engine,
            gone: CancellationToken::new(),
            ends,
            tool_router: Arc::new(LazyLock::new(tools::router)),
            subscriptions: Subscriptions::default(),
        }
    }

    /// Every tool, in order of name: the whole of `tools/list`.
    pub fn tools(&self) -> Vec<rmcp::model::Tool> {
        self.tool_router.list_all()
    }

    pub(crate) fn input_schema(&self, tool: &str) -> Arc<JsonObject> {
        self.tool_router.get(tool).map(|tool| tool.input_schema.clone()).unwrap_or_default()
    }

    fn no_such_tool(&self, name: &str) -> ErrorData {
        let known: Vec<String> = self.tool_router.map.keys().map(ToString::to_string).collect();
        let near = near_matches(name, &known);
        let hint = if near.is_empty() {
            "tools/list names them".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        ErrorData::invalid_params(format!("there is no tool `{}`; {hint}", printable(name)), None)
    }

    /// Waits until the server ends.
    pub(crate) async fn ended(&self) {
        self.ends.cancelled().await;
    }

    /// Runs one operation of the engine, which blocks, where blocking is allowed. When the server ends, the caller
    /// hears so at once; the operation ends with the process.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.ends.is_cancelled() {
            return Err(cut_short());
        }
        let engine = self.engine.clone();
        let done = tokio::select! {
            biased;
            done = tokio::task::spawn_blocking(move || work(&engine)) => done,
            () = self.ended() => return Err(cut_short()),
        };
        done.unwrap_or_else(|error| {
            tracing::error!(%error, "an operation of the engine did not end");
            Err(Error::new(
                Kind::Io,
                format!("Lisa failed inside: {error}"),
                "call again; doctor checks the rest",
            ))
        })
    }
}

fn cut_short() -> Error {
    Error::new(
        Kind::Cancelled,
        "the server ended before this was done",
        "look at the session before you call again: part of it may have happened",
    )
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Lisa {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("lisa-mcp", env!("CARGO_PKG_VERSION")).with_title("Lisa: agents in tmux"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !self.tool_router.has_route(&request.name) {
            return Err(self.no_such_tool(&request.name));
        }
        self.tool_router.call(ToolCallContext::new(self, request, context)).await
    }

    /// Whatever no other method is for.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let message = format!(
            "there is no method `{}`; tools/list names what can be called",
            printable(&request.method)
        );
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![prompts::delegate()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request).map(Into::into)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self, request.and_then(|page| page.cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, &request.uri).await.map(Into::into)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        resources::complete(self, &request).await
    }

    /// How clients before 2026-07-28 subscribe; newer ones `listen`.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::Uri::parse(&request.uri)?;
        self.subscriptions.add(&self.hub, request.uri, context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::new();
        accepted.resources_list_changed = requested.resources_list_changed;
        accepted.resource_subscriptions = requested
            .resource_subscriptions
            .as_ref()
            .map(|uris| uris.iter().filter(|uri| resources::Uri::parse(uri).is_ok()).cloned().collect());
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = crate::subscriptions::listen(&self.hub, &context) => {}
            () = self.gone.cancelled() => {}
            () = self.ended() => {}
        }
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(self, &request.task_id).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(self, request.task_id).await
    }
}
