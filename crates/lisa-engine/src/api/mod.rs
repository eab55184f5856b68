//! One request and one response type for each operation: the whole public surface of Lisa.
//!
//! Front ends translate these types and nothing else. Their doc comments are the descriptions that users read in
//! tool schemas, so they are written for users. A field that is unknown is absent; times are RFC 3339 in UTC.

mod act;
mod events;
mod look;
mod session;
mod spawn;

pub use act::*;
pub use events::*;
pub use look::*;
pub use session::*;
pub use spawn::*;
