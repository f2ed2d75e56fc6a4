// Elements. Text is always text: nothing that comes from a file is read as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else if (name === "css") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function empty(element) {
  element.replaceChildren();
  return element;
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null) element.removeAttribute(name);
    else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
}

// A card with a title.
export function card(title, attributes, ...children) {
  const { note, right, ...rest } = attributes ?? {};
  const head = h("header", {}, h("h2", { text: title }), note && h("p", { text: note }), right && h("div", { class: "right" }, right));
  return h("section", { "aria-label": title, ...rest, class: `card ${rest.class ?? ""}` }, head, ...children);
}

// Buttons of which one is pressed.
export function choice(label, options, chosen, change) {
  const buttons = options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === chosen), text, onclick: () => {
      for (const one of buttons) one.setAttribute("aria-pressed", String(one.textContent === text));
      change(value);
    } }));
  return h("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

// A table: columns are [title, value of a row, class].
export function table(columns, rows, attributes) {
  const body = rows.map((row) => h("tr", attributes?.row?.(row), columns.map(([title, of, kind]) => {
    const value = of(row);
    return h("td", { class: kind, "data-label": title }, value instanceof Node ? value : String(value ?? "–"));
  })));
  return h("table", attributes?.table, attributes?.caption && h("caption", { class: "hidden-text", text: attributes.caption }),
    h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind, text: title })))),
    h("tbody", {}, body));
}
