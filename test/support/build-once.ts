import { builtProgram } from "./built-program.ts";

/** Builds before any test file starts: several of them run the compiled program, and two builds at once would collide. */
export default function setup(): void {
  builtProgram();
}
