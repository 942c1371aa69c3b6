/** A recording as an independent player reads it; shares no code with the recorder. */
export interface Played {
  readonly header: Record<string, unknown> & { readonly term: { cols: number; rows: number } };
  /** The exact bytes of each stream. */
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** The output that stock players show. */
  readonly shown: string;
  readonly input: string;
  readonly events: readonly (readonly [seconds: number, code: string, data: string])[];
  /** The data of the events with this code. */
  of(code: string): string[];
  /** Our comments in the recording, parsed. */
  readonly comments: readonly Record<string, unknown>[];
}

export function play(text: string): Played {
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the recording does not end with a line");
  const header = JSON.parse(lines[0] ?? "");
  const events = lines.filter((line) => line.startsWith("[")).map((line) => JSON.parse(line));
  const comments = lines
    .filter((line) => line.startsWith("# sluice "))
    .map((line) => JSON.parse(line.slice("# sluice ".length)));
  const streams: Record<string, Buffer[]> = { stdout: [], stderr: [] };
  let stream = "stdout";
  let shown = "";
  for (const [index, [, code, data]] of events.entries()) {
    if (code === "s") stream = data;
    if (code !== "o") continue;
    shown += data;
    const next = events[index + 1];
    streams[stream]?.push(next?.[1] === "b" ? Buffer.from(next[2], "base64") : Buffer.from(data, "utf8"));
  }
  const of = (wanted: string) => events.filter(([, code]) => code === wanted).map(([, , data]) => data);
  return {
    header,
    stdout: Buffer.concat(streams.stdout ?? []),
    stderr: Buffer.concat(streams.stderr ?? []),
    shown,
    input: of("i").join(""),
    events,
    of,
    comments,
  };
}
