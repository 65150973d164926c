// Signs in with the token behind the `#` of the link, and shows news without a reload. The page works without it.
"use strict";

const form = document.getElementById("sign-in");
const secret = location.hash.slice(1);
if (secret) history.replaceState(null, "", location.pathname);
if (form && secret) {
  form.elements.token.value = decodeURIComponent(secret);
  form.submit();
}

// A click that was meant for what stood here a moment ago decides nothing.
const settle = () => {
  const buttons = document.querySelectorAll(".question button");
  for (const button of buttons) button.disabled = true;
  setTimeout(() => { for (const button of buttons) button.disabled = false; }, 600);
};

const begun = () => [...document.querySelectorAll("main input, main textarea")].some((one) => one.value !== one.defaultValue);
const busy = () => begun() || document.querySelector("details[open]") || document.activeElement?.matches("input, textarea");

const look = async () => {
  try {
    const answer = await fetch("/review/state");
    if (!answer.ok || busy()) return;
    const state = await answer.text();
    if (state === document.body.dataset.state) return;
    const fresh = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
    document.querySelector("main").replaceWith(fresh.querySelector("main"));
    settle();
    document.body.dataset.state = fresh.body.dataset.state;
    document.title = fresh.title;
  } catch {
    // The server is away; the next look may find it again.
  }
};

if (!form) {
  settle();
  setInterval(look, 1500);
}
