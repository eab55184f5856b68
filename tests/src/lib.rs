//! What the end-to-end tests share: model servers that follow a script, and the real agents, pinned, in a
//! home of their own.
//!
//! Together they give tests the truth. The script decides what the model does, the server's log says when it
//! did it, so a verdict about a session can be checked without believing the session's own screen.

pub mod agents;
pub mod hands;
pub mod lab;
pub mod model_server;
pub mod parents;
pub mod person;
pub mod play;
pub mod record;
pub mod report;
pub mod table;
pub mod truth;
