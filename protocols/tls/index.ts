export { type ClientHello, ClientHelloReader } from "./client-hello.ts";
