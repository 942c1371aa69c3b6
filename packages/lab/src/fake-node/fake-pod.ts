interface FakeContainer {
  readonly name: string;
  /**
   * A process that runs from the node's start; `attach` joins it. Without one, attach finds a
   * silent container.
   */
  readonly command?: readonly string[];
  /** The main process runs on a terminal. */
  readonly tty?: boolean;
  /**
   * If set, the end of the first attached client's input ends the main process' input; otherwise it
   * stays open.
   */
  readonly stdinOnce?: boolean;
}

export interface FakePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly containers: readonly FakeContainer[];
  /** Maps ports inside the pod to the real loopback ports. */
  readonly ports: ReadonlyMap<number, number>;
}
