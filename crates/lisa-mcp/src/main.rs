//! lisa-mcp
fn main() {}
