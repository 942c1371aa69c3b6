// The cells of the suite: what they measure, with which contenders, and how often. A cell's
// contenders take turns, so figures within a cell are comparable even if the machine's load
// changes. Cells run one after another.
import { sessionsWithin } from "./workloads.mjs";

const KIB = 1024;
const MIB = 1024 * KIB;
const PLANS = ["translate", "tunnel", "pass-through"];
const DIRECTIONS = ["download", "upload", "both"];
const ENCRYPTIONS = ["plain", "TLS"];
/**
 * Sessions that a proxy sets up before they count. By then Node has compiled the code that they
 * run.
 */
const SET_UPS_TO_WARM_UP = 2_000;
/**
 * Bytes that a proxy carries before they count: a gateway's first GiB costs up to 1.4 times as much
 * as a GiB after the second.
 */
const BYTES_TO_WARM_UP = 2 * 1024 * MIB;

/** The contenders that the bars compare. */
const three = ["pipe", "sluice", "kubernetes"];
const everybody = ["direct", ...three, "haproxy", "nginx", "naive"];
const onOtherNode = ["pipe@node", "sluice@node"];
/** Sluice with two processes, because Kubernetes' handlers have two threads here. */
const twoWorkers = ["sluice-2", "sluice-2@node"];

/**
 * `size`: "quick" checks that everything runs, "default" takes about 45 minutes, "full" measures
 * every combination.
 */
