/** Channel numbers of remotecommand over WebSocket: the first byte of every message. */
export const CHANNEL = { STDIN: 0, STDOUT: 1, STDERR: 2, ERROR: 3, RESIZE: 4, CLOSE: 255 } as const;

/** The highest channel that a CLOSE may name. */
export const HIGHEST_CLOSABLE_CHANNEL = CHANNEL.RESIZE;
