// A translator as one might first build it: `ws` towards the client, `spdy-transport` towards the
// node, connected by events. spdy-transport speaks the browsers' SPDY; the end of this file has the
// changes that Kubernetes requires.
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { WebSocketServer } from "ws";

const { upstreamPort, port } = JSON.parse(process.argv[2]);
const transport = createRequire(import.meta.url)("spdy-transport");
const HIGH_WATER_BYTES = 1024 * 1024;
const STDIN = 0;
const STDOUT = 1;
const STATUS = 3;
const CLOSE = 255;

const server = createServer();
const webSockets = new WebSocketServer({ server, handleProtocols: () => "v5.channel.k8s.io" });
webSockets.on("connection", (webSocket, { url }) => {
  webSocket.pause();
  webSocket.on("error", () => {});
  const upgrade = request({ port: upstreamPort, method: "POST", path: url });
  upgrade.setHeader("Connection", "Upgrade");
  upgrade.setHeader("Upgrade", "SPDY/3.1");
  upgrade.setHeader("X-Stream-Protocol-Version", "v4.channel.k8s.io");
  upgrade.on("error", () => webSocket.terminate());
  upgrade.on("upgrade", (_response, socket) => translate(webSocket, socket, new URL(url, "http://node")));
  upgrade.end();
});
server.listen(port, "127.0.0.1");

function translate(webSocket, socket, { searchParams }) {
  const connection = transport.connection.create(socket, { protocol: "spdy", isServer: false });
  connection.start(3.1);
  // Writes fail once the node has closed the connection; the streams show how the session ended.
  connection.on("error", () => {});
  takeBareReplies(connection);
  const open = (streamtype) => openStream(connection, streamtype);
  const error = open("error");
  const stdin = searchParams.get("stdin") === "true" ? open("stdin") : undefined;
  const stdout = open("stdout");
  const send = (stream, channel) => (chunk) => {
    webSocket.send(Buffer.concat([Buffer.of(channel), chunk]), () => {
      if (stream.isPaused() && webSocket.bufferedAmount < HIGH_WATER_BYTES) stream.resume();
    });
    if (webSocket.bufferedAmount >= HIGH_WATER_BYTES) stream.pause();
  };
  // Kubernetes ends a stream with FIN or RST_STREAM.
  const ended = [error, stdout].map(
    (stream) => new Promise((resolve) => stream.once("end", resolve).once("close", resolve)),
  );
  stdout.on("data", send(stdout, STDOUT));
  error.on("data", send(error, STATUS));
  void Promise.all(ended).then(() => {
    webSocket.close(1000);
    connection.end();
    socket.end();
  });
  webSocket.on("message", (message) => {
    if (message[0] === CLOSE) stdin?.end();
    else if (message[0] === STDIN && stdin?.write(message.subarray(1)) === false) {
      webSocket.pause();
      stdin.once("drain", () => webSocket.resume());
    }
  });
  webSocket.on("close", () => socket.end());
  webSocket.resume();
}

function openStream(connection, streamtype) {
  const stream = connection.request({ method: "POST", path: "/", host: "node", headers: { streamtype } });
  stream.on("error", () => {});
  stream._spdyState.needResponse = false;
  withoutWindow(stream);
  return stream;
}

function takeBareReplies(connection) {
  const { parser } = connection._spdyState;
  const { parseKVs } = parser;
  parser.parseKVs = function (block, callback) {
    parseKVs.call(this, block, (error, headers) => callback(error, { ":status": "200", ...headers }));
  };
  withoutWindow(connection);
}

/**
 * Kubernetes' SPDY has no WINDOW_UPDATE: it sends none, and one that arrives late breaks the
 * connection.
 */
function withoutWindow({ _spdyState }) {
  const ignore = (_size, callback) => {
    if (callback !== undefined) process.nextTick(callback);
  };
  _spdyState.window.send.update = ignore;
  _spdyState.window.recv.update = ignore;
  _spdyState.framer.windowUpdateFrame = ignore;
}
