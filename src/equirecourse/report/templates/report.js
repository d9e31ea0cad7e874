// The list of people. Everything that came with the data goes in as text, never as markup.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const { columns, rows } = data.people;
  const ways = data.flipsets.by_person;
  const at = Object.fromEntries(columns.map((name, place) => [name, place]));
  const attributes = columns.slice(1, columns.length - 4);
  const size = 25;
  const $ = (id) => document.getElementById(id);
  const element = (name, text, attributes = {}) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const number = (value) => value === null ? "" : value === "inf" ? "infinite" : String(Number(Number(value).toPrecision(3)));

  // Words of each person, once, so that a search only compares.
  const words = rows.map((row, i) => {
    const some = ways[i] ? ways[i].flatMap((way) => way.changes.map((change) => change.sentence)) : [];
    return [...row.slice(0, columns.length - 3), ...some].join("\u0001").toLowerCase();
  });
  let shown = [], page = 0, chosen = null;

  const head = element("tr");
  for (const name of ["person", ...attributes, "status", "cost"]) head.append(element("th", name, { scope: "col" }));
  document.querySelector("#table thead").append(head);

  function search() {
    const asked = $("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const rejected = $("rejected-only").checked;
    shown = [];
    for (let i = 0; i < rows.length; i += 1) {
      if (rejected && rows[i][at.status] === "accepted") continue;
      if (asked.every((word) => words[i].includes(word))) shown.push(i);
    }
    page = 0;
    draw();
  }

  function draw() {
    const body = document.querySelector("#table tbody");
    const pages = Math.max(1, Math.ceil(shown.length / size));
    body.replaceChildren(...shown.slice(page * size, (page + 1) * size).map((i) => {
      const row = rows[i];
      const line = element("tr", undefined, { "data-person": i });
      if (i === chosen) line.className = "chosen";
      const name = element("th", undefined, { scope: "row" });
      const button = element("button", row[0], { type: "button", "data-test": "choose", "aria-label": `Show person ${row[0]}` });
      button.addEventListener("click", () => choose(i));
      name.append(button);
      line.append(name);
      for (const attribute of attributes) line.append(element("td", row[at[attribute]]));
      line.append(element("td", row[at.status]), element("td", number(row[at.cost])));
      return line;
    }));
    $("found").textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} people`;
    $("page").textContent = `page ${page + 1} of ${pages}`;
    $("previous").disabled = page === 0;
    $("next").disabled = page + 1 >= pages;
  }

  function choose(i) {
    chosen = i;
    const row = rows[i];
    const panel = $("person");
    const parts = [element("h3", `Person ${row[0]}`, { id: "person-title" })];
    parts.push(element("p", attributes.map((name) => `${name}: ${row[at[name]]}`).join(" · "), { class: "hint" }));
    const some = ways[i];
    if (row[at.status] === "accepted") parts.push(element("p", "The model says yes already."));
    else if (row[at.status] === "not measured") parts.push(element("p", "The model says no; this person is not in the sample that was measured."));
    else if (row[at.status] === "infeasible") parts.push(element("p", "The model says no, and nothing that this person can change leads to a yes."));
    else if (!some) parts.push(element("p", "The model says no; no way to a yes was found."));
    if (some) {
      parts.push(element("p", some.length === 1 ? "One way to a yes:" : `${some.length} ways to a yes, the cheapest first:`));
      const list = element("ol", undefined, { "data-test": "ways" });
      for (const way of some) {
        const item = element("li");
        item.append(element("span", `cost ${number(way.cost)}`, { class: "cost" }));
        const changes = element("ul");
        for (const change of way.changes) changes.append(element("li", change.sentence));
        item.append(changes);
        list.append(item);
      }
      parts.push(list);
    }
    panel.replaceChildren(...parts);
    for (const line of document.querySelectorAll("#table tbody tr")) line.className = Number(line.dataset.person) === i ? "chosen" : "";
    panel.focus();
  }

  $("search").addEventListener("input", search);
  $("rejected-only").addEventListener("change", search);
  $("previous").addEventListener("click", () => { page -= 1; draw(); });
  $("next").addEventListener("click", () => { page += 1; draw(); });
  // Arrows go from person to person.
  $("table").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const buttons = [...document.querySelectorAll("#table tbody button")];
    const place = buttons.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    if (buttons[place]) { buttons[place].focus(); event.preventDefault(); }
  });

  const root = document.documentElement;
  function theme(name) {
    root.dataset.theme = name;
    $("theme").setAttribute("aria-pressed", String(name === "dark"));
    $("theme").textContent = name === "dark" ? "Light" : "Dark";
  }
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  theme(system.matches ? "dark" : "light");
  system.addEventListener("change", (event) => theme(event.matches ? "dark" : "light"));
  $("theme").addEventListener("click", () => theme(root.dataset.theme === "dark" ? "light" : "dark"));
  search();
})();
