//! Lisa engine
