package main

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// awaitReady keeps connecting out of what is timed. A connection that never comes is not an error
// here: the call that follows waits for it until its own deadline, as Crossplane's does.
func awaitReady(conn *grpc.ClientConn, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(ctx, state) {
			return
		}
	}
}
