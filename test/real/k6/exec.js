// k6's WebSockets against the pods named in PODS, whose port 7 echoes: prints a line for each, a JSON object with a member for each check.
import { sha256 } from "k6/crypto";
import { WebSocket } from "k6/websockets";

const FORWARDS = 20;
const SIZE = 5 * 1024 * 1024;
/** k6 fragments messages of more than 4,096 bytes, and API servers take each fragment for a message. */
const PIECE = 4_095;
const CLOSE_STDIN = new Uint8Array([255, 0]).buffer;
const { SERVER, TOKEN, PODS } = __ENV;

export const options = { iterations: 1, vus: 1, thresholds: {} };

/** Calls `receive` with each binary message, as bytes. Resolves once the connection is closed. */
function converse(path, protocol, { open, receive }) {
  const socket = new WebSocket(SERVER.replace("https:", "wss:") + path, [protocol], {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  socket.binaryType = "arraybuffer";
  return new Promise((resolve, reject) => {
    socket.onopen = () => open?.(socket);
    socket.onmessage = ({ data }) => receive(new Uint8Array(data), socket);
    socket.onerror = ({ error }) => reject(new Error(`${path}: ${error}`));
    socket.onclose = resolve;
  });
}

/** The bytes behind a channel's number. */
function joined(parts) {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Over channel 0. */
function sendInput(socket, bytes) {
  for (let at = 0; at < bytes.length; at += PIECE) {
    socket.send(joined([new Uint8Array([0]), bytes.subarray(at, at + PIECE)]).buffer);
  }
}

const textOf = (parts) => String.fromCharCode(...joined(parts).slice(0, 10_000));

async function run(pod, script, input) {
  const channels = { 1: [], 2: [], 3: [] };
  const query = ["sh", "-c", script].map((word) => `command=${encodeURIComponent(word)}`);
  const flags = `container=main&stdout=true&stderr=true&stdin=${input !== undefined}`;
  await converse(
    `/api/v1/namespaces/default/pods/${pod}/exec?${flags}&${query.join("&")}`,
    "v5.channel.k8s.io",
    {
      open: (socket) => {
        if (input === undefined) return;
        sendInput(socket, input);
        socket.send(CLOSE_STDIN);
      },
      receive: (message) => channels[message[0]].push(message.subarray(1)),
    },
  );
  const { details } = JSON.parse(textOf(channels[3]));
  return { out: channels[1], err: channels[2], code: Number(details?.causes?.[0]?.message ?? 0) };
}

/** By the older protocol: channel 0 has the data, channel 1 errors, and each begins with the port. */
async function echoes(pod, number) {
  const wanted = `forward ${number}\n`.repeat(1000);
  const bytes = new Uint8Array(Array.from(wanted, (letter) => letter.charCodeAt(0)));
  const parts = [];
  let isFirst = true;
  let length = 0;
  await converse(`/api/v1/namespaces/default/pods/${pod}/portforward?ports=7`, "v4.channel.k8s.io", {
    open: (socket) => sendInput(socket, bytes),
    receive: (message, socket) => {
      if (message[0] !== 0) return;
      if (!isFirst) parts.push(message.subarray(1));
      if (!isFirst) length += message.length - 1;
      isFirst = false;
      if (length >= wanted.length) socket.close();
    },
  });
  return String.fromCharCode(...joined(parts)) === wanted;
}

export default async function () {
  for (const pod of PODS.split(",")) {
    const failed = await run(pod, "echo out; echo err >&2; exit 3");
    const got = await run(pod, `seq 1000000000 1999999999 | head -c ${SIZE}`);
    const data = Uint8Array.from({ length: SIZE }, (_, at) => at);
    // To the end of its input.
    const digest = await run(pod, "sha256sum | cut -c1-64", data);
    let forwards = 0;
    for (let number = 0; number < FORWARDS; number += 1) forwards += await echoes(pod, number);
    console.log(
      JSON.stringify({
        exit_code: [textOf(failed.out), textOf(failed.err), failed.code],
        download: [joined(got.out).length, textOf(got.out).slice(0, 11), got.code],
        upload: textOf(digest.out).trim() === sha256(data.buffer, "hex"),
        forwards,
      }),
    );
  }
}
