// Menus above the index of algorithms, cards with buttons for the statements of papers, formulas on narrow screens or
// without a font for mathematics.
"use strict";

function text(cell) {
  return cell.textContent.trim();
}

function addMenus(table) {
  const heads = [...table.tHead.rows[0].cells].map(text), rows = [...table.tBodies[0].rows];
  const place = document.createElement("div"), count = document.createElement("output");
  place.className = "filters";
  const menus = heads.slice(1, -1).map((name, index) => {
    const label = document.createElement("label"), menu = document.createElement("select");
    const values = [...new Set(rows.map((row) => text(row.cells[index + 1])))].sort();
    menu.append(new Option("any", "*"), ...values.map((value) => new Option(value)));
    menu.addEventListener("change", show);
    label.append(name + " ", menu);
    place.append(label);
    return menu;
  });
  function show() {
    const fits = (row) => menus.every((menu, index) => ["*", text(row.cells[index + 1])].includes(menu.value));
    rows.forEach((row) => (row.hidden = !fits(row)));
    count.textContent = rows.filter((row) => !row.hidden).length + " of " + rows.length;
  }
  place.append(count);
  (table.closest(".table-wrapper") || table).before(place);
  show();
}

// Shows each row as a card, in which every cell has the heading of its column. In a printed data frame the names of
// its index stand in a second row of headings, and a row may lack its first cells, which span several rows.
function showAsCards(table) {
  const [first, second] = table.tHead.rows, rows = [...table.tBodies[0].rows];
  const heads = [...first.cells].map((cell, index) => (second && text(second.cells[index])) || text(cell));
  table.classList.add("as-cards");
  for (const row of rows) {
    const missing = heads.length - row.cells.length;
    [...row.cells].forEach((cell, index) => (cell.dataset.label = heads[index + missing]));
  }
  return rows;
}

function addVerdictButtons(tables) {
  const verdicts = ["all", "agrees", "differs", "undecided", "not measured"], place = document.createElement("div");
  const found = (row) => [...row.querySelectorAll("strong")].map(text).filter((word) => verdicts.includes(word));
  const rows = tables.flatMap(showAsCards);
  place.className = "filters";
  for (const verdict of verdicts) {
    const button = document.createElement("button"), fits = (row) => verdict === "all" || found(row)[0] === verdict;
    button.textContent = verdict + " (" + rows.filter(fits).length + ")";
    button.setAttribute("aria-pressed", verdict === "all");
    button.addEventListener("click", () => {
      rows.forEach((row) => (row.hidden = !fits(row)));
      place.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", each === button));
    });
    place.append(button);
  }
  tables[0].closest("section").before(place);
}

// Without a font for mathematics a root does not grow around a fraction, and would seem to belong to its numerator.
function markMissingFont() {
  const probe = document.createElement("span");
  probe.innerHTML = '<math><mo stretchy="true" minsize="5em" maxsize="5em">(</mo></math>';
  document.body.append(probe);
  const size = parseFloat(getComputedStyle(probe).fontSize), height = probe.firstChild.getBoundingClientRect().height;
  probe.remove();
  document.body.classList.toggle("no-math-font", height < 3 * size);
}

// Gives a formula a smaller font where it is wider than its place, as browsers do not break its line.
function shrink(formula, width, available) {
  if (width > available) formula.style.fontSize = 0.97 * Math.max(0.6, available / width) + "em";
}

document.addEventListener("DOMContentLoaded", () => {
  if (document.querySelector("msqrt")) markMissingFont();
  document.querySelectorAll("table.algorithms").forEach(addMenus);
  const tables = [...document.querySelectorAll(".cards table")];
  if (tables.length) addVerdictButtons(tables);
  if (innerWidth > 500) return;
  const isCut = (wrapper) => wrapper.scrollWidth > wrapper.clientWidth;
  document.querySelectorAll("div.formula").forEach((formula) => shrink(formula, formula.scrollWidth, formula.clientWidth));
  for (const formula of document.querySelectorAll("math:not([display='block'])")) {
    const block = formula.closest("p, li, dd, td") || document.body;
    shrink(formula, formula.getBoundingClientRect().width, block.clientWidth);
  }
  const wrappers = [...document.querySelectorAll(".table-wrapper, .cell_output")].filter(isCut);
  const cut = wrappers.map((wrapper) => wrapper.querySelector("table"));
  cut.filter((table) => table && table.tHead && !table.classList.contains("as-cards")).forEach(showAsCards);
});
