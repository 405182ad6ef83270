package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Crossplane's own: an unreachable function makes a call wait until its deadline.
const serviceConfig = `{
	"loadBalancingConfig": [{"round_robin": {}}],
	"methodConfig": [{"name": [{}], "waitForReady": true}]
}`

// The two paths that Crossplane calls.
var methods = map[string]string{
	"v1":      "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
	"v1beta1": "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction",
}

// methodPath takes v1, v1beta1 or a full path.
func methodPath(name string) (string, error) {
	if path, ok := methods[name]; ok {
		return path, nil
	}
	if name != "" && name[0] == '/' {
		return name, nil
	}
	return "", fmt.Errorf("method %q: expected v1, v1beta1 or a path that starts with /", name)
}

// dialFlags are the flags of every command that connects.
type dialFlags struct{ cert, key, ca, serverName string }

func (d *dialFlags) register(flags *flag.FlagSet) {
	flags.StringVar(&d.ca, "ca", "", "PEM file of the server's CA; plaintext without it")
	flags.StringVar(&d.cert, "cert", "", "PEM file of the client certificate")
	flags.StringVar(&d.key, "key", "", "PEM file of the client key")
	flags.StringVar(&d.serverName, "server-name", "", "name the server certificate must carry")
}

func (d *dialFlags) dial(address string) (*grpc.ClientConn, error) {
	creds, err := d.credentials()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("dns:///"+address,
		grpc.WithTransportCredentials(creds), grpc.WithDefaultServiceConfig(serviceConfig))
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	conn.Connect()
	return conn, nil
}

func (d *dialFlags) credentials() (credentials.TransportCredentials, error) {
	if d.ca == "" {
		if d.cert != "" || d.key != "" || d.serverName != "" {
			return nil, errors.New("--cert, --key and --server-name need --ca")
		}
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(d.ca)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca: no certificate in %s", d.ca)
	}
	config := &tls.Config{RootCAs: roots, ServerName: d.serverName, MinVersion: tls.VersionTLS12}
	if d.cert != "" || d.key != "" {
		pair, err := tls.LoadX509KeyPair(d.cert, d.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return credentials.NewTLS(config), nil
}
