//! One request and one response type for each operation: the whole public surface of Lisa.
//!
//! Front ends only translate these types. The doc comments are the descriptions in tool schemas, so write them for
//! users. A field whose value is unknown is absent. Times are RFC 3339 in UTC.

mod act;
mod events;
mod limits;
mod look;
mod next;
mod session;
mod spawn;
mod until;
pub mod words;

pub use act::*;
pub use events::*;
pub(crate) use limits::seconds;
pub use look::*;
pub use next::{Next, next_step};
pub use session::*;
pub use spawn::*;
pub use until::Until;
