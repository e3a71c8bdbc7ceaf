"use strict";
// Moves what Python has drawn. Every element says to which times it belongs (data-t); its place along x follows from
// them and the view, its place along y from its lane (data-lane, data-l) and from the partitions that are shown.
(() => {
  const $ = (id) => document.getElementById(id);
  const svg = document.querySelector("#canvas svg");
  const LEFT = @left@, RIGHT = @right@, TOP = @top@, TRACK = @track@, LETTER = @letter@, NEAR = @near@, END = @end@;
  const all = (query, from = svg) => [...from.querySelectorAll(query)];
  const numbers = (text) => text.split(" ").map(Number);
  const NS = "http://www.w3.org/2000/svg";
  let width = Number(svg.getAttribute("width"));
  let start = Number(svg.dataset.start), end = Number(svg.dataset.end);
  const home = [start, end];
  const x = (t) => Math.round((LEFT + (t - start) * (width - LEFT - RIGHT) / (end - start)) * 10) / 10;

  // --- what there is

  const heads = new Map(all("g.lane[data-head]").map((g) => [Number(g.dataset.lane), g]));
  const lanes = [...heads.keys()].sort((a, b) => a - b).map((n) => ({
    head: Number(heads.get(n).dataset.head), life: Number(heads.get(n).dataset.life), top: 0, height: 0,
    groups: all(`g.lane[data-lane="${n}"]`), ground: svg.querySelector(`.lane-ground[data-lane="${n}"]`),
  }));
  const timed = all("rect[data-t]").map((e) => ({e, t: numbers(e.dataset.t)}));
  const words = all("text.within").map((e) => ({e, t: numbers(e.dataset.t), texts: [e.dataset.full, e.dataset.short]}));
  const points = all("g.at").map((e) => ({
    e, t: Number(e.dataset.t), label: e.querySelector("text.label"), lane: e.closest("g.lane")?.dataset.lane ?? "",
    y: Number(/ (-?[\d.]+)\)/.exec(e.getAttribute("transform"))[1]),
  }));
  const messages = all(".m[data-t]").map((e) => ({
    e, t: numbers(e.dataset.t), l: numbers(e.dataset.l), about: e.dataset.p === undefined ? null : numbers(e.dataset.p),
    parts: e.localName === "g" ? [e.querySelector(".ends"), e.querySelector(".bar")] : [],
    fine: e.parentNode.classList.contains("fine"), ribbon: e.localName === "g", beside: Number(e.dataset.beside || 0),
  }));
  const stairs = all(".steps").map((e) => ({
    e, until: Number(e.dataset.end), partition: e.closest(".track").dataset.partition, marks: e.nextElementSibling,
    first: e.nextElementSibling.dataset.label, points: e.dataset.points.split(" ").map((p) => p.split(",").map(Number)),
  }));
  const violations = all("g.violation text.violation");
  const cursor = svg.querySelector("g[clip-path]").appendChild(document.createElementNS(NS, "line"));
  cursor.setAttribute("class", "cursor");
  let picked = -1;
  const partitions = all("input[data-partition]", document).map((box) => box.dataset.partition);
  const shown = new Set(all("input[data-partition]:checked", document).map((box) => box.dataset.partition));

  // --- along y

  function layOut() {
    let y = TOP;
    for (const lane of lanes) {
      const tracks = new Set();
      for (const group of lane.groups) {
        let at = lane.head - 3;
        for (const track of all(".track", group)) {
          const is = shown.has(track.dataset.partition);
          track.setAttribute("display", is ? "inline" : "none");
          if (!is) continue;
          track.setAttribute("transform", `translate(0 ${at})`);
          tracks.add(track.dataset.partition);
          at += TRACK;
        }
        group.setAttribute("transform", `translate(0 ${y})`);
      }
      lane.top = y;
      lane.height = lane.head + TRACK * tracks.size;
      lane.ground.setAttribute("y", y);
      lane.ground.setAttribute("height", lane.height);
      y += lane.height;
    }
    const height = y + 6;
    svg.setAttribute("height", height);
    svg.querySelector("#room rect").setAttribute("height", height);
    all(".violation-line, .fault-line, .healed-line").forEach((line) => line.setAttribute("y2", height));
    all(".shade").forEach((shade) => shade.setAttribute("height", height));
    all(".violation-ring").forEach((ring) => ring.setAttribute("cy", lifeOf(Number(ring.dataset.lane))));
    for (const point of points)
      point.off = point.e.dataset.partition !== undefined && !shown.has(point.e.dataset.partition);
    const some = partitions.map((one) => shown.has(one));
    for (const m of messages) m.hidden = m.about !== null && !m.about.some((one) => some[one]);
  }
  const lifeOf = (n) => lanes[n].top + lanes[n].life;

  // --- along x

  function draw() {
    svg.setAttribute("width", width);
    svg.setAttribute("viewBox", `0 0 ${width} ${svg.getAttribute("height")}`);
    svg.querySelector("#room rect").setAttribute("width", Math.max(10, width - LEFT - RIGHT));
    const near = (width - LEFT - RIGHT) / (end - start) >= NEAR;
    svg.classList.toggle("near", near);
    svg.classList.toggle("far", !near);
    lanes.forEach((lane) => lane.ground.setAttribute("width", width));
    axis();
    for (const {e, t} of timed) {
      const a = x(Math.max(t[0], start - (end - start)));
      e.setAttribute("x", a);
      e.setAttribute("width", Math.max(1, x(Math.min(t[1], end + (end - start))) - a));
    }
    for (const {e, t, texts} of words) {
      const a = Math.max(x(t[0]), LEFT), room = Math.min(x(t[1]), width) - a;
      const text = texts.find((one) => one && room >= one.length * LETTER + 6);
      e.setAttribute("display", text ? "inline" : "none");
      if (text && text !== e.textContent) e.textContent = text;
      e.setAttribute("x", a + 4);
    }
    drawPoints();
    for (const m of messages) {
      const out = m.hidden || m.off || (m.ribbon && near) || (m.fine && !near)
        || Math.max(...m.t) < start || m.t[0] > end;
      if (m.e.style.display !== (out ? "none" : "")) m.e.style.display = out ? "none" : "";
      if (!out) drawMessage(m);
    }
    stairs.forEach(drawSteps);
    cursor.style.display = picked < 0 ? "none" : "";
    for (const [key, value] of [["x1", x(picked)], ["x2", x(picked)], ["y1", 16], ["y2", svg.getAttribute("height")]])
      cursor.setAttribute(key, value);
    for (const text of violations) {
      const right = x(Number(text.parentNode.dataset.t)) > width / 2;
      text.setAttribute("text-anchor", right ? "end" : "start");
      text.setAttribute("x", right ? -6 : 6);
    }
    $("where").textContent = `${Math.round(Math.max(0, start)).toLocaleString("en")} to ${Math.round(end).toLocaleString("en")} ms`;
    const view = document.querySelector("#overview .view"), scale = overview.scale();
    view.setAttribute("x", start * scale);
    view.setAttribute("width", Math.max(3, (end - start) * scale));
  }

  function axis() {
    const group = svg.querySelector(".axis");
    const apart = (end - start) * 90 / Math.max(1, width - LEFT - RIGHT);
    let step = 1;
    while (step < apart) step = [2, 5, 10].map((by) => step * by).find((one) => one >= apart) ?? step * 10;
    group.replaceChildren();
    for (let t = Math.max(0, Math.ceil(start / step) * step); t <= end; t += step) {
      const line = group.appendChild(document.createElementNS(NS, "line"));
      const text = group.appendChild(document.createElementNS(NS, "text"));
      for (const [key, value] of [["x1", x(t)], ["x2", x(t)], ["y1", 18], ["y2", svg.getAttribute("height")]])
        line.setAttribute(key, value);
      text.setAttribute("x", x(t));
      text.setAttribute("y", 13);
      text.setAttribute("text-anchor", "middle");
      text.textContent = `${t.toLocaleString("en")} ms`;
    }
  }

  function drawPoints() {
    const ends = new Map();
    for (const {e, t, label, lane, y, off} of points) {
      const at = x(t), out = off || t < start - 1 || t > end + 1;
      e.setAttribute("display", out && !e.classList.contains("violation") ? "none" : "inline");
      e.setAttribute("transform", `translate(${at} ${y})`);
      if (!label || out) continue;
      const wide = label.textContent.length * LETTER + 14;
      const rows = lane === "0" ? 2 : 1;
      let row = 0;
      while (row < rows && (ends.get(`${lane} ${row}`) ?? -1e9) > at) row++;
      label.setAttribute("display", row < rows ? "inline" : "none");
      if (row === rows) continue;
      if (rows === 2) label.setAttribute("y", 11 + 13 * row);
      ends.set(`${lane} ${row}`, at + wide);
    }
  }

  function drawMessage({e, t, l, parts, ribbon, beside}) {
    const y1 = lifeOf(l[0]), y2 = lifeOf(l[1]);
    if (ribbon) {
      const bar = y1 + beside;
      parts[0].setAttribute("d", `M${x(t[3])} ${y2}L${x(t[0])} ${bar}H${x(t[1])}L${x(t[2])} ${y2}`);
      parts[1].setAttribute("d", `M${x(t[0])} ${bar}H${x(t[1])}`);
    } else if (t.length === 1) {
      const a = x(t[0]), b = y1 + (y2 - y1) * 0.6;
      e.setAttribute("d", `M${a} ${y1}V${b}M${a - 3} ${b - 3}l6 6M${a + 3} ${b - 3}l-6 6`);
    } else {
      e.setAttribute("x1", x(t[0]));
      e.setAttribute("y1", y1);
      e.setAttribute("x2", x(t[1]));
      e.setAttribute("y2", y2);
    }
  }

  function drawSteps({e, until, partition, marks, first, points}) {
    if (!shown.has(partition)) return;
    e.style.display = until < start || points[0][0] > end ? "none" : "";
    if (e.style.display) { marks.replaceChildren(); return; }
    const [low, high] = ranges(partition);
    const part = (value) => Math.min(1, Math.max(0, (value - low) / Math.max(1, high - low)));
    const y = (value) => Math.round((TRACK - 5 - (TRACK - 8) * part(value)) * 10) / 10;
    const clip = (t) => x(Math.min(Math.max(t, start - (end - start)), end + (end - start)));
    marks.replaceChildren();
    let d = "", room = LEFT;
    points.forEach(([t, value], n) => {
      d += n ? `H${clip(t)}V${y(value)}` : `M${clip(t)} ${y(value)}`;
      const last = n + 1 === points.length, next = last ? until : points[n + 1][0];
      if (t > end || until < start || (next < start && !last)) return;
      const at = Math.max(x(t), LEFT);
      const text = room === LEFT ? `${first} · ${value}` : `${value}`;
      if (at < room || at + text.length * LETTER > x(until)) return;
      const label = marks.appendChild(document.createElementNS(NS, "text"));
      label.setAttribute("class", "small");
      label.setAttribute("x", at + 3);
      label.setAttribute("y", 12);
      label.textContent = text;
      room = at + text.length * LETTER + 16;
    });
    e.setAttribute("d", `${d}H${clip(until)}`);
  }

  const ranges = (partition) => {
    let low = Infinity, high = -Infinity;
    for (const one of stairs) {
      if (one.partition !== partition || one.until < start || one.points[0][0] > end) continue;
      one.points.forEach(([t, value], n) => {
        const next = one.points[n + 1]?.[0] ?? one.until;
        if (t <= end && next >= start) [low, high] = [Math.min(low, value), Math.max(high, value)];
      });
    }
    return [low, high];
  };

  // --- moving

  const overview = {
    svg: document.querySelector("#overview svg"),
    scale() { return Number(this.svg.getAttribute("viewBox").split(" ")[2]) / Math.max(1, END); },
  };
  let waits = false;
  function redraw() {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; draw(); });
  }
  function look(from, to) {
    const span = Math.min(Math.max(to - from, 5), END * 1.04 + 20);
    const middle = Math.min(Math.max((from + to) / 2, 0), END);
    [start, end] = [middle - span / 2, middle + span / 2];
    redraw();
  }
  const timeAt = (px) => start + (px - LEFT) * (end - start) / (width - LEFT - RIGHT);
  function zoom(by, t = (start + end) / 2) { look(t - (t - start) * by, t + (end - t) * by); }
  function move(by) { const span = (end - start) * by; look(start + span, end + span); }
  function centre(t) {
    const half = Math.min(end - start, 1500) / 2;
    picked = t;
    look(t - half, t + half);
  }

  svg.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(event.deltaY * 0.003), timeAt(event.offsetX));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      move((event.deltaX || event.deltaY) / width);
    }
  }, {passive: false});
  svg.addEventListener("dblclick", (event) => zoom(0.4, timeAt(event.clientX - svg.getBoundingClientRect().left)));
  let grip = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button === 0) grip = {x: event.clientX, start, end, moved: false};
  });
  addEventListener("pointermove", (event) => {
    if (!grip) return;
    const by = (grip.x - event.clientX) * (grip.end - grip.start) / (width - LEFT - RIGHT);
    if (Math.abs(grip.x - event.clientX) > 3) { grip.moved = true; svg.classList.add("moving"); hide(); }
    if (grip.moved) look(grip.start + by, grip.end + by);
  });
  addEventListener("pointerup", () => { grip = null; svg.classList.remove("moving"); });

  let sliding = false;
  const slide = (event) => {
    const box = overview.svg.getBoundingClientRect(), t = (event.clientX - box.left) / box.width * END;
    look(t - (end - start) / 2, t + (end - start) / 2);
  };
  overview.svg.addEventListener("pointerdown", (event) => { sliding = true; slide(event); });
  addEventListener("pointermove", (event) => { if (sliding) slide(event); });
  addEventListener("pointerup", () => { sliding = false; });

  const acts = {
    in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25),
    whole: () => look(-END * 0.01, END * 1.01), last: () => look(...home),
  };
  for (const [id, act] of Object.entries(acts)) $(id).addEventListener("click", act);
  const keys = {"+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "whole", Home: "last"};
  addEventListener("keydown", (event) => {
    if (event.target.matches("input[type=search]") || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); acts[act](); }
  });

  // --- choosing

  function chooseMessages() {
    const kinds = new Set(all("input[data-kind]:checked", document).map((box) => box.dataset.kind));
    for (const m of messages) {
      const answer = m.e.classList.contains("answer");
      m.off = ![...kinds].some((kind) => m.e.classList.contains(kind)) || (answer && !kinds.has("answer"));
    }
  }
  all("input[data-kind]", document).forEach((box) => box.addEventListener("change", () => { chooseMessages(); redraw(); }));
  all("input[data-partition]", document).forEach((box) => box.addEventListener("change", () => {
    shown[box.checked ? "add" : "delete"](box.dataset.partition);
    layOut();
    redraw();
    search();
  }));

  // --- reading

  const tip = $("tip");
  const hide = () => { tip.hidden = true; };
  for (const title of all("title")) {  // the browser's own hints come late: ours come at once
    title.parentNode.dataset.hint = title.textContent;
    title.remove();
  }
  const names = lanes.map((lane) => lane.groups.map((g) => g.querySelector(".name")?.textContent).find(Boolean));
  const stamp = (t) => t.toLocaleString("en");
  function saying({n, t, l, p}, isAnswer) {
    const [from, to] = numbers(l).map((lane) => names[lane]), times = numbers(t).map(stamp).join(" to ");
    const about = p ? numbers(p).map((one) => partitions[one]).filter(Boolean) : [];
    return [`${n}${isAnswer ? " answer" : ""} ${from} → ${to}`, `${times} ms`, ...about].join(" · ");
  }
  const REACH = 5;  // px: arrows are thin
  function nearest(px, py) {
    let found = null, best = REACH;
    for (const m of messages) {
      if (m.ribbon || m.t.length < 2 || m.e.style.display === "none") continue;
      const [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map((key) => m.e[key].baseVal.value);
      const dx = x2 - x1, dy = y2 - y1;
      const part = Math.min(1, Math.max(0, ((px - x1) * dx + (py - y1) * dy) / (dx * dx + dy * dy || 1)));
      const far = Math.hypot(px - x1 - part * dx, py - y1 - part * dy);
      if (far < best) [best, found] = [far, m.e];
    }
    return found;
  }
  let lit = null;
  svg.addEventListener("pointermove", (event) => {
    lit?.classList.remove("picked");
    lit = null;
    if (grip?.moved) { hide(); return; }
    const box = svg.getBoundingClientRect();
    let about = event.target.closest("g.at, .m");
    if (!about) about = nearest(event.clientX - box.left, event.clientY - box.top);
    if (about?.classList.contains("m")) (lit = about).classList.add("picked");
    about ??= event.target.closest("[data-hint]");
    if (!about) { hide(); return; }
    tip.textContent = about.dataset.hint ?? saying(about.dataset, about.classList.contains("answer"));
    tip.hidden = false;
    const {clientX, clientY} = event, under = clientY + 18 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${under ? clientY + 16 : clientY - tip.offsetHeight - 8}px`;
  });
  svg.addEventListener("pointerleave", hide);

  // --- the story

  const rows = all("#story tbody tr", document).map((e) => ({
    e, t: Number(e.dataset.t), until: Number(e.dataset.until), who: e.dataset.who, partition: e.dataset.p,
    text: e.textContent.toLowerCase(),
  }));
  function search() {
    const wanted = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const is = (!row.partition || shown.has(row.partition)) && wanted.every((word) => row.text.includes(word));
      row.e.hidden = !is;
      count += is;
    }
    $("found").textContent = `${count} of ${rows.length} lines`;
  }
  $("search").addEventListener("input", search);
  function pick(row) {
    all("tr.picked", document).forEach((e) => e.classList.remove("picked"));
    row?.e.classList.add("picked");
  }
  for (const row of rows)
    row.e.addEventListener("click", () => {
      pick(row);
      centre(row.t);
      $("picture").scrollIntoView({block: "start", behavior: "smooth"});
    });
  svg.addEventListener("click", (event) => {
    const at = event.target.closest("g.at");
    if (!at) return;
    const t = Number(at.dataset.t);
    const row = rows.find((one) => !one.e.hidden && one.who === at.dataset.who && one.t <= t && t <= one.until);
    picked = t;
    redraw();
    if (row) { pick(row); row.e.scrollIntoView({block: "center", behavior: "smooth"}); }
  });
  if (navigator.clipboard) {
    $("copy").hidden = false;
    $("copy").addEventListener("click", () => navigator.clipboard.writeText($("replay").textContent));
  }

  // --- begin

  function fit() {
    width = Math.max(700, $("canvas").clientWidth);
    redraw();
  }
  addEventListener("resize", fit);
  chooseMessages();
  layOut();
  fit();
  search();
})();
