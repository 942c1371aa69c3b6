import { int32, int64, intOrString, listOf, named, struct, text, texts } from "./go-shapes.ts";

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

export const probeShape = struct(
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

export const lifecycleShape = struct("Lifecycle", {
  postStart: lifecycleHandler,
  preStop: lifecycleHandler,
  stopSignal: named("Signal"),
});
