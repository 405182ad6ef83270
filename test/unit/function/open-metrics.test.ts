import { describe, expect, it } from "vitest";

import { openMetricsFrom } from "../../../src/function/open-metrics.js";

describe("function/open-metrics", () => {
  it("takes _total off what describes a counter, and nothing else", () => {
    const text = `# HELP a_total As a_total counts, so does # HELP b_total.
# TYPE a_total counter
a_total{of="x_total"} 1
a_total 2

# HELP handles_total A gauge that is called like a counter.
# TYPE handles_total gauge
handles_total 3

# HELP seconds How long.
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 4
seconds_sum 0.5
seconds_count 4

# HELP last_total The last one.
# TYPE last_total counter
last_total 5
`;

    expect(openMetricsFrom(text))
      .toBe(`# HELP a As a_total counts, so does # HELP b_total.
# TYPE a counter
a_total{of="x_total"} 1
a_total 2
# HELP handles_total A gauge that is called like a counter.
# TYPE handles_total gauge
handles_total 3
# HELP seconds How long.
# TYPE seconds histogram
seconds_bucket{le="+Inf"} 4
seconds_sum 0.5
seconds_count 4
# HELP last The last one.
# TYPE last counter
last_total 5
# EOF
`);
  });
});
