package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

type certsResult struct {
	ServerDir string `json:"serverDir"`
	ClientDir string `json:"clientDir"`
}

// runCerts writes server/ and client/, each with ca.crt, tls.crt and tls.key, in the shape that
// Crossplane generates: one subject and one serial for CA and leaves, and no key identifiers.
func runCerts(args []string) (*certsResult, error) {
	flags := flag.NewFlagSet("certs", flag.ContinueOnError)
	out := flags.String("out", "", "directory to write to")
	serverName := flags.String("server-name", "function-wasm.crossplane-system", "name of the server")
	if err := parseFlags(flags, args); err != nil {
		return nil, err
	}
	if *out == "" {
		return nil, fmt.Errorf("--out: expected a directory")
	}
	caKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	ca := template()
	ca.IsCA = true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	result := &certsResult{filepath.Join(*out, "server"), filepath.Join(*out, "client")}
	for _, leaf := range []struct {
		dir, name string
		usage     x509.ExtKeyUsage
	}{
		{result.ServerDir, *serverName, x509.ExtKeyUsageServerAuth},
		{result.ClientDir, "crossplane.crossplane-system", x509.ExtKeyUsageClientAuth},
	} {
		if err := writeLeaf(leaf.dir, leaf.name, leaf.usage, ca, caKey, caDER); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func template() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(2022),
		Subject: pkix.Name{
			CommonName:   "Crossplane",
			Organization: []string{"Crossplane"},
			Country:      []string{"Earth"},
			Province:     []string{"Earth"},
			Locality:     []string{"Earth"},
		},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(10, 0, 0),
		BasicConstraintsValid: true,
	}
}

func writeLeaf(dir, name string, usage x509.ExtKeyUsage, ca *x509.Certificate, caKey *rsa.PrivateKey, caDER []byte) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	leaf := template()
	leaf.DNSNames = []string{name}
	leaf.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment
	leaf.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for file, block := range map[string]*pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: caDER},
		"tls.crt": {Type: "CERTIFICATE", Bytes: der},
		"tls.key": {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)},
	} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
