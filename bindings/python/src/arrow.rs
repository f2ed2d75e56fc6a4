//! Tables as an Arrow stream of one batch, by Arrow's C data and C stream interfaces. Numbers are
//! passed without a copy; flags and texts are packed in Arrow's layout.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::table::{Data, TableColumn};

/// `struct ArrowSchema` of the C data interface.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray` of the C data interface.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream` of the C stream interface.
#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

// SAFETY: the pointers are to memory that the structures own.
unsafe impl Send for Stream {}

impl Drop for Stream {
    fn drop(&mut self) {
        // A consumer that took the stream has set `release` to none.
        if let Some(release) = self.release {
            // SAFETY: the stream was made below and is released once.
            unsafe { release(self) }
        }
    }
}

/// The remaining parts of a stream.
struct Source {
    columns: Arc<Vec<TableColumn>>,
    n_rows: usize,
    given: bool,
}

/// A nullable field, as Arrow's flags say it.
const NULLABLE: i64 = 2;

/// A capsule with the stream of a table.
pub(crate) fn stream(
    py: Python<'_>,
    columns: Arc<Vec<TableColumn>>,
    n_rows: usize,
) -> PyResult<Bound<'_, PyCapsule>> {
    let source = Box::new(Source { columns, n_rows, given: false });
    let stream = Stream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(source).cast(),
    };
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: Arrow calls it with a stream made above and a place for the schema.
    unsafe {
        let source = &*(*stream).private_data.cast::<Source>();
        let children = source.columns.iter().map(|column| {
            let flags = if matches!(column.data, Data::Optional(..)) { NULLABLE } else { 0 };
            schema(format_of(&column.data), column.name, flags, Vec::new())
        });
        out.write(schema("+s", "", 0, children.collect()));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: Arrow calls it with a stream made above and a place for the array.
    unsafe {
        let source = &mut *(*stream).private_data.cast::<Source>();
        if source.given {
            out.write(ended());
            return 0;
        }
        source.given = true;
        let places = 0..source.columns.len();
        let children = places.map(|place| child(&source.columns, place, source.n_rows)).collect();
        let buffers = Buffers { pointers: vec![null()], owned: Vec::new(), columns: None };
        out.write(array(source.n_rows, 0, buffers, children));
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: `private_data` is the box of `stream`, released once.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<Source>()));
        (*stream).release = None;
    }
}

fn format_of(data: &Data) -> &'static str {
    match data {
        Data::Counts(_) => "L",
        Data::Numbers(_) | Data::Optional(..) => "g",
        Data::Flags(_) => "b",
        Data::Words(_) => "u",
    }
}

/// Memory owned by a schema.
struct Names {
    format: CString,
    name: CString,
    children: Vec<*mut Schema>,
}

fn schema(format: &str, name: &str, flags: i64, children: Vec<Schema>) -> Schema {
    let text = |text: &str| CString::new(text).unwrap_or_default();
    let children = children.into_iter().map(|one| Box::into_raw(Box::new(one))).collect();
    let mut names = Box::new(Names { format: text(format), name: text(name), children });
    Schema {
        format: names.format.as_ptr(),
        name: names.name.as_ptr(),
        metadata: null(),
        flags,
        n_children: names.children.len() as i64,
        children: names.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(names).cast(),
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: `private_data` is the box of `schema()`, and so are the children.
    unsafe {
        let names = Box::from_raw((*schema).private_data.cast::<Names>());
        for &child in &names.children {
            let mut child = Box::from_raw(child);
            if let Some(release) = child.release {
                release(&mut *child);
            }
        }
        (*schema).release = None;
    }
}

/// Buffers of an array.
struct Buffers {
    pointers: Vec<*const c_void>,
    /// Packed buffers.
    owned: Vec<Vec<u8>>,
    /// Keeps the memory of the table alive.
    columns: Option<Arc<Vec<TableColumn>>>,
}

/// Memory owned by an array.
struct Parts {
    buffers: Buffers,
    children: Vec<*mut Array>,
}

fn array(length: usize, nulls: usize, buffers: Buffers, children: Vec<Array>) -> Array {
    let children = children.into_iter().map(|one| Box::into_raw(Box::new(one))).collect();
    let mut parts = Box::new(Parts { buffers, children });
    Array {
        length: length as i64,
        null_count: nulls as i64,
        offset: 0,
        n_buffers: parts.buffers.pointers.len() as i64,
        n_children: parts.children.len() as i64,
        buffers: parts.buffers.pointers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

/// An array without `release` ends a stream.
fn ended() -> Array {
    Array {
        length: 0,
        null_count: 0,
        offset: 0,
        n_buffers: 0,
        n_children: 0,
        buffers: null_mut(),
        children: null_mut(),
        dictionary: null_mut(),
        release: None,
        private_data: null_mut(),
    }
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: `private_data` is the box of `array()`, and so are the children.
    unsafe {
        let Parts { buffers, children } = *Box::from_raw((*array).private_data.cast::<Parts>());
        for child in children {
            let mut child = Box::from_raw(child);
            // A consumer may have moved a child out: its `release` is none then.
            if let Some(release) = child.release {
                release(&mut *child);
            }
        }
        drop((buffers.owned, buffers.columns));
        (*array).release = None;
    }
}

fn child(columns: &Arc<Vec<TableColumn>>, place: usize, n_rows: usize) -> Array {
    let keep = Some(columns.clone());
    let lying = |data: *const c_void| Buffers {
        pointers: vec![null(), data],
        owned: Vec::new(),
        columns: keep.clone(),
    };
    let packed = |owned: Vec<Vec<u8>>, pointers: Vec<*const c_void>| Buffers {
        pointers,
        owned,
        columns: keep.clone(),
    };
    let (nulls, buffers) = match &columns[place].data {
        Data::Counts(all) => (0, lying(all.as_ptr().cast())),
        Data::Numbers(all) => (0, lying(all.as_ptr().cast())),
        Data::Optional(all, known) => {
            let bits = bitmap(known);
            let pointers = vec![bits.as_ptr().cast(), all.as_ptr().cast()];
            (known.iter().filter(|yes| !**yes).count(), packed(vec![bits], pointers))
        }
        Data::Flags(all) => {
            let bits = bitmap(all);
            let pointers = vec![null(), bits.as_ptr().cast()];
            (0, packed(vec![bits], pointers))
        }
        Data::Words(all) => {
            let (offsets, text) = texts(all);
            let pointers = vec![null(), offsets.as_ptr().cast(), text.as_ptr().cast()];
            (0, packed(vec![offsets, text], pointers))
        }
    };
    array(n_rows, nulls, buffers, Vec::new())
}

/// Flags as bits, the first in the lowest; never empty, so that it has an address.
fn bitmap(flags: &[bool]) -> Vec<u8> {
    let mut bits = vec![0u8; flags.len() / 8 + 1];
    for (n, _) in flags.iter().enumerate().filter(|(_, yes)| **yes) {
        bits[n / 8] |= 1 << (n % 8);
    }
    bits
}

/// Texts as Arrow has them: ends as 32-bit numbers, and all texts one after another.
fn texts(words: &[String]) -> (Vec<u8>, Vec<u8>) {
    let (mut offsets, mut text) = (0i32.to_ne_bytes().to_vec(), Vec::new());
    for word in words {
        text.extend_from_slice(word.as_bytes());
        offsets.extend_from_slice(&(text.len() as i32).to_ne_bytes());
    }
    text.push(0);
    (offsets, text)
}
