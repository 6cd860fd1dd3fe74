package executor

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	apiv1 "github.com/retinue-sched/retinue/api/v1"
)

// dial readies a connection for one session. Each session has its own, so that how long to wait between two is decided in one place.
func (a *Agent) dial() (*grpc.ClientConn, error) {
	creds, err := a.credentials()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(a.cfg.Address,
		grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(apiv1.MaxMessage), grpc.MaxCallSendMsgSize(apiv1.MaxMessage)),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(), // a proxy for the tasks' sake must not come between executor and daemon
		grpc.WithUserAgent("retinue-executor/"+a.cfg.Version),
	)
	if err != nil {
		return nil, fmt.Errorf("preparing to call %s: %w", a.cfg.Address, err)
	}
	return conn, nil
}

// credentials reads the certificates anew each time: they may have been replaced.
func (a *Agent) credentials() (credentials.TransportCredentials, error) {
	if a.cfg.CAFile == "" {
		if a.cfg.private() {
			return insecure.NewCredentials(), nil
		}
		return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13}), nil
	}
	pem, err := os.ReadFile(a.cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates that vouch for the daemon: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading the certificates that vouch for the daemon: %s holds none in PEM", a.cfg.CAFile)
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots}), nil
}
