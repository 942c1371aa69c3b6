/**
 * The parts of CRI v1 that Sluice uses, by the field numbers of k8s.io/cri-api
 * (pkg/apis/runtime/v1/api.proto), as a protobuf namespace in JSON, so that no file must be found
 * at run time. Enumerations are int32, the same on the wire; unread fields are left out.
 */
interface Field {
  readonly type: string;
  readonly id: number;
  readonly rule?: "repeated";
  readonly keyType?: string;
}

type Fields = Readonly<Record<string, Field>>;

const field = (id: number, type: string): Field => ({ id, type });
const text = (id: number): Field => field(id, "string");
const flag = (id: number): Field => field(id, "bool");
const int32 = (id: number): Field => field(id, "int32");
const int64 = (id: number): Field => field(id, "int64");
const list = (id: number, type: string): Field => ({ id, type, rule: "repeated" });
const textMap = (id: number): Field => ({ id, type: "string", keyType: "string" });

const messages: Readonly<Record<string, Fields>> = {
  VersionRequest: { version: text(1) },
  VersionResponse: {
    version: text(1),
    runtimeName: text(2),
    runtimeVersion: text(3),
    runtimeApiVersion: text(4),
  },

  PodSandboxMetadata: { name: text(1), uid: text(2), namespace: text(3), attempt: field(4, "uint32") },
  PodSandboxFilter: { id: text(1), labelSelector: textMap(3) },
  PodSandbox: {
    id: text(1),
    metadata: field(2, "PodSandboxMetadata"),
    state: int32(3),
    createdAt: int64(4),
    labels: textMap(5),
    annotations: textMap(6),
  },
  ListPodSandboxRequest: { filter: field(1, "PodSandboxFilter") },
  ListPodSandboxResponse: { items: list(1, "PodSandbox") },
  PodIP: { ip: text(1) },
  PodSandboxNetworkStatus: { ip: text(1), additionalIps: list(2, "PodIP") },
  PodSandboxStatus: {
    id: text(1),
    metadata: field(2, "PodSandboxMetadata"),
    state: int32(3),
    createdAt: int64(4),
    network: field(5, "PodSandboxNetworkStatus"),
    labels: textMap(7),
    annotations: textMap(8),
  },
  PodSandboxStatusRequest: { podSandboxId: text(1), verbose: flag(2) },
  PodSandboxStatusResponse: { status: field(1, "PodSandboxStatus") },

  ImageSpec: { image: text(1) },
  ContainerMetadata: { name: text(1), attempt: field(2, "uint32") },
  ContainerFilter: { id: text(1), podSandboxId: text(3), labelSelector: textMap(4) },
  Container: {
    id: text(1),
    podSandboxId: text(2),
    metadata: field(3, "ContainerMetadata"),
    image: field(4, "ImageSpec"),
    imageRef: text(5),
    state: int32(6),
    createdAt: int64(7),
    labels: textMap(8),
    annotations: textMap(9),
  },
  ListContainersRequest: { filter: field(1, "ContainerFilter") },
  ListContainersResponse: { containers: list(1, "Container") },
  ContainerStatus: {
    id: text(1),
    metadata: field(2, "ContainerMetadata"),
    state: int32(3),
    createdAt: int64(4),
    startedAt: int64(5),
    finishedAt: int64(6),
    exitCode: int32(7),
    image: field(8, "ImageSpec"),
    imageRef: text(9),
    reason: text(10),
    message: text(11),
    labels: textMap(12),
    annotations: textMap(13),
    logPath: text(15),
  },
  ContainerStatusRequest: { containerId: text(1), verbose: flag(2) },
  ContainerStatusResponse: { status: field(1, "ContainerStatus") },

  StartContainerRequest: { containerId: text(1) },
  StartContainerResponse: {},
  StopContainerRequest: { containerId: text(1), timeout: int64(2) },
  StopContainerResponse: {},

  // Exec and Attach order their fields differently.
  ExecRequest: {
    containerId: text(1),
    cmd: list(2, "string"),
    tty: flag(3),
    stdin: flag(4),
    stdout: flag(5),
    stderr: flag(6),
  },
  ExecResponse: { url: text(1) },
  AttachRequest: { containerId: text(1), stdin: flag(2), tty: flag(3), stdout: flag(4), stderr: flag(5) },
  AttachResponse: { url: text(1) },
  PortForwardRequest: { podSandboxId: text(1), port: list(2, "int32") },
  PortForwardResponse: { url: text(1) },
  ExecSyncRequest: { containerId: text(1), cmd: list(2, "string"), timeout: int64(3) },
  ExecSyncResponse: { stdout: field(1, "bytes"), stderr: field(2, "bytes"), exitCode: int32(3) },

  UInt64Value: { value: field(1, "uint64") },
  FilesystemUsage: {
    timestamp: int64(1),
    usedBytes: field(3, "UInt64Value"),
    inodesUsed: field(4, "UInt64Value"),
  },
  ContainerAttributes: { id: text(1), metadata: field(2, "ContainerMetadata"), labels: textMap(3) },
  CpuUsage: {
    timestamp: int64(1),
    usageCoreNanoSeconds: field(2, "UInt64Value"),
    usageNanoCores: field(3, "UInt64Value"),
  },
  MemoryUsage: {
    timestamp: int64(1),
    workingSetBytes: field(2, "UInt64Value"),
    usageBytes: field(4, "UInt64Value"),
    rssBytes: field(5, "UInt64Value"),
  },
  ContainerStats: {
    attributes: field(1, "ContainerAttributes"),
    cpu: field(2, "CpuUsage"),
    memory: field(3, "MemoryUsage"),
    writableLayer: field(4, "FilesystemUsage"),
  },
  ListContainerStatsRequest: {},
  ListContainerStatsResponse: { stats: list(1, "ContainerStats") },
};

export const CRI_METHODS = [
  "Version",
  "ListPodSandbox",
  "PodSandboxStatus",
  "ListContainers",
  "ContainerStatus",
  "StartContainer",
  "StopContainer",
  "Exec",
  "Attach",
  "PortForward",
  "ExecSync",
  "ListContainerStats",
] as const;
export type CriMethod = (typeof CRI_METHODS)[number];

export const CRI_SERVICE = "runtime.v1.RuntimeService";

/** Input for `@grpc/proto-loader`. */
export const criNamespace = {
  nested: {
    runtime: {
      nested: {
        v1: {
          nested: {
            ...Object.fromEntries(Object.entries(messages).map(([name, fields]) => [name, { fields }])),
            RuntimeService: {
              methods: Object.fromEntries(
                CRI_METHODS.map((method) => [
                  method,
                  { requestType: `${method}Request`, responseType: `${method}Response` },
                ]),
              ),
            },
          },
        },
      },
    },
  },
};
