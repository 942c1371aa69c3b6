// The thread that emulates terminals for viewers; `screens.ts` starts it.

import { parentPort } from "node:worker_threads";
import type { Terminal } from "@xterm/headless";
import { OpenSequence } from "./open-sequence.ts";
import type { Drawing, FromScreenThread, TerminalSize, ToScreenThread } from "./screen-messages.ts";
import { serializeScreen } from "./serialize-screen.ts";

if (parentPort === null) throw new Error("this is a thread's program");
const port = parentPort;

interface Emulated {
  readonly terminal: Terminal;
  readonly open: OpenSequence;
}

const emulated = new Map<string, Emulated>();
const CANCEL = Uint8Array.of(0x18);

// In a CommonJS package the exports are in `default`; in a bundle they are in the module itself.
const headless = import("@xterm/headless").then((module) => module.default ?? module);
let turn: Promise<unknown> = headless.catch((error: unknown) => {
  answer({ missing: (error as NodeJS.ErrnoException).code ?? String(error) });
});

// Handles messages one after the other, because a write takes several turns.
port.on("message", (message: ToScreenThread) => {
  turn = turn.then(() => take(message));
});

async function take(message: ToScreenThread): Promise<void> {
  if ("over" in message) {
    emulated.get(message.over)?.terminal.dispose();
    emulated.delete(message.over);
    return;
  }
  const { id, parts, wants } = message;
  const bytes = parts.reduce((sum, part) => sum + (part instanceof Uint8Array ? part.length : 0), 0);
  const screen = await drawn(message).catch(() => undefined);
  answer({ id, bytes, isWanted: wants, screen });
}

/** Emulates the parts. Returns the screen if the message asks for it. */
async function drawn({
  id,
  parts,
  isCut,
  wants,
}: Drawing): Promise<(TerminalSize & { text: string }) | undefined> {
  const screen = emulated.get(id) ?? (await emulate(id));
  if (isCut) await write(screen, CANCEL);
  for (const part of parts) {
    if (part instanceof Uint8Array) await write(screen, part);
    else screen.terminal.resize(part.cols, part.rows);
  }
  if (!wants) return undefined;
  const { terminal, open } = screen;
  const { cols, rows } = terminal;
  // The rest of an unfinished character comes with the next output.
  const begun = new TextDecoder().decode(open.bytes, { stream: true });
  return { text: serializeScreen(terminal) + begun, cols, rows };
}

async function emulate(id: string): Promise<Emulated> {
  const { Terminal } = await headless;
  const terminal = new Terminal({ scrollback: 0, allowProposedApi: true, logLevel: "off" });
  const screen = { terminal, open: new OpenSequence() };
  emulated.set(id, screen);
  return screen;
}

function write({ terminal, open }: Emulated, bytes: Uint8Array): Promise<void> {
  open.push(bytes);
  return new Promise((resolve) => terminal.write(bytes, resolve));
}

function answer(message: FromScreenThread): void {
  port.postMessage(message);
}
