//! Commands about sessions.

mod answer;
mod attach;
mod capture;
mod exists;
mod explain;
mod head;
mod interrupt;
mod kill;
mod kill_all;
mod list;
mod monitor;
mod name;
mod resume;
mod send;
mod spawn;
mod status;
mod tree;

pub(crate) use answer::Answer;
pub(crate) use attach::Attach;
pub(crate) use capture::Capture;
pub(crate) use exists::Exists;
pub(crate) use explain::Explain;
pub(crate) use head::Session;
pub(crate) use interrupt::Interrupt;
pub(crate) use kill::Kill;
pub(crate) use kill_all::KillAll;
pub(crate) use list::List;
pub(crate) use monitor::Monitor;
pub(crate) use name::Name;
pub(crate) use resume::Resume;
pub(crate) use send::Send;
pub(crate) use spawn::Spawn;
pub(crate) use status::Status;
pub(crate) use tree::Tree;
