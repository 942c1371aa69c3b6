/** What a path of the kubelet's names. Segments are percent-decoded. */
export interface KubeletPath {
  readonly action: "exec" | "attach" | "portForward" | "run" | "containerLogs";
  readonly namespace: string;
  readonly pod: string;
  /** Only the longer of the two shapes has it. */
  readonly uid: string | undefined;
  /** Empty for portForward, which knows pods only. */
  readonly container: string;
}

/** Whether pod and container are named, or the pod alone; logs have no shape with a uid. */
const SHAPES: Readonly<
  Record<KubeletPath["action"], { readonly container: boolean; readonly uid: boolean }>
> = {
  exec: { container: true, uid: true },
  attach: { container: true, uid: true },
  run: { container: true, uid: true },
  portForward: { container: false, uid: true },
  containerLogs: { container: true, uid: false },
};

/** Undefined for a path that is none of these, and for one with a segment that could name something else when it is joined again. */
export function matchKubeletPath(pathname: string): KubeletPath | undefined {
  const segments = pathname.replace(/\/$/, "").split("/").slice(1);
  const [action = "", ...encoded] = segments;
  if (!isAction(action)) return undefined;
  const names = encoded.map(decodeSegment);
  if (names.includes(undefined)) return undefined;
  const [namespace = "", pod = "", ...rest] = names as string[];
  const shape = SHAPES[action];
  const container = shape.container ? rest.pop() : "";
  const uid = shape.uid ? rest.shift() : undefined;
  if (namespace === "" || pod === "" || container === undefined || rest.length > 0) return undefined;
  return { action, namespace, pod, uid, container };
}

function isAction(name: string): name is KubeletPath["action"] {
  return Object.hasOwn(SHAPES, name);
}

function decodeSegment(segment: string): string | undefined {
  try {
    const decoded = decodeURIComponent(segment);
    return decoded === "" || /[/\\]|^\.{1,2}$/.test(decoded) ? undefined : decoded;
  } catch {
    return undefined;
  }
}
