import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { Http1Downstream } from "../../../../src/http/downstream/http1-downstream.ts";
import { listen } from "../../../support/http/loopback.ts";

let server: Server;

afterEach(() => {
  server.close();
});

it("tells each listener once that the client has left, though several events say so", async () => {
  const told: string[] = [];
  const over = new Promise<void>((resolve) => {
    server = createServer((request, response) => {
      const downstream = new Http1Downstream(request, response);
      downstream.onClose(() => told.push("first"));
      downstream.onClose(() => told.push("second"));
      // The request reports its end after the response.
      request.once("close", () => {
        downstream.onClose(() => told.push("late"));
        resolve();
      });
      downstream.body.resume();
      client.destroy();
    });
  });
  const client = connect(await listen(server), "127.0.0.1");
  client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
  await over;
  expect(told).toEqual(["first", "second", "late"]);
});
