// Signs in with the token after the `#` of the link, and shows news without a reload. The page works without it.
"use strict";

const form = document.getElementById("sign-in");
const useSecret = () => {
  const secret = location.hash.slice(1);
  if (!secret || document.getElementById(secret)) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (!form) return;
  form.elements.token.value = decodeURIComponent(secret);
  form.submit();
};
useSecret();
addEventListener("hashchange", useSecret);  // the link was opened where the page already was

// A click that was meant for what was here a moment ago decides nothing.
const GUARD_MS = 600;
const guardButtons = (parent) => {
  const buttons = parent.querySelectorAll(".question button");
  for (const button of buttons) button.disabled = true;
  setTimeout(() => { for (const button of buttons) button.disabled = false; }, GUARD_MS);
};

// What a person reads or fills in is never taken away: lists are patched by id, and open questions keep everything but
// their state and their buttons.
let newest = 0;
const hasInput = (element) => [...element.querySelectorAll("input, textarea")].some((one) => one.value !== one.defaultValue || one.checked !== one.defaultChecked);
const isInUse = (element) => element.contains(document.activeElement) || hasInput(element) || element.querySelector("details[open]");

const patchQuestion = (old, fresh) => {
  if (old.dataset.version === fresh.dataset.version) return;
  old.dataset.version = fresh.dataset.version;
  const focused = old.querySelector(".buttons")?.contains(document.activeElement);
  old.querySelector(".status").replaceWith(fresh.querySelector(".status"));
  const kept = old.querySelector("form"), offered = fresh.querySelector("form");
  kept.action = offered.action;
  kept.querySelector(".buttons").replaceWith(offered.querySelector(".buttons"));
  guardButtons(old);
  if (focused) kept.querySelector(".buttons button").focus();
};

const closeQuestion = (old) => {
  old.querySelector(".status").textContent = "This question is no longer open.";
  old.querySelector(".buttons")?.remove();
};

// A row that newer ones push off the end of its list stays while it has the focus, or is not below the view.
const isRead = (row) => row.contains(document.activeElement) || row.getBoundingClientRect().top < innerHeight;

const patchList = (list, fresh) => {
  let before = list.firstElementChild;
  const names = new Set([...fresh.children].map((one) => one.id));
  for (const old of [...list.children]) {
    if (names.has(old.id)) continue;
    if (before === old) before = old.nextElementSibling;
    if (old.matches(".question") && isInUse(old)) closeQuestion(old);
    else if (old.matches(".question") || !isRead(old)) old.remove();
  }
  for (const one of [...fresh.children]) {
    const old = document.getElementById(one.id);
    if (!old) {
      list.insertBefore(one, list.id === "question-list" ? null : before);
      if (one.matches(".question")) { guardButtons(one); newest += 1; notify(one); }
    } else if (old.matches(".question")) {
      patchQuestion(old, one);
    } else if (old.dataset.version !== one.dataset.version && !isInUse(old)) {
      if (before === old) before = one;
      old.replaceWith(one);
    }
  }
};

const showNews = (fresh) => {
  document.title = fresh.title;
  const bar = document.getElementById("news");
  bar.hidden = newest === 0;
  bar.firstElementChild.textContent = `${newest} new`;
};

// Where the reader is: what has the focus, else what is in sight once the page was scrolled.
const readersPlace = () => {
  const focused = document.activeElement;
  if (focused && focused !== document.body) return focused;
  return scrollY > 0 ? document.elementFromPoint(innerWidth / 2, innerHeight / 3) : null;
};

const applyNews = (fresh) => {
  const place = readersPlace(), top = place?.getBoundingClientRect().top;
  patchPage(fresh);
  if (place?.isConnected) scrollBy(0, place.getBoundingClientRect().top - top);
};

const patchPage = (fresh) => {
  showLocalTimes(fresh);
  for (const id of ["question-list", "conversation-rows", "change-rows"]) {
    const list = document.getElementById(id), found = fresh.getElementById(id);
    if (list && found) patchList(list, found);
    else if (found && id === "change-rows" && document.getElementById("changes")) {
      document.getElementById("changes").replaceWith(fresh.getElementById("changes"));
    }
  }
  const card = document.querySelector("main > .question");
  const other = card && fresh.getElementById(card.id);
  if (other) patchQuestion(card, other);
  else if (card && card.dataset.version !== "closed") { card.dataset.version = "closed"; closeQuestion(card); }
  showNews(fresh);
};

