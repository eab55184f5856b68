//! A server with the tools, resources and prompts that the protocol's conformance suites ask for, behind the same
//! door as `lisa-mcp --http`. It is a test fixture: what it checks is this crate's HTTP side and the protocol
//! library, in both eras of the protocol.
//!
//! `lisa-mcp-fixture 127.0.0.1:PORT`

#![allow(deprecated, reason = "the suites still test logging")]

mod answers;
mod rounds;

use lisa_engine::{config::Environment, error::Result};
use lisa_mcp::{
    cli::HttpFlags,
    http::{self, Door},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
        GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::RequestContext,
};
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
struct Fixture;

type Context = RequestContext<RoleServer>;

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(
            ServerCapabilities::builder()
                .enable_logging()
                .enable_completions()
                .enable_prompts()
                .enable_prompts_list_changed()
                .enable_resources()
                .enable_resources_subscribe()
                .enable_resources_list_changed()
                .enable_tools()
                .enable_tool_list_changed()
                .build(),
        )
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> std::result::Result<(), ErrorData> {
        Ok(())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(answers::tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        answers::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        match rounds::call(&request, &context) {
            Some(answer) => answer,
            None => answers::call(&request, &context).await,
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> std::result::Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(answers::resources()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> std::result::Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(answers::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> std::result::Result<ReadResourceResponse, ErrorData> {
        answers::read(&request.uri).map(Into::into)
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: Context) -> std::result::Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: Context,
    ) -> std::result::Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> std::result::Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(answers::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> std::result::Result<GetPromptResponse, ErrorData> {
        rounds::prompt(&request).unwrap_or_else(|| answers::prompt(&request).map(Into::into))
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> std::result::Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::new(CompletionInfo::default()))
    }
}

fn main() -> Result<()> {
    let flags = HttpFlags { http: std::env::args().nth(1), no_auth: true, ..HttpFlags::default() };
    let door = Door::new(&flags, &Environment::default(), std::path::Path::new("/nowhere"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(http::serve(Fixture, door, CancellationToken::new())),
        Err(error) => Err(lisa_engine::error::Error::invalid(error.to_string(), "try again")),
    }
}
