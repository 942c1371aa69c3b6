export interface FakeContainer {
  readonly name: string;
  /** A process that runs from the node's start; `attach` joins it. Without one, attach finds a silent container. */
  readonly command?: readonly string[];
  /** The main process runs on a terminal. */
  readonly tty?: boolean;
  /** The end of the first attachment's input ends the main process' input; otherwise it stays open. */
  readonly stdinOnce?: boolean;
}

export interface FakePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly containers: readonly FakeContainer[];
  /** Ports as seen inside the pod, and the loopback ports where they really are. */
  readonly ports: ReadonlyMap<number, number>;
}
