// The life of an edit with the official TypeScript clients, as tests/conformance/lifecycle.py lives it in Python.
// Usage: node lifecycle.mjs '{"sdk": 1 | 2, "mode": "legacy" | "auto" | "2026-07-28", "command": […] | "url": "…",
//                             "revision": "…", "root": "…", "steps": […], "tools": […]}'
// Prints one JSON array of {name, ok, seen}.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const plan = JSON.parse(process.argv[2]);
const NAME = "notes.txt";
const path = join(plan.root, NAME);
const steps = [];
let agreed;

function note(ok, seen) {
  steps.push({ name: plan.steps[steps.length], ok: Boolean(ok), seen: ok ? "" : JSON.stringify(seen)?.slice(0, 600) });
}

const onDisk = () => readFileSync(path, "utf8");
const sha256 = () => createHash("sha256").update(readFileSync(path)).digest("hex");
const text = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");

async function connect() {
  const info = { name: "surehold-conformance", version: "1.0.0" };
  const one = plan.sdk === 1;
  const { Client } = await import(one ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
  const mode = plan.mode.startsWith("20") ? { pin: plan.mode } : plan.mode;
  const client = one ? new Client(info) : new Client(info, { versionNegotiation: { mode } });
  const transport = plan.url ? await overHttp(one) : await overStdio(one);
  if (one) {
    // The 1.x client tells the agreed revision to nobody but its transport.
    const tell = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
      agreed = version;
      tell?.(version);
    };
  }
  await client.connect(transport);
  agreed ??= client.getNegotiatedProtocolVersion();
  return client;
}

async function overHttp(one) {
  const place = one ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client";
  const { StreamableHTTPClientTransport } = await import(place);
  return new StreamableHTTPClientTransport(new URL(plan.url));
}

async function overStdio(one) {
  const place = one ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio";
  const { StdioClientTransport } = await import(place);
  const [command, ...args] = plan.command;
  return new StdioClientTransport({ command, args, stderr: "ignore" });
}

const client = await connect();
const call = (name, args) => client.callTool({ name, arguments: args });
const read = () => call("read_file", { path: NAME });
const edit = (expectedSha256, oldText, newText) =>
  call("edit_file", { path: NAME, expectedSha256, edits: [{ oldText, newText }] });

function changed(result, before, after) {
  const data = result.structuredContent?.data ?? {};
  return (
    !result.isError &&
    data.beforeSha256 === before &&
    data.afterSha256 === sha256() &&
    text(result).includes(sha256()) &&
    result._meta?.["surehold/result"] === undefined &&
    onDisk() === after
  );
}

async function editTwice() {
  note(agreed === plan.revision, String(agreed));

  const names = (await client.listTools()).tools.map((tool) => tool.name);
  note(plan.tools.every((name) => names.includes(name)), names);

  const first = await read();
  note(!first.isError && text(first).includes("beta") && text(first).includes(sha256()), first);

  let seen = sha256();
  const edited = await edit(seen, "beta", "BETA");
  note(changed(edited, seen, "alpha\nBETA\ngamma\n"), edited);

  seen = sha256();
  const outside = "alpha\nBETA\ngamma\nan outside line\n";
  writeFileSync(path, outside);
  const stale = await edit(seen, "gamma", "GAMMA");
  const error = stale.structuredContent?.error ?? {};
  note(
    stale.isError &&
      text(stale).startsWith("Nothing was written.") &&
      error.kind === "stale_file" &&
      error.details?.expectedSha256 === seen &&
      error.details?.actualSha256 === sha256() &&
      onDisk() === outside,
    stale,
  );

  const again = await read();
  note(text(again).includes("an outside line") && text(again).includes(sha256()), again);
  seen = text(again).match(/\b[0-9a-f]{64}\b/)?.[0];
  const last = await edit(seen, "gamma", "GAMMA");
  note(changed(last, seen, "alpha\nBETA\nGAMMA\nan outside line\n"), last);
}

// The clients compile every output schema when they list the tools, and check structured content against it; the 1.x
// client does so even when the result is an error, and throws our message away when it does not fit.
async function misuse() {
  const refusals = [
    ["edit_file", { path: NAME, expectedSha256: "0".repeat(64), edits: [{ oldText: "a", newText: "b" }] }],
    ["create_file", { path: NAME, content: "x" }],
    ["apply_patch", { patch: "no patch at all" }],
    ["delete_file", { path: "missing.txt", expectedSha256: "0".repeat(64) }],
    ["move_file", { fromPath: "missing.txt" }],
  ];
  const misfits = [];
  for (const [name, args] of refusals) {
    const result = await call(name, args);
    if (!result.isError || result.structuredContent?.ok !== false) misfits.push([name, result]);
  }
  note(misfits.length === 0, misfits);

  const warned = await call("read_file", { path: NAME, wait_for_previous: true });
  note(!warned.isError && text(warned).includes("wait_for_previous"), warned);

  let code;
  try {
    await call("no_such_tool", {});
  } catch (error) {
    code = error.code;
  }
  note(code === -32602, String(code));
}

try {
  writeFileSync(path, "alpha\nbeta\ngamma\n");
  await editTwice();
  await misuse();
} catch (error) {
  note(false, `${error?.name}: ${error?.message}`);
}
await client.close();
console.log(JSON.stringify(steps));
process.exit(0);
