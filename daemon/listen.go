package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/retinue-sched/retinue/daemon/driver"
)

// Listen says where clients and executors come in.
type Listen struct {
	// Socket is a Unix socket, made with mode 0600: whoever can open it is an administrator. Empty: none.
	Socket string
	// Address is a TCP address, host:port. Callers need a token. One that others can reach needs a certificate. Empty: none.
	Address string
	// CertFile is the certificate chain, in PEM, with which the TCP address speaks TLS.
	CertFile string
	// KeyFile is the certificate's private key.
	KeyFile string
	// TokenFile holds the hashes of client tokens, one a line: SHA256-HEX ROLE NAMESPACE NAME. It is read again when it changes.
	TokenFile string
}

// Executors is what every executor is given.
type Executors struct {
	// Address is where executors find the daemon, host:port or unix:///path. Empty: the TCP address, or else the Unix socket.
	Address string
	// Program is the command of executors whose profile names none.
	Program string
	// Image is the image of executors whose profile names none.
	Image string
	// CAFile is the file in the executor's container with the certificate authority of the daemon's certificate. Empty: the system's
	// authorities are asked, and on an address of this machine plain text is spoken.
	CAFile string
	// OrphanTimeout is how long the pods of an application that the daemon does not know are kept before they are deleted; only pods that this
	// daemon made are. 0: until somebody deletes them.
	OrphanTimeout time.Duration
}

const unixScheme = "unix://"

func (l Listen) validate() error {
	var errs []error
	if l.Socket == "" && l.Address == "" {
		errs = append(errs, errors.New("socket: neither a socket nor an address is given, so nobody could come in"))
	}
	if l.Socket != "" {
		if _, err := socketPath(l.Socket); err != nil {
			errs = append(errs, fmt.Errorf("socket: %w", err))
		}
	}
	if (l.CertFile == "") != (l.KeyFile == "") {
		errs = append(errs, errors.New("certFile: a certificate and its key belong together, and one is missing"))
	}
	if l.Address == "" {
		return errors.Join(errs...)
	}
	if _, _, err := net.SplitHostPort(l.Address); err != nil {
		errs = append(errs, fmt.Errorf("address: %q is not host:port", l.Address))
	} else if !loopback(l.Address) && l.CertFile == "" {
		errs = append(errs, fmt.Errorf("address: %q can be reached by others, and without TLS they would see tokens: give certFile and keyFile", l.Address))
	}
	return errors.Join(errs...)
}

// validate looks whether executors would find the daemon, and speak as it does: on an address of this machine they speak plain text unless they are
// given a certificate authority, on a Unix socket the daemon never speaks TLS, and everywhere else executors always do.
func (e Executors) validate(l Listen) error {
	if e.OrphanTimeout < 0 {
		return fmt.Errorf("orphanTimeout: %v is negative", e.OrphanTimeout)
	}
	if e.Address != "" && !strings.HasPrefix(e.Address, unixScheme) {
		if host, port, err := net.SplitHostPort(e.Address); err != nil || unspecified(host) || port == "" || port == "0" {
			return fmt.Errorf("address: %q is not where executors could find anybody: write host:port, or unix:// and the absolute path of a socket", e.Address)
		}
	}
	if path, isSocket := strings.CutPrefix(e.Address, unixScheme); isSocket && !filepath.IsAbs(path) {
		return fmt.Errorf("address: %q is not unix:// and an absolute path", e.Address)
	}
	address := e.address(l)
	host, _, err := net.SplitHostPort(address)
	switch onSocket := strings.HasPrefix(address, unixScheme); {
	case onSocket && e.CAFile != "":
		return fmt.Errorf("caFile: executors would speak TLS to the Unix socket %s, which does not: leave it out, or let them come by listen.address", address)
	case onSocket, err != nil:
		return nil //nolint:nilerr // that listen.address is malformed is said of listen.address
	case unspecified(host):
		return fmt.Errorf("address: listen.address %q is where the daemon listens, in an executor it would lead to the executor itself: write the address at which executors find the daemon", l.Address)
	case loopback(address) && l.CertFile != "" && e.CAFile == "":
		return fmt.Errorf("caFile: executors speak plain text to %s, and with listen.certFile the daemon speaks TLS there: give the certificate authority, or let them come by executors.address unix:// and the path of listen.socket", address)
	case e.Address == "" && l.CertFile == "" && e.CAFile != "":
		return fmt.Errorf("caFile: executors would speak TLS to %s, where the daemon does not: give listen.certFile and listen.keyFile, or leave it out", address)
	}
	return nil
}

// address is where executors find the daemon as far as the configuration tells: the port may still be 0.
func (e Executors) address(l Listen) string {
	switch {
	case e.Address != "":
		return e.Address
	case l.Address != "":
		return l.Address
	}
	path, err := socketPath(l.Socket)
	if err != nil {
		path = l.Socket // Validate says what is wrong with it
	}
	return unixScheme + path
}

// loopback reports whether only this machine can reach an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || (ip != nil && ip.IsLoopback()))
}

// unspecified reports whether a host is good for listening only.
func unspecified(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || (ip != nil && ip.IsUnspecified())
}

// listen opens the sockets, so that an address in use is known before anything starts, and the port is known to executors.
func (d *Daemon) listen() error {
	if d.cfg.Listen.Socket != "" {
		l, err := listenUnix(d.cfg.Listen.Socket)
		if err != nil {
			return err
		}
		d.listeners = append(d.listeners, driver.Listener{Listener: l, Trusted: true})
	}
	if d.cfg.Listen.Address == "" {
		return nil
	}
	var secure *tls.Config
	if d.cfg.Listen.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(d.cfg.Listen.CertFile, d.cfg.Listen.KeyFile)
		if err != nil {
			return fmt.Errorf("reading listen.certFile %s and listen.keyFile %s: %w", d.cfg.Listen.CertFile, d.cfg.Listen.KeyFile, err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	}
	l, err := net.Listen("tcp", d.cfg.Listen.Address)
	if err != nil {
		return fmt.Errorf("listening on listen.address %s: %w (choose another port, or stop what uses it)", d.cfg.Listen.Address, err)
	}
	d.listeners = append(d.listeners, driver.Listener{Listener: l, TLS: secure})
	return nil
}

// executorsAddress is what executors are given. The host is the one that was written: it is what the certificate is for. The port is the one
// that the system gave.
func (d *Daemon) executorsAddress() string {
	address := d.cfg.Executors.address(d.cfg.Listen)
	if d.cfg.Executors.Address != "" || d.cfg.Listen.Address == "" {
		return address
	}
	host, _, hostErr := net.SplitHostPort(address)
	_, port, portErr := net.SplitHostPort(d.listeners[len(d.listeners)-1].Addr().String())
	if hostErr != nil || portErr != nil {
		return address
	}
	return net.JoinHostPort(host, port)
}
