import { describe, expect, it } from "vitest";
import {
  LoaderError,
  type LoaderErrorCode,
} from "../../../../src/loader/error.js";
import { following } from "../../../../src/loader/http/redirects.js";
import type { HttpResponse } from "../../../../src/loader/http/transport.js";
import { answer, endless, get, scripted } from "./doubles.js";

const HEADERS = {
  accept: "a/b",
  "accept-encoding": "identity",
  authorization: "Bearer hunter2",
  cookie: "hunter2",
  "if-none-match": '"x"',
  "proxy-authorization": "hunter2",
  range: "bytes=0-1",
  "user-agent": "t",
  "x-token": "hunter2",
};
const HARMLESS = {
  accept: "a/b",
  "accept-encoding": "identity",
  "if-none-match": '"x"',
  range: "bytes=0-1",
  "user-agent": "t",
};

describe("loader/http/redirects", () => {
  it.each([301, 302, 303, 307, 308])("follows %d", async (status) => {
    const moved = redirect("https://other.test/b?sig=hunter2", status);
    const last = answer();
    const send = scripted(moved, last);

    const got = await following(send, admitAll)(
      get("https://h.test/a"),
      endless(),
    );

    expect(got).toBe(last);
    expect(moved.discards).toBe(1);
    expect(send.requests[1]).toEqual(get("https://other.test/b?sig=hunter2"));
  });

  it.each([200, 204, 300, 304, 305, 400])(
    "does not follow %d",
    async (status) => {
      const first = redirect("https://other.test/", status);

      const got = await following(scripted(first), admitAll)(
        get("https://h.test/"),
        endless(),
      );

      expect(got).toBe(first);
      expect(first.discards).toBe(0);
    },
  );

  it("follows for HEAD, and asks with HEAD again", async () => {
    const send = scripted(redirect("/b", 303), answer());

    await following(send, admitAll)(
      get("https://h.test/a", { method: "HEAD" }),
      endless(),
    );

    expect(send.requests[1]?.method).toBe("HEAD");
  });

  it.each(["POST", "PUT", "PATCH"] as const)(
    "gives the redirect of a %s back",
    async (method) => {
      const first = redirect("https://h.test/b");

      const got = await following(scripted(first), admitAll)(
        get("https://h.test/a", { method }),
        endless(),
      );

      expect(got).toBe(first);
    },
  );

  it.each([
    { location: "/b", want: "https://h.test:5000/b" },
    { location: "b?x=1", want: "https://h.test:5000/v2/b?x=1" },
    { location: "?x", want: "https://h.test:5000/v2/a?x" },
    { location: "//other.test/b", want: "https://other.test/b" },
    {
      location: "https://OTHER.test.:443/b#part",
      want: "https://other.test/b",
    },
    { location: "\\\\other.test\\b", want: "https://other.test/b" },
  ])("resolves $location", async ({ location, want }) => {
    const send = scripted(redirect(location), answer());
    const admitted: string[] = [];
    const follow = following(send, (url) => {
      admitted.push(url.href);
      return undefined;
    });

    await follow(get("https://h.test:5000/v2/a?q=1"), endless());

    expect(send.requests.map(({ url }) => url.href)).toEqual([
      "https://h.test:5000/v2/a?q=1",
      want,
    ]);
    expect(admitted).toEqual([want]);
  });

  it.each([
    { name: "the same origin", to: "https://h.test:443/b", want: HEADERS },
    { name: "another host", to: "https://other.test/b", want: HARMLESS },
    { name: "a host below", to: "https://a.h.test/b", want: HARMLESS },
    { name: "another port", to: "https://h.test:444/b", want: HARMLESS },
  ])("sends to $name what may go there", async ({ to, want }) => {
    const send = scripted(redirect(to), answer());

    await following(send, admitAll)(
      get("https://h.test/a", { headers: HEADERS }),
      endless(),
    );

    expect(send.requests[1]?.headers).toEqual(want);
  });

  it("takes another scheme for another origin", async () => {
    const send = scripted(redirect("https://h.test/b"), answer());

    await following(send, admitAll)(
      get("http://h.test/a", { headers: HEADERS }),
      endless(),
    );

    expect(send.requests[1]?.headers).toEqual(HARMLESS);
  });

  it("does not take up a credential again on the way back", async () => {
    const send = scripted(
      redirect("https://other.test/"),
      redirect("https://h.test/b"),
      answer(),
    );

    await following(send, admitAll)(
      get("https://h.test/a", { headers: HEADERS }),
      endless(),
    );

    expect(send.requests[2]).toEqual(
      get("https://h.test/b", { headers: HARMLESS }),
    );
  });

  it("follows five redirects and no sixth, of a URL to itself, too", async () => {
    const loop = () => redirect("https://h.test/a?hunter2");
    const last = answer();
    const five = scripted(loop(), loop(), loop(), loop(), loop(), last);
    const six = scripted(loop(), loop(), loop(), loop(), loop(), loop());
    const admitted: URL[] = [];
    const admit = (url: URL) => {
      admitted.push(url);
      return undefined;
    };

    expect(
      await following(five, admit)(get("https://h.test/a"), endless()),
    ).toBe(last);
    await expect(
      following(six, admit)(get("https://h.test/a"), endless()),
    ).rejects.toMatchObject({
      code: "redirect-refused",
      message:
        "h.test: more than 5 redirects, the last one to https://h.test/a",
    });
    expect(six.requests).toHaveLength(6);
    expect(admitted).toHaveLength(10);
  });

  it("asks for the spelling that was admitted", async () => {
    const send = scripted(redirect("https://ok.test/s%65cret"), answer());
    const follow = following(send, () => new URL("https://ok.test/secret"));

    await follow(get("https://h.test/a"), endless());

    expect(send.requests.at(-1)?.url.href).toBe("https://ok.test/secret");
  });

  it("asks about each hop before it sends anything there", async () => {
    const moved = redirect("https://bad.test/");
    const send = scripted(redirect("https://ok.test/"), moved);
    const refusal = new Error("refused");
    const follow = following(send, (url) =>
      url.hostname === "bad.test"
        ? Promise.reject(refusal)
        : Promise.resolve(undefined),
    );

    await expect(follow(get("https://h.test/a"), endless())).rejects.toBe(
      refusal,
    );
    expect(send.requests).toHaveLength(2);
    expect(moved.discards).toBe(1);
  });

  it.each([
    {
      location: "http://h.test/a?s",
      want: "h.test: redirect from https to http://h.test/a",
    },
    {
      location: "http://localhost:1/a",
      want: "h.test: redirect from https to http://localhost:1/a",
    },
    {
      location: "https://user:hunter2@h.test/a?s",
      want: "h.test: redirect with a user name or password to https://h.test/a",
    },
    {
      location: "https://user@h.test/a",
      want: "h.test: redirect with a user name or password to https://h.test/a",
    },
    { location: "file:///etc/passwd", want: "h.test: redirect to file:" },
    { location: "data:,x", want: "h.test: redirect to data:" },
    {
      location: "https://[::ffff:127.0.0.1]/a",
      want: 'h.test: redirect to https://[::ffff:7f00:1]/a: host "[::ffff:7f00:1]" is an IPv6 address with an IPv4 address inside, write the IPv4 address',
    },
  ])("refuses $location", async ({ location, want }) => {
    const moved = redirect(location);
    const admitted: URL[] = [];

    await expect(
      following(scripted(moved), (url) => {
        admitted.push(url);
        return undefined;
      })(get("https://h.test/a"), endless()),
    ).rejects.toMatchObject({ code: "redirect-refused", message: want });
    expect(admitted).toEqual([]);
    expect(moved.discards).toBe(1);
  });

  it.each([
    { name: "none", locations: [] },
    { name: "two", locations: ["/a", "/a"] },
    { name: "one that does not parse", locations: ["https://[bad/"] },
  ])("takes a redirect with $name for no answer", async ({ locations }) => {
    const moved = answer({ status: 302, headers: { location: locations } });

    await expect(
      following(scripted(moved), admitAll)(get("https://h.test/a"), endless()),
    ).rejects.toMatchObject({
      code: "answer-invalid",
      message: "h.test: HTTP 302 without a location that can be read",
    });
    expect(moved.discards).toBe(1);
  });

  it("passes the scope on", async () => {
    const scope = endless();
    const scopes: unknown[] = [];
    const send = scripted(redirect("/b"), answer());

    await following((request, given) => {
      scopes.push(given);
      return send(request, given);
    }, admitAll)(get("https://h.test/a"), scope);

    expect(scopes).toEqual([scope, scope]);
  });

  describe("when a server gives no answer", () => {
    const failures: readonly [LoaderErrorCode, string][] = [
      ["registry-unreachable", "in.test: connection refused (ECONNREFUSED)"],
      ["tls-failed", "in.test: TLS failed (EPROTO)"],
      ["answer-invalid", "in.test: the answer is not valid HTTP (X)"],
    ];

    it.each(failures)(
      "tells no more than its name of one that was sent on to: %s",
      async (code, text) => {
        const failure = new LoaderError(code, text);
        const send = scripted(
          redirect("https://in.test:81/x?sig=hunter2"),
          failure,
        );

        await expect(
          following(send, admitAll)(get("https://h.test:5000/a"), endless()),
        ).rejects.toMatchObject({
          code,
          message:
            "h.test:5000 sent on to in.test:81, which could not be asked",
          cause: failure,
        });
      },
    );

    it("tells of the one that was asked what there is to tell", async () => {
      const failure = new LoaderError("registry-unreachable", "h.test: reset");
      const ask = (...script: readonly (HttpResponse | Error)[]) =>
        following(scripted(...script), admitAll)(
          get("https://h.test/a"),
          endless(),
        );

      await expect(ask(failure)).rejects.toBe(failure);
      await expect(ask(redirect("/b"), failure)).rejects.toBe(failure);
    });

    it.each([
      new LoaderError("resolve-cancelled", "in.test: the request ended"),
      new LoaderError("plain-http-refused", "in.test: http is for localhost"),
      new TypeError("a fault of ours"),
    ])("passes on what was not learnt there: %s", async (thrown) => {
      const send = scripted(redirect("https://in.test/x"), thrown);

      await expect(
        following(send, admitAll)(get("https://h.test/a"), endless()),
      ).rejects.toBe(thrown);
    });
  });
});

function redirect(location: string, status = 307) {
  return answer({ status, headers: { location: [location] } });
}

function admitAll(): undefined {
  return undefined;
}
