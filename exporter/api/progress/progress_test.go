package progress_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func full() *regexp.Regexp {
	return regexp.MustCompile(`epoch (?P<epoch>\S+?)(?:/(?P<total>\S+))?(?: loss (?P<loss>\S+))?(?: acc (?P<quality>\S+))?$`)
}

//go:fix inline
func TestMatcherReadsWhatALineSays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		line string
		want api.Report
		ok   bool
	}{
		{"everything", "epoch 3/10 loss 0.25 acc 0.9", api.Report{Epoch: 3, Total: 10, Loss: new(0.25), Quality: new(0.9)}, true},
		{"no total takes the configured one", "epoch 3 loss 1e-3", api.Report{Epoch: 3, Total: 7, Loss: new(0.001)}, true},
		{"a comma after the number is not part of it", "epoch 3, loss 0.5, x", api.Report{}, false},
		{"percent stays the number printed", "epoch 03/10 acc 93.5%", api.Report{Epoch: 3, Total: 10, Quality: new(93.5)}, true},
		{"a loss that is no number is missing", "epoch 2 loss n/a", api.Report{Epoch: 2, Total: 7}, true},
		{"NaN is missing, and the job has diverged", "epoch 2 loss nan", api.Report{Epoch: 2, Total: 7, Diverged: true}, true},
		{"infinity is missing, and the job has diverged", "epoch 2 loss -inf", api.Report{Epoch: 2, Total: 7, Diverged: true}, true},
		{"a number beyond all bounds is infinity", "epoch 2 loss 1e400", api.Report{Epoch: 2, Total: 7, Diverged: true}, true},
		{"a number with a comma is missing", "epoch 2 loss 0,46", api.Report{Epoch: 2, Total: 7}, true},
		{"hexadecimal is missing", "epoch 2 loss 0x1p3", api.Report{Epoch: 2, Total: 7}, true},
		{"epoch zero is none", "epoch 0/10", api.Report{}, false},
		{"a negative epoch is none", "epoch -4", api.Report{}, false},
		{"a fractional epoch is none", "epoch 1.5", api.Report{}, false},
		{"an epoch beyond reason is none", "epoch 99999999999999", api.Report{}, false},
		{"a total that is no number falls back", "epoch 4/many", api.Report{Epoch: 4, Total: 7}, true},
		{"another line", "hello", api.Report{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m, err := progress.NewMatcher(full(), 7)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := m.Match(tc.line)
			if ok != tc.ok {
				t.Fatalf("Match(%q): ok = %v, want %v", tc.line, ok, tc.ok)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Match(%q) (-want +got):\n%s", tc.line, diff)
			}
		})
	}
}

func TestMatcherStripsPunctuation(t *testing.T) {
	t.Parallel()
	m, err := progress.NewMatcher(regexp.MustCompile(`(?P<epoch>\d+): (?P<loss>\S+) (?P<quality>\S+)`), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := m.Match("1: 0.25, (0.75)")
	want := api.Report{Epoch: 1, Loss: new(0.25), Quality: new(0.75)}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("ok %v (-want +got):\n%s", ok, diff)
	}
}

func TestAPatternWithoutEpochIsRefused(t *testing.T) {
	t.Parallel()
	for _, p := range []*regexp.Regexp{nil, regexp.MustCompile(`loss (?P<loss>\S+)`)} {
		if _, err := progress.NewMatcher(p, 0); !errors.Is(err, progress.ErrPattern) {
			t.Errorf("NewMatcher(%v): got %v, want %v", p, err, progress.ErrPattern)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("epoch 3/10 loss 0.25 acc 0.9", 5)
	f.Add("epoch \xff/1 loss nan", -1)
	f.Fuzz(func(t *testing.T, line string, total int) {
		m, err := progress.NewMatcher(full(), total)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := m.Match(line)
		if !ok {
			return
		}
		if r.Epoch <= 0 || r.Total < 0 {
			t.Errorf("Match(%q) = %+v", line, r)
		}
		for _, v := range []*float64{r.Loss, r.Quality} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				t.Errorf("Match(%q): %v is not finite", line, *v)
			}
		}
	})
}