export function suite(size, { repeat }) {
  const isFull = size === "full";
  const isQuick = size === "quick";
  const rounds = isQuick ? 1 : repeat;
  const scaled = (number, divisor) => (isQuick ? Math.ceil(number / divisor) : number);
  /** How long sessions rest before their memory is read. */
  const hold = isQuick ? "300ms" : "2s";
  const cells = [];
  const add = (id, cell) => cells.push({ id, rounds, repeat: rounds, ...cell });

  const bulk = (plan, encryption, direction, sessions, writeBytes) => {
    const isSmall = writeBytes === 64;
    // Small writes cost a hundred times as much per byte, so fewer bytes suffice. Each session
    // carries enough that its set-up does not dominate: that was a third of the cost with 4 MiB,
    // and a tenth with 32 MiB over TLS.
    const isMany = encryption === "TLS" ? sessions >= 8 : sessions === 64;
    const bytes = isSmall ? 8 * MIB : isMany ? 1024 * MIB : (encryption === "TLS" ? 256 : 512) * MIB;
    const isFewSessions = sessions <= 8 && direction !== "both";
    const isWithEverybody = isFull || (isFewSessions && !isSmall && plan === "translate");
    const isOfTwoNodes = encryption === "TLS" || (plan === "translate" && sessions === 1 && !isSmall);
    const few = isWithEverybody && encryption === "plain" ? everybody : three;
    const others = isOfTwoNodes ? [...few, ...onOtherNode] : few;
    const isForTwo =
      !isSmall && (sessions === 64 ? plan === "translate" : encryption === "TLS" && sessions === 8);
    add(
      `bulk/${plan}/${encryption}/${direction}/${sessions} ${sessions === 1 ? "session" : "sessions"}/${isSmall ? "64 B" : "32 KiB"}`,
      {
        ...{ kind: "bulk", plan, encryption, direction, sessions, writeBytes },
        contenders: isForTwo ? [...others, ...(encryption === "TLS" ? twoWorkers : ["sluice-2"])] : others,
        bytes: scaled(bytes, isSmall ? 8 : 16),
        ...(isSmall ? {} : { warmUpBytes: scaled(BYTES_TO_WARM_UP, 64) }),
      },
    );
  };
  for (const plan of PLANS) {
    for (const encryption of ENCRYPTIONS) {
      for (const direction of DIRECTIONS) {
        for (const sessions of [1, 8, 64]) {
          const isInDefault =
            encryption === "plain"
              ? direction !== "both" || sessions === 8
              : sessions < 64 && (direction !== "both" || sessions === 8);
          if (isFull || isInDefault) bulk(plan, encryption, direction, sessions, 32 * KIB);
          if (isFull || (encryption === "plain" && direction !== "both" && sessions === 1)) {
            bulk(plan, encryption, direction, sessions, 64);
          }
        }
      }
    }
  }
  for (const direction of ["download", "upload"]) {
    for (const sessions of [1, 8]) {
      add(
        `bulk/WebSocket pass-through/plain/${direction}/${sessions} ${sessions === 1 ? "session" : "sessions"}/32 KiB`,
        {
          ...{
            kind: "bulk",
            plan: "WebSocket pass-through",
            encryption: "plain",
            direction,
            sessions,
            writeBytes: 32 * KIB,
          },
          contenders: ["direct", ...three, "http-proxy", "httpxy"],
          bytes: scaled(256 * MIB, 16),
        },
      );
    }
  }
  // What kubectl sends to kubelets from Kubernetes 1.36 on, which accept it unchanged.
  for (const encryption of ENCRYPTIONS) {
    for (const direction of ["download", "upload"]) {
      for (const sessions of [1, 8]) {
        const [plan, writeBytes] = ["WebSocket v5 pass-through", 32 * KIB];
        const name = `${sessions} ${sessions === 1 ? "session" : "sessions"}`;
        add(`bulk/${plan}/${encryption}/${direction}/${name}/32 KiB`, {
          ...{ kind: "bulk", plan, encryption, direction, sessions, writeBytes },
          contenders: encryption === "TLS" ? [...three, ...onOtherNode] : three,
          bytes: scaled(256 * MIB, 16),
          warmUpBytes: scaled(BYTES_TO_WARM_UP, 64),
        });
      }
    }
  }

  // SPDY clients with a node that accepts only WebSocket; the pipe connects the same clients to a
  // SPDY node.
  for (const plan of ["bridge", "bridged port-forward"]) {
    for (const encryption of ENCRYPTIONS) {
      for (const direction of ["download", "upload"]) {
        for (const sessions of [1, 8]) {
          if (encryption === "TLS" && sessions === 8 && !isFull) continue;
          add(
            `bulk/${plan}/${encryption}/${direction}/${sessions} ${sessions === 1 ? "session" : "sessions"}/32 KiB`,
            {
              ...{ kind: "bulk", plan, encryption, direction, sessions, writeBytes: 32 * KIB },
              contenders: encryption === "TLS" ? ["pipe", "sluice", ...onOtherNode] : ["pipe", "sluice"],
              bytes: scaled(256 * MIB, 16),
              warmUpBytes: scaled(BYTES_TO_WARM_UP, 64),
            },
          );
        }
      }
    }
    add(`echo/${plan}/plain`, {
      ...{ kind: "echo", plan, encryption: "plain" },
      contenders: ["pipe", "sluice"],
      rounds: scaled(5000, 20),
    });
    add(`set-ups/${plan}/plain`, {
      ...{ kind: "setup", plan, encryption: "plain" },
      contenders: ["pipe", "sluice"],
      count: scaled(500, 20),
      warmUpCount: scaled(SET_UPS_TO_WARM_UP, 20),
    });
  }

  for (const plan of ["translate", "tunnel"]) {
    for (const encryption of ENCRYPTIONS) {
      if (plan === "tunnel" && encryption === "TLS" && !isFull) continue;
      const contenders = encryption === "plain" && plan === "translate" ? everybody : three;
      add(`echo/${plan}/${encryption}`, {
        kind: "echo",
        plan,
        encryption,
        contenders,
        rounds: scaled(5000, 20),
      });
    }
    add(`echo under load/${plan}/plain/8 bulk sessions`, {
      ...{ kind: "echo under load", plan, encryption: "plain", bulkSessions: 8 },
      contenders: three,
      rounds: 2000,
      within: isQuick ? "500ms" : "3s",
    });
  }
  for (const plan of PLANS) {
    for (const encryption of ENCRYPTIONS) {
      const contenders =
        encryption === "TLS"
          ? [...three, ...onOtherNode, ...twoWorkers]
          : plan === "translate"
            ? everybody
            : three;
      add(`set-ups/${plan}/${encryption}`, {
        kind: "setup",
        plan,
        encryption,
        contenders,
        count: scaled(500, 20),
        warmUpCount: scaled(SET_UPS_TO_WARM_UP, 20),
      });
    }
  }
  // A bar of 3 per cent needs samples that last seconds.
  add("set-ups/translate/plain/traced", {
    ...{ kind: "setup", plan: "translate", encryption: "plain" },
    contenders: ["sluice", "sluice-traced", "sluice-traced-all"],
    count: scaled(4_000, 100),
    warmUpCount: scaled(SET_UPS_TO_WARM_UP, 100),
  });
  add("requests/tunnel/plain", {
    kind: "requests",
    plan: "tunnel",
    encryption: "plain",
    contenders: three,
    count: scaled(10_000, 20),
  });

  for (const encryption of ENCRYPTIONS) {
    add(`idle memory/translate/${encryption}/1,000 sessions`, {
      ...{ kind: "idle", plan: "translate", encryption, sessions: scaled(1000, 20) },
      contenders: encryption === "plain" ? [...three, "naive"] : [...three, ...onOtherNode],
      isUncounted: false,
      hold,
    });
    add(`stalled readers/translate/${encryption}/100 sessions`, {
      ...{ kind: "stalled", plan: "translate", encryption, sessions: scaled(100, 10) },
      contenders: three,
      isUncounted: false,
      hold,
    });
  }
  const many = isQuick ? 50 : sessionsWithin(10_000);
  add(`idle memory/translate/plain/${many.toLocaleString("en-US")} sessions`, {
    ...{ kind: "idle", plan: "translate", encryption: "plain", sessions: many },
    contenders: three,
    // Each run takes a minute, and memory varies little, as the spread of the cell with 1,000
    // sessions shows.
    repeat: isFull ? rounds : 1,
    isUncounted: false,
    hold,
  });
  add("request growth/tunnel/plain", {
    ...{ kind: "request growth", plan: "tunnel", encryption: "plain", contenders: ["sluice"] },
    count: isQuick ? 2000 : 1_000_000,
    every: isQuick ? 500 : 50_000,
    repeat: 1,
    isUncounted: false,
  });
  return cells;
}

