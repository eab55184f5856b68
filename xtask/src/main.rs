//! The developer commands of the workspace.
fn main() {}
