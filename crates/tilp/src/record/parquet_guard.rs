//! Checks of Parquet files from outside, which the reader takes for granted and would panic without.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;

/// Whether the pages of a column lie inside the file.
pub(crate) fn lies_inside(column: &ColumnChunkMetaData, length: u64) -> bool {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let offsets = [start, column.data_page_offset(), column.compressed_size()];
    let end = start.checked_add(column.compressed_size());
    offsets.iter().all(|offset| *offset >= 0) && end.is_some_and(|end| end as u64 <= length)
}

/// Whether only usual encodings are used, and a dictionary comes before what refers to it.
pub(crate) fn pages_are_known(pages: Box<dyn PageReader>) -> Result<bool, ParquetError> {
    let mut has_dictionary = false;
    for page in pages {
        let page = page?;
        has_dictionary |= matches!(page, Page::DictionaryPage { .. });
        let known = match page.encoding() {
            Encoding::PLAIN | Encoding::RLE => true,
            Encoding::RLE_DICTIONARY => has_dictionary,
            // A dictionary itself may be said to be plain in the way of older files.
            Encoding::PLAIN_DICTIONARY => matches!(page, Page::DictionaryPage { .. }),
            _ => false,
        };
        if !known {
            return Ok(false);
        }
    }
    Ok(true)
}
