package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"pitchpipe/exporter/api"
)

// fake is an exporter with settable answers.
type fake struct {
	Meter // of what it is not asked here

	mu     sync.Mutex
	err    error
	hangs  bool // until its caller gives up
	mute   bool // it describes itself, and hangs when it is asked for samples
	calls  int
	closed bool
	heard  []string // reports
}

func (f *fake) answer(ctx context.Context) error {
	f.mu.Lock()
	f.calls++
	err, hangs := f.err, f.hangs
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", api.ErrUnavailable, ctx.Err())
	}
	return err
}

func (f *fake) Node(ctx context.Context) (api.Node, error) {
	return api.Node{MachineKind: "m", Cores: 2}, f.answer(ctx)
}

func (f *fake) Window(ctx context.Context, job string, attempt int, _ uint64) (api.Window, error) {
	f.mu.Lock()
	mute := f.mute
	f.mu.Unlock()
	if mute {
		<-ctx.Done()
		return api.Window{}, fmt.Errorf("%w: %w", api.ErrUnavailable, ctx.Err())
	}
	return api.Window{Job: api.Job{ID: job, Attempt: attempt, Saves: 3, Saved: time.Unix(1, 0)}, Now: time.Unix(2, 0)}, f.answer(ctx)
}

func (f *fake) ReportFor(ctx context.Context, job string, attempt int, r api.Report) error {
	if err := f.answer(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard = append(f.heard, fmt.Sprintf("%s.%d epoch %d", job, attempt, r.Epoch))
	return nil
}

func (f *fake) set(err error, hangs bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.hangs = err, hangs
}

func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// said is a log that tests read.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) lines() (n int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.b.String(), "\n"), s.b.String()
}

func logging(s *said) *slog.Logger { return slog.New(slog.NewTextHandler(s, nil)) }

// cluster has a fake exporter on each node.
func cluster(log *slog.Logger, exporters map[string]*fake) *Exporters {
	e := start(Config{Pattern: "unix:/run/{node}.sock", Log: log})
	e.open = func(node string) (Meter, func(), error) {
		f, ok := exporters[node]
		if !ok {
			return nil, nil, errors.New("no such node in this test")
		}
		return f, func() { f.mu.Lock(); defer f.mu.Unlock(); f.closed = true }, nil
	}
	return e
}
