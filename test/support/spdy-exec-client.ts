import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";
import { SpdySession, type SpdyStream } from "../../protocols/spdy/index.ts";

/** A minimal kubectl 1.20 to 1.29: an exec over SPDY with error, stdin and stdout. */
export interface SpdyExecClient {
  readonly socket: Socket;
  readonly stdin: SpdyStream;
  readonly received: { error: string; stdout: string };
  /** True once every stream has been accepted. */
  isReplied(): boolean;
  /** How the connection ended: by FIN, or broken. */
  readonly ended: Promise<"finished" | "broken">;
}

export async function startSpdyExec(
  authority: string,
  headers: Readonly<Record<string, string>> = {},
  command = "x",
): Promise<SpdyExecClient> {
  const upgrade = request(
    `http://${authority}/api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true&command=${command}`,
    {
      method: "POST",
      headers: {
        Connection: "Upgrade",
        Upgrade: "SPDY/3.1",
        "X-Stream-Protocol-Version": "v4.channel.k8s.io",
        ...headers,
      },
    },
  );
  upgrade.end();
  const [, socket] = (await once(upgrade, "upgrade")) as [unknown, Socket];
  const received = { error: "", stdout: "" };
  let replies = 0;
  const spdy = new SpdySession("client", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: () => 3,
  });
  const open = (streamType: "error" | "stdin" | "stdout"): SpdyStream =>
    spdy.openStream([["streamtype", streamType]], {
      onReply: () => {
        replies += 1;
      },
      onData: (part) => {
        if (streamType !== "stdin") received[streamType] += Buffer.from(part).toString("latin1");
      },
      onEnd: () => {},
    });
  open("error");
  const stdin = open("stdin");
  open("stdout");
  let hasFinished = false;
  socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
  socket.on("error", () => {});
  socket.on("end", () => {
    hasFinished = true;
    socket.end();
  });
  const ended = new Promise<"finished" | "broken">((resolve) => {
    socket.once("close", () => resolve(hasFinished && socket.errored === null ? "finished" : "broken"));
  });
  return { socket, stdin, received, isReplied: () => replies === 3, ended };
}
