// Sets up exec sessions, several at once, and ends each one after a byte and its status. A message
// `{ port, sessions, atOnce }` from the parent requests a run.
import { WebSocket } from "ws";

const PATH = "/api/v1/namespaces/default/pods/pod/exec?container=c&stdout=true&command=source=1";
const headers = { Authorization: "Bearer bench-token" };

const session = (port) =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${PATH}`, "v5.channel.k8s.io", { headers });
    let bytes = 0;
    let status = "";
    socket.on("message", (data) => {
      if (data[0] === 1) bytes += data.length - 1;
      if (data[0] === 3) status += data.toString("utf8", 1);
    });
    socket.on("error", reject);
    socket.on("close", () => {
      if (bytes === 1 && status.includes("Success")) resolve();
      else reject(new Error(`${bytes} bytes and the status ${JSON.stringify(status)}`));
    });
  });

process.on("message", async ({ port, sessions, atOnce }) => {
  let left = sessions;
  const series = async () => {
    while (left > 0) {
      left -= 1;
      await session(port);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: atOnce }, series));
  process.send({ seconds: (performance.now() - startedMs) / 1_000 });
});
process.on("disconnect", () => process.exit());
