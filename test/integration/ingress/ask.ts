import { request } from "node:http";

/** The status of GET / for a host, over a connection of its own. */
export function statusOf(port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = request({ agent: false, host: "127.0.0.1", port, headers: { Host: host }, setHost: false });
    asked.on("error", reject);
    asked.on("response", (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    });
    asked.end();
  });
}
