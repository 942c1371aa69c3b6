import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

/** A bridge on this machine that the pods of one daemon are plugged into, so that they have addresses. */
export interface PodNetwork {
  readonly bridge: string;
  /** Of the bridge, /24: the pods' way out. */
  readonly gateway: string;
  /** Another /32 of the bridge, for a Service: `10.96.7.1`. */
  readonly serviceAddress: string;
  /** The /24 of `serviceAddress`. */
  readonly serviceRange: string;
}

/** As unique as the folder, and short enough for names of interfaces, which end at 15 characters. */
function bridgeOf(folder: string): string {
  return `sl${path.basename(folder).slice(-6)}`;
}

export async function addPodNetwork(folder: string): Promise<PodNetwork> {
  const bridge = bridgeOf(folder);
  const taken = new Set(
    Object.values(networkInterfaces()).flatMap((list = []) => list.map((row) => row.address)),
  );
  const numbers = Array.from({ length: 254 }, (_, index) => ((index + process.pid) % 254) + 1);
  const number = numbers.find((candidate) => !taken.has(`10.88.${candidate}.1`));
  const [gateway, serviceAddress] = [`10.88.${number}.1`, `10.96.${number}.1`];
  // Without an address of its own a bridge has the least of its ports', which changes as pods come and go: what
  // the others send to the old one is lost until they ask again.
  const hardware = `0a:58:0a:58:${(number ?? 0).toString(16).padStart(2, "0")}:01`;
  await ip("link", "add", bridge, "address", hardware, "type", "bridge");
  await ip("addr", "add", `${gateway}/24`, "dev", bridge);
  await ip("addr", "add", `${serviceAddress}/32`, "dev", bridge);
  await ip("link", "set", bridge, "up");
  return { bridge, gateway, serviceAddress, serviceRange: `10.96.${number}.0/24` };
}

/** With the ends of pods whose network namespace something still holds. */
export async function removePodNetwork(folder: string): Promise<void> {
  const bridge = bridgeOf(folder);
  const names = readdirSync("/sys/class/net").filter(
    (name) => name === bridge || name.startsWith(`${bridge}-`),
  );
  for (const name of names) {
    await ip("link", "del", name).catch((error: unknown) => {
      // The other end may have gone meanwhile, and taken this one with it.
      if (existsSync(`/sys/class/net/${name}`)) throw error;
    });
  }
}

async function ip(...args: string[]): Promise<void> {
  await promisify(execFile)("ip", args);
}

/** Writes the plugin `pod-bridge` into the folder of plugins, and the list that has containerd run it. */
export async function writePodNetwork(
  network: PodNetwork,
  pluginFolder: string,
  networkFolder: string,
): Promise<void> {
  const leases = path.join(pluginFolder, "leases");
  await mkdir(leases);
  const plugin = path.join(pluginFolder, "pod-bridge");
  await writeFile(plugin, bridgePlugin(network, leases));
  await chmod(plugin, 0o755);
  const list = { cniVersion: "0.4.0", name: "pod-bridge", plugins: [{ type: "pod-bridge" }] };
  await writeFile(path.join(networkFolder, "10-bridge.conflist"), JSON.stringify(list));
}

/** A CNI plugin. One call at a time: a DEL that is repeated must not meet the lease of the next pod. */
function bridgePlugin({ bridge, gateway }: PodNetwork, leases: string): string {
  const prefix = gateway.slice(0, gateway.lastIndexOf("."));
  return `#!/bin/sh
set -eu
exec 9>${leases}/.lock
flock 9
case $CNI_COMMAND in
VERSION)
  echo '{"cniVersion":"0.4.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0"]}' ;;
ADD)
  n=2
  until mkdir ${leases}/$n 2>/dev/null; do n=$((n + 1)); done
  echo "$CNI_CONTAINERID" >${leases}/$n/pod
  ip link add ${bridge}-$n type veth peer name "$CNI_IFNAME" netns "$CNI_NETNS"
  ip link set ${bridge}-$n master ${bridge} up
  within() { nsenter --net="$CNI_NETNS" ip "$@"; }
  within link set lo up
  within addr add ${prefix}.$n/24 dev "$CNI_IFNAME"
  within link set "$CNI_IFNAME" up
  within route add default via ${gateway}
  cat <<RESULT
{"cniVersion": "0.4.0",
 "interfaces": [{"name": "$CNI_IFNAME", "sandbox": "$CNI_NETNS"}],
 "ips": [{"version": "4", "address": "${prefix}.$n/24", "gateway": "${gateway}", "interface": 0}]}
RESULT
  ;;
DEL)
  for lease in $(grep -lx "$CNI_CONTAINERID" ${leases}/*/pod 2>/dev/null || true); do
    n=$(basename "$(dirname "$lease")")
    ip link del ${bridge}-$n 2>/dev/null || true
    rm -r ${leases}/$n
  done
  ;;
esac
`;
}
