/** A shell's status of a program that SIGPIPE ended. */
export const EXIT_BROKEN_PIPE = 141;

/** Programs that go on without a reader of their output: they serve others. */
const SERVING: readonly string[] = ["demo", "serve", "agent", "fake-node"];
/** Programs whose sessions report it, and end what they have begun. */
const OWN_SESSIONS: readonly string[] = ["exec", "attach"];

let running: string | undefined;

/** As SIGPIPE ends other programs: silent, with a shell's status of it. What is said on stderr is dropped there. `name`: of the command. */
export function endWithReader(name: string): void {
  const isSetUp = running !== undefined;
  running = name;
  if (isSetUp) return;
  process.stderr.on("error", () => {});
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (SERVING.includes(running ?? "") || OWN_SESSIONS.includes(running ?? "")) return;
    if (error.code === "EPIPE") process.exit(EXIT_BROKEN_PIPE);
    throw error;
  });
}
