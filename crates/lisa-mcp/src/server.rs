//! The MCP server handler: capabilities, and which module handles which request.

use crate::{
    prompts, resources,
    subscriptions::{EventHub, Subscriptions},
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

/// Instructions for the model, kept below the 2 KB that clients pass on.
pub const INSTRUCTIONS: &str = include_str!("instructions.md");

/// The handler for one client. Clones share everything except the client's subscriptions.
pub struct Lisa {
    pub(crate) engine: Engine,
    pub(crate) hub: Arc<EventHub>,
    /// Cancelled when a stdio client has closed its pipe.
    pub(crate) disconnected: CancellationToken,
    /// Cancelled on shutdown: calls in flight then return an error.
    shutdown: CancellationToken,
    /// Built on first use, because clients wait for the handshake, which doesn't need it.
    tool_router: Arc<LazyLock<ToolRouter<Lisa>>>,
    subscriptions: Subscriptions,
}

impl Clone for Lisa {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            hub: self.hub.clone(),
            disconnected: self.disconnected.clone(),
            shutdown: self.shutdown.clone(),
            tool_router: self.tool_router.clone(),
            subscriptions: Subscriptions::default(),
        }
    }
}

impl Lisa {
    /// A server without a shutdown token.
    pub fn new(engine: Engine) -> Self {
        Self::with_shutdown(engine, CancellationToken::new())
    }

    /// A server that shuts down when `shutdown` is cancelled.
    pub fn with_shutdown(engine: Engine, shutdown: CancellationToken) -> Self {
        Self {
            hub: Arc::new(EventHub::new(engine.clone())),
            engine,
            disconnected: CancellationToken::new(),
            shutdown,
            tool_router: Arc::new(LazyLock::new(tools::router)),
            subscriptions: Subscriptions::default(),
        }
    }

    /// All tools, sorted by name, as in `tools/list`.
    pub fn tools(&self) -> Vec<rmcp::model::Tool> {
        self.tool_router.list_all()
    }

    pub(crate) fn input_schema(&self, tool: &str) -> Arc<JsonObject> {
        self.tool_router.get(tool).map(|tool| tool.input_schema.clone()).unwrap_or_default()
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let known: Vec<String> = self.tool_router.map.keys().map(ToString::to_string).collect();
        let near = near_matches(name, &known);
        let hint = if near.is_empty() {
            "see tools/list".to_owned()
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        ErrorData::invalid_params(format!("unknown tool `{}`; {hint}", printable(name)), None)
    }

    /// Resolves on shutdown.
    pub(crate) async fn shutdown_requested(&self) {
        self.shutdown.cancelled().await;
    }

    /// Runs a blocking engine operation on a blocking thread. On shutdown it returns an error at once, and the operation
    /// ends with the process.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Engine) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        if self.shutdown.is_cancelled() {
            return Err(shutdown_error());
        }
        let engine = self.engine.clone();
        let done = tokio::select! {
            biased;
            done = tokio::task::spawn_blocking(move || work(&engine)) => done,
            () = self.shutdown_requested() => return Err(shutdown_error()),
        };
        done.unwrap_or_else(|error| {
            tracing::error!(%error, "an engine operation panicked");
            Err(Error::new(
                Kind::Io,
                format!("internal error: {error}"),
                "call again; doctor checks the installation",
            ))
        })
    }
}

fn shutdown_error() -> Error {
    Error::new(
        Kind::Cancelled,
        "the server shut down before this call finished",
        "check the session before you call again: the call may have been carried out in part",
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
            return Err(self.unknown_tool(&request.name));
        }
        self.tool_router.call(ToolCallContext::new(self, request, context)).await
    }

    /// Handles unknown methods.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let message = format!("unknown method `{}`; see tools/list", printable(&request.method));
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

    /// Subscribes a client of a protocol version before 2026-07-28. Newer clients call `listen`.
    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        resources::ResourceUri::parse(&request.uri)?;
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
        accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(|uris| {
            uris.iter().filter(|uri| resources::ResourceUri::parse(uri).is_ok()).cloned().collect()
        });
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = crate::subscriptions::listen(&self.hub, &context) => {}
            () = self.disconnected.cancelled() => {}
            () = self.shutdown_requested() => {}
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
