// Forked by fairness.mjs; `process.argv[2]` is the gateway's URL. A message `{ kind }` starts it:
// "user" has one valid token, "stranger" makes up tokens. Both hold five HTTP/2 connections with
// 240 POSTs each whose bodies never arrive, and read as often as all other users together.
import { connect } from "node:http2";
import { Agent, request } from "node:https";

const [, , url] = process.argv;
const LOCAL_ADDRESS = "127.0.2.1";
const CONNECTIONS = 5;
const STREAMS = 240;
/**
 * Retries a refused request when Retry-After allows it, because the bench measures seats and not a
 * flood that saturates the CPU.
 */
const RETRY_MS = 1_000;
/**
 * The pause between reads of each of the READERS, which together read as often as all honest users.
 */
const PAUSE_MS = 100;
const READERS = 50;

let tokens = 0;
const tokenOf = (kind) => {
  tokens += 1;
  return kind === "user" ? "token-mallory" : `made-up-${tokens}`;
};

const hold = (kind) => {
  const session = connect(url, { rejectUnauthorized: false, localAddress: LOCAL_ADDRESS });
  const again = () => setTimeout(open, RETRY_MS);
  const open = () => {
    if (session.destroyed || session.closed) return;
    const authorization = `Bearer ${tokenOf(kind)}`;
    const stream = session.request({
      ":method": "POST",
      ":path": "/api/v1/namespaces/a/configmaps",
      authorization,
    });
    stream.on("error", () => {}).resume();
    stream.once("close", again);
  };
  session.on("error", () => {});
  session.once("close", () => setTimeout(hold, RETRY_MS, kind));
  session.once("remoteSettings", () => {
    for (let index = 0; index < STREAMS; index += 1) open();
  });
};

const agent = new Agent({
  keepAlive: true,
  maxSockets: READERS,
  rejectUnauthorized: false,
  localAddress: LOCAL_ADDRESS,
});
const read = (kind) => {
  const headers = { authorization: `Bearer ${tokenOf(kind)}` };
  const sent = request(`${url}/api/v1/pods`, { agent, headers }, (response) => response.resume());
  sent.once("close", () => setTimeout(read, PAUSE_MS, kind)).on("error", () => {});
  sent.end();
};

process.once("message", ({ kind }) => {
  for (let index = 0; index < CONNECTIONS; index += 1) hold(kind);
  for (let index = 0; index < READERS; index += 1) read(kind);
});
process.once("disconnect", () => process.exit());
