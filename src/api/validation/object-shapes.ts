import {
  flag,
  int32,
  int64,
  intOrString,
  listOf,
  named,
  type Shape,
  struct,
  text,
  textMap,
  texts,
  time,
} from "./shape.ts";

const exec = struct("ExecAction", { command: texts });

const httpGet = struct(
  "HTTPGetAction",
  {
    path: text,
    port: intOrString,
    host: text,
    scheme: named("URIScheme"),
    httpHeaders: listOf(struct("HTTPHeader", { name: text, value: text }, ["name", "value"])),
    protocol: named("HTTPProtocol"),
  },
  ["port"],
);

const tcpSocket = struct("TCPSocketAction", { port: intOrString, host: text }, ["port"]);

const grpc = struct("GRPCAction", { port: int32, service: text, mode: named("GRPCProbeMode") }, ["port"]);

const handler = { exec, httpGet, tcpSocket, grpc };

const probeShape = struct(
  "Probe",
  {
    ...handler,
    initialDelaySeconds: int32,
    timeoutSeconds: int32,
    periodSeconds: int32,
    successThreshold: int32,
    failureThreshold: int32,
    terminationGracePeriodSeconds: int64,
  },
  [],
  Object.fromEntries(Object.keys(handler).map((name) => [name, "ProbeHandler"])),
);

const lifecycleHandler = struct("LifecycleHandler", {
  exec,
  httpGet,
  tcpSocket,
  sleep: struct("SleepAction", { seconds: int64 }),
});

const lifecycleShape = struct("Lifecycle", {
  postStart: lifecycleHandler,
  preStop: lifecycleHandler,
  stopSignal: named("Signal"),
});

/** The fields that Sluice reads, with their types from k8s.io/api/core/v1. */
export const metadataShape: Shape = struct("ObjectMeta", {
  name: text,
  generateName: text,
  namespace: text,
  uid: { json: "string", go: "types.UID" },
  resourceVersion: text,
  creationTimestamp: time,
  deletionTimestamp: time,
  generation: int64,
  deletionGracePeriodSeconds: int64,
  labels: textMap,
  annotations: textMap,
});

const containerFields = {
  name: text,
  image: text,
  ports: listOf(
    struct(
      "ContainerPort",
      {
        name: text,
        containerPort: int32,
        hostPort: int32,
        protocol: named("Protocol"),
      },
      ["containerPort"],
    ),
  ),
  stdin: flag,
  tty: flag,
  restartPolicy: named("ContainerRestartPolicy"),
  livenessProbe: probeShape,
  readinessProbe: probeShape,
  startupProbe: probeShape,
  lifecycle: lifecycleShape,
};

const container = struct("Container", containerFields, ["name"]);

const ephemeralContainer = struct(
  "EphemeralContainer",
  containerFields,
  ["name"],
  Object.fromEntries(Object.keys(containerFields).map((name) => [name, "EphemeralContainerCommon"])),
);

const condition = (go: string): Shape =>
  struct(go, { type: named(`${go}Type`), status: named("ConditionStatus"), reason: text, message: text }, [
    "type",
    "status",
  ]);

const containerStatus = struct(
  "ContainerStatus",
  {
    name: text,
    ready: flag,
    started: flag,
    restartCount: int32,
    containerID: text,
    state: struct("ContainerState", {
      running: struct("ContainerStateRunning", { startedAt: text }),
      waiting: struct("ContainerStateWaiting", { reason: text }),
      terminated: struct("ContainerStateTerminated", { reason: text, exitCode: int32, signal: int32 }),
    }),
  },
  ["name"],
);

export const podSpecShape = struct(
  "PodSpec",
  {
    containers: listOf(container),
    initContainers: listOf(container),
    ephemeralContainers: listOf(ephemeralContainer),
    nodeName: text,
    hostNetwork: flag,
    serviceAccountName: text,
    restartPolicy: named("RestartPolicy"),
    readinessGates: listOf(struct("PodReadinessGate", { conditionType: named("PodConditionType") })),
    activeDeadlineSeconds: int64,
    terminationGracePeriodSeconds: int64,
  },
  ["containers"],
);

export const podShape = struct(
  "Pod",
  {
    apiVersion: text,
    kind: text,
    metadata: metadataShape,
    spec: podSpecShape,
    status: struct("PodStatus", {
      phase: named("PodPhase"),
      reason: text,
      podIP: text,
      podIPs: listOf(struct("PodIP", { ip: text })),
      hostIP: text,
      hostIPs: listOf(struct("HostIP", { ip: text })),
      nominatedNodeName: text,
      startTime: text,
      conditions: listOf(condition("PodCondition")),
      containerStatuses: listOf(containerStatus),
      initContainerStatuses: listOf(containerStatus),
      ephemeralContainerStatuses: listOf(containerStatus),
    }),
  },
  ["spec"],
);

export const nodeShape = struct("Node", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  spec: struct("NodeSpec", { unschedulable: flag }),
  status: struct("NodeStatus", {
    addresses: listOf(
      struct("NodeAddress", { type: named("NodeAddressType"), address: text }, ["type", "address"]),
    ),
    daemonEndpoints: struct("NodeDaemonEndpoints", {
      kubeletEndpoint: struct("DaemonEndpoint", { Port: int32 }),
    }),
    declaredFeatures: listOf(text),
    conditions: listOf(condition("NodeCondition")),
    nodeInfo: struct("NodeSystemInfo", {
      bootID: text,
      kubeletVersion: text,
      osImage: text,
      kernelVersion: text,
      containerRuntimeVersion: text,
    }),
  }),
});
