package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

type loadPlan struct {
	rounds, roundCalls, warmupCalls int
	concurrency, connections        int
	deadline, maxDuration           time.Duration
	samples                         bool
	answersDir                      string
	targets                         []*target
}

type loadResult struct {
	Client  string         `json:"client"`
	Targets []targetResult `json:"targets"`
}

type targetResult struct {
	Name              string         `json:"name"`
	Calls             int            `json:"calls"`
	Codes             map[string]int `json:"codes"`
	FirstError        string         `json:"firstError"`
	DifferentAnswers  int            `json:"differentAnswers"`
	DifferentSizes    int            `json:"differentSizes"`
	WallUs            int64          `json:"wallUs"`
	RequestsPerSecond float64        `json:"requestsPerSecond"`
	P50Us             int64          `json:"p50Us"`
	P90Us             int64          `json:"p90Us"`
	P99Us             int64          `json:"p99Us"`
	MaxUs             int64          `json:"maxUs"`
	SamplesUs         []int64        `json:"samplesUs"`
}

// runLoad drives every target in turn, a round each, so that all of them meet the same noise at
// the same cadence. Rounds of one call at concurrency 1 alternate strictly.
func runLoad(args []string) (*loadResult, error) {
	var dialer dialFlags
	plan, err := parsePlan(args, &dialer)
	if err != nil {
		return nil, err
	}
	for _, t := range plan.targets {
		for range plan.connections {
			conn, err := dialer.dial(t.address)
			if err != nil {
				return nil, err
			}
			defer conn.Close()
			awaitReady(conn, 10*time.Second)
			t.conns = append(t.conns, conn)
		}
	}
	drive(plan)
	return collect(plan)
}

func parsePlan(args []string, dialer *dialFlags) (*loadPlan, error) {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	dialer.register(flags)
	plan := &loadPlan{}
	flags.IntVar(&plan.rounds, "rounds", 1, "rounds; in each, every target has its turn")
	flags.IntVar(&plan.roundCalls, "round-calls", 100, "calls to a target in one round")
	flags.IntVar(&plan.warmupCalls, "warmup-calls", 0, "calls to each target that are not counted")
	flags.IntVar(&plan.concurrency, "concurrency", 1, "calls at once")
	flags.IntVar(&plan.connections, "connections", 1, "connections to each target")
	flags.DurationVar(&plan.deadline, "deadline", 10*time.Second, "deadline of each call")
	flags.DurationVar(&plan.maxDuration, "max-duration", time.Minute, "start no call after this long")
	flags.BoolVar(&plan.samples, "samples", false, "print every latency")
	flags.StringVar(&plan.answersDir, "answers", "", "write each target's first answer to NAME.bin here")
	flags.Func("target", "NAME,HOST:PORT,METHOD,REQUEST-FILE; repeatable", func(text string) error {
		t, err := parseTarget(text)
		if err == nil {
			plan.targets = append(plan.targets, t)
		}
		return err
	})
	if err := parseFlags(flags, args); err != nil {
		return nil, err
	}
	if err := plan.check(); err != nil {
		return nil, err
	}
	return plan, nil
}

// check bounds what one run may do: a load generator must end by itself.
func (p *loadPlan) check() error {
	if len(p.targets) == 0 {
		return fmt.Errorf("expected at least one --target")
	}
	for _, bound := range []struct {
		flag     string
		got, max int
		min      int
	}{
		{"--rounds", p.rounds, 100_000, 1},
		{"--round-calls", p.roundCalls, 100_000, 1},
		{"--warmup-calls", p.warmupCalls, 100_000, 0},
		{"--concurrency", p.concurrency, 1000, 1},
		{"--connections", p.connections, 100, 1},
	} {
		if bound.got < bound.min || bound.got > bound.max {
			return fmt.Errorf("%s: expected %d to %d, got %d", bound.flag, bound.min, bound.max, bound.got)
		}
	}
	if p.maxDuration <= 0 || p.maxDuration > 10*time.Minute {
		return fmt.Errorf("--max-duration: expected more than 0 and at most 10m, got %s", p.maxDuration)
	}
	return nil
}

func drive(plan *loadPlan) {
	stopAt := time.Now().Add(plan.maxDuration)
	for _, t := range plan.targets {
		t.round(plan, plan.warmupCalls, stopAt)
		t.forget()
	}
	for range plan.rounds {
		for _, t := range plan.targets {
			t.round(plan, plan.roundCalls, stopAt)
		}
	}
}

func (t *target) round(plan *loadPlan, calls int, stopAt time.Time) {
	started := time.Now()
	if workers := min(plan.concurrency, calls); workers > 1 {
		var next atomic.Int64
		var group sync.WaitGroup
		for worker := range workers {
			group.Add(1)
			go func() {
				defer group.Done()
				for next.Add(1) <= int64(calls) && time.Now().Before(stopAt) {
					t.call(t.conns[worker%len(t.conns)], plan.deadline)
				}
			}()
		}
		group.Wait()
	} else {
		for i := 0; i < calls && time.Now().Before(stopAt); i++ {
			t.call(t.conns[i%len(t.conns)], plan.deadline)
		}
	}
	t.wall += time.Since(started)
}

func (t *target) call(conn *grpc.ClientConn, deadline time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	started := time.Now()
	answer, err := invoke(ctx, conn, t.path, t.request)
	elapsed := time.Since(started)

	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.samples = append(t.samples, elapsed.Microseconds())
	t.codes[status.Code(err).String()]++
	switch {
	case err != nil && t.firstError == "":
		t.firstError = status.Convert(err).Message()
	case err != nil:
	case t.firstAnswer == nil:
		t.firstAnswer = append([]byte{}, answer...)
	case !bytes.Equal(t.firstAnswer, answer):
		t.different++
		if len(t.firstAnswer) != len(answer) {
			t.differentSizes++
		}
	}
}

func collect(plan *loadPlan) (*loadResult, error) {
	result := &loadResult{Client: "grpc-go"}
	for _, t := range plan.targets {
		if plan.answersDir != "" && t.firstAnswer != nil {
			file := filepath.Join(plan.answersDir, t.name+".bin")
			if err := os.WriteFile(file, t.firstAnswer, 0o600); err != nil {
				return nil, fmt.Errorf("--answers: %w", err)
			}
		}
		result.Targets = append(result.Targets, t.result(plan.samples))
	}
	return result, nil
}

func (t *target) result(withSamples bool) targetResult {
	sorted := slices.Sorted(slices.Values(t.samples))
	result := targetResult{
		Name:             t.name,
		Calls:            len(sorted),
		Codes:            t.codes,
		FirstError:       t.firstError,
		DifferentAnswers: t.different,
		DifferentSizes:   t.differentSizes,
		WallUs:           t.wall.Microseconds(),
		P50Us:            percentile(sorted, 50),
		P90Us:            percentile(sorted, 90),
		P99Us:            percentile(sorted, 99),
		MaxUs:            percentile(sorted, 100),
		SamplesUs:        []int64{},
	}
	if t.wall > 0 {
		result.RequestsPerSecond = float64(len(sorted)) / t.wall.Seconds()
	}
	if withSamples {
		result.SamplesUs = sorted
	}
	return result
}

// percentile is the nearest rank of sorted samples; 0 when there are none.
func percentile(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(rank, 1)-1]
}
