import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import type { ObjectKind } from "../../../src/api/objects.ts";
import { ApiError } from "../../../src/kubernetes/api-client.ts";
import { eventually } from "../../support/eventually.ts";
import { followScripted, ScriptedApi } from "../../support/scripted-api.ts";
import { named, RecordedBackoff } from "./live.ts";

const bookmark = (resourceVersion: unknown) => ({
  type: "BOOKMARK",
  object: { kind: "Pod", metadata: { resourceVersion } },
});
const expired = { type: "ERROR", object: { kind: "Status", apiVersion: "v1", status: "Failure", code: 410 } };
/** Follows an API server that does what the test makes it do. */
async function following(kind: ObjectKind = "Pod", items: readonly unknown[] = []) {
  const api = new ScriptedApi();
  api.listsAs(kind, items);
  // Written as text, because no program can copy an object nested so deep.
  const answers = JSON.stringify(items).replaceAll('"DEEP"', "[".repeat(100_000) + "]".repeat(100_000));
  const { json } = api;
  api.json = async (request) => ({
    ...((await json.call(api, request)) as object),
    ...(answers.length > 100_000 && { items: JSON.parse(answers) }),
  });
  const waits: number[] = [];
  const backoff = () => new RecordedBackoff(waits);
  const followed = followScripted(api, [kind], { backoff });
  onTestFinished(() => followed.live.stop());
  await eventually("it is watched", () => api.isWatched(kind));
  const asked = (what: string) => api.asked.filter((each) => each.startsWith(what)).length;
  const names = () => followed.store.list(kind).map(({ metadata }) => metadata.name);
  return { api, ...followed, asked, names, waits };
}

describe("an API server that lies", () => {
  it("is not listed without a pause where each watch says a word and expires", async () => {
    const { api, asked, lines, waits } = await following();
    while (asked("list") < 5) {
      const watches = asked("watch");
      api.send("Pod", bookmark("2"), expired);
      await eventually("it is watched again", () => asked("watch") > watches && api.isWatched("Pod"));
    }
    expect(waits).toEqual([8, 16, 32]);
    expect(lines.find((line) => line.startsWith("the Kubernetes API is not watched"))).toContain('"gone"');
  });

  it.each([400, 414, 422, 431])("is listed again once %d refuses its version twice", async (code) => {
    const { api, asked, names } = await following("Pod", [named("a", "1")]);
    api.send("Pod", bookmark("none"));
    api.listsAs("Pod", [named("a", "1"), named("b", "1")]);
    api.refusals.push(new ApiError(code, ""), new ApiError(code, ""));
    api.endWatch("Pod");
    await eventually("the honest list counts", () => names().join() === "a,b");
    expect(asked("list")).toBe(2);
  });

  it("sends no version that no honest server's request could hold", async () => {
    const { api, names } = await following();
    const urls: string[] = [];
    const { open } = api;
    api.open = async (request) => {
      urls.push(request.path);
      return await open.call(api, request);
    };
    api.send("Pod", bookmark("9".repeat(100_000)), { type: "ADDED", object: named("a", "7") });
    await eventually("the pod", () => names().join() === "a");
    api.send("Pod", bookmark("1".repeat(2_000)));
    api.endWatch("Pod");
    await eventually("it is watched again", () => urls.length === 1);
    expect(urls[0]).toContain("resourceVersion=7&");
  });

  it("does not make old state fresh by the pages of a list that does not end", async () => {
    const { api, live, asked } = await following("Pod", [named("a", "1")]);
    let page = 0;
    api.json = async ({ signal }) => {
      await delay(20, undefined, { signal });
      page += 1;
      const metadata = { resourceVersion: "1", continue: `page ${page}` };
      return { kind: "PodList", metadata, items: [named(`b-${page}`, "1")] };
    };
    api.send("Pod", expired);
    await eventually("pages come", () => page === 10);
    expect(live.staleMs).toBeGreaterThan(9 * 20);
    expect(asked("watch")).toBe(1);
  });

  it.each([
    "Ingress",
    "ClusterRole",
    "Pod",
  ] as const)("harms no other %s by one nested without end", async (kind) => {
    const metadata = { name: "deep", namespace: "default", resourceVersion: "1" };
    const spec = { containers: [{ name: "main", ports: [{ x: "DEEP" }] }], tls: [{ x: "DEEP" }] };
    const other = { metadata: { ...metadata, name: "other" }, rules: [] };
    const { api, names, lines } = await following(kind, [
      { metadata, spec, rules: [{ verbs: ["get"], x: "DEEP" }] },
      kind === "Pod" ? named("other", "1") : other,
    ]);
    expect(names()).toEqual(["other"]);
    expect(api.asked).toHaveLength(2);
    expect(lines.join("\n")).toContain('"name":"deep","problem":"it is nested deeper than 64 levels"');
  });
});
