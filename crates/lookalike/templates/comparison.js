
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const places = [...document.querySelectorAll(".row.differs")];
  const total = $("place").textContent;
  let now = -1;
  function go(by) {
    const next = now + by;
    if (next < 0 || next >= places.length) { return; }
    if (now >= 0) { places[now].classList.remove("now"); }
    now = next;
    places[now].classList.add("now");
    places[now].scrollIntoView({ block: "nearest" });
    places[now].focus({ preventScroll: true });
    $("place").textContent = (now + 1).toLocaleString("en") + " of " + total;
    update();
  }
  function update() {
    $("previous").disabled = now <= 0;
    $("next").disabled = now >= places.length - 1;
  }
  const fold = () => { $("rows").classList.toggle("fold", $("fold").checked); };
  const keys = { n: () => go(1), p: () => go(now < 0 ? 0 : -1), f: () => { $("fold").checked = !$("fold").checked; fold(); } };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) { return; }
    event.preventDefault();
    keys[event.key]();
  });
  $("next").addEventListener("click", () => go(1));
  $("previous").addEventListener("click", () => go(-1));
  $("fold").addEventListener("change", fold);
  update();
})();
