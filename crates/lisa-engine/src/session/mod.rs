//! Sessions: an agent in a tmux session, with a directory of its own.
//!
//! A session's directory is created before its tmux session and removed after it, and the pane carries the run's id.
//! So whenever a process is killed, the next one can tell what is there and what is left over.

pub mod end;
pub mod files;
pub mod find;
pub mod names;
pub(crate) mod orders;
pub mod plan;
pub mod policy;
pub mod profiles;
pub mod repair;
pub mod spawn;

mod flags;
mod marks;
mod meta;
mod store;

pub use marks::{Marks, Told};
pub use meta::{Meta, SCHEMA};
pub use store::{Kept, SessionDir, Store, Stored};
