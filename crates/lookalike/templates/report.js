
"use strict";
(() => {
  // The index: what its lines mean is said in cluster_index.rs.
  const $ = (id) => document.getElementById(id);
  const block = $("index");
  const lines = block.textContent.split("\n");
  block.textContent = "";
  if (lines[lines.length - 1] === "") { lines.pop(); }
  const plain = (text) => text.includes("\\") ? text.replace(/\\([0-9a-f]{2})/g, (_, code) => String.fromCharCode(parseInt(code, 16))) : text;
  const [fileNames, filePaths, directories] = lines.splice(0, 3).map((line) => line.split("\t").map(plain));
  const total = lines.length;
  const numbers = { size: new Uint32Array(total), near: new Uint32Array(total), weakest: new Uint16Array(total) };
  lines.forEach((line, at) => {
    const [size, near, weakest] = line.split("\t", 3);
    numbers.size[at] = size; numbers.near[at] = near; numbers.weakest[at] = weakest;
  });

  const asPath = (path) => "./" + path.split("/").map(encodeURIComponent).join("/");
  function original(id, link, url) {
    const rest = link.slice(1);
    switch (link[0]) {
      case "=": return { text: id, href: id, url: id };
      case "u": return { text: url, href: url, url };
      case "@": return { text: id, href: asPath(directories[rest] + id) };
      case "#": {
        const [file, record] = rest.split(":");
        const path = filePaths[file];
        return { text: fileNames[file] + ", record " + Number(record).toLocaleString("en"), href: path ? asPath(path) : "" };
      }
      default: return { text: "", href: "" };
    }
  }
  const unshared = (known, text) => {
    const colon = text.indexOf(":");
    return known.slice(0, Number(text.slice(0, colon))) + plain(text.slice(colon + 1));
  };
  /** When a page was captured, and the rest of its link. */
  const undated = (link) => {
    const seconds = /^\d*/.exec(link)[0];
    return [seconds && new Date(seconds * 1000).toISOString().replace(".000Z", "Z"), link.slice(seconds.length)];
  };
  function cluster(at) {
    const fields = lines[at].split("\t");
    const [date, link] = undated(fields[4]);
    const kept = { id: plain(fields[3]), title: plain(fields[5]), date };
    Object.assign(kept, original(kept.id, link, link[0] === "u" ? plain(link.slice(1)) : ""));
    const members = [];
    for (let field = 6; field < fields.length; field += 7) {
      const [id, dated, title, similarity, whole, kind, diff] = fields.slice(field, field + 7);
      const [date, place] = undated(dated);
      const member = { id: unshared(kept.id, id), title: title === "=" ? kept.title : plain(title), similarity, whole, kind, diff, date };
      const url = place[0] === "u" ? unshared(link[0] === "u" ? kept.url : "", place.slice(1)) : "";
      members.push(Object.assign(member, original(member.id, place, url)));
    }
    return { kept, members, size: numbers.size[at] };
  }

  // What is searched: made once for each cluster, while nothing else is to do.
  const searched = new Array(total);
  function words(at) {
    if (searched[at] === undefined) {
      const { kept, members } = cluster(at);
      let text = kept.title + "\n" + kept.id + "\n" + kept.date;
      if (kept.text !== kept.id) { text += "\n" + kept.text; }
      for (const page of members) {
        if (page.title !== kept.title) { text += "\n" + page.title; }
        text += "\n" + page.id + "\n" + page.date;
        if (page.text !== page.id) { text += "\n" + page.text; }
      }
      searched[at] = text.toLowerCase();
    }
    return searched[at];
  }
  let prepared = 0;
  function prepare(deadline) {
    while (prepared < total && deadline.timeRemaining() > 2) {
      for (const end = Math.min(total, prepared + 200); prepared < end; prepared += 1) { words(prepared); }
    }
    if (prepared < total) { later(prepare); }
  }
  const later = window.requestIdleCallback || ((work) => setTimeout(() => { const end = performance.now() + 12; work({ timeRemaining: () => end - performance.now() }); }, 30));

  const state = { query: "", kinds: "all", sort: "size", up: false, page: 0, length: 25 };
  const kindTests = {
    all: () => true,
    near: (at) => numbers.near[at] > 0,
    exact: (at) => numbers.near[at] === 0,
    many: (at) => numbers.size[at] > 2,
  };
  let names;
  let sorted = Array.from({ length: total }, (_, at) => at);
  let found = sorted;
  let foundFor = "";
  let terms = [];
  function sort() {
    const values = numbers[state.sort];
    if (!values && !names) {
      names = lines.map((line) => { const fields = line.split("\t", 6); return plain(fields[5] || fields[3]).toLowerCase(); });
    }
    const compare = values ? (a, b) => values[a] - values[b] : (a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0);
    const sign = state.up ? 1 : -1;
    sorted = Array.from({ length: total }, (_, at) => at).sort((a, b) => sign * compare(a, b) || a - b);
    foundFor = null;
  }
  function search() {
    terms = state.query.toLowerCase().split(/\s+/).filter(Boolean);
    const key = state.kinds + " " + terms.join(" ");
    // Who types on looks at what was found so far.
    const from = foundFor !== null && key.startsWith(foundFor) && foundFor.startsWith(state.kinds + " ") ? found : sorted;
    const test = kindTests[state.kinds];
    found = from.filter((at) => {
      if (!test(at)) { return false; }
      const text = terms.length ? words(at) : "";
      return terms.every((term) => text.includes(term));
    });
    foundFor = key;
  }

  const element = (name, className, ...children) => {
    const made = document.createElement(name);
    if (className) { made.className = className; }
    made.append(...children);
    return made;
  };
  /** Text in its own direction, with what was searched for marked. */
  function quoted(text, className) {
    const made = element("bdi", className);
    const lower = text.toLowerCase();
    let at = 0;
    if (lower.length === text.length) {
      while (terms.length) {
        const hits = terms.map((term) => [lower.indexOf(term, at), term.length]).filter((hit) => hit[0] >= 0);
        if (!hits.length) { break; }
        const [start, length] = hits.reduce((a, b) => (b[0] < a[0] ? b : a));
        made.append(text.slice(at, start), element("mark", "", text.slice(start, start + length)));
        at = start + length;
      }
    }
    made.append(text.slice(at));
    return made;
  }
  function where(page) {
    const made = element("span", "where");
    if (page.text !== page.id) { made.append(quoted(page.id, "id")); }
    if (page.text) {
      if (made.childNodes.length) { made.append(document.createElement("br")); }
      if (page.href) {
        const link = element("a", "id", quoted(page.text));
        link.href = page.href;
        link.target = "_blank";
        link.rel = "noreferrer";
        made.append(link);
      } else {
        made.append(quoted(page.text, "id"));
      }
    }
    if (page.date) { made.append(document.createElement("br"), "captured ", quoted(page.date)); }
    return made;
  }
  const share = (units) => (units / 10000).toFixed(4);
  const count = (number) => number.toLocaleString("en");
  const kinds = { e: "exact copy", s: "same text in another frame", n: "near-duplicate", c: "contained in the kept page" };
  const shell = (text) => (/^[\w@%+=:,.\/-]+$/.test(text) && text[0] !== "-" ? text : "'" + text.replaceAll("'", "'\\''") + "'");
  const directory = location.protocol === "file:" ? decodeURIComponent(location.pathname).replace(/\/[^\/]*$/, "") || "/" : "DIR";

  function evidence(kept, page) {
    const made = element("div", "evidence");
    if (page.kind === "e") {
      made.append("The whole text is the same.");
      return made;
    }
    const stored = page.diff === "" ? null : $("d" + page.diff);
    if (stored) { made.append(stored.content.cloneNode(true)); }
    const hint = element("div", stored ? "hint" : "");
    if (page.kind === "s") {
      hint.append("What is compared is the same; only the frame around it differs. ");
    } else if (!stored) {
      hint.append("This file has the differences of " + count(Number(block.dataset.diffs)) + " pairs, and this one is not among them. ");
    }
    hint.append(stored ? "Both pages side by side: " : "To see both pages side by side: ", element("code", "", "lookalike compare " + shell(kept.id) + " " + shell(page.id) + " --in " + shell(directory) + " --html compared.html"));
    made.append(hint);
    return made;
  }
  function memberItem(kept, page) {
    const score = element("div", "score", element("b", "", share(page.similarity)), element("small", "", kinds[page.kind]));
    if (page.whole !== "" && page.whole !== page.similarity) { score.append(element("small", "", "whole pages " + share(page.whole))); }
    const text = element("div");
    if (page.title) { text.append(quoted(page.title), document.createElement("br")); }
    text.append(where(page));
    const item = element("li", "", score, text);
    const button = element("button", "", "Differences");
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => {
      const open = item.querySelector(".evidence");
      if (open) { open.remove(); } else { item.append(evidence(kept, page)); item.querySelectorAll(".text").forEach(cue); }
      button.setAttribute("aria-expanded", String(!open));
    });
    item.append(button);
    return item;
  }
  function details(at) {
    const { kept, members, size } = cluster(at);
    const list = element("ul", "members", ...members.map((page) => memberItem(kept, page)));
    const cell = element("td", "", list);
    // Narrow screens have fewer columns.
    cell.colSpan = [...document.querySelectorAll("#table th")].filter((head) => head.getClientRects().length).length;
    const more = size - 1 - members.length;
    if (more > 0) { list.append(element("li", "soft", count(more) + (more === 1 ? " more page is" : " more pages are") + " in clusters.parquet")); }
    return element("tr", "details", cell);
  }
  function row(at) {
    const { kept } = cluster(at);
    const opener = element("button", "opener");
    opener.setAttribute("aria-expanded", "false");
    opener.setAttribute("aria-label", "Pages of this cluster");
    const text = element("div");
    if (kept.title) { text.append(quoted(kept.title, "name")); }
    text.append(where(kept));
    const made = element("tr", "cluster", element("td", "", element("div", "kept", opener, text)), element("td", "number", count(numbers.size[at])), element("td", "number wide-only", count(numbers.near[at])), element("td", "number", share(numbers.weakest[at])));
    const toggle = () => {
      const isOpen = made.classList.toggle("is-open");
      opener.setAttribute("aria-expanded", String(isOpen));
      if (isOpen) { made.after(details(at)); } else { made.nextElementSibling.remove(); }
    };
    made.addEventListener("click", (event) => {
      if (event.target.closest("a") || String(getSelection())) { return; }
      toggle();
    });
    return made;
  }
  function show() {
    const pages = Math.max(1, Math.ceil(found.length / state.length));
    state.page = Math.min(state.page, pages - 1);
    const from = state.page * state.length;
    $("rows").replaceChildren(...found.slice(from, from + state.length).map(row));
    $("nothing").hidden = found.length > 0;
    $("count").textContent = found.length === total ? count(total) + (total === 1 ? " cluster" : " clusters") : count(found.length) + " of " + count(total);
    $("place").textContent = found.length ? count(from + 1) + "–" + count(Math.min(from + state.length, found.length)) + " of " + count(found.length) : "";
    $("previous").disabled = state.page === 0;
    $("next").disabled = state.page === pages - 1;
  }
  function update() { search(); state.page = 0; show(); }

  $("query").addEventListener("input", (event) => { state.query = event.target.value; update(); });
  $("kinds").addEventListener("change", (event) => { state.kinds = event.target.value; update(); });
  $("length").addEventListener("change", (event) => { state.length = Number(event.target.value); state.page = 0; show(); });
  const turn = (by) => { state.page += by; show(); $("clusters").scrollIntoView(); };
  $("previous").addEventListener("click", () => turn(-1));
  $("next").addEventListener("click", () => turn(1));
  document.querySelectorAll("[data-sort]").forEach((button) => button.addEventListener("click", () => {
    const by = button.dataset.sort;
    state.up = state.sort === by ? !state.up : by === "name" || by === "weakest";
    state.sort = by;
    document.querySelectorAll("th[aria-sort]").forEach((head) => head.setAttribute("aria-sort", "none"));
    button.parentElement.setAttribute("aria-sort", state.up ? "ascending" : "descending");
    sort();
    update();
  }));
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) { return; }
    event.preventDefault();
    $("query").focus();
  });

  /** A text that is longer than its box fades out, and says so. */
  function cue(text) {
    if (text.scrollHeight <= text.clientHeight + 4) { return; }
    text.classList.add("is-cut");
    const button = element("button", "more", "Show all of it");
    button.addEventListener("click", () => { text.classList.replace("is-cut", "is-whole"); button.remove(); });
    text.after(button);
  }
  document.querySelectorAll(".pair .text").forEach(cue);
  $("browser").hidden = false;
  show();
  later(prepare);
})();
