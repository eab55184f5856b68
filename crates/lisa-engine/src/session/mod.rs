//! Sessions: an agent in a tmux session, and the folder that belongs to it.
//!
//! A session's folder is made before its tmux session and removed after it, and the tmux session carries the run's
//! id: so at any moment at which a process may be killed, the next one can tell what is there and what is left over.

pub mod end;
pub mod files;
pub mod find;
pub mod names;
pub mod plan;
pub mod policy;
pub mod repair;
pub mod spawn;

mod flags;
mod marks;
mod meta;
mod store;

pub use marks::{Marks, Told};
pub use meta::{Meta, SCHEMA};
pub use store::{Folder, Kept, Store, Stored};
