//! demo-agent
fn main() {}
