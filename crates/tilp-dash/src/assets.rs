//! The page, inside the program.

use crate::http::Response;

macro_rules! files {
    ($($path:literal, $kind:literal;)*) => {
        /// Path, media type and text of every file of the page.
        pub(crate) const FILES: &[(&str, &str, &str)] =
            &[$((concat!("/", $path), $kind, include_str!(concat!("../web/", $path)))),*];
    };
}

files!(
    "index.html", "text/html; charset=utf-8";
    "style.css", "text/css; charset=utf-8";
    "icon.svg", "image/svg+xml";
    "theme.js", "text/javascript; charset=utf-8";
    "js/main.js", "text/javascript; charset=utf-8";
    "js/dom.js", "text/javascript; charset=utf-8";
    "js/format.js", "text/javascript; charset=utf-8";
    "js/data.js", "text/javascript; charset=utf-8";
    "js/colour.js", "text/javascript; charset=utf-8";
    "js/chart.js", "text/javascript; charset=utf-8";
    "js/timeline.js", "text/javascript; charset=utf-8";
    "js/picker.js", "text/javascript; charset=utf-8";
    "js/learning.js", "text/javascript; charset=utf-8";
    "js/map.js", "text/javascript; charset=utf-8";
    "js/cell.js", "text/javascript; charset=utf-8";
    "js/terminal.js", "text/javascript; charset=utf-8";
    "js/round.js", "text/javascript; charset=utf-8";
    "js/scene.js", "text/javascript; charset=utf-8";
    "js/robots.js", "text/javascript; charset=utf-8";
    "js/why.js", "text/javascript; charset=utf-8";
    "js/twin.js", "text/javascript; charset=utf-8";
    "js/compare.js", "text/javascript; charset=utf-8";
    "js/edits.js", "text/javascript; charset=utf-8";
    "js/samples.js", "text/javascript; charset=utf-8";
    "js/whatif.js", "text/javascript; charset=utf-8";
);

/// The file at a path.
pub(crate) fn file(path: &str) -> Option<Response> {
    let path = if path == "/" { "/index.html" } else { path };
    let (_, kind, text) = FILES.iter().find(|(own, _, _)| *own == path)?;
    Some(Response::new(kind, *text))
}
