import { decodeMessage, type MessageSchema, ProtobufError } from "./decode-message.ts";

export const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";

/** Kubernetes' envelope: these four bytes, then a runtime.Unknown (k8s.io/apimachinery/pkg/runtime/generated.proto). */
const MAGIC = [0x6b, 0x38, 0x73, 0x00];
const typeMeta: MessageSchema = { 1: { name: "apiVersion" }, 2: { name: "kind" } };

/** The used fields of k8s.io/api/authorization/v1/generated.proto. */
const resourceAttributes: MessageSchema = {
  1: { name: "namespace" },
  2: { name: "verb" },
  3: { name: "group" },
  4: { name: "version" },
  5: { name: "resource" },
  6: { name: "subresource" },
  7: { name: "name" },
};
const nonResourceAttributes: MessageSchema = { 1: { name: "path" }, 2: { name: "verb" } };
const reviewSchemas: Readonly<Record<string, MessageSchema>> = {
  SelfSubjectAccessReview: {
    2: {
      name: "spec",
      message: {
        1: { name: "resourceAttributes", message: resourceAttributes },
        2: { name: "nonResourceAttributes", message: nonResourceAttributes },
      },
    },
  },
  SelfSubjectRulesReview: { 2: { name: "spec", message: { 1: { name: "namespace" } } } },
  SelfSubjectReview: {},
};

/**
 * Decodes a review from kubectl 1.32 or newer into the object of its JSON form. Throws
 * ProtobufError.
 */
export function decodeReview(bytes: Uint8Array): Record<string, unknown> {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) throw new ProtobufError("no Kubernetes object");
  const envelope = decodeMessage(bytes.subarray(MAGIC.length), { 1: { name: "type", message: typeMeta } });
  const { apiVersion, kind } = (envelope.type ?? {}) as { apiVersion?: string; kind?: string };
  const schema = kind !== undefined && Object.hasOwn(reviewSchemas, kind) ? reviewSchemas[kind] : undefined;
  if (schema === undefined) throw new ProtobufError("no review that is known");
  const whole = decodeMessage(bytes.subarray(MAGIC.length), { 2: { name: "raw", message: schema } });
  return { ...(whole.raw as object | undefined), apiVersion, kind };
}
