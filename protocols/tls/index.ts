export { type ClientHello, readClientHello } from "./client-hello.ts";
