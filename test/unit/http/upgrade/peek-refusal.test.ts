import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { RefusedUpgrade } from "../../../../packages/client/src/http/upgrade/upgrade-request.ts";
import { peekRefusal } from "../../../../src/sessions/negotiate-upgrade.ts";

function refusedWith(body: Readable): RefusedUpgrade {
  return { kind: "refused", status: 403, statusMessage: "Forbidden", rawHeaders: [], body };
}

async function textOf(body: Readable): Promise<string> {
  let text = "";
  for await (const part of body) text += String(part);
  return text;
}

const options = { maxBytes: 8, timeoutMs: 5_000 };

describe("peekRefusal", () => {
  it("reads the beginning and gives the whole", async () => {
    const body = Readable.from([Buffer.from("hello "), Buffer.from("world "), Buffer.from("again")], {
      objectMode: false,
    });
    const { text, refused } = await peekRefusal(refusedWith(body), options);
    expect(text).toBe("hello wo");
    expect(await textOf(refused.body)).toBe("hello world again");
    expect(body.destroyed).toBe(true);
  });

  it("takes an empty body for what it is", async () => {
    const { text, refused } = await peekRefusal(refusedWith(Readable.from([])), options);
    expect(text).toBe("");
    expect(await textOf(refused.body)).toBe("");
  });

  it("does not wait for a body that does not come, and loses nothing of it when it does", async () => {
    const body = new Readable({ read: () => {} });
    body.push("first ");
    const { text, refused } = await peekRefusal(refusedWith(body), { maxBytes: 100, timeoutMs: 20 });
    expect(text).toBe("first ");
    const whole = textOf(refused.body);
    body.push("second");
    body.push(null);
    expect(await whole).toBe("first second");
  });

  it("says what came before the body broke off, and lets its reader meet the break", async () => {
    const body = Readable.from(
      (async function* () {
        yield Buffer.from("hal");
        throw new Error("unexpected EOF");
      })(),
    );
    const { text, refused } = await peekRefusal(refusedWith(body), options);
    expect(text).toBe("hal");
    await textOf(refused.body).catch(() => {});
    expect(body.destroyed).toBe(true);
  });

  it("lets go of everything when the body is not wanted", async () => {
    const body = new Readable({ read: () => {} });
    const { refused } = await peekRefusal(refusedWith(body), { maxBytes: 1, timeoutMs: 5 });
    refused.body.destroy();
    await new Promise((resolve) => setImmediate(resolve));
    expect(body.destroyed).toBe(true);
  });
});
