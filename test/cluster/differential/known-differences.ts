import type { DoorName } from "../doors.ts";

/** Lines that may differ between the API server and Sluice, and why. */
export interface KnownDifference {
  readonly doors: readonly DoorName[];
  /** The titles of the cases; absent: every case. */
  readonly of?: RegExp;
  /** Versions of the API server; absent: every one. */
  readonly apiServers?: RegExp;
  /** Each differing line, with `- ` where only the API server has it and `+ ` where only Sluice has it. */
  readonly line: RegExp;
  readonly reason: string;
}

const GATEWAYS: readonly DoorName[] = ["gateway", "spdy", "caller", "both"];
/** Where the client's connection ends at Sluice. */
const FRONTS: readonly DoorName[] = [...GATEWAYS, "agent"];
const ALL: readonly DoorName[] = [...FRONTS, "node"];
const ANY_LINE = /^/;
const UPGRADE = /\((?:websocket|SPDY\/3\.1|nosuch) .*\)$/;

export const knownDifferences: readonly KnownDifference[] = [
  {
    doors: FRONTS,
    line: /^- audit-id: <any>$/,
    reason: "Sluice's own responses have no Audit-Id: its audit events carry the session's id instead",
  },
  {
    doors: FRONTS,
    of: / (?:\/\/api\/v1|\/api\/v1\/\.\.\/v1|\S+\/%77eb|\S+\/namespaces\/\/pods)$/,
    line: ANY_LINE,
    reason: "ambiguous paths are refused with 400: what is authorized is what is forwarded (docs/access.md)",
  },
  {
    doors: GATEWAYS,
    of: /: GET \/apis(?: \(Accept: application\/json;g=.*\))?$/,
    line: /^[-+] (?:transfer-encoding: chunked|content-length: <any>|etag: .*|\{"kind":"APIGroup(?:List|DiscoveryList)".*)$/,
    reason: "the gateway adds its own API group to the groups of the API server (docs/sessions.md)",
  },
  {
    doors: GATEWAYS,
    of: /: api-(?:versions|resources)(?: |$)/,
    line: /^\+ .*sluice\.dev\/v1alpha1(?: |$)/,
    reason: "the same, as kubectl prints it",
  },
  {
    doors: ["node"],
    of: /\/pods\/crashing\/log/,
    line: ANY_LINE,
    reason:
      "in a crash loop the kubelet may name an attempt that is gone: it looks into its last status, Sluice into the runtime",
  },
  {
    doors: ["caller"],
    of: /^alice:/,
    line: ANY_LINE,
    reason: "with forwardAs: caller, client certificates end at the gateway (docs/live-cluster.md)",
  },
  {
    doors: ["agent"],
    of: /\(Authorization: /,
    line: ANY_LINE,
    reason: "the agent takes its own token only, and answers 401 to every other (docs/agent.md)",
  },
  {
    doors: GATEWAYS,
    of: /\/exec\?command=id \(Accept: application\/(?:yaml|vnd\.kubernetes\.protobuf)\)$/,
    line: ANY_LINE,
    reason: "a refusal of a streaming path is JSON: clients that open sessions read no other Status",
  },
  {
    doors: GATEWAYS,
    of: /\(Impersonate-(?:Group|Uid|Extra-Key): /,
    line: /^- x-content-type-options: nosniff$/,
    reason: "kube-apiserver writes nosniff beside this 400 of its impersonation filter alone",
  },
  {
    doors: ["gateway", "spdy", "both"],
    of: /auth whoami .*--as=/,
    line: /^\+ +(?:extra:|sluice\.dev\/requested-by:|- ivy)$/,
    reason: "the API server gets the impersonating caller as an extra of the user (cluster.nameRequester)",
  },
  {
    doors: ["gateway", "spdy", "both"],
    of: /Impersonate-Extra-Acme|--as-user-extra/,
    line: ANY_LINE,
    reason: "the gateway's account may impersonate the keys of userextras that its role lists, and no others",
  },
  {
    doors: ALL,
    of: UPGRADE,
    line: /^\+ connection: close$/,
    reason: "the connection of a refused upgrade is closed, and the response announces it",
  },
  {
    doors: ALL,
    of: UPGRADE,
    line: /^\+ content-length: <any>$/,
    reason: "Go writes no length beside the 403 of its WebSocket library",
  },
  {
    doors: ALL,
    of: UPGRADE,
    line: /^[-+] (?:date: <any>|content-type: text\/plain; charset=utf-8)$/,
    reason: "a 101 of Sluice has no Date, and a refused handshake has the headers of every refusal in text",
  },
  {
    doors: ALL,
    of: UPGRADE,
    line: /^[-+] x-content-type-options: nosniff$/,
    reason: "every refusal in text has nosniff; the kubelet leaves it out where its runtime refuses",
  },
  {
    doors: ALL,
    of: /\(nosuch \)$/,
    line: ANY_LINE,
    reason:
      "an upgrade to an unknown protocol gets a Status that names the known ones; Kubernetes takes it for SPDY",
  },
  {
    doors: ["agent", "both"],
    of: /\(SPDY\/3\.1 (?:nosuch)?\)$/,
    line: /^[-+] unable to upgrade: (?:header X-Stream-Protocol-Version does not exist in request with \d headers|unable to negotiate protocol: .*)$/,
    reason: "the text counts the headers that arrive at the node, and Kubernetes' proxy writes it twice",
  },
  {
    doors: ["agent"],
    of: /\(websocket .*\)$/,
    line: /^(?:- sec-websocket-protocol: |\+ )$/,
    reason: "no subprotocol was offered, so none is accepted; a text ends with a line feed",
  },
  {
    doors: FRONTS,
    of: UPGRADE,
    line: /^- transfer-encoding: chunked$/,
    reason: "the body behind an upgrade that the API server ignored ends with its connection",
  },
  {
    doors: ["spdy", "agent"],
    of: /: exec /,
    line: /^. error: (?:Internal error occurred: ){1,2}error executing command in container: /,
    reason:
      "Kubernetes wraps a runtime's error once over SPDY and twice over WebSocket; a gateway wraps it once, and the agent asks over WebSocket",
  },
  {
    doors: ["agent"],
    of: /--as-group=\S+$/,
    line: /^. error: requesting uid, groups or user-extra for \S+ without impersonating a user$/,
    reason: "kubectl itself refuses and names the user of its kubeconfig, which is the agent's",
  },
  {
    doors: ["agent"],
    of: /^constrained: exec .*--as=/,
    line: ANY_LINE,
    reason:
      "the agent asks over WebSocket, a GET, where older kubectls POST, and constrained impersonation names the verb",
  },
  {
    doors: ALL,
    of: /: drain /,
    line: /^the same lines in another order$/,
    reason: "kubectl evicts pods concurrently",
  },
  {
    doors: ["spdy"],
    of: /\/pods\/finite\/exec/,
    line: ANY_LINE,
    reason: "the node is dialled before the client's 101, so that its refusal becomes a Status (decision 1)",
  },
  {
    doors: GATEWAYS,
    of: /: exec /,
    apiServers: /^1\.33\./,
    line: /^. error: (?:Internal error occurred: ){1,2}error executing command in container: /,
    reason:
      "in front of an API server without declared features a gateway translates, and wraps a runtime's error once",
  },
  {
    doors: GATEWAYS,
    of: /^(?:constrained|dev): .*--as=/,
    apiServers: /^1\.33\./,
    line: ANY_LINE,
    reason:
      "constrained impersonation is of 1.36, and a gateway has it in front of an older API server as well",
  },
  {
    doors: GATEWAYS,
    of: /\/pods\/finite\/exec/,
    apiServers: /^1\.33\./,
    line: ANY_LINE,
    reason: "this API server translates for its kubelets and answers 101 before it dials; see decision 1",
  },
  {
    doors: GATEWAYS,
    of: /\(Impersonate-(?:Group|Uid|Extra-Key): /,
    apiServers: /^1\.33\./,
    line: /^(?:[-+] (?:HTTP|content-type: )|. .*without impersonating a user)/,
    reason: "impersonation without a user is a 500 in plain text there, and a 400 in 1.37 and here",
  },
];

/** What explains the lines that differ, and the lines that no entry explains. */
export function explain(
  { door, title, apiServer }: { door: DoorName; title: string; apiServer: string },
  lines: readonly string[],
): { readonly allowed: readonly KnownDifference[]; readonly unexplained: readonly string[] } {
  const entries = knownDifferences.filter(
    ({ doors, of, apiServers }) =>
      doors.includes(door) && (of?.test(title) ?? true) && (apiServers?.test(apiServer) ?? true),
  );
  const found = lines.map((line) => entries.find((entry) => entry.line.test(line)));
  return {
    allowed: [...new Set(found.filter((entry) => entry !== undefined))],
    unexplained: lines.filter((_, index) => found[index] === undefined),
  };
}
