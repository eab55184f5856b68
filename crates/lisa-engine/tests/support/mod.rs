//! Looks and sessions for tests, as the tests beside the sensors and rules have them.

#![allow(dead_code, unused_imports)]

#[path = "../../src/classify/testing.rs"]
mod testing;

pub(crate) use testing::*;
