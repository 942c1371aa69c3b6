import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { STREAMING_SESSIONS, type StreamingSession } from "../../session-api/streaming-session.ts";
import type { SessionsValues } from "./session-requests.ts";

/** Prints sessions in the chosen format. What a user typed is masked: names come from other clients. */
export class SessionPrinter {
  readonly #values: SessionsValues;
  #widths: readonly number[] = [];

  constructor(values: SessionsValues) {
    this.#values = values;
  }

  print(sessions: readonly StreamingSession[], event?: string): void {
    const { output, watch: isWatch } = this.#values;
    if (output === "json") {
      for (const object of sessions) write(quietJson({ type: event ?? "ADDED", object }));
    } else if (output === "name") {
      if (event !== "DELETED") for (const { metadata } of sessions) write(metadata.name);
    } else this.#printRows(sessions, isWatch ? (event ?? "ADDED") : undefined);
  }

  #printRows(sessions: readonly StreamingSession[], event: string | undefined): void {
    if (sessions.length === 0) return;
    const { printer } = STREAMING_SESSIONS;
    const { output, "all-namespaces": showsNamespace } = this.#values;
    const shown = printer.columns.map(({ isWide = false }) => !isWide || output === "wide");
    const now = new Date();
    const rows = sessions.map((session) => [
      ...(event === undefined ? [] : [event]),
      ...(showsNamespace ? [session.metadata.namespace ?? ""] : []),
      ...printer.cells(session, now).filter((_, index) => shown[index]),
    ]);
    if (this.#widths.length === 0) {
      const titles = printer.columns.filter((_, index) => shown[index]).map(({ name }) => name.toUpperCase());
      rows.unshift([
        ...(event === undefined ? [] : ["EVENT"]),
        ...(showsNamespace ? ["NAMESPACE"] : []),
        ...titles,
      ]);
      this.#widths = (rows[0] ?? []).map((_, index) =>
        Math.max(...rows.map((row) => (row[index] ?? "").length), index === 0 && event !== undefined ? 7 : 0),
      );
    }
    for (const row of rows)
      write(
        row
          .map((cell, index) => maskControls(String(cell ?? "")).padEnd(this.#widths[index] ?? 0))
          .join("   ")
          .trimEnd(),
      );
  }
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
