// Package long marks the tests that take long: go test -short, and so make test, leaves
// them out, and make check runs them.
package long

import "testing"

// Skip skips a test under -short; why says what takes long.
func Skip(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(why + ": make check runs it")
	}
}
