/** What the host offers: the imports of wit/world.wit. */
declare module "log" {
  export type LogLevel = "debug" | "info" | "warn" | "error";
  export default function log(
    level: LogLevel,
    msg: string,
    kv: [string, string][],
  ): void;
}
