import type { FlagTable } from "../../config/flag.ts";
import { defineCommand } from "../command.ts";
import { countFrom, durationFrom } from "../flag-readers.ts";

const ofUrl = "Of a probe by URL";
const ofManifest = "Of a probe in a manifest";
const ofWatch = "With --watch";

const probeFlags = {
  timeout: {
    value: "DURATION",
    help: "the time-out of one run; default: the manifest's, or 1s",
    parse: durationFrom(1),
  },
  "feature-gates": {
    value: "A=true,B=false",
    help: "feature gates; those of probes are on unless switched off here",
  },
  "kubelet-version": {
    value: "MAJOR.MINOR",
    help: "the version in the User-Agent kube-probe/MAJOR.MINOR",
    default: "1.37",
  },
  watch: { help: "probe again and again, and count as the kubelet does" },
  protocol: {
    value: "HTTP1|HTTP2",
    help: "as httpGet.protocol: HTTP2 is HTTP/2 in cleartext with prior knowledge",
    choices: ["HTTP1", "HTTP2"],
    group: ofUrl,
  },
  header: {
    value: "'NAME: VALUE'",
    help: "as httpGet.httpHeaders",
    isRepeatable: true,
    group: ofUrl,
  },
  service: { value: "NAME", help: "as grpc.service", group: ofUrl },
  mode: { value: "Plaintext|TLS", help: "as grpc.mode", choices: ["Plaintext", "TLS"], group: ofUrl },
  filename: {
    short: "f",
    value: "FILE",
    help: "a Pod manifest, validated as the API server does",
    completes: "file",
    group: ofManifest,
  },
  pod: {
    value: "NAME",
    help: "the pod of the manifest; required if there are several",
    group: ofManifest,
  },
  container: { value: "NAME", help: "the container; required if several have probes", group: ofManifest },
  kind: {
    value: "KIND",
    help: "liveness, readiness or startup; required if there are several; --watch applies its thresholds",
    group: ofManifest,
  },
  "pod-ip": {
    value: "IP",
    help: "the pod's address; default: status.podIP of the manifest",
    group: ofManifest,
  },
  "runtime-endpoint": {
    value: "unix://PATH",
    help: "the container runtime that runs the command of an exec probe",
    group: ofManifest,
  },
  period: {
    value: "DURATION",
    help: "periodSeconds; default: the manifest's, or 10s",
    parse: durationFrom(1),
    group: ofWatch,
  },
  "success-threshold": {
    value: "N",
    help: "successThreshold; default: the manifest's, or 1",
    parse: countFrom(1),
    group: ofWatch,
  },
  "failure-threshold": {
    value: "N",
    help: "failureThreshold; default: the manifest's, or 3",
    parse: countFrom(1),
    group: ofWatch,
  },
  rounds: { value: "N", help: "stop after this many rounds", parse: countFrom(1), group: ofWatch },
} as const satisfies FlagTable;

export const command = defineCommand({
  usage: ["URL [flags]", "-f FILE --pod-ip IP [flags]"],
  description:
    "Runs a container probe as the kubelet does, and shows the bytes on the wire and the likely cause of a failure.",
  operands: [
    {
      name: "URL",
      help: "http://HOST:PORT/PATH, https://HOST:PORT/PATH, grpc://HOST:PORT or tcp://HOST:PORT",
    },
  ],
  flags: probeFlags,
  examples: [
    { title: "An HTTP probe", line: "sluice probe http://127.0.0.1:8080/healthz" },
    {
      title: "A gRPC health check over TLS",
      line: "sluice probe grpc://127.0.0.1:9000 --mode TLS --service web",
    },
    {
      title: "The readiness probe of a manifest, every two seconds",
      line: "sluice probe -f pod.yaml --pod-ip 10.0.0.7 --kind readiness --watch --period 2s",
    },
  ],
  exitCodes:
    "0 for Success and Warning, with --watch for a healthy end; 1 otherwise; 2 for usage or configuration.",
});
