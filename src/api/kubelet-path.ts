/** A parsed kubelet path. Segments are percent-decoded. */
export interface KubeletPath {
  readonly action: "exec" | "attach" | "portForward" | "run" | "containerLogs";
  readonly namespace: string;
  readonly pod: string;
  /** Only the longer form of the path has it. */
  readonly uid: string | undefined;
  /** Empty for portForward, which addresses only pods. */
  readonly container: string;
}

/** Whether the path names a container, and whether it may have a uid. */
const SHAPES: Readonly<
  Record<KubeletPath["action"], { readonly container: boolean; readonly uid: boolean }>
> = {
  exec: { container: true, uid: true },
  attach: { container: true, uid: true },
  run: { container: true, uid: true },
  portForward: { container: false, uid: true },
  containerLogs: { container: true, uid: false },
};

/**
 * Undefined for any other path, and if a segment would change its meaning when the path is joined
 * again.
 */
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
