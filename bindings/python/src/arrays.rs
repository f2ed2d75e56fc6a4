//! NumPy arrays over memory that Rust owns.

use numpy::ndarray::{ArrayView, Dimension};
use numpy::{Element, PyArray, PyArrayMethods};
use pyo3::prelude::*;

/// A read-only array over memory that belongs to `owner`. Nothing is copied; the array keeps the
/// owner alive.
///
/// # Safety
/// The memory must belong to `owner`, and must neither move nor change as long as it lives.
pub(crate) unsafe fn view<'py, T: Element, D: Dimension>(
    array: ArrayView<'_, T, D>,
    owner: Bound<'py, PyAny>,
) -> Bound<'py, PyArray<T, D>> {
    // SAFETY: as promised by the caller.
    let borrowed = unsafe { PyArray::borrow_from_array(&array, owner) };
    drop(borrowed.readwrite().make_nonwriteable());
    borrowed
}
