//! A search allocates no memory during its iterations, except in the critic's matrix products:
//! `gemm` has its own buffers.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;

use super::*;

/// The system's allocator, with a count of the allocations of each thread.
struct Counting;

thread_local! {
    static ASKED: Counter<usize> = const { Counter::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocations of a plan after the first two, on one thread, so that all are counted.
fn of_a_plan(iterations: usize) -> usize {
    let cem = Cem::improved(200, 25, iterations);
    let guided = Parts { actor: true, ..PARTS };
    let mut fake = Fake::new(50, DEFAULT, 5);
    let options = TilpOptions { warm_up: 0, ..options(cem, 16, 10.0, guided) };
    let (mut tilp, seen) = after(&mut fake, 3, options, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        let mut plan = || {
            let before = ASKED.get();
            planned(&mut tilp, &seen);
            ASKED.get() - before
        };
        (plan(), plan(), plan()).2
    })
}

/// Without the value head, whose matrix products allocate their own buffers.
#[test]
fn iterations_of_a_search_ask_for_no_memory() {
    let (few, many) = (of_a_plan(3), of_a_plan(9));
    assert!(few > 0, "the counter counts");
    // The final report reads up to as many sequences as there are elites. Six more iterations score
    // 78 more groups of candidates.
    assert!(few.abs_diff(many) <= 25, "{few} and {many}");
}
