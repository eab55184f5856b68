//! Doing one thing to several sessions.

use crate::{
    caller::Lisa,
    errors::labeled,
    names::{self, Named, Names},
};
use lisa_engine::error::Error;
use nu_protocol::{LabeledError, Value};

/// Does something to each of the named sessions, now, and returns what happened as rows.
///
/// A name that no session has is an error before anything is done. After that every session is tried: a failure
/// is a row of its own (`failed`), unless nothing could be done at all, which is an error.
pub(crate) fn each(
    lisa: &Lisa,
    names: Names,
    act: impl Fn(&Named) -> Result<Vec<Value>, Error>,
    failed: impl Fn(&Named, &Error) -> Value,
) -> Result<Value, LabeledError> {
    let named = names.required(lisa.head)?;
    names::check(&lisa.engine, &named)?;
    let mut rows = Vec::new();
    let mut errors = Vec::new();
    for named in &named {
        match act(named) {
            Ok(done) => rows.extend(done),
            Err(error) => {
                rows.push(failed(named, &error));
                errors.push(labeled(&error, named.span));
            }
        }
    }
    if !named.is_empty() && errors.len() == named.len() {
        let mut errors = errors.into_iter();
        if let Some(first) = errors.next() {
            return Err(errors.fold(first, LabeledError::with_inner));
        }
    }
    Ok(Value::list(rows, lisa.head))
}
