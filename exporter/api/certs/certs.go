package certs

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Files are where the parts are, each in PEM.
type Files struct {
	Cert string // the certificate, its intermediates after it
	Key  string // its private key, which others must not be able to read
	CA   string // certificates of the authorities that are believed
}

// Material is what the files held at a certain time. It does not change.
type Material struct {
	Certificate tls.Certificate
	CA          *x509.CertPool
}

// Store follows three files. It is safe for concurrent use. Use Open.
type Store struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	read   time.Time // when the files were last read
	parts  [][]byte  // what is in use
	now    *Material
	failed string
}

// ErrFiles means that the files are not what they have to be.
var ErrFiles = errors.New("certificates")

const (
	maxFile   = 1 << 20 // a bundle of a hundred authorities is smaller
	readAgain = time.Second
)

// Open reads the files. It fails with ErrFiles where one is not given, cannot be read, does
// not belong to the others, or is a key that all users can read.
func Open(files Files, log *slog.Logger) (*Store, error) {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	s := &Store{files: files, log: log}
	if err := s.refresh(); err != nil {
		return nil, err
	}
	return s, nil
}

// Current is what the files hold. Where they changed and cannot be used, as in the moment
// between the writing of a certificate and that of its key, it is what they held before.
func (s *Store) Current() *Material {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := time.Since(s.read); since >= 0 && since < readAgain {
		return s.now
	}
	text := ""
	if err := s.refresh(); err != nil {
		text = err.Error()
	}
	if text != s.failed && text != "" {
		s.log.Warn("the certificates changed and cannot be used; the earlier ones stay", "error", text)
	}
	s.failed = text
	return s.now
}

// refresh takes over what the files hold now.
func (s *Store) refresh() error {
	s.read = time.Now()
	parts, err := s.files.contents()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFiles, err)
	}
	if slices.EqualFunc(parts, s.parts, bytes.Equal) {
		return nil
	}
	pair, err := tls.X509KeyPair(parts[0], parts[1])
	if err != nil {
		return fmt.Errorf("%w: %s with %s: %w", ErrFiles, s.files.Cert, s.files.Key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(parts[2]) {
		return fmt.Errorf("%w: %s holds no certificate", ErrFiles, s.files.CA)
	}
	s.parts, s.now = parts, &Material{Certificate: pair, CA: pool}
	log := s.log.Info
	if s.read.After(pair.Leaf.NotAfter) {
		log = s.log.Warn
	}
	log("certificate read", "file", s.files.Cert, "subject", pair.Leaf.Subject.String(), "not_after", pair.Leaf.NotAfter, "expired", s.read.After(pair.Leaf.NotAfter))
	return nil
}

func (f Files) contents() ([][]byte, error) {
	var parts [][]byte
	for _, path := range []string{f.Cert, f.Key, f.CA} {
		if path == "" {
			return nil, errors.New("a certificate, its key and the authority of the other side are needed")
		}
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() || st.Size() > maxFile {
			return nil, fmt.Errorf("%s is no file of at most %d bytes", path, maxFile)
		}
		if path == f.Key && st.Mode().Perm()&0o007 != 0 {
			return nil, fmt.Errorf("every user can use the key %s: its mode is %v, want 0600 or 0640", path, st.Mode().Perm())
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parts = append(parts, data)
	}
	return parts, nil
}
