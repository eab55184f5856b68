//! The helper commands on their own, for tests and for programs that link the engine without a front end.

fn main() -> std::process::ExitCode {
    lisa_engine::helper::main(std::env::args_os().skip(1))
}
