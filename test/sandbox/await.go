package sandbox

import (
	"errors"
	"testing"
	"time"
)

// Await asks until there is no error. The patience is long, for machines that are busy: only
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

var errNotYet = errors.New("not yet")
