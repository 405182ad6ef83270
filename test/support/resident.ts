import { residentBytes } from "./engine.js";

/** Watches how far the process grows from here; `stop` says how many bytes it was at most. */
export function watchResident(): { stop(): number } {
  const before = residentBytes();
  let peak = 0;
  const sample = () => {
    peak = Math.max(peak, residentBytes() - before);
  };
  const timer = setInterval(sample, 5);
  return {
    stop() {
      clearInterval(timer);
      sample();
      return peak;
    },
  };
}
