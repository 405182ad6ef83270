import { readdirSync, readFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

import { Counter, Gauge, type Registry } from "prom-client";

const nanosPerSecond = 1e9;
const microsPerSecond = 1e6;
/** How often the event loop is asked for a sign of life; each wakes an idle process. */
const resolutionMs = 20;

/**
 * Adds what there is to say of the process itself, read when a page is written. The names are those
 * of Prometheus's own client libraries, so that common dashboards find them. prom-client's default
 * metrics are more, but differ between versions of Node, and count handles one by one.
 */
export function addProcessMetrics(registry: Registry): void {
  const registers = [registry];
  new Counter({
    name: "process_cpu_seconds_total",
    help: "CPU time of the process, guests included, compiles not.",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / microsPerSecond);
    },
  });
  for (const { name, help, read } of [
    {
      name: "process_start_time_seconds",
      help: "When the process started, in seconds since 1970.",
      read: () => performance.timeOrigin / 1000,
    },
    {
      name: "process_resident_memory_bytes",
      help: "Memory of the process that is in RAM.",
      read: () => process.memoryUsage.rss(),
    },
    {
      name: "process_open_fds",
      help: "Open file descriptors.",
      read: openFileDescriptors,
    },
    {
      name: "process_max_fds",
      help: "How many file descriptors may be open.",
      read: maxFileDescriptors,
    },
    {
      name: "nodejs_heap_size_used_bytes",
      help: "JavaScript heap in use; guests and compiled modules are not in it.",
      read: () => process.memoryUsage().heapUsed,
    },
  ]) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  }
  addEventLoopLag(registry);
}

/** How late the event loop was, since the last page was written. */
function addEventLoopLag(registry: Registry): void {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  const quantile = (percent: number) => ({
    name: `nodejs_eventloop_lag_p${String(percent)}_seconds`,
    help: `How late the event loop was, ${String(percent)}th percentile since the last scrape.`,
    read: () => delays.percentile(percent),
  });
  const readings = [
    quantile(50),
    quantile(90),
    quantile(99),
    {
      name: "nodejs_eventloop_lag_max_seconds",
      help: "How late the event loop was at most since the last scrape.",
      read: () => {
        const { max } = delays;
        // The last one to be read.
        delays.reset();
        return max;
      },
    },
  ];
  for (const { name, help, read } of readings) {
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        // What is measured is the time between two signs, not what is beyond its plan.
        const lateNanos = read() - resolutionMs * 1e6;
        this.set(Math.max(0, lateNanos) / nanosPerSecond);
      },
    });
  }
}

/** NaN where the system does not tell. */
function openFileDescriptors(): number {
  try {
    // Without the one that is open for this.
    return readdirSync("/proc/self/fd").length - 1;
  } catch {
    return NaN;
  }
}

function maxFileDescriptors(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "utf8");
    const soft = /^Max open files +(\S+)/m.exec(limits)?.[1];
    return soft === "unlimited" ? Infinity : Number(soft);
  } catch {
    return NaN;
  }
}
