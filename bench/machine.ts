import { arch, availableParallelism, cpus, platform, totalmem } from "node:os";

/** The machine in one line: processor, cores, memory, system, Node. */
export function machineText(): string {
  const model = cpus()[0]?.model.trim() ?? "unknown processor";
  const memoryGb = (totalmem() / 2 ** 30).toFixed(0);
  const cores = availableParallelism().toString();
  return `${model}, ${cores} cores, ${memoryGb} GiB, ${platform()} ${arch()}, Node ${process.versions.node}`;
}
