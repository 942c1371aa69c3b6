import { describe, expect, it } from "vitest";
import { FeatureGates, featureGateNames } from "../../../src/config/feature-gates.ts";

const LOCKED_GATE = "GRPCContainerProbe";

describe("feature gates", () => {
  const alphaGates = ["H2CContainerProbe", "GRPCContainerProbeTLS"];
  const betaGates = [
    "TranslateStreamCloseWebsocketRequests",
    "PortForwardWebsockets",
    "AuthorizePodWebsocketUpgradeCreatePermission",
    "ConstrainedImpersonation",
    "NodeDeclaredFeatures",
    "ExtendWebSocketsToKubelet",
    "RelaxedServiceNameValidation",
  ];

  it("have Kubernetes 1.37's defaults: what is beta is on, what is alpha is off", () => {
    expect(featureGateNames).toEqual([...betaGates, LOCKED_GATE, ...alphaGates]);
    const on = featureGateNames.filter((name) => FeatureGates.defaults.isEnabled(name));
    expect(on).toEqual([...betaGates, LOCKED_GATE]);
  });

  it("of alpha are switched on by name or together", () => {
    const on = FeatureGates.parse("AllAlpha=true,H2CContainerProbe=false");
    expect(alphaGates.filter((name) => on.isEnabled(name as never))).toEqual(["GRPCContainerProbeTLS"]);
  });

  const settable = featureGateNames.filter((name) => name !== LOCKED_GATE);
  const allOff = settable.map((name) => `${name}=false`).join(",");
  const accepted: { name: string; spec: string | Record<string, boolean>; off: string[] }[] = [
    { name: "nothing", spec: "", off: [] },
    { name: "one off", spec: "PortForwardWebsockets=false", off: ["PortForwardWebsockets"] },
    {
      name: "several, spaces, empty parts, Go's words",
      spec: " PortForwardWebsockets = F ,,TranslateStreamCloseWebsocketRequests=0,NodeDeclaredFeatures=TRUE",
      off: ["PortForwardWebsockets", "TranslateStreamCloseWebsocketRequests"],
    },
    {
      name: "the last value of a name",
      spec: "PortForwardWebsockets=false,PortForwardWebsockets=true",
      off: [],
    },
    { name: "a map", spec: { ExtendWebSocketsToKubelet: false }, off: ["ExtendWebSocketsToKubelet"] },
    { name: "AllAlpha touches no beta gate", spec: "AllAlpha=false", off: [] },
    { name: "AllBeta", spec: "AllBeta=false", off: betaGates },
    {
      name: "a named gate before its group",
      spec: "PortForwardWebsockets=true,AllBeta=false",
      off: betaGates.filter((name) => name !== "PortForwardWebsockets"),
    },
    {
      name: "a dependency switched off with what needs it",
      spec: "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false",
      off: ["NodeDeclaredFeatures", "ExtendWebSocketsToKubelet"],
    },
    { name: "all off", spec: allOff, off: betaGates },
  ];
  it.each(accepted)("accept $name", ({ spec, off }) => {
    const gates = FeatureGates.parse(spec);
    const areOff = featureGateNames.filter((name) => !gates.isEnabled(name));
    expect(areOff.sort()).toEqual([...off, ...alphaGates].sort());
    expect(FeatureGates.parse(gates.toString()).toString()).toBe(gates.toString());
  });

  const refused: { spec: string | Record<string, boolean>; gate: string; message: string }[] = [
    { spec: "Nope=true", gate: "Nope", message: "unrecognized feature gate: Nope" },
    {
      spec: { portForwardWebsockets: true },
      gate: "portForwardWebsockets",
      message: "unrecognized feature gate: portForwardWebsockets",
    },
    { spec: { constructor: true }, gate: "constructor", message: "unrecognized feature gate: constructor" },
    {
      spec: "PortForwardWebsockets=maybe",
      gate: "PortForwardWebsockets",
      message: "invalid value of PortForwardWebsockets=maybe: must be true or false",
    },
    {
      spec: "PortForwardWebsockets",
      gate: "PortForwardWebsockets",
      message: "missing bool value for PortForwardWebsockets",
    },
    {
      spec: "NodeDeclaredFeatures=false",
      gate: "ExtendWebSocketsToKubelet",
      message:
        "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: [NodeDeclaredFeatures]",
    },
  ];
  it.each(refused)("refuse $spec in Kubernetes' words", ({ spec, gate, message }) => {
    expect(() => FeatureGates.parse(spec)).toThrow(
      expect.objectContaining({ name: "FeatureGateError", gate, message }),
    );
  });

  it("takes a gate that is locked on, and refuses to switch it off in Kubernetes' words", () => {
    expect(FeatureGates.parse("GRPCContainerProbe=true").isEnabled("GRPCContainerProbe")).toBe(true);
    expect(FeatureGates.parse("AllBeta=false,AllAlpha=false").isEnabled("GRPCContainerProbe")).toBe(true);
    expect(() => FeatureGates.parse("GRPCContainerProbe=false")).toThrow(
      "cannot set feature gate GRPCContainerProbe to false, feature is locked to true",
    );
  });
});
