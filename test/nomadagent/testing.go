package nomadagent

import (
	"context"
	"errors"
	"testing"
)

// Start starts an agent that stops with the test. It skips the test where there can be
// none, and shows the end of the agent's log where the test fails.
func Start(t testing.TB, o Options) *Agent {
	t.Helper()
	a, err := Launch(t.Context(), o)
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s logged:\n%s", a.Name(), tail(a.backend.logs(), 8000))
		}
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a
}

// Both runs f as the subtests "in-process" and "real agent", each with its own agent; it
// skips the second where there is none. The kind of the options is ignored.
func Both(t *testing.T, o Options, f func(t *testing.T, a *Agent)) {
	t.Helper()
	for _, k := range []struct {
		name string
		kind Kind
	}{{"in-process", InProcess}, {"real agent", Real}} {
		t.Run(k.name, func(t *testing.T) {
			o := o
			o.Kind = k.kind
			f(t, Start(t, o))
		})
	}
}
