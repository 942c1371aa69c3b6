export { readUint16, readUint24, readUint32, writeUint24, writeUint32 } from "./big-endian.ts";
export { ByteCollector, NOTHING } from "./byte-collector.ts";
export { latin1Text } from "./latin1.ts";
