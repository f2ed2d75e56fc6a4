//! A search asks for no memory while it searches, the matrix products of the critic aside: `gemm`
//! has buffers of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Counter;

use super::*;

/// The system's allocator, counting what each thread asks of it.
struct Counting;

thread_local! {
    static ASKED: Counter<usize> = const { Counter::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Allocations of a plan after the first two, on one thread, so that all are seen.
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

/// The value head aside, whose matrix products ask for buffers of their own.
#[test]
fn iterations_of_a_search_ask_for_no_memory() {
    let (few, many) = (of_a_plan(3), of_a_plan(9));
    assert!(few > 0, "the counter counts");
    // What is reported at the end looks at up to as many sequences as there are elites. Six more
    // iterations score 78 more groups of candidates.
    assert!(few.abs_diff(many) <= 25, "{few} and {many}");
}
