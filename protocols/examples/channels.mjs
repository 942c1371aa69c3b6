// A terminal size, as a client's frame of v5.channel.k8s.io and back.
import { CHANNEL, ChannelDemux, encodeResize, ResizeDecoder, specOf } from "@sluice/protocols/remotecommand";
import {
  applyMask,
  defaultWebSocketLimits,
  OPCODE,
  WebSocketFrameDecoder,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";

const size = encodeResize({ width: 80, height: 24 });
const payload = Uint8Array.of(CHANNEL.RESIZE, ...size);
const frame = new Uint8Array(14 + payload.byteLength);
const mask = 0x01020304;
const headerBytes = writeMaskedFrameHeader(frame, 0, OPCODE.BINARY, payload.byteLength, true, mask);
applyMask(payload, mask, 0);
frame.set(payload, headerBytes);

const sizes = new ResizeDecoder();
const demux = new ChannelDemux(specOf("v5.channel.k8s.io"), {
  onChannelData: (channel, part) => console.log(channel, ...sizes.push(part)),
  onChannelClose: () => {},
});
const decoder = new WebSocketFrameDecoder(
  "server",
  {
    onMessage: (part, isFirst, isLast) => demux.push(part, isFirst, isLast),
    onPing() {},
    onPong() {},
    onClose() {},
  },
  defaultWebSocketLimits,
);
decoder.push(frame.subarray(0, headerBytes + payload.byteLength));
