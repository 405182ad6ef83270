package main

import (
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

type callResult struct {
	Code        string `json:"code"`
	Message     string `json:"message"`
	ElapsedUs   int64  `json:"elapsedUs"`
	SizeBytes   int    `json:"sizeBytes"`
	ResponseHex string `json:"responseHex"`
}

// runCall makes one call, with a deadline, and cancels it when asked to.
func runCall(args []string) (*callResult, error) {
	flags := flag.NewFlagSet("call", flag.ContinueOnError)
	var dialer dialFlags
	dialer.register(flags)
	address := flags.String("address", "", "host:port of the server")
	method := flags.String("method", "v1", "v1, v1beta1 or a full path")
	requestFile := flags.String("request", "", "file with the request's bytes")
	deadline := flags.Duration("deadline", 2*time.Minute, "the call's deadline")
	cancelAfter := flags.Duration("cancel-after", 0, "cancel the call after this long; 0 = never")
	connect := flags.Duration("connect-within", 10*time.Second, "be connected before the call starts")
	if err := parseFlags(flags, args); err != nil {
		return nil, err
	}
	path, err := methodPath(*method)
	if err != nil {
		return nil, err
	}
	request, err := os.ReadFile(*requestFile)
	if err != nil {
		return nil, fmt.Errorf("--request: %w", err)
	}
	conn, err := dialer.dial(*address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	awaitReady(conn, *connect)

	ctx, cancel := context.WithTimeout(context.Background(), *deadline)
	defer cancel()
	if *cancelAfter > 0 {
		time.AfterFunc(*cancelAfter, cancel)
	}
	started := time.Now()
	response, err := invoke(ctx, conn, path, request)
	elapsed := time.Since(started)
	return &callResult{
		Code:        status.Code(err).String(),
		Message:     status.Convert(err).Message(),
		ElapsedUs:   elapsed.Microseconds(),
		SizeBytes:   len(response),
		ResponseHex: hex.EncodeToString(response),
	}, nil
}

func invoke(ctx context.Context, conn *grpc.ClientConn, path string, request []byte) ([]byte, error) {
	var response []byte
	err := conn.Invoke(ctx, path, &request, &response)
	return response, err
}
