import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { PAUSE_IMAGE } from "./busybox-images.ts";
import { type PodNetwork, writePodNetwork } from "./pod-network.ts";

/** Everything that one daemon reads and writes, under one folder. Its name stays short: unix socket paths end at 108 bytes. */
export interface DaemonFiles {
  folder: string;
  socket: string;
  config: string;
  log: string;
  podLogs: string;
}

export function daemonFiles(folder: string): DaemonFiles {
  return {
    folder,
    socket: path.join(folder, "cri.sock"),
    config: path.join(folder, "config.toml"),
    log: path.join(folder, "daemon.log"),
    podLogs: path.join(folder, "logs"),
  };
}

/** Writes the daemon's configuration and the network plugin of its pods, which have `lo` alone without a network. */
export async function writeDaemonFiles(files: DaemonFiles, network?: PodNetwork): Promise<void> {
  const pluginFolder = path.join(files.folder, "cni-bin");
  const networkFolder = path.join(files.folder, "cni-conf");
  for (const folder of [pluginFolder, networkFolder, files.podLogs]) await mkdir(folder, { recursive: true });
  // containerd always runs a plugin called "loopback" and then the network's own; both are this one.
  const plugin = path.join(pluginFolder, "loopback");
  await writeFile(plugin, loopbackPlugin);
  await chmod(plugin, 0o755);
  await symlink("loopback", path.join(pluginFolder, "lo-only"));
  const list = { cniVersion: "0.4.0", name: "lo-only", plugins: [{ type: "lo-only" }] };
  if (network === undefined)
    await writeFile(path.join(networkFolder, "10-lo.conflist"), JSON.stringify(list));
  else await writePodNetwork(network, pluginFolder, networkFolder);
  await writeFile(files.config, configToml(files.folder, files.socket, pluginFolder, networkFolder));
}

/** A CNI plugin: the pod gets a network namespace of its own with nothing but `lo`, which is all that PortForward dials. */
const loopbackPlugin = `#!/bin/sh
set -eu
version=$(sed -n 's/.*"cniVersion" *: *"\\([^"]*\\)".*/\\1/p' | head -n 1)
version=\${version:-0.4.0}
case $CNI_COMMAND in
VERSION)
  echo "{\\"cniVersion\\":\\"$version\\",\\"supportedVersions\\":[\\"0.3.0\\",\\"0.3.1\\",\\"0.4.0\\",\\"1.0.0\\"]}" ;;
ADD)
  /bin/busybox nsenter --net="$CNI_NETNS" /bin/busybox ip link set lo up
  cat <<RESULT
{"cniVersion": "$version",
 "interfaces": [{"name": "$CNI_IFNAME", "sandbox": "$CNI_NETNS"}],
 "ips": [{"version": "4", "address": "127.0.0.1/8", "interface": 0}]}
RESULT
  ;;
esac
`;

/** Version 2 of the format, which containerd 1.6, 1.7 and 2.1 all read. */
function configToml(folder: string, socket: string, pluginFolder: string, networkFolder: string): string {
  return `version = 2
root = "${folder}/root"
state = "${folder}/state"
# Without this a wrong CRI setting leaves a daemon that answers "unknown service runtime.v1.RuntimeService".
required_plugins = ["io.containerd.grpc.v1.cri"]
disabled_plugins = ["io.containerd.internal.v1.restart", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]

[grpc]
  address = "${socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  # A virtual machine's root may lack CAP_SYS_RESOURCE, and the pause container asks for a score of -998.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${pluginFolder}"
    conf_dir = "${networkFolder}"

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "${folder}/runc"
`;
}
