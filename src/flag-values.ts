import { resolve } from "node:path";

import { parseGoDuration, parseQuantity } from "./admission/index.js";
import {
  parseInsecureHosts,
  parseRegistryCas,
  parseTokenServers,
  type RegistryCa,
} from "./loader/index.js";

/** What a flag's text means, or what was expected instead. */
export type FlagValue<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "error"; readonly expected: string };

/** Reads the text of a flag. */
export type FlagParser<T> = (text: string) => FlagValue<T>;

/** Bytes, and the same in the notation of Kubernetes. */
export interface Size {
  readonly bytes: number;
  readonly text: string;
}

/** A file or directory, as an absolute path. */
export const parsePath: FlagParser<string> = (text) =>
  text === "" || text.includes("\0") ? expected("a path") : ok(resolve(text));

/** What Go's strconv.ParseBool takes, so that one environment fits every function. */
export const parseBoolean: FlagParser<boolean> = (text) => {
  if (/^(?:1|t|T|true|TRUE|True)$/.test(text)) return ok(true);
  if (/^(?:0|f|F|false|FALSE|False)$/.test(text)) return ok(false);
  return expected("true or false");
};

/** A whole number within bounds, of at most seven digits. */
export function parseWholeNumber(
  min: number,
  max = 1_000_000,
): FlagParser<number> {
  return (text) => {
    const number = /^[0-9]{1,7}$/.test(text) ? Number(text) : NaN;
    if (number >= min && number <= max) return ok(number);
    return expected(`a whole number from ${min} to ${max}`);
  };
}

/** `MB` and `KB` are what they are in the flags of other functions: 1024² and 1024 bytes. */
const units = {
  MB: { bytes: 1024 * 1024, suffix: "Mi", example: "64Mi" },
  KB: { bytes: 1024, suffix: "Ki", example: "512Ki" },
} as const;

type Unit = keyof typeof units;

/** What a size may be, in bytes. */
export interface SizeBounds {
  readonly minBytes: number;
  readonly maxBytes: number;
  /** Whether it may be 0 besides. */
  readonly orZero?: true;
}

/**
 * A whole number in the flag's unit, or a Kubernetes quantity with a suffix: `1.5` and `1e3` are
 * quantities too, but of bytes, and whoever writes them beside `1000` means the unit.
 */
export function parseSize(
  unit: Unit,
  { minBytes, maxBytes, orZero }: SizeBounds,
): FlagParser<Size> {
  const { example, suffix } = units[unit];
  const bounds = `${orZero ? "0 or " : ""}from ${boundsText(minBytes, maxBytes, unit)}`;
  return (text) => {
    const inUnit = /^[0-9]+$/.test(text) ? text + suffix : text;
    const quantity = parseQuantity(inUnit);
    const hasSuffix = /[A-Za-z]$/.test(inUnit);
    const bytes =
      quantity.kind === "ok" && hasSuffix ? Number(quantity.value) : NaN;
    const isInBounds = bytes >= minBytes && bytes <= maxBytes;
    if (isInBounds || (orZero && bytes === 0)) {
      return ok({ bytes, text: inUnit });
    }
    return expected(
      `${unit} as a whole number or a quantity with a suffix such as ${example}, ${bounds}`,
    );
  };
}

/** `1 to 2047 MB`, or `64Ki to 65536 MB` where the lower one is not whole. */
function boundsText(minBytes: number, maxBytes: number, unit: Unit): string {
  const { bytes } = units[unit];
  const isWhole = minBytes % bytes === 0;
  const min = isWhole ? `${minBytes / bytes}` : `${minBytes / 1024}Ki`;
  return `${min} to ${maxBytes / bytes} ${unit}`;
}

const nanosPerMs = 1_000_000;

/** What a Go duration can hold, in whole hours. */
const maxGoHours = 2_562_047;

/** A Go duration of 0 or more; nanoseconds. */
export const parseNanos: FlagParser<bigint> = (text) => {
  const duration = parseGoDuration(text);
  if (duration.kind === "ok" && duration.nanos >= 0n) return ok(duration.nanos);
  return expected(`a duration such as 60s or 5m, from 0 to ${maxGoHours}h`);
};

/** Ten years. */
const maxHours = 10 * 366 * 24;

/** A Go duration from 0 to ten years; milliseconds, rounded up. */
export const parseDurationMs: FlagParser<number> = (text) => {
  const duration = parseGoDuration(text);
  const nanos = duration.kind === "ok" ? Number(duration.nanos) : NaN;
  const ms = Math.ceil(nanos / nanosPerMs);
  if (nanos >= 0 && ms <= maxHours * 3_600_000) return ok(ms);
  return expected(`a duration such as 10m or 1h, from 0 to ${maxHours}h`);
};

/** A Go duration of at least a nanosecond and at most a day; milliseconds, rounded up. */
export const parseTimeoutMs: FlagParser<{ ms: number; text: string }> = (
  text,
) => {
  const duration = parseGoDuration(text);
  const nanos = duration.kind === "ok" ? Number(duration.nanos) : NaN;
  const ms = Math.ceil(nanos / nanosPerMs);
  if (ms > 0 && ms <= 86_400_000) return ok({ ms, text });
  return expected("a duration such as 30s, more than 0 and at most 24h");
};

/** `host:port`, `[ipv6]:port`, or `:port` for every address. */
export const parseAddress: FlagParser<{ host: string | null; port: number }> = (
  text,
) => {
  const match =
    /^(?:\[(?<ipv6>[0-9A-Fa-f:.]+)\]|(?<host>[A-Za-z0-9.-]*)):(?<port>[0-9]{1,5})$/.exec(
      text,
    );
  const port = Number(match?.groups?.["port"] ?? NaN);
  if (!(port <= 65_535)) {
    return expected("host:port, [ipv6]:port or :port with a port up to 65535");
  }
  const host = match?.groups?.["ipv6"] ?? match?.groups?.["host"] ?? "";
  return ok({ host: host === "" ? null : host, port });
};

/** Hosts, `host[:port]`, with commas between. */
export const parseHosts: FlagParser<readonly string[]> = (text) => {
  const hosts = parseInsecureHosts(text);
  if (hosts.kind === "ok") return hosts;
  return expected(`host[:port], with commas between (${hosts.message})`);
};

/** Files of certificate authorities, `host[:port]=file`, with commas between; files absolute. */
export const parseCas: FlagParser<readonly RegistryCa[]> = (text) => {
  const cas = parseRegistryCas(text);
  if (cas.kind === "ok")
    return ok(cas.value.map((ca) => ({ ...ca, file: resolve(ca.file) })));
  return expected(`host[:port]=file, with commas between (${cas.message})`);
};

/** Registries and their token servers, `host[:port]=host[:port]`, with commas between. */
export const parseHostPairs: FlagParser<ReadonlyMap<string, string>> = (
  text,
) => {
  const servers = parseTokenServers(text);
  if (servers.kind === "ok") return servers;
  return expected(
    `host[:port]=host[:port], with commas between (${servers.message})`,
  );
};

/** Texts with commas between; blanks around them do not count. */
export const parseList: FlagParser<readonly string[]> = (text) => {
  const items = text.split(",").map((item) => item.trim());
  if (!items.includes("")) return ok(items);
  return expected("values with commas between, none of them empty");
};

function ok<T>(value: T): FlagValue<T> {
  return { kind: "ok", value };
}

function expected(what: string): FlagValue<never> {
  return { kind: "error", expected: what };
}
