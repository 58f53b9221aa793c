package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Await asks until the error is gone. The patience is long, for machines that are busy: only
// a test that fails waits for it.
func Await(t testing.TB, patience time.Duration, what string, ask func() error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(30 * time.Millisecond) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v: %v", what, patience, err)
		}
	}
}

// Until is Await for a question that is answered with yes or no.
func Until(t testing.TB, patience time.Duration, what string, is func() bool) {
	t.Helper()
	Await(t, patience, what, func() error {
		if !is() {
			return errNotYet
		}
		return nil
	})
}

// Plant writes files below a folder, by their paths there.
func Plant(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

var errNotYet = errors.New("not yet")
