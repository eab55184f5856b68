//! An allocator that counts: an input that takes too much memory, or keeps some of it, ends the run like a crash.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The most bytes in use at once.
const MOST: usize = 512 << 20;
/// The most that all inputs together may leave behind: caches of patterns fill up over the first ones.
const MOST_KEPT: usize = 128 << 20;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
/// What was in use before the first input.
static AT_FIRST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// The system's allocator, counted.
pub struct Counting;

/// Runs one input, and checks what all of them so far have left behind.
pub fn bounded(run: impl FnOnce()) {
    AT_FIRST.fetch_min(IN_USE.load(Relaxed), Relaxed);
    run();
    let kept = IN_USE.load(Relaxed).saturating_sub(AT_FIRST.load(Relaxed));
    assert!(kept <= MOST_KEPT, "the inputs so far have left {kept} bytes behind");
}

fn take(bytes: usize) {
    if IN_USE.fetch_add(bytes, Relaxed).saturating_add(bytes) > MOST {
        // A panic would allocate.
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        take(size);
        IN_USE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(at, layout, size) }
    }
}
