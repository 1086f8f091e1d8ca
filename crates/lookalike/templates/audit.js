
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const key = JSON.parse($("key").textContent);
  const pairs = [...document.querySelectorAll(".pair")];
  const stored = (name) => { try { return localStorage.getItem(name); } catch (error) { return null; } };
  const store = (name, value) => { try { localStorage.setItem(name, value); } catch (error) { /* a private window: save in time */ } };
  let judged = {};
  try { judged = JSON.parse(stored(key)) || {}; } catch (error) { judged = {}; }
  let now = Math.max(0, pairs.findIndex((pair, at) => !judged[at]));
  function show() {
    pairs.forEach((pair, at) => pair.classList.toggle("now", at === now));
    const verdict = judged[now] || {};
    document.querySelectorAll("[data-verdict]").forEach((button) => {
      const isChosen = button.dataset.verdict === verdict.verdict;
      button.classList.toggle("chosen", isChosen);
      button.setAttribute("aria-pressed", String(isChosen));
    });
    document.querySelectorAll("[data-reason]").forEach((button) => button.classList.toggle("chosen", button.dataset.reason === verdict.reason));
    $("reasons").classList.toggle("open", verdict.verdict === "undecided");
    const count = Object.keys(judged).length;
    $("count").textContent = count + " of " + pairs.length + " judged";
    $("progress").setAttribute("aria-valuenow", String(count));
    $("done").style.width = (100 * count / pairs.length) + "%";
    scrollTo(0, 0);
  }
  const keep = () => store(key, JSON.stringify(judged));
  function go(by) { now = Math.min(pairs.length - 1, Math.max(0, now + by)); show(); }
  function judge(verdict) {
    judged[now] = { verdict };
    keep();
    if (verdict === "undecided") { show(); } else { go(1); }
  }
  function because(reason) {
    if (!judged[now] || judged[now].verdict !== "undecided") { return; }
    judged[now].reason = reason;
    keep();
    go(1);
  }
  function openAll() {
    const texts = [...pairs[now].querySelectorAll("details.both")];
    const isOpen = texts.every((text) => text.open);
    texts.forEach((text) => { text.open = !isOpen; });
  }
  function save() {
    const rubric = $("rubric").innerText.trim();
    const lines = [JSON.stringify({ rubric })].concat(pairs.map((pair, at) => judged[at] && JSON.stringify({ left: pair.dataset.left, right: pair.dataset.right, ...judged[at] })).filter(Boolean));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "application/jsonl" }));
    link.download = "judgments.jsonl";
    link.click();
    URL.revokeObjectURL(link.href);
  }
  const keys = { 1: () => judge("correct"), 2: () => judge("incorrect"), 3: () => judge("undecided"), f: () => because("form"), m: () => because("minor-item"), e: () => because("cannot-evaluate"), o: () => because("other"), a: openAll, ArrowLeft: () => go(-1), k: () => go(-1), ArrowRight: () => go(1), j: () => go(1), s: save };
  const own = stored(key + "-rubric");
  if (own) { $("rubric").innerText = own; }
  $("rubric").addEventListener("input", () => store(key + "-rubric", $("rubric").innerText));
  addEventListener("keydown", (event) => {
    if (event.target.isContentEditable || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) { return; }
    event.preventDefault();
    keys[event.key]();
  });
  document.querySelectorAll("[data-verdict]").forEach((button) => button.addEventListener("click", () => judge(button.dataset.verdict)));
  document.querySelectorAll("[data-reason]").forEach((button) => button.addEventListener("click", () => because(button.dataset.reason)));
  $("all").addEventListener("click", openAll);
  $("back").addEventListener("click", () => go(-1));
  $("next").addEventListener("click", () => go(1));
  $("save").addEventListener("click", save);
  show();
})();
