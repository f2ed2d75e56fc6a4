// Runs before the page is drawn, so that it does not flash in the other theme.
(() => {
  let kept = null;
  try { kept = localStorage.getItem("tilp-theme"); } catch { /* a page in a file may have no storage */ }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
