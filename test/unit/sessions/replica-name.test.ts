import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  ReplicaName,
  type SessionKeys,
  SessionOwner,
} from "../../../src/sessions/resumable/session-owner.ts";
import { newReplicaId } from "../../../src/sessions/session-id.ts";

const [KEY, NEXT_KEY] = [randomBytes(32), randomBytes(32)];

function replicaWith(...current: [Buffer, ...Buffer[]]): ReplicaName {
  return new ReplicaName(newReplicaId(), { current });
}

describe("a session's name among replicas", () => {
  it("is 16 bytes that name replica and process, for whoever has the key", () => {
    const owner = replicaWith(KEY);
    const session = owner.newSession();
    expect(session).toMatch(/^[\w-]{22}$/);
    expect(replicaWith(KEY).read(session)).toEqual({ replica: owner.id, process: owner.process });
    expect(owner.newSession()).not.toBe(session);
  });

  it("says nothing once one bit of it is another", () => {
    const owner = replicaWith(KEY);
    const bytes = Buffer.from(owner.newSession(), "base64url");
    for (let bit = 0; bit < bytes.byteLength * 8; bit++) {
      const forged = Buffer.from(bytes);
      forged[bit >> 3] = (forged[bit >> 3] as number) ^ (1 << (bit & 7));
      expect(owner.read(forged.toString("base64url"))).toBeUndefined();
    }
    expect(replicaWith(NEXT_KEY).read(bytes.toString("base64url"))).toBeUndefined();
  });

  it("outlives a rotation of the key: known before it signs, and while it no longer does", () => {
    const keys: { current: SessionKeys["current"] } = { current: [KEY, NEXT_KEY] };
    const owner = new ReplicaName(newReplicaId(), keys);
    const before = owner.newSession();
    keys.current = [NEXT_KEY, KEY];
    const after = owner.newSession();
    for (const session of [before, after]) {
      expect(replicaWith(KEY, NEXT_KEY).read(session)).toBeDefined();
      expect(owner.read(session)).toBeDefined();
    }
    keys.current = [NEXT_KEY];
    expect(owner.read(before)).toBeUndefined();
    expect(owner.read(after)).toBeDefined();
  });

  it("places a session here, with another replica, or nowhere", () => {
    const [name, other] = [replicaWith(KEY), replicaWith(KEY)];
    const owner = new SessionOwner({ replica: name });
    expect(owner.placeOf(owner.newSession())).toEqual({ at: "here" });
    expect(owner.placeOf(other.newSession())).toEqual({ at: "peer", replica: other.id });
    expect(owner.placeOf(randomBytes(16).toString("base64url"))).toEqual({ at: "nowhere" });
    const [one, sibling] = [name, new ReplicaName(name.id, { current: [KEY] })].map(
      (replica) => new SessionOwner({ replica, socketFolder: "/folder" }),
    ) as [SessionOwner, SessionOwner];
    expect(one.placeOf(sibling.newSession())).toEqual({ at: "sibling", socketPath: sibling.socketPath });
    // A process of this replica that is gone, where no other is left.
    expect(owner.placeOf(sibling.newSession())).toEqual({ at: "nowhere" });
  });
});
