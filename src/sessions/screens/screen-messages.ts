/** A terminal's size. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** What a terminal's session printed, in order, and its sizes. */
export type TerminalPart = Uint8Array | TerminalSize;

/** Output to emulate. */
export interface Drawing {
  readonly id: string;
  readonly parts: readonly TerminalPart[];
  /** Output before the parts is missing. */
  readonly isCut: boolean;
  /** The answer has the screen behind the parts. */
  readonly wants: boolean;
}

/** `over`: the session with this id has no terminal any more. */
export type ToScreenThread = Drawing | { readonly over: string };

export type FromScreenThread =
  | {
      readonly id: string;
      /** So many have been emulated. */
      readonly bytes: number;
      readonly isWanted: boolean;
      /** Absent also if it failed. */
      readonly screen: (TerminalSize & { readonly text: string }) | undefined;
    }
  /** A package could not be loaded. */
  | { readonly missing: string };
