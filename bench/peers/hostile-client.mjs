// Forked by fairness.mjs: `process.argv[2]` is the gateway's URL. A message `{ kind }` begins: "user" is one user with a valid token, "stranger" has
// none and makes tokens up. Both hold five HTTP/2 connections with 240 POSTs each whose bodies do not come, and read as often as all others.
import { connect } from "node:http2";
import { Agent, request } from "node:https";

const [, , url] = process.argv;
const LOCAL_ADDRESS = "127.0.2.1";
const CONNECTIONS = 5;
const STREAMS = 240;
/** What is refused is asked again when Retry-After says so: seats are measured here, not a flood that fills the processor. */
const RETRY_MS = 1_000;
/** Between the reads of each of READERS: as many as those of all honest users. */
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
