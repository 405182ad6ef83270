import { halfBytes, lines, mixed } from "./contents.js";

/** What the reference encoder makes of some contents, so that CI needs none. */
export const REFERENCE_FRAMES = [
  {
    name: "four Huffman streams",
    made: "zstd 1.5.4 -19",
    content: lines(200),
    base64:
      "KLUv/QRo1RQAppc3FpArHWj6DK3aFmZGOJmSlEnKY/YvDko/ACsALABEKnSP1XRoZjjlbiuWxCFZeDcCMCgQgMSQRoLReCQKhSQMAkJShJBBEg4AI5AAGgjCICFii0ZCOCAYAIMgKQH37e8/f/n5tl2uyWMX281mZTUyo71cVS2qKRbSeanr61rbdsqWHpGtiGgCfV1rtaWWLb2NiIiGRDcfj01Nh2ZY5niaViyJQ7Lw7irSaIDDYnc9ujleuT9VGpar69HNXbn7fft7+vnyu+2qyWO6+OxmMyurkY3RytWrqqqF8ESqYZW6gOaosUh6lLS/AUBGICKm7jYQEkVmAiEj2waBAyE15F7AMoZYglDSN6tw5nOEpMmE2Aj7N6owVVC0nw9TMcRtctbL+a4JK25/jffcjz3hxicECAqAyB2XIC32TNhDfSzZCM065NAB5R6EqKmPIYW2SR4Ie5iAWxMmZJpsvtiD8aW9437XWtlIv0rYu8+Al63tVQP1Qsld2ZOxm5JYAGXVE6K+Sfwqb58HCJmD1CXlDbpX8ClMkjbFw3T6NiY08fSdXAXCHJJv8Z2YRZ1REnjkUcuDlsyuQeKGk0eBVPFwp4NntaKGwh//x1WDL49q1TQldc3OuciZdkqSaaQh856EObSthz/uv90bzsUvdNmupXT1vrvRqjtkHuXQhQja54pf1xifiwSr4yqBPtE5RZ6DEcV9evPU0BoT7c4BZijBze7oFzph8UlG5sW4ymFJ7tZble+Iy6p2uN/jwF66x4d8t97d37UDzAnxKAnxfN6AntFIyHHoEL2OFEJ8aZjj8y55WKLVL5BJqvmjezT6Yiks8XEu+VztH+EnfuI7mTvCCRQOqycHVxzQhlX070JV3qXgZdoor4SwRVFVRWaAkA==",
  },
  {
    name: "one Huffman stream and the predefined tables",
    made: "zstd 1.5.4 -1",
    content: lines(40),
    base64:
      "KLUv/QRILQgA0gwjGYClbQPWncJypYyQbp+BlaJZe1w5LDaLdhjPxHoQ30eikon1FBnwvUbxmVgP4hqtQ0MBb41WcWu0iCPDPdfgFNzvvUbvmViP3YVeozUo7AQZ7PY+EhW0s5u916hggzU4q3gfiQrxXIOzyFOjNNAAw3uNVh+JSgmeifXg730kKpWJ9ZSdCKTSAEa5poQxIEBCgqTkAR4y4W1kOdxAwnToxgdioBl7dCu758gIv4zdSHCSbyG5oAhRRvqJ5DDOnCAPOgMjk4IEMcZlkDJokm8JRFEPmjXDTHF0Rs+2VGYlA1LE1AuO5NBPJslAlo3gBRkhnS/4TiUU3sihvLA5Y3kORcadx4iigg==",
  },
  {
    name: "small blocks that use trees and tables again",
    made: "zstd 1.5.4 -19 --target-compressed-block-size=340",
    content: lines(300),
    base64:
      "KLUv/QRopAoAkkoeFpAtdDwtLACkJ+4uOpmklEmmY9/fAARGZhurWbF6WRWVa6pYJyMi01CJBHBf6Hyby7Zd074ZK5qZDqfMrUV1py1b7lZEc1iShXcDCBAMhSBQAMjCAZEsDgRYIAiGgAEDKGARETgGAQFEYSgECKgGJGBIKBwCBCFQAmiokUR4kCTtb3EYATFGQq/dESQcgpCAQOzY8tbzD4R8ndHMlPDQYtt9SgvvIF4v3cx5mod4uGq73F8nG6mLNFZ1VaV8UOc8vQ6jmhPqIVIDZNTou6ycYQU3hmMfgScyP/FxXfjjyw4+Z+Bd4xvnHarulG9ZYM1u+/HYkaHQfwOdM0543slBq59bIGm0CSEqbBOMjjyDjNJIxictebCkuj4BnKjwOQ/woAaVOpUGMQbJVy072k5+EA3L+qNXwYOspZgNS3agG6Cdv0FV4S8VSbINWShlQWERVbQKAGMNGYA7HuQpy9H55npX7n57/f78fPndzMg2VqMVu3pZVVG5plqsUkcnIiITgB8OlVTofJvLZHtsuvhWMzNTzlxfa5XqTsvS42ksojksycK7FRkA8YBlqTvfXI9X7r+9fv/9y89uZgGAgvw1bAMO/s+dNpAuhJscHKx7iHKQnw5GhPHhyHaTEaYRz+9owpRBuTj3TAVEFXJzoU5zxq8Y9X2ccxN7konPGQYLIOiOf/CtNhO4qg8l59D8IaQDag+8pz/MF7SzPHTuAQmWpkLIlmwRURT80t3B3LUqG+inhm3zIXgntd9qpLeVPMl2CtslKRbQVe+Omkreq/59H1CY4+zSf0OzoDyFjWkrK5jabj/CAy/ZiStQczzfoHZKHgfODIES34wYXGUWH+QzDD2upHoMtzJoCiw+lPqRfBw/aAzUqa+psuu7rggt08tSPo0JQfYQ5kjVJgUIAGOKEzfylKWOzjfX45W73+qf93w5u5mVkdnGalbs6mVVRVVTLVapIyJAQjAhItNQiVTofCuTPa5ZfB+bGpqZ6XDKXF9rlepOW5YeTyPRHJZkYWD8ir6xP4MDsekVZjz/9h7f332seBQCtYxDoKdoesW08SjMl8+8xfekr1QFqr6aVsscYI+EWgXyQDjL3kIPiHr4c9hhRkoFCk31g2hyKDt7BAXBJSnso7A5ysQyb2xClhsnQkdko8paUWw3PykjP7tNUKKXfj9ziCK8SNi2Pou6Nyp0Ap6gM3H+VRP1yLzXUjLQ5HXJPyH62N3A6V2Nwg2e5jMjhTGwDipJC7fHkAFY0d7B",
  },
  {
    name: "weights that are not compressed",
    made: "zstd 1.5.4 -19",
    content: halfBytes(),
    base64:
      "KLUv/QRopQIAAogSjhEREREREREQvva2/q3lpe2c1JTci8ODy3qycrppoWGpWJBQmEePT4c2fj52JW0tZRRcHFQDSwtD8jr6MuEp6SHQGNgQzwfHDwEBAIDUgDJS7SnS8g==",
  },
  {
    name: "several large blocks, some of one byte",
    made: "zstd 1.5.4 -19",
    content: mixed(),
    base64:
      "KLUv/QRoTAAACAABAPz/ORACzAgAMogXEaBveICmwob+W0V+aZfrtxUKyZT/9x/fzw+8jfjj7u7t7MIH+TFGDx5imNLk27ubWxxTyDMPbmYWfEwByEmIAgE10npjexCdYsHBAA2iRTQFVCFbgQGZNbAHKXIqiF2o0T0dJe1vQISQoUYPEoiAUroqJJJp+///swZv2RBy+WIysO4yXZy+6HPiXr5gFHOp7oF2DS7+vmN1R2PcwHGSvlMcNxoZYUDFp3A0vrCBcLTluextgmqOBaFinZdvYYFF3WQk3y4S+MvOz2EvGfBTuNw0hiPcw5aoUcDIlX5I2ueGZLCksocTpPJMBIq6K1zWk4DMqjRmpiYCpB2rsNO5wncvkNkq/Z2qoklPGY2woKxQdrfQXi1lAAAAAgCqYQfEChQND4BTnG+V",
  },
];
