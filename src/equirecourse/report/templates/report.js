// The list of people. Everything that came with the data goes in as text, never as markup.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  // Names that came with the data are never keys of an object: "constructor" would be one already.
  const { attributes } = data.people;
  const people = data.people.rows.map(([label, groups, status, cost]) => ({ label, groups, status, cost }));
  const ways = data.flipsets.by_person;
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
  const words = people.map((person, i) => {
    const some = ways[i] ? ways[i].flatMap((way) => way.changes.map((change) => change.sentence)) : [];
    return [person.label, ...person.groups, person.status, ...some].join("\u0001").toLowerCase();
  });
  let shown = [], page = 0, chosen = null;

  const head = element("tr");
  for (const name of ["person", ...attributes, "status", "cost"]) head.append(element("th", name, { scope: "col" }));
  document.querySelector("#table thead").append(head);

  function search() {
    const asked = $("search").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const rejected = $("rejected-only").checked;
    shown = [];
    for (let i = 0; i < people.length; i += 1) {
      if (rejected && people[i].status === "accepted") continue;
      if (asked.every((word) => words[i].includes(word))) shown.push(i);
    }
    page = 0;
    draw();
  }

  function draw() {
    const body = document.querySelector("#table tbody");
    const pages = Math.max(1, Math.ceil(shown.length / size));
    body.replaceChildren(...shown.slice(page * size, (page + 1) * size).map((i) => {
      const person = people[i];
      const line = element("tr", undefined, { "data-person": i });
      if (i === chosen) line.className = "chosen";
      const name = element("th", undefined, { scope: "row" });
      const button = element("button", person.label, { type: "button", "data-test": "choose", "aria-label": `Show person ${person.label}` });
      button.addEventListener("click", () => choose(i));
      name.append(button);
      line.append(name);
      for (const group of person.groups) line.append(element("td", group));
      line.append(element("td", person.status), element("td", number(person.cost)));
      return line;
    }));
    $("found").textContent = `${shown.length.toLocaleString("en")} of ${people.length.toLocaleString("en")} people`;
    $("page").textContent = `page ${page + 1} of ${pages}`;
    $("previous").disabled = page === 0;
    $("next").disabled = page + 1 >= pages;
  }

  function choose(i) {
    chosen = i;
    const person = people[i];
    const panel = $("person");
    const parts = [element("h3", `Person ${person.label}`, { id: "person-title" })];
    parts.push(element("p", attributes.map((name, place) => `${name}: ${person.groups[place]}`).join(" · "), { class: "hint" }));
    const some = ways[i];
    if (person.status === "accepted") parts.push(element("p", "The model says yes already."));
    else if (person.status === "not measured") parts.push(element("p", "The model says no; this person is not in the sample that was measured."));
    else if (person.status === "infeasible") parts.push(element("p", "The model says no, and nothing that this person can change leads to a yes."));
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
