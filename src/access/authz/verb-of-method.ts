/** The verb that RBAC sees on a streaming subresource: a function of the method alone, whatever protocol is spoken. */
export function verbOfMethod(method: string): "get" | "create" | undefined {
  if (method === "GET") return "get";
  return method === "POST" ? "create" : undefined;
}
