"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (what, within) => [...(within || document).querySelectorAll(what)];
  const body = document.body;
  let version = Number(body.dataset.version || 0);
  let hideAt = 0;

  function toast(text, isWrong) {
    const box = $("toast");
    if (!box) { return; }
    box.textContent = text;
    box.classList.toggle("wrong", Boolean(isWrong));
    box.classList.add("shown");
    clearTimeout(hideAt);
    hideAt = setTimeout(() => box.classList.remove("shown"), isWrong ? 6000 : 1800);
  }

  async function call(path, values) {
    let response;
    try {
      response = await fetch(path, { method: "POST", headers: { "X-Lookalike": "1", "Content-Type": "application/json" }, body: JSON.stringify(values) });
    } catch (error) {
      toast("The workbench does not answer; nothing was saved.", true);
      return null;
    }
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) {
      if (!answer.in_use) { toast(answer.error || "This was not saved.", true); }
      return response.status === 409 ? { conflict: answer.error } : null;
    }
    return answer;
  }

  // Parts of the page that others may change are fetched again and exchanged; everything else stays where it is.
  async function refresh() {
    const response = await fetch(location.href).catch(() => null);
    if (!response || !response.ok) { return; }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    version = Number(page.body.dataset.version || version);
    const chosen = new Set(all(".choose input:checked").map((box) => box.value));
    const now = (document.querySelector(".card.now, .item.now") || { dataset: {} }).dataset;
    const open = new Set(all("details.own-tags[open]").map((details) => details.closest(".card").dataset.page));
    const focused = document.activeElement && document.activeElement.dataset ? { ...document.activeElement.dataset } : {};
    all("[data-live]").forEach((part) => {
      const fresh = page.querySelector(`[data-live="${part.dataset.live}"]`);
      if (fresh) { part.replaceWith(fresh); } else if (part.dataset.live === "texts") { part.remove(); }
    });
    all(".choose input").forEach((box) => { box.checked = chosen.has(box.value); });
    all(".card").forEach((card) => {
      card.classList.toggle("now", card.dataset.page === now.page);
      const details = card.querySelector("details.own-tags");
      if (details && open.has(card.dataset.page)) { details.open = true; }
    });
    all(".item").forEach((item) => item.classList.toggle("now", item.dataset.cluster === now.cluster));
    if (focused.tag) { const again = document.querySelector(`[data-tag="${focused.tag}"]`); if (again) { again.focus({ preventScroll: true }); } }
    if ($("coder") && page.getElementById("coder")) { $("coder").textContent = page.getElementById("coder").textContent; }
    choose();
  }

  async function watch() {
    if (document.hidden || !version) { return; }
    const response = await fetch("/api/version").catch(() => null);
    if (response && response.ok && (await response.json()).version !== version) { await refresh(); }
  }

  // Tags.
  async function tag(button) {
    const answer = await call("/api/tag", { tag: Number(button.dataset.tag), on: button.dataset.on === "1", cluster: Number(body.dataset.cluster) });
    if (answer) { toast((button.dataset.on === "1" ? "Tagged: " : "No longer: ") + button.firstChild.textContent); await refresh(); }
  }
  async function tagPage(button) {
    const page = Number(button.closest(".card").dataset.page);
    if (await call("/api/tag", { tag: Number(button.dataset.pageTag), on: button.dataset.on === "1", page })) { await refresh(); }
  }
  async function undo() {
    const answer = await call("/api/undo", {});
    if (answer) { toast(answer.undone ? "Undone: " + answer.undone : "There is nothing to undo."); await refresh(); }
  }
  let saved = $("note") ? $("note").value : "";
  async function saveNote() {
    const note = $("note");
    if (!note || note.value === saved) { return; }
    if (await call("/api/note", { page: Number(note.dataset.page), text: note.value })) { saved = note.value; toast("Note saved"); }
  }

  // Pages of a cluster.
  const cards = () => all(".card");
  function choose() {
    const chosen = all(".choose input:checked");
    cards().forEach((card) => card.classList.toggle("chosen", Boolean(card.querySelector(".choose input:checked"))));
    all("[data-decide]").forEach((button) => { button.disabled = chosen.length === 0; });
    if ($("chosen")) { $("chosen").textContent = chosen.length ? chosen.length + (chosen.length === 1 ? " page chosen" : " pages chosen") : "Choose pages to split them off."; }
  }
  async function decide(verdict, pages) {
    if (!pages.length) { return; }
    const answer = await call("/api/decide", { verdict, pages: pages.map(Number) });
    if (!answer) { return; }
    all(".choose input:checked").forEach((box) => { box.checked = false; });
    toast({ keep: "This page stays", apart: "Not a duplicate", split: "Split off", restore: "As it was" }[verdict]);
    await refresh();
  }
  const chosenPages = () => {
    const chosen = all(".choose input:checked").map((box) => box.value);
    const now = document.querySelector(".card.now");
    return chosen.length || !now ? chosen : [now.dataset.page];
  };

  // Moving around.
  function move(items, by) {
    if (!items.length) { return null; }
    const at = items.findIndex((item) => item.classList.contains("now"));
    const next = items[Math.min(items.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by))];
    items.forEach((item) => item.classList.toggle("now", item === next));
    next.scrollIntoView({ block: "nearest" });
    next.focus({ preventScroll: true });
    return next;
  }
  function tab(name) {
    all("[role=tab]").forEach((button) => button.setAttribute("aria-selected", String(button.dataset.tab === name)));
    all("[role=tabpanel]").forEach((panel) => { panel.hidden = panel.id !== name; });
    if (name === "originals") { all("iframe[data-src]").forEach((frame) => { frame.src = frame.dataset.src; frame.removeAttribute("data-src"); }); }
  }
  const toggle = (name) => { const button = document.querySelector(`[data-tab="${name}"]`); tab(button.getAttribute("aria-selected") === "true" ? "text" : name); };
  const fold = () => { $("rows").classList.toggle("fold", $("fold").checked); };
  async function judge(button) {
    const sample = Number(body.dataset.sample);
    const position = Number(body.dataset.position);
    const values = { sample, position, verdict: button.dataset.judge, reason: button.dataset.reason || null };
    if (!(await call("/api/judge", values))) { return; }
    const isOpen = values.verdict === "undecided" && !values.reason;
    if (isOpen) { location.reload(); return; }
    location.href = position < Number(body.dataset.pairs) ? `/audit/${sample}/${position + 1}` : "/audit";
  }

  function press(key) {
    const named = all("[data-key]").find((item) => item.dataset.key === key);
    if (named) { named.click(); return true; }
    const isPair = "pair" in body.dataset;
    const list = $("list");
    const actions = {
      u: undo,
      g: () => { location.href = "/clusters"; },
      "?": () => $("help").showModal(),
      "/": () => { if ($("q")) { $("q").focus(); } else { location.href = "/clusters"; } },
    };
    if (list) {
      Object.assign(actions, { j: () => move(all(".item"), 1), k: () => move(all(".item"), -1), Enter: () => { const now = document.querySelector(".item.now .item-link"); if (now) { now.click(); } } });
    }
    if (body.dataset.cluster) {
      const now = () => document.querySelector(".card.now");
      Object.assign(actions, {
        ArrowDown: () => move(cards(), 1),
        ArrowUp: () => move(cards(), -1),
        " ": () => { const card = now(); if (card) { const box = card.querySelector(".choose input"); box.checked = !box.checked; choose(); } },
        n: () => $("note").focus(),
        s: () => decide("split", chosenPages()),
        x: () => decide("apart", chosenPages()),
        m: () => { if (now()) { decide("keep", [now().dataset.page]); } },
        p: () => { const link = now() && now().querySelector("[data-pair]"); if (link) { link.click(); } },
      });
      if (!now()) { delete actions[" "]; }
    }
    if (isPair) {
      Object.assign(actions, { j: () => move(all(".row.differs"), 1), k: () => move(all(".row.differs"), -1), f: () => { $("fold").checked = !$("fold").checked; fold(); }, o: () => toggle("originals"), m: () => toggle("methods") });
    }
    if (!actions[key]) { return false; }
    actions[key]();
    return true;
  }

  addEventListener("keydown", (event) => {
    const isTyping = event.target.matches && event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (event.key === "Escape" && isTyping) { event.target.blur(); return; }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) { return; }
    if (["Enter", " "].includes(event.key) && event.target.matches && event.target.matches("a, button, summary, input")) { return; }
    if (press(event.key)) { event.preventDefault(); }
  });
  addEventListener("click", (event) => {
    const button = event.target.closest("button, rect[data-row]");
    if (!button) { return; }
    const data = button.dataset;
    if (data.tag && !button.closest("form")) { tag(button); }
    else if (data.pageTag) { tagPage(button); }
    else if (data.decide) { decide(data.decide, chosenPages()); }
    else if (data.decideOne) { decide(data.decideOne, [button.closest(".card").dataset.page]); }
    else if (data.judge) { judge(button); }
    else if (data.tab) { tab(data.tab); }
    else if (data.move) { move(all(".row.differs"), Number(data.move)); }
    else if (data.row) { $("r" + data.row).scrollIntoView({ block: "center" }); }
    else if (data.remove) { remove(button); }
    else if (data.action === "undo") { undo(); }
    else if (data.action === "help") { $("help").showModal(); }
    else if (data.action === "coder") { $("name").showModal(); $("name").querySelector("input").select(); }
    else if (data.action === "close") { button.closest("dialog").close(); }
  });
  addEventListener("change", (event) => {
    if (event.target.closest(".choose")) { choose(); }
    if (event.target.id === "fold") { fold(); }
    if (event.target.id === "note") { saveNote(); }
    if (event.target.form && event.target.form.id === "filters" && event.target.matches("select")) { event.target.form.requestSubmit(); }
  });
  addEventListener("focusout", (event) => { if (event.target.id === "note") { saveNote(); } });

  async function remove(button) {
    const values = { do: "remove", what: button.dataset.remove, id: Number(button.dataset.id) };
    let answer = await call("/api/tags", values);
    if (answer && answer.conflict && confirm(answer.conflict + ". Remove it, and these tags?")) { answer = await call("/api/tags", { ...values, force: true }); }
    if (answer) { await refresh(); }
  }
  addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.id === "filters") {
      // What is empty does not stand in the address.
      all("input, select", form).forEach((field) => { if (!field.value) { field.disabled = true; } });
      return;
    }
    if (form.method === "dialog") { return; }
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    if (form.id === "name-form") {
      if (await call("/api/coder", { name: values.name })) { location.reload(); }
    } else if (form.id === "sign-in") {
      if (await call("/api/sign-in", { token: values.token })) { location.href = "/"; }
    } else if (form.id === "set-form") {
      if (await call("/api/tags", { do: "add_set", name: values.name, is_single: values.choice === "one" })) { form.reset(); await refresh(); }
    } else if (form.id === "sample-form") {
      const answer = await call("/api/sample", { pairs: Number(values.pairs), seed: Number(values.seed), rubric: values.rubric });
      if (answer) { location.href = `/audit/${answer.sample}/1`; }
    } else if (form.classList.contains("tag-form")) {
      const tag = form.dataset.tag ? Number(form.dataset.tag) : null;
      const answer = await call("/api/tags", { do: "put_tag", tag, set: Number(form.dataset.set), label: values.label, colour: Number(values.colour), key: values.key });
      if (answer) { toast("Saved"); await refresh(); }
    }
  });
  addEventListener("pagehide", () => { all("#filters [disabled]").forEach((field) => { field.disabled = false; }); });
  document.addEventListener("visibilitychange", watch);
  addEventListener("focus", watch);
  setInterval(watch, 2000);
  choose();
})();
