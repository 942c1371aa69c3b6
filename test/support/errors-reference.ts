import type { StatusError } from "../../packages/client/src/api/status.ts";
import { REQUEST_ERRORS, ROUTE_ERRORS } from "../../src/api/wire-errors/request-errors.ts";
import { SESSION_API_ERRORS } from "../../src/api/wire-errors/session-api-errors.ts";
import { SESSION_ERRORS } from "../../src/api/wire-errors/session-errors.ts";
import { KUBELET_ERRORS, UPSTREAM_ERRORS } from "../../src/api/wire-errors/upstream-errors.ts";
import type { WireError } from "../../src/api/wire-errors/wire-error.ts";
import { wrappedPage } from "./wrapped-page.ts";

/** The places where an answer can appear, in the order of the columns of docs/errors.md. */
const PLACES = ["streaming", "forwarding", "ingress", "kubelet"] as const;

const TITLES = {
  streaming: "streaming",
  forwarding: "forwarding",
  ingress: "Ingress",
  kubelet: "kubelet's listener",
} as const;

const SECTIONS: readonly [title: string, rows: Readonly<Record<string, WireError>>][] = [
  ["Requests", REQUEST_ERRORS],
  ["Sessions and logs", SESSION_ERRORS],
  ["The API group of sessions", SESSION_API_ERRORS],
  ["Upstreams", UPSTREAM_ERRORS],
  ["Routes", ROUTE_ERRORS],
  ["The kubelet's listener", KUBELET_ERRORS],
];

/** Each fact as its own name, in brackets. */
const FACTS = new Proxy(
  {},
  { get: (_, name) => (name === "types" ? ["<types>"] : `<${String(name)}>`) },
) as never;

/** Every answer of the table, with names in place of facts. */
export function everyWireError(): { key: string; place: string; answer: StatusError }[] {
  return SECTIONS.flatMap(([, rows]) =>
    Object.entries(rows).flatMap(([key, row]) =>
      PLACES.flatMap((place) => {
        const make = row[place];
        return make === undefined ? [] : [{ key, place, answer: make(FACTS) }];
      }),
    ),
  );
}

/** docs/errors.md. */
export function errorsReference(): string {
  return wrappedPage(`# Errors

Every error that Sluice answers itself, by its cause. Search this page for the text that you see.
\`npm run docs\` writes it from \`src/api/wire-errors\`. Clients match these texts, so a changed text is named
in the changelog.

- Without a place: **streaming**: exec, attach, port-forward and other answers of the API server's listener and
  of \`sluice agent\`. A Status in JSON, if possible with a reason.
- **forwarding**: requests that Sluice forwards to an API server or kubelet.
- **Ingress**: \`CODE PHRASE: TEXT\`, or a Status for clients that accept JSON.
- **kubelet's listener**: text. It answers the causes of the first table, too.

Angle brackets mark facts. Refusals of a node or API server are passed on unchanged. Validation of objects,
selectors, reviews, log options and WebSocket handshakes uses the words of Kubernetes and golang.org/x/net,
and is not listed.
${SECTIONS.map(([title, rows]) => section(title, rows)).join("")}`);
}

/** One section; causes with equal answers share a row. */
function section(title: string, rows: Readonly<Record<string, WireError>>): string {
  const causes = new Map<string, string[]>();
  for (const row of Object.values(rows)) {
    const answers = answersOf(row);
    causes.set(answers, [...(causes.get(answers) ?? []), row.cause]);
  }
  const lines = Array.from(causes, ([answers, some]) => `| ${some.join("<br>")} | ${answers} |`);
  return `
## ${title}

| cause | answer |
|---|---|
${lines.join("\n")}
`;
}

/** The answers of a row. Streaming comes first, and is named only beside other places. */
function answersOf(row: WireError): string {
  const made = PLACES.flatMap((place) => {
    const make = row[place];
    return make === undefined ? [] : [{ place, text: answer(make) }];
  });
  return [...new Set(made.map(({ text }) => text))]
    .map((text) => {
      const places = made.filter((one) => one.text === text);
      const titles = places.map(({ place }) => TITLES[place]).join(", ");
      return titles === TITLES.streaming ? text : `${titles}: ${text}`;
    })
    .join("<br>");
}

function answer(make: (facts: never) => StatusError): string {
  const { status } = make(FACTS);
  const { code, reason, message = "" } = status;
  const text = message.trim().replaceAll("|", "\\|");
  const name = reason === undefined ? code : `${code} ${reason}`;
  return `${name}${text === "" ? ", without a body" : `: \`${text}\``}`;
}
