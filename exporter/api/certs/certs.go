package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files are where the parts are, each in PEM.
type Files struct {
	Cert string // the certificate, its intermediates after it
	Key  string // its private key, which others must not be able to read
	CA   string // certificates of the authorities that are believed
}

// Material is what the files held at one time. It does not change.
type Material struct {
	Certificate tls.Certificate
	CA          *x509.CertPool
}

// Store follows three files. It is safe for concurrent use. Use Open.
type Store struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamps stamps
	now    *Material
	failed string
}

// ErrFiles means that the files are not what they have to be.
var ErrFiles = errors.New("certificates")

// maxFile bounds each file: a bundle of a hundred authorities is smaller.
const maxFile = 1 << 20

// lookAgain is how often the files are looked at.
const lookAgain = time.Second

// Open reads the files: ErrFiles where one is not given, cannot be read, does not
// belong to the others, or is a key that all users can read.
func Open(files Files, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Store{files: files, log: log}
	var err error
	if s.stamps, err = files.stamp(); err != nil {
		return nil, err
	}
	if s.now, err = files.read(); err != nil {
		return nil, err
	}
	s.looked = time.Now()
	s.tell("certificate read")
	return s, nil
}

// Current is what the files hold. Where they changed and cannot be used, as in the
// moment between the writing of a certificate and that of its key, it is what they
// held before.
func (s *Store) Current() *Material {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := time.Since(s.looked); since >= 0 && since < lookAgain {
		return s.now
	}
	s.looked = time.Now()
	fresh, err := s.files.stamp()
	if err == nil && fresh == s.stamps {
		return s.now
	}
	var m *Material
	if err == nil {
		m, err = s.files.read()
	}
	if err != nil {
		if err.Error() != s.failed {
			s.log.Warn("the certificates changed and cannot be used; the earlier ones stay", "error", err)
		}
		s.failed = err.Error()
		return s.now
	}
	s.now, s.stamps, s.failed = m, fresh, ""
	s.tell("certificate read again")
	return s.now
}

func (s *Store) tell(what string) {
	leaf := s.now.Certificate.Leaf
	log := s.log.Info
	if time.Now().After(leaf.NotAfter) {
		log = s.log.Warn
		what += ", and it has expired"
	}
	log(what, "file", s.files.Cert, "subject", leaf.Subject.String(), "not_after", leaf.NotAfter)
}

func (f Files) read() (*Material, error) {
	var parts [3][]byte
	for i, path := range []string{f.Cert, f.Key, f.CA} {
		st, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFiles, err)
		}
		if !st.Mode().IsRegular() || st.Size() > maxFile {
			return nil, fmt.Errorf("%w: %s is no file of at most %d bytes", ErrFiles, path, maxFile)
		}
		if path == f.Key && st.Mode().Perm()&0o007 != 0 {
			return nil, fmt.Errorf("%w: every user can use the key %s: its mode is %v, want 0600 or 0640", ErrFiles, path, st.Mode().Perm())
		}
		if parts[i], err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFiles, err)
		}
	}
	pair, err := tls.X509KeyPair(parts[0], parts[1])
	if err != nil {
		return nil, fmt.Errorf("%w: %s with %s: %w", ErrFiles, f.Cert, f.Key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(parts[2]) {
		return nil, fmt.Errorf("%w: %s holds no certificate", ErrFiles, f.CA)
	}
	return &Material{Certificate: pair, CA: pool}, nil
}
