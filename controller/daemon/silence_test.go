package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pitchpipe/controller/reconcile"
	"pitchpipe/exporter/api"
)

// broken is an exporter that answers every call with an error.
type broken struct{ err error }

func (b *broken) Node(context.Context) (api.Node, error) { return api.Node{Cores: 2}, b.err }

func (b *broken) Window(context.Context, string, int, uint64) (api.Window, error) {
	return api.Window{}, b.err
}

func TestTheOperatorHearsOnceThatTheExporterIsSilent(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	meter := &broken{}
	r := &rooms{driver: listing{}, meter: meter, log: slog.New(slog.NewTextHandler(&said, nil))}
	unavailable := fmt.Errorf("%w: no socket", api.ErrUnavailable)
	for _, c := range []struct {
		name  string
		err   error
		lines int
		says  string
	}{
		{"it answers", nil, 0, ""},
		{"it falls silent", unavailable, 1, "level=WARN"},
		{"it stays silent", unavailable, 1, "no socket"},
		{"it is back and does not know the job", api.ErrNotFound, 2, "answers again"},
		{"it falls silent again", unavailable, 3, "level=WARN"},
	} {
		meter.err = c.err
		if _, err := r.measure(t.Context(), reconcile.MeasureRequest{Job: "j", Attempt: 1}); !errors.Is(err, c.err) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.err)
		}
		if lines := strings.Count(said.String(), "\n"); lines != c.lines || !strings.Contains(said.String(), c.says) {
			t.Errorf("%s: %d lines, want %d with %q:\n%s", c.name, lines, c.lines, c.says, said.String())
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	meter.err = nil
	if _, err := r.measure(gone, reconcile.MeasureRequest{Job: "j", Attempt: 1}); err != nil {
		t.Error(err)
	}
	if strings.Count(said.String(), "\n") != 3 {
		t.Errorf("a call that was given up counted as an answer:\n%s", said.String())
	}
}