/**
 * The numbers of sessions on a curve. A single session uses only one core, so exponents start from
 * the second point.
 */
const POINTS = [1, 8, 64, 256];

/**
 * The curves of `npm run bench -- growth`: the cost of a GiB, and of an echo, as the number of
 * sessions grows. growth-document.mjs writes their page.
 */
export function growthSuite(size, { repeat }) {
  const isQuick = size === "quick";
  const common = { rounds: isQuick ? 1 : repeat, repeat: isQuick ? 1 : repeat, contenders: three };
  const bulk = (plan, encryption, sessions) => ({
    id: `growth/${plan}/${encryption}/download/${sessions}`,
    ...common,
    ...{ kind: "steady", plan, encryption, direction: "download", sessions, writeBytes: 32 * KIB },
    // Every sample has a process of its own, whose warm-up the load client waits for.
    ...{ window: isQuick ? "500ms" : "3s", isUncounted: false },
  });
  const echo = (bulkSessions) => ({
    id: `growth/echo beside bulk/TLS/${bulkSessions}`,
    ...common,
    ...{
      kind: "echo under load",
      plan: "translate",
      encryption: "TLS",
      bulkSessions,
      sessions: bulkSessions,
    },
    ...{ rounds: 2000, within: isQuick ? "500ms" : "3s" },
  });
  const curves = [
    ["translate", "TLS"],
    ["pass-through", "TLS"],
    ["translate", "plain"],
  ];
  return [
    ...curves.flatMap(([plan, encryption]) => POINTS.map((sessions) => bulk(plan, encryption, sessions))),
    ...[1, 8, 32].map(echo),
  ];
}
