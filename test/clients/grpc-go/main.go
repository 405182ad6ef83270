// Command grpc-go calls a function the way Crossplane does: grpc-go, its service config, raw bytes.
//
// Owns: connections, calls, timing. Never: looks into a request or an answer; what the bytes mean
// is decided by the tests and benchmarks that run it. Prints one JSON object; exits 2 on bad flags.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

var errUsage = errors.New("expected a command: call, load or certs")

func main() {
	result, err := run(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(args []string) (any, error) {
	if len(args) == 0 {
		return nil, errUsage
	}
	switch args[0] {
	case "call":
		return runCall(args[1:])
	case "load":
		return runLoad(args[1:])
	case "certs":
		return runCerts(args[1:])
	default:
		return nil, fmt.Errorf("%w, got %q", errUsage, args[0])
	}
}

// parseFlags says what is wrong in one sentence, and shows the usage only to who asks for it.
func parseFlags(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stderr)
		flags.Usage()
		return err
	}
	if err == nil && flags.NArg() > 0 {
		return fmt.Errorf("expected flags only, got %q", flags.Arg(0))
	}
	return err
}
