import { flag, listOf, number, object, optional, type Shape, text } from "./answer-shape.ts";

const either =
  (...shapes: readonly Shape[]): Shape =>
  (value) =>
    shapes.some((shape) => shape(value));

const mapOf =
  (shape: Shape): Shape =>
  (value) =>
    object({})(value) && Object.values(value as object).every(shape);

/** The parts of a pod that these commands use; the API server's object has more. */
export interface PodObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
  /** Aggregated APIs may omit it. */
  readonly spec?: {
    readonly containers?: readonly ContainerObject[];
    readonly initContainers?: readonly ContainerObject[];
    readonly ephemeralContainers?: readonly ContainerObject[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export interface ContainerObject {
  readonly name: string;
  /** Whether its main process has a terminal. */
  readonly tty?: boolean;
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
}

const container = object({
  name: text,
  tty: optional(flag),
  ports: optional(listOf(object({ name: optional(text), containerPort: number }))),
});
const containers = optional(listOf(container));
const texts = optional(mapOf(text));

export const podShape: Shape = object({
  metadata: object({
    name: text,
    namespace: optional(text),
    uid: optional(text),
    annotations: texts,
    deletionTimestamp: optional(text),
  }),
  spec: optional(object({ containers, initContainers: containers, ephemeralContainers: containers })),
  status: optional(
    object({
      phase: optional(text),
      conditions: optional(listOf(object({ type: text, status: text }))),
    }),
  ),
});

export const serviceShape: Shape = object({
  spec: object({
    clusterIP: optional(text),
    selector: texts,
    ports: optional(
      listOf(object({ name: optional(text), port: number, targetPort: optional(either(text, number)) })),
    ),
  }),
});

const expression = object({ key: text, operator: text, values: optional(listOf(text)) });
const selector = object({ matchLabels: texts, matchExpressions: optional(listOf(expression)) });

/** A replication controller's selector is a plain map. */
export const workloadShape: Shape = object({
  spec: object({ selector: optional(either(mapOf(text), selector)) }),
});
