package certs_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
)

func name(s *certs.Store) string { return s.Current().Certificate.Leaf.Subject.CommonName }

func TestFilesThatChangeAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := certstest.New(t, "site")
		f := ca.Files(t, certstest.Leaf{Name: "old"}, ca)
		var log strings.Builder
		s, err := certs.Open(f, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		first := s.Current()
		time.Sleep(time.Hour)
		if s.Current() != first || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("nothing changed, and it was read again:\n%s", &log)
		}
		// Half of a renewal: the certificate is new, the key is not.
		next := certstest.New(t, "next")
		fresh := next.Files(t, certstest.Leaf{Name: "new"}, next)
		replace(t, fresh.Cert, f.Cert)
		for range 3 {
			time.Sleep(time.Minute)
			if got := name(s); got != "old" {
				t.Errorf("half of a renewal was taken: %q", got)
			}
		}
		if n := strings.Count(log.String(), "cannot be used"); n != 1 {
			t.Errorf("said %d times, want once:\n%s", n, &log)
		}
		replace(t, fresh.Key, f.Key)
		replace(t, fresh.CA, f.CA)
		time.Sleep(time.Second)
		if got := name(s); got != "new" || s.Current().CA.Equal(first.CA) {
			t.Errorf("after the renewal it is %q, the authority the same: %v", got, s.Current().CA.Equal(first.CA))
		}
		// A file that goes away takes nothing with it.
		if err := os.Remove(f.Key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if got := name(s); got != "new" {
			t.Errorf("without the key's file it is %q", got)
		}
	})
}

// Some renew by a link to a folder, which is replaced at once.
func TestALinkIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := certstest.New(t, "site")
		dir := t.TempDir()
		link := filepath.Join(dir, "live")
		point := func(f certs.Files) {
			t.Helper()
			if err := errors.Join(os.Symlink(filepath.Dir(f.Cert), link+".new"), os.Rename(link+".new", link)); err != nil {
				t.Fatal(err)
			}
		}
		old := ca.Files(t, certstest.Leaf{Name: "old"}, ca)
		point(old)
		s, err := certs.Open(certs.Files{
			Cert: filepath.Join(link, filepath.Base(old.Cert)), Key: filepath.Join(link, filepath.Base(old.Key)), CA: filepath.Join(link, filepath.Base(old.CA)),
		}, nil)
		if err != nil || name(s) != "old" {
			t.Fatal(err)
		}
		point(ca.Files(t, certstest.Leaf{Name: "new"}, ca))
		time.Sleep(time.Second)
		if got := name(s); got != "new" {
			t.Errorf("it is %q", got)
		}
	})
}

func TestAnExpiredCertificateIsRemarkedOn(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	var log strings.Builder
	if _, err := certs.Open(ca.Files(t, certstest.Leaf{Name: "old", For: -time.Hour}, ca), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "expired") {
		t.Errorf("the log has\n%s", &log)
	}
}

func TestFilesThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	for _, tc := range []struct {
		name  string
		spoil func(t *testing.T, f *certs.Files)
		says  string
	}{
		{"no key is named", func(_ *testing.T, f *certs.Files) { f.Key = "" }, "are needed"},
		{"a file is missing", func(_ *testing.T, f *certs.Files) { f.CA += ".missing" }, "no such file"},
		{"a folder", func(_ *testing.T, f *certs.Files) { f.Cert = filepath.Dir(f.Cert) }, "no file of at most"},
		{"a key that all users can read", func(t *testing.T, f *certs.Files) {
			if err := os.Chmod(f.Key, 0o644); err != nil { //nolint:gosec // that is what must be refused
				t.Fatal(err)
			}
		}, "want 0600 or 0640"},
		{"the key of another", func(t *testing.T, f *certs.Files) { f.Key = ca.Files(t, certstest.Leaf{Name: "x"}, ca).Key }, "does not match"},
		{"no PEM", func(t *testing.T, f *certs.Files) { overwrite(t, f.Cert, "hello") }, "failed to find"},
		{"an authority without a certificate", func(t *testing.T, f *certs.Files) { overwrite(t, f.CA, "hello") }, "holds no certificate"},
		{"a file without end", func(t *testing.T, f *certs.Files) { overwrite(t, f.CA, strings.Repeat("x", 2<<20)) }, "no file of at most"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := ca.Files(t, certstest.Leaf{Name: "n1"}, ca)
			tc.spoil(t, &f)
			if _, err := certs.Open(f, nil); !errors.Is(err, certs.ErrFiles) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %v that says %q", err, certs.ErrFiles, tc.says)
			}
		})
	}
}

func replace(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
