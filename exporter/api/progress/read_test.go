package progress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

func reading() progress.Config {
	return progress.Config{Pattern: full(), Done: regexp.MustCompile(`^saved `), Total: 7}
}

// taken collects what Read reports.
type taken struct {
	mu    sync.Mutex
	got   []api.Report
	began int // how often it was reported that the reading begins
}

func (c *taken) report(_ context.Context, r api.Report) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Begins {
		c.began++
		return nil
	}
	c.got = append(c.got, r)
	return nil
}

func untimed() cmp.Option { return cmpopts.IgnoreFields(api.Report{}, "Time") }

func TestAStreamIsReadLineByLine(t *testing.T) {
	t.Parallel()
	text := "hello\nepoch 1/3 loss 0.5\nsaved to x\nbar\repoch 2/3\r\n" + strings.Repeat("x", 100<<10) + "epoch 9\nepoch 3/3\nepoch 4/3"
	want := []api.Report{
		{Epoch: 1, Total: 3, Loss: new(0.5), Nth: 1}, {Saved: true, Nth: 1}, {Epoch: 2, Total: 3, Nth: 2}, {Epoch: 3, Total: 3, Nth: 3},
	}
	for name, r := range map[string]io.Reader{
		"at once":        strings.NewReader(text),
		"byte by byte":   iotest.OneByteReader(strings.NewReader(text)),
		"with its error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c taken
			began := time.Now()
			if err := progress.Read(t.Context(), reading(), r, c.report); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, c.got, untimed()); diff != "" || c.began != 1 {
				t.Errorf("%d times it began; reports (-want +got):\n%s", c.began, diff)
			}
			for _, r := range c.got {
				if r.Time.Before(began) || r.Time.After(time.Now()) {
					t.Errorf("a line was read at %v", r.Time)
				}
			}
		})
	}
}

func TestAStreamThatFailsIsAnErrorAndWhatItGaveCounts(t *testing.T) {
	t.Parallel()
	cut := errors.New("connection reset")
	var c taken
	err := progress.Read(t.Context(), reading(), io.MultiReader(strings.NewReader("epoch 1\nepoch 2"), iotest.ErrReader(cut)), c.report)
	if !errors.Is(err, cut) {
		t.Errorf("got %v, want %v", err, cut)
	}
	if diff := cmp.Diff([]api.Report{{Epoch: 1, Total: 7, Nth: 1}}, c.got, untimed()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if err := progress.Read(t.Context(), progress.Config{}, strings.NewReader(""), c.report); !errors.Is(err, progress.ErrPattern) {
		t.Errorf("nothing to look for: %v, want %v", err, progress.ErrPattern)
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	body, job := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = body.CloseWithError(ctx.Err()) }) // as an HTTP answer does
	defer stop()
	var c taken
	done := make(chan error, 1)
	go func() { done <- progress.Read(ctx, reading(), body, c.report) }()
	if _, err := io.WriteString(job, "epoch 1\nepoch 2\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(job, "epo"); err != nil { // what came before has been read
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("got %v", err)
	}
	if len(c.got) != 2 {
		t.Errorf("reports %+v, want two", c.got)
	}
}

func TestAJobThatBeginsIsWaitedForAndOneThatIsNotThereIsNot(t *testing.T) {
	t.Parallel()
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "epoch %d\n", i+1)
		}
		return b.String()
	}
	for _, tc := range []struct {
		name   string
		known  time.Duration // after which the exporter knows the job
		took   int           // reports
		within time.Duration
		want   error
	}{
		{"at once", 0, 5, 0, nil},
		{"after some seconds", 4 * time.Second, 5, 8 * time.Second, nil},
		{"never", time.Hour, 0, 15 * time.Second, api.ErrNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var c taken
				cfg := reading()
				cfg.Drain = time.Hour
				err := progress.Read(t.Context(), cfg, strings.NewReader(lines(5)), func(ctx context.Context, r api.Report) error {
					if time.Since(began) < tc.known {
						return fmt.Errorf("%w: nomad/x", api.ErrNotFound)
					}
					return c.report(ctx, r)
				})
				if took := time.Since(began); !errors.Is(err, tc.want) || len(c.got) != tc.took || took > tc.within {
					t.Errorf("%d reports in %v, %v; want %d within %v, %v", len(c.got), took, err, tc.took, tc.within, tc.want)
				}
			})
		})
	}
}

// However a stream is cut into pieces, its lines are the same.
func TestTheCutsOfAStreamDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var text bytes.Buffer
		epochs := rapid.IntRange(0, 40).Draw(rt, "epochs")
		for n := range epochs {
			text.WriteString(rapid.SampledFrom([]string{"", "noise\n", "half a bar\r", "\n\n"}).Draw(rt, "before"))
			fmt.Fprintf(&text, "epoch %d\n", n+1)
		}
		pieces := rapid.SliceOfN(rapid.IntRange(1, 9), 1, 9).Draw(rt, "pieces")
		var c taken
		if err := progress.Read(t.Context(), reading(), &pieced{text.Bytes(), pieces, 0}, c.report); err != nil {
			rt.Fatal(err)
		}
		if len(c.got) != epochs {
			rt.Fatalf("%d reports of %d epochs", len(c.got), epochs)
		}
		for i, r := range c.got {
			if r.Epoch != i+1 || r.Nth != i+1 {
				rt.Fatalf("report %d is %+v", i, r)
			}
		}
	})
}

// pieced gives so many bytes at a time, by turns.
type pieced struct {
	rest   []byte
	pieces []int
	turn   int
}

func (p *pieced) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.pieces[p.turn%len(p.pieces)], len(p.rest))])
	p.turn++
	p.rest = p.rest[n:]
	return n, nil
}
