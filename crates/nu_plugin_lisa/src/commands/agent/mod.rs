//! Commands about agents.

mod build_cmd;
mod head;
mod list;

pub(crate) use build_cmd::BuildCmd;
pub(crate) use head::Agent;
pub(crate) use list::List;
