//! Cancelling a wait.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A flag that cancels waits. Clones share it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Mutex<Flag>>);

#[derive(Default)]
struct Flag {
    raised: bool,
    told: Vec<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

impl Cancel {
    fn flag(&self) -> MutexGuard<'_, Flag> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels every wait that holds this flag.
    pub fn cancel(&self) {
        let mut flag = self.flag();
        flag.raised = true;
        let told = std::mem::take(&mut flag.told);
        drop(flag);
        told.into_iter().for_each(|tell| tell());
    }

    /// Whether it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.flag().raised
    }

    /// Calls `tell` when it is cancelled, or now if it already is.
    pub fn on_cancel(&self, tell: impl FnOnce() + Send + 'static) {
        let mut flag = self.flag();
        if flag.raised {
            drop(flag);
            tell();
        } else {
            flag.told.push(Box::new(tell));
        }
    }
}
