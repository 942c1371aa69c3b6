// Fetches a page from a port of a pod, without a local listener: node forward.mjs POD PORT
import { text } from "node:stream/consumers";
import {
  FallbackDialer,
  kubeconfigTarget,
  loadKubeconfig,
  portForwardPath,
  SpdyDialer,
  TunnelDialer,
} from "@sluice/client";

const [pod, port] = process.argv.slice(2);
const kubeconfig = await loadKubeconfig();
const target = kubeconfigTarget(kubeconfig);
const path = portForwardPath({ namespace: kubeconfig.namespace, pod });

const connection = await new FallbackDialer(
  new TunnelDialer(target, path),
  new SpdyDialer(target, path),
).dial();
const stream = connection.openStream(Number(port));
stream.write("GET / HTTP/1.0\r\n\r\n");
console.log(await text(stream));
connection.close();
