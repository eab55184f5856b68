// A parent built on the TypeScript SDK.
//
// flow.mjs smoke SERVER    lists the tools and makes a failing call: needs no session
// flow.mjs flow SERVER     spawn -> wait -> answer -> read -> kill with the demo agent
//
// The SDK is found from LISA_SDK, its own directory.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";

const require = createRequire(path.join(process.env.LISA_SDK, "package.json"));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [mode, server] = process.argv.slice(2);
const client = new Client({ name: "parent-ts", version: "0" });
await client.connect(new StdioClientTransport({ command: server, env: process.env }));

const call = (name, args) => client.callTool({ name, arguments: args });
const good = async (name, args) => {
  const result = await call(name, args);
  assert.ok(!result.isError, `${name}: ${result.content?.[0]?.text}`);
  return name === "read_session" ? result.content[0].text : result.structuredContent;
};

async function waitFor(name, cursor, want) {
  for (let i = 0; i < 20; i += 1) {
    const answer = await good("wait_sessions", { sessions: [name], since: cursor, timeout_s: 15 });
    cursor = answer.cursor;
    const session = answer.sessions.find((s) => s.name === name && want(s));
    if (session) return { session, cursor };
  }
  throw new Error("it never came true");
}

async function smoke() {
  const { tools } = await client.listTools();
  assert.equal(tools.length, 12);
  const wrong = await call("wait_sessions", { timeout_s: -1 });
  assert.equal(wrong.isError, true);
  assert.equal(wrong.structuredContent.kind, "invalid_argument");
  const doctor = await good("doctor", {});
  assert.ok(Array.isArray(doctor.checks));
}

async function flow() {
  const prompt = "!permission Bash rm -rf build";
  const spawned = await good("spawn_session", { agent: "demo", name: "parent-ts", prompt, cwd: process.cwd() });
  const { name } = spawned.session;
  const asking = await waitFor(name, spawned.cursor, (s) => s.state === "awaiting_permission");
  const refused = await good("send_input", { session: name, text: "yes" });
  assert.equal(refused.delivered, "refused");
  const answered = await good("answer_prompt", {
    session: name,
    choice: "allow_once",
    prompt_id: asking.session.prompt.id,
  });
  await waitFor(name, answered.cursor, (s) => s.state === "ready");
  const said = await good("read_session", { session: name });
  assert.match(said.split("\n").at(-1), /^cursor=\d+ more=(true|false)$/);
  const ended = await good("kill_session", { session: name });
  assert.equal(ended.sessions[0].name, name);
}

await { smoke, flow }[mode]();
await client.close();
console.log(`${mode}: fine`);
