//! nu_plugin_lisa
fn main() {}
