//! The commands, one file each.

pub(crate) mod agent;
mod cleanup;
mod doctor;
mod each;
mod lisa;
mod record;
mod replay;
pub(crate) mod session;
mod watch;

pub(crate) use cleanup::Cleanup;
pub(crate) use doctor::Doctor;
pub(crate) use lisa::Lisa;
pub(crate) use record::Record;
pub(crate) use replay::Replay;
pub(crate) use watch::Watch;