const span = (seconds) => seconds < 60 ? `${Math.round(seconds)} s` : `${Math.floor(seconds / 60)} min`;
const showAges = () => {
  for (const one of document.querySelectorAll(".age")) {
    one.shown ??= Date.now();
    const passed = (Date.now() - one.shown) / 1000;
    const age = Number(one.dataset.age) + passed, left = Math.max(Number(one.dataset.left) - passed, 0);
    one.textContent = `Asked ${span(age)} ago, waits ${span(left)} more.`;
  }
};

const showLocalTimes = (parent) => {
  for (const one of parent.querySelectorAll("time")) {
    const moment = new Date(one.dateTime);
    if (isNaN(moment)) continue;
    const isToday = moment.toDateString() === new Date().toDateString();
    one.textContent = isToday ? moment.toLocaleTimeString() : moment.toLocaleString();
    one.title = one.dateTime;
  }
};

// j and k go from one card to the next, y, n and u to its buttons; Enter presses them, so no key decides by itself.
const cards = () => [...document.querySelectorAll("article.question, article.file, .turn li, #change-rows tr, #conversation-rows li")];
const currentCard = () => document.querySelector(".here");
const moveTo = (step) => {
  const all = cards(), at = all.indexOf(currentCard());
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (!next) return;
  currentCard()?.classList.remove("here");
  next.classList.add("here");
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
};
const focusButton = (selector) => (currentCard() ?? document).querySelector(selector)?.focus();
const keys = {
  j: () => moveTo(1),
  k: () => moveTo(-1),
  y: () => focusButton("button.yes"),
  n: () => focusButton("button.no"),
  u: () => focusButton("form[action*='undo'] button"),
  "?": () => document.getElementById("keys").showModal(),
};
const onKey = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, dialog")) return;
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
};

// News come as events. Only while they do not, the page asks by itself whether the server is there and what is new.
const ASK_MS = 1500, PATIENCE_MS = 5000, SILENCE_MS = 40000;
let lostAt = null, checking = false, asking = null, heardAt = Date.now(), events = null;
const showConnection = (isThere) => {
  const bar = document.getElementById("connection");
  bar.hidden = isThere;
  lostAt = isThere ? null : lostAt ?? new Date();
  if (!isThere) bar.textContent = `Not connected since ${lostAt.toLocaleTimeString()}. Questions may be waiting that are not shown here.`;
};

const isLive = () => document.querySelector("#question-list, #change-rows, main > .question");
const takeState = async (state) => {
  document.body.dataset.state ||= state;
  if (state === document.body.dataset.state || checking) return;
  if (!isLive()) { document.getElementById("stale").hidden = false; return; }
  checking = true;
  try {
    const page = await fetch(location.href);
    if (page.status === 401) { location.reload(); return; }
    const fresh = new DOMParser().parseFromString(await page.text(), "text/html");
    applyNews(fresh);
    document.body.dataset.state = fresh.body.dataset.state || state;
  } catch {
    loseEvents();
  } finally {
    checking = false;
  }
};

const askForState = async () => {
  try {
    const answer = await fetch("/review/state", { signal: AbortSignal.timeout(PATIENCE_MS) });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) return;
    showConnection(true);
    await takeState(await answer.text());
    if (events.readyState === EventSource.CLOSED) listen();
  } catch {
    showConnection(false);
  }
};

const loseEvents = () => {
  asking ??= setInterval(askForState, ASK_MS);
  askForState();
};

const listen = () => {
  events?.close();
  events = new EventSource("/review/events");
  events.onopen = () => { heardAt = Date.now(); clearInterval(asking); asking = null; showConnection(true); };
  events.onmessage = (event) => { heardAt = Date.now(); takeState(event.data); };
  events.onerror = loseEvents;
};

const everySecond = () => {
  showAges();
  if (asking === null && Date.now() - heardAt > SILENCE_MS) { events.close(); loseEvents(); }
};

const offerNotifications = () => {
  const button = document.getElementById("notify");
  if (!("Notification" in window)) return;
  button.hidden = Notification.permission !== "default";
  button.addEventListener("click", async () => { await Notification.requestPermission(); button.hidden = true; });
};
const notify = (question) => {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  new Notification(question.querySelector("h1, h2").textContent, { body: document.title, tag: question.id });
};

if (!form) {
  guardButtons(document);
  document.getElementById("news").addEventListener("click", () => { newest = 0; document.getElementById("news").hidden = true; });
  showLocalTimes(document);
  offerNotifications();
  document.addEventListener("keydown", onKey);
  listen();
  setInterval(everySecond, 1000);
}
