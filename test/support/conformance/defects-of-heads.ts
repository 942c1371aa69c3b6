import { headerOf, type MessageHead, type ProxyDefect, refuse, withoutHeader } from "./broken-proxy.ts";

const isWebSocket = (head: MessageHead): boolean => headerOf(head, "upgrade")?.toLowerCase() === "websocket";
const isSpdy = (head: MessageHead): boolean => headerOf(head, "upgrade")?.toLowerCase() === "spdy/3.1";
const isTunnel = (head: MessageHead): boolean =>
  headerOf(head, "sec-websocket-protocol")?.startsWith("SPDY/3.1+") === true;

/** Changes only answers to WebSockets. */
const ofWebSockets =
  (change: (head: MessageHead) => void): NonNullable<ProxyDefect["response"]> =>
  (head, request) => {
    if (isWebSocket(request)) change(head);
  };

export const handshakeDefects: readonly ProxyDefect[] = [
  {
    id: "strips-offered-subprotocol",
    what: "does not pass on the client's Sec-WebSocket-Protocol",
    namedBy: ["negotiation/websocket-v5", "negotiation/tunnel"],
    request: (head) => withoutHeader(head, "sec-websocket-protocol"),
  },
  {
    id: "strips-chosen-subprotocol",
    what: "does not pass on the server's Sec-WebSocket-Protocol",
    namedBy: ["negotiation/websocket-v5", "negotiation/tunnel"],
    response: (head) => void withoutHeader(head, "sec-websocket-protocol"),
  },
  {
    id: "answers-200",
    what: "answers a request for an upgrade with 200",
    namedBy: ["negotiation/websocket-v5", "negotiation/spdy"],
    request: () => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
  },
  {
    id: "redirects",
    what: "answers a request for an upgrade with a redirect",
    namedBy: ["negotiation/websocket-v5", "negotiation/spdy"],
    request: () =>
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://127.0.0.1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
  },
  {
    id: "strips-upgrade",
    what: "takes Connection and Upgrade for its own, as nginx does by default",
    namedBy: ["negotiation/websocket-v5", "negotiation/spdy"],
    request: (head) => {
      withoutHeader(head, "upgrade");
      head.lines.push(["Connection", "close"]);
      return withoutHeader(head, "connection");
    },
  },
  {
    id: "wrong-accept",
    what: "answers with a Sec-WebSocket-Accept of its own",
    namedBy: ["negotiation/websocket-v5"],
    response: ofWebSockets((head) => {
      withoutHeader(head, "sec-websocket-accept");
      head.lines.push(["Sec-WebSocket-Accept", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="]);
    }),
  },
  {
    id: "adds-extension",
    what: "names an extension that was not offered",
    namedBy: ["negotiation/websocket-v5"],
    response: ofWebSockets(
      (head) => void head.lines.push(["Sec-WebSocket-Extensions", "permessage-deflate"]),
    ),
  },
  {
    id: "takes-extension",
    what: "takes an offered extension for a server that has none",
    namedBy: ["headers/extension-not-taken"],
    response: (head, request) => {
      if (headerOf(request, "sec-websocket-extensions") !== undefined)
        head.lines.push(["Sec-WebSocket-Extensions", "permessage-deflate"]);
    },
  },
  {
    id: "length-of-101",
    what: "adds a Content-Length to the 101",
    namedBy: ["headers/websocket-101"],
    response: ofWebSockets((head) => {
      if (head.start.includes(" 101")) head.lines.push(["Content-Length", "0"]);
    }),
  },
  {
    id: "doubles-subprotocol",
    what: "repeats the line Sec-WebSocket-Protocol of the 101",
    namedBy: ["headers/websocket-101"],
    response: ofWebSockets((head) => {
      const chosen = headerOf(head, "sec-websocket-protocol");
      if (chosen === "v5.channel.k8s.io") head.lines.push(["Sec-WebSocket-Protocol", chosen]);
    }),
  },
  {
    id: "refuses-spdy",
    what: "lets only WebSockets through",
    namedBy: ["negotiation/spdy", "negotiation/spdy-forward"],
    request: (head) => (isSpdy(head) ? refuse(403, "SPDY is not allowed") : undefined),
  },
  {
    id: "refuses-tunnels",
    what: "does not know the subprotocol of port-forward",
    namedBy: ["negotiation/tunnel"],
    request: (head) => (isTunnel(head) ? refuse(400, "unknown subprotocol") : undefined),
  },
  {
    id: "closes-at-unknown-subprotocol",
    what: "closes the connection instead of refusing",
    namedBy: ["negotiation/unknown-subprotocol"],
    request: (head) => (headerOf(head, "sec-websocket-protocol")?.startsWith("v9") ? "" : undefined),
  },
  {
    id: "strips-spdy-version",
    what: "does not pass on the server's X-Stream-Protocol-Version",
    namedBy: ["negotiation/spdy", "negotiation/spdy-forward"],
    response: (head) => void withoutHeader(head, "x-stream-protocol-version"),
  },
  {
    id: "keeps-last-header-line",
    what: "keeps the last one of repeated header lines",
    namedBy: ["negotiation/spdy-best-version"],
    request: (head) => {
      head.lines = head.lines.filter(
        ([name], index) =>
          !head.lines.some(([other], later) => later > index && other.toLowerCase() === name.toLowerCase()),
      );
      return undefined;
    },
  },
  {
    id: "folded-versions-are-one",
    what: "takes a header line with commas for one value",
    namedBy: ["negotiation/spdy-folded-versions"],
    request: (head) =>
      headerOf(head, "x-stream-protocol-version")?.includes(",")
        ? refuse(403, "unable to negotiate")
        : undefined,
  },
];

export const requestDefects: readonly ProxyDefect[] = [
  {
    id: "exact-connection",
    what: "compares Connection with a whole value",
    namedBy: ["proxies/connection-list"],
    request: (head) =>
      headerOf(head, "connection")?.toLowerCase() === "upgrade" ? undefined : refuse(400, "not an upgrade"),
  },
  {
    id: "exact-letter-case",
    what: "compares Upgrade with its letter case",
    namedBy: ["proxies/letter-case"],
    request: (head) =>
      headerOf(head, "upgrade") === "WebSocket" ? refuse(400, "not a websocket") : undefined,
  },
  {
    id: "refuses-forwarded",
    what: "refuses requests that another hop has forwarded",
    namedBy: ["proxies/forwarding-headers"],
    request: (head) => (headerOf(head, "via") === undefined ? undefined : refuse(403, "forwarded")),
  },
  {
    id: "short-heads",
    what: "takes heads of 8 KiB at most",
    namedBy: ["headers/long-command/websocket-v5", "headers/long-command/spdy"],
    request: (head) => (head.start.length > 8 * 1024 ? refuse(414, "too long") : undefined),
  },
  {
    id: "drops-equal-parameters",
    what: "drops query parameters that are there already",
    namedBy: ["exec/arguments/websocket-v5", "exec/arguments/spdy"],
    request: (head) => {
      const [method = "", target = "", version = ""] = head.start.split(" ");
      const [path = "", query = ""] = target.split("?");
      head.start = `${method} ${path}?${[...new Set(query.split("&"))].join("&")} ${version}`;
      return undefined;
    },
  },
  {
    id: "decodes-twice",
    what: "decodes the query, and passes it on as if it had not",
    namedBy: ["exec/arguments/websocket-v5", "exec/arguments/spdy"],
    request: (head) => {
      head.start = head.start.replaceAll("%2525", "%25");
      return undefined;
    },
  },
];

const isError = ({ start }: MessageHead): boolean => / [45]\d\d/.test(start);

export const bodyDefects: readonly ProxyDefect[] = [
  {
    id: "wrong-content-length",
    what: "announces more of an error's body than it sends",
    namedBy: ["errors/unknown-container/websocket", "errors/unknown-container/spdy"],
    response: (head) => {
      const length = headerOf(head, "content-length");
      if (!isError(head) || length === undefined) return;
      withoutHeader(head, "content-length");
      head.lines.push(["Content-Length", String(Number(length) + 10)]);
    },
  },
  {
    id: "own-error-pages",
    what: "replaces the bodies of errors by a page of its own",
    namedBy: ["errors/unknown-container/websocket", "errors/no-upgrade"],
    response: (head) => {
      if (!isError(head)) return;
      withoutHeader(head, "content-length");
      withoutHeader(head, "transfer-encoding");
      head.lines.push(["Content-Length", "24"]);
    },
    body: () => {
      let isSent = false;
      return {
        push: (_chunk, send) => {
          if (!isSent) send(Buffer.from("<html>Bad Request</html>"));
          isSent = true;
        },
      };
    },
  },
  {
    id: "every-error-is-502",
    what: "answers 502 where the server answered 400",
    namedBy: ["errors/unknown-container/websocket", "errors/no-upgrade"],
    response: (head) => {
      head.start = head.start.replace(/ 400 .*/, " 502 Bad Gateway");
    },
  },
];
