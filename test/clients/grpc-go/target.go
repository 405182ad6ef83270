package main

import (
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
)

var targetName = regexp.MustCompile(`^[a-z0-9-]+$`)

// target is one server and request under load, and what was seen of it.
type target struct {
	name, address, path string
	request             []byte
	conns               []*grpc.ClientConn

	mutex       sync.Mutex
	wall        time.Duration
	samples     []int64
	codes       map[string]int
	firstAnswer []byte
	firstError  string
	// Answers that are not the first one, byte for byte; and those with another size than it.
	different, differentSizes int
}

// parseTarget refuses every address but this machine's own loopback: load goes nowhere else.
func parseTarget(text string) (*target, error) {
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return nil, fmt.Errorf("expected NAME,HOST:PORT,METHOD,REQUEST-FILE")
	}
	if !targetName.MatchString(parts[0]) {
		return nil, fmt.Errorf("name %q: expected small letters, digits and -", parts[0])
	}
	host, _, err := net.SplitHostPort(parts[1])
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("address %q: expected a loopback address such as 127.0.0.1", host)
	}
	path, err := methodPath(parts[2])
	if err != nil {
		return nil, err
	}
	request, err := os.ReadFile(parts[3])
	if err != nil {
		return nil, err
	}
	t := &target{name: parts[0], address: parts[1], path: path, request: request}
	t.forget()
	return t, nil
}

// forget drops what a warm-up measured; the first answer stays the one to compare with.
func (t *target) forget() {
	t.wall, t.samples, t.codes, t.firstError = 0, nil, map[string]int{}, ""
	t.different, t.differentSizes = 0, 0
}