// follower runs Follow in the background and collects what it reports.
type follower struct {
	mu     sync.Mutex
	got    []api.Report
	fail   error
	failed int // reports that were refused
	cancel context.CancelFunc
	done   chan error
}

func (f *follower) report(_ context.Context, r api.Report) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		f.failed++
		return f.fail
	}
	if !r.Begins {
		f.got = append(f.got, r)
	}
	return nil
}

func (f *follower) setFail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

func (f *follower) refused() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *follower) epochs() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []int
	for _, r := range f.got {
		out = append(out, r.Epoch)
	}
	return out
}

func (f *follower) waitFor(t *testing.T, n int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for len(f.epochs()) < n {
		if time.Now().After(deadline) {
			t.Fatalf("got epochs %v, want %d of them", f.epochs(), n)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func follow(t *testing.T, cfg progress.Config) *follower {
	t.Helper()
	return followFailing(t, cfg, nil)
}

// followFailing begins with an exporter that answers with fail.
func followFailing(t *testing.T, cfg progress.Config, fail error) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{fail: fail, cancel: cancel, done: make(chan error, 1)}
	cfg.Pattern = full()
	cfg.Poll = 5 * time.Millisecond
	go func() { f.done <- progress.Follow(ctx, cfg, f.report) }()
	t.Cleanup(cancel)
	return f
}

func (f *follower) end(t *testing.T) error {
	t.Helper()
	f.cancel()
	select {
	case err := <-f.done:
		return err
	case <-time.After(2 * time.Minute):
		t.Fatal("Follow did not end")
		return nil
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	w, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestFollowReportsEachFinishedLineOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	f := follow(t, progress.Config{Path: path})
	write(t, path, "starting\nepoch 1/5 loss 0.5\nepo")
	f.waitFor(t, 1)
	write(t, path, "ch 2/5")
	write(t, path, " loss 0.4\r\nepoch 3/5\repoch 4")
	f.waitFor(t, 3)
	write(t, path, "/5\nepoch 5/5") // the last line is not finished
	f.waitFor(t, 4)
	if err := f.end(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4}, f.epochs()); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

func TestFollowStampsTheTimeOfReading(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	before := time.Now()
	f := follow(t, progress.Config{Path: path})
	write(t, path, "epoch 1\n")
	f.waitFor(t, 1)
	after := time.Now()
	if err := f.end(t); err != nil {
		t.Fatal(err)
	}
	if got := f.got[0].Time; got.Before(before) || got.After(after) {
		t.Errorf("time %v is not between %v and %v", got, before, after)
	}
}

func TestFollowBeginsAtTheOffsetAndDrainsAtTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	old := "epoch 1\nepoch 2\n"
	var text strings.Builder
	text.WriteString(old)
	for i := 3; i <= 2000; i++ {
		fmt.Fprintf(&text, "epoch %d\n", i)
	}
	write(t, path, text.String())
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // ended before it began: what is there is still reported
	f := &follower{}
	err := progress.Follow(ctx, progress.Config{Path: path, Offset: int64(len(old)), Pattern: full()}, f.report)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.epochs(); len(got) != 1998 || got[0] != 3 || got[1997] != 2000 {
		t.Errorf("got %d epochs, want 3 to 2000", len(got))
	}
}

func TestFollowSurvivesTruncationAndReplacement(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	write(t, path, "epoch 1 loss 0.123456\nhalf a li")
	f := follow(t, progress.Config{Path: path})
	f.waitFor(t, 1)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	write(t, path, "epoch 2\n")
	f.waitFor(t, 2)
	other := path + ".new"
	write(t, other, "epoch 3\n")
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	f.waitFor(t, 3)
	if err := f.end(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, f.epochs()); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

func TestALastLineWithoutAnEndCountsWhereItIsWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		whole      func() bool
		want       []int
	}{
		{"it is whole", "epoch 1\nepoch 2", func() bool { return true }, []int{1, 2}},
		{"it may be cut off", "epoch 11\nepoch 1", func() bool { return false }, []int{11}},
		{"no one knows", "epoch 11\nepoch 1", nil, []int{11}},
		{"nothing follows the last end", "epoch 1\n", func() bool { return true }, []int{1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "out")
			write(t, path, c.text)
			f := follow(t, progress.Config{Path: path, Whole: c.whole})
			f.waitFor(t, 1)
			if err := f.end(t); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, f.epochs()); diff != "" {
				t.Errorf("epochs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFollowSkipsLinesThatAreTooLong(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	write(t, path, strings.Repeat("x", 300<<10)+"epoch 1\nepoch 2\n")
	f := follow(t, progress.Config{Path: path})
	f.waitFor(t, 1)
	if err := f.end(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2}, f.epochs()); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

func TestReportsWaitForAnExporterThatIsAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	f := followFailing(t, progress.Config{Path: path}, api.ErrUnavailable)
	write(t, path, "epoch 1\nepoch 2\n")
	for deadline := time.Now().Add(time.Minute); f.refused() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing was reported")
		}
	}
	f.setFail(nil)
	f.waitFor(t, 2)
	if err := f.end(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2}, f.epochs()); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

func TestReportsThatCannotBeDeliveredAreAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out")
	write(t, path, "epoch 1\nepoch 2\n")
	for _, tc := range []struct {
		name  string
		fail  error
		drain time.Duration
	}{
		{"an exporter that stays away", api.ErrUnavailable, 50 * time.Millisecond},
		{"an exporter that refuses", api.ErrDenied, time.Minute}, // it is asked before that
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := followFailing(t, progress.Config{Path: path, Drain: tc.drain}, tc.fail)
			if err := f.end(t); !errors.Is(err, tc.fail) {
				t.Errorf("got %v, want %v", err, tc.fail)
			}
		})
	}
}

