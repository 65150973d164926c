// Signs in with the token after the `#` of the link, and shows news without a reload. The page works without it.
"use strict";

const form = document.getElementById("sign-in");
const secret = location.hash.slice(1);
if (secret) history.replaceState(null, "", location.pathname);
if (form && secret) {
  form.elements.token.value = decodeURIComponent(secret);
  form.submit();
}

// A click that was meant for what was here a moment ago decides nothing.
const GUARD_MS = 600;
const guardButtons = () => {
  const buttons = document.querySelectorAll(".question button");
  for (const button of buttons) button.disabled = true;
  setTimeout(() => { for (const button of buttons) button.disabled = false; }, GUARD_MS);
};

const CHECK_MS = 1500;
const hasInput = () => [...document.querySelectorAll("main input, main textarea")].some((one) => one.value !== one.defaultValue);
const isBusy = () => hasInput() || document.querySelector("details[open]") || document.activeElement?.matches("input, textarea");

const checkForNews = async () => {
  try {
    const answer = await fetch("/review/state");
    if (!answer.ok || isBusy()) return;
    const state = await answer.text();
    if (state === document.body.dataset.state) return;
    const fresh = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    document.querySelector("main").replaceWith(fresh.querySelector("main"));
    guardButtons();
    document.body.dataset.state = fresh.body.dataset.state;
    document.title = fresh.title;
  } catch {
    // The server cannot be reached; the next check may find it again.
  }
};

if (!form) {
  guardButtons();
  setInterval(checkForNews, CHECK_MS);
}
