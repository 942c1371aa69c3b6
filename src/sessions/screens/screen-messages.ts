/** A terminal's size. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** A part of a terminal session's output, or a change of its size. */
export type TerminalPart = Uint8Array | TerminalSize;

/** Output to emulate. */
export interface Drawing {
  readonly id: string;
  readonly parts: readonly TerminalPart[];
  /** Output before the parts is missing. */
  readonly isCut: boolean;
  /** True: the answer must have the screen after the parts. */
  readonly wants: boolean;
}

/** `over`: the thread can drop the terminal of this session. */
export type ToScreenThread = Drawing | { readonly over: string };

export type FromScreenThread =
  | {
      readonly id: string;
      /** How many bytes have been emulated. */
      readonly bytes: number;
      readonly isWanted: boolean;
      /** Absent if it was not requested, or failed. */
      readonly screen: (TerminalSize & { readonly text: string }) | undefined;
    }
  /** A package could not be loaded. */
  | { readonly missing: string };