func TestFollowTellsOfEachLineThatSaysThatTheJobSaved(t *testing.T) {
	t.Parallel()
	done := regexp.MustCompile(`^saved\b`)
	both := regexp.MustCompile(`^saved epoch (?P<epoch>\d+)`)
	const text = "epoch 1\nsaved epoch 2\nnot saved\nsaved\nsav\r\nsaved early\r\nepoch 3\nsaved: the line has no end"
	for _, tc := range []struct {
		name    string
		pattern *regexp.Regexp
		want    []string
	}{
		{"beside the epochs, in the order of the lines", full(), []string{"1", "2", "saved", "saved", "saved", "3"}},
		{"alone", nil, []string{"saved", "saved", "saved"}},
		{"where one line says both, the epoch first", both, []string{"2", "saved", "saved", "saved"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "out")
			write(t, path, text)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			f := &follower{}
			before := time.Now()
			if err := progress.Follow(ctx, progress.Config{Path: path, Pattern: tc.pattern, Done: done, Total: 9}, f.report); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range f.got {
				if !r.Saved {
					got = append(got, fmt.Sprint(r.Epoch))
					continue
				}
				got = append(got, "saved")
				if r.Time.Before(before) || r.Epoch != 0 || r.Total != 0 || r.Loss != nil || r.Quality != nil {
					t.Errorf("%+v, want the time of reading and nothing else", r)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsFollowedForNothingIsRefused(t *testing.T) {
	t.Parallel()
	if err := progress.Follow(t.Context(), progress.Config{Path: "x"}, nil); !errors.Is(err, progress.ErrPattern) {
		t.Errorf("neither pattern nor done: %v, want %v", err, progress.ErrPattern)
	}
	bad := progress.Config{Path: "x", Pattern: regexp.MustCompile("no epoch"), Done: regexp.MustCompile("saved")}
	if err := progress.Follow(t.Context(), bad, nil); !errors.Is(err, progress.ErrPattern) {
		t.Errorf("a pattern without epochs beside done: %v, want %v", err, progress.ErrPattern)
	}
}
