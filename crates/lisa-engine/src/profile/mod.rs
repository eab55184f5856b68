//! Agents as data: one TOML file for each, compiled in or the user's own.

pub mod launch;
