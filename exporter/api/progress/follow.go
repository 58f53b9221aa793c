package progress

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"pitchpipe/exporter/api"
)

// Config says what to follow. Path is required for Follow, and Pattern or Done or both.
type Config struct {
	Path    string         // the job's output; it need not exist yet; of no use to Read
	Offset  int64          // where to begin, in bytes: what was there before belongs to earlier attempts; of no use to Read
	Pattern *regexp.Regexp // named groups epoch, total, loss, quality; nil = no epochs are reported
	Done    *regexp.Regexp // of a line that says that the job saved a checkpoint; nil = none says so
	Total   int            // epochs in all where no line says it, 0 = unknown
	// Whole reports, at the end, whether what follows the last end of a line is a line too; nil = no. What a job
	// wrote that was killed may be cut off: 1 of 12. Of no use to Read.
	Whole func() bool

	Poll   time.Duration // how often to look where no notification comes, 0 = 100 ms
	Drain  time.Duration // how long to go on delivering after the end, 0 = 3 s
	Logger *slog.Logger  // nil = silent
}

// Follow reports that it begins. Then it reads the file as it grows and calls report for each line
// that matches Pattern, Done or both, until ctx ends. At last it reads what is there, delivers it,
// and returns. A report that fails is tried again until Drain after the end, unless the exporter denied
// it or called it invalid; what could not be delivered is the error. A file that
// shrinks or is replaced is read from its beginning.
func Follow(ctx context.Context, cfg Config, report func(context.Context, api.Report) error) error {
	cfg = cfg.filled()
	return cfg.deliver(ctx, 0, report, func(see func(line []byte)) error {
		if cfg.Path == "" {
			return errors.New("progress: no file to follow")
		}
		t := &tail{path: cfg.Path, offset: max(cfg.Offset, 0), seen: see}
		defer t.close()
		return watch(ctx, cfg, t)
	})
}

// begins is how long an exporter may take to find a job: it looks for jobs several times a second,
// and a loaded node takes its time.
const begins = 10 * time.Second

// Read is Follow for a process outside the job that gets its output as a stream: it reads from
// output until that ends, fails or ctx ends, and calls report for each line that matches, with the
// time at which it was read and its count (Report.Nth); Path, Offset and Poll's use for looking are
// Follow's alone. What was read is then delivered for at most Drain. The end of the stream is not
// an error. A failed stream is one, and so is a report that could not be delivered. A line that is
// cut off by the end is not reported.
//
// report is usually api.Client.ReportFor. A report that it answers with api.ErrNotFound
// is tried again for ten seconds, since the job may just begin, then given up; others as
// Follow does.
//
// Reading the same output from its beginning again, after a restart, does no harm: the
// exporter knows by the count what was reported before. output.Read has to return when ctx
// ends, as the body of an HTTP answer does.
func Read(ctx context.Context, cfg Config, output io.Reader, report func(context.Context, api.Report) error) error {
	return cfg.filled().deliver(ctx, begins, report, func(see func(line []byte)) error { return Lines(ctx, output, see) })
}

// Lines calls see for each line of an output that a line feed or a carriage return ends, until the
// output ends, fails or ctx ends. It skips lines of more than 64 KiB.
func Lines(ctx context.Context, output io.Reader, see func(line []byte)) error {
	var cut lines
	buf := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := output.Read(buf)
		cut.feed(buf[:n], see)
		switch {
		case errors.Is(err, io.EOF), err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("progress: read the output: %w", err)
		}
	}
	return nil
}

func (c Config) filled() Config {
	c.Poll = cmp.Or(max(c.Poll, 0), 100*time.Millisecond)
	c.Drain = cmp.Or(max(c.Drain, 0), 3*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// deliver reads, delivers what was read meanwhile, and goes on delivering for a while after the
// reading has ended. Where a job may be beginning, its lines are counted.
func (c Config) deliver(ctx context.Context, begins time.Duration, report func(context.Context, api.Report) error, read func(see func(line []byte)) error) error {
	m, err := NewMatcher(c.Pattern, c.Total)
	if err != nil && (c.Pattern != nil || c.Done == nil) {
		return err
	}
	out := &outbox{log: c.Logger, pause: c.Poll, report: report, begins: begins, waiting: make(chan api.Report, maxWaiting)}
	delivered := make(chan error, 1)
	last, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { delivered <- out.run(last) }()
	var first sync.WaitGroup
	reading, ended := context.WithCancel(ctx)
	if c.Pattern != nil {
		first.Go(func() { out.begin(reading) })
	}
	count := map[bool]int{} // of epochs, and of what was saved
	put := func(r api.Report) {
		r.Time = time.Now()
		if begins > 0 {
			count[r.Saved]++
			r.Nth = count[r.Saved]
		}
		out.put(r)
	}
	err = read(func(line []byte) {
		if m != nil {
			if r, ok := m.Match(string(line)); ok {
				put(r)
			}
		}
		if c.Done != nil && c.Done.Match(line) {
			put(api.Report{Saved: true})
		}
	})
	ended()
	first.Wait()
	close(out.waiting)
	end := time.AfterFunc(c.Drain, stop)
	defer end.Stop()
	return errors.Join(err, <-delivered)
}

// ErrPattern means that the pattern cannot name an epoch.
var ErrPattern = errors.New("progress pattern needs a named group (?P<epoch>…)")

// Matcher turns lines into reports.
type Matcher struct {
	pattern *regexp.Regexp
	total   int // where no line says it
}

// NewMatcher checks that the pattern has a group named epoch; total is what a
// report says where the line does not, 0 = unknown.
func NewMatcher(pattern *regexp.Regexp, total int) (*Matcher, error) {
	if pattern == nil || pattern.SubexpIndex("epoch") < 0 {
		return nil, fmt.Errorf("%w: %v", ErrPattern, pattern)
	}
	return &Matcher{pattern, max(total, 0)}, nil
}

// Match reads one line. It matches only where the epoch is a positive integer; a
// loss or quality that is absent, not a number, or not finite stays nil, and so
// does no harm to the mark. Report.Time is left to the caller.
func (m *Matcher) Match(line string) (api.Report, bool) {
	groups := m.pattern.FindStringSubmatch(line)
	if groups == nil {
		return api.Report{}, false
	}
	group := func(name string) string {
		if i := m.pattern.SubexpIndex(name); i >= 0 {
			// \S+ catches more beside a number: "0.31," "(0.31)" "93.1%". A percentage stays the number that was printed.
			return strings.Trim(groups[i], " \t,;:=()[]{}%\"'")
		}
		return ""
	}
	epoch, ok := positive(group("epoch"))
	if !ok {
		return api.Report{}, false
	}
	loss, lost := number(group("loss"))
	quality, spoilt := number(group("quality"))
	r := api.Report{Epoch: epoch, Total: m.total, Loss: loss, Quality: quality, Diverged: lost || spoilt}
	if total, ok := positive(group("total")); ok {
		r.Total = total
	}
	return r, true
}

func positive(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n > 0
}

// number reads what a job printed. It has diverged if that is NaN or infinity, as C, Python
// and Java spell them.
func number(text string) (v *float64, diverged bool) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), strings.ContainsAny(text, "xX_"): // Go's own notations no job means
		return nil, false
	case math.IsNaN(n) || math.IsInf(n, 0):
		return nil, true
	}
	return &n, false
}

// maxWaiting bounds the reports that wait for an exporter that is away.
const maxWaiting = 4096

// outbox delivers reports in order, one at a time, so that the reading never
// waits for the exporter and each line keeps the time at which it was read.
type outbox struct {
	log     *slog.Logger
	pause   time.Duration
	report  func(context.Context, api.Report) error
	begins  time.Duration // how long a job that is not known may be beginning; 0 = without end
	absent  bool          // it is not: what comes is tried once
	waiting chan api.Report
	lost    int // the oldest ones, when as many waited as there is room for
}

func (o *outbox) put(r api.Report) {
	for {
		select {
		case o.waiting <- r:
			return
		default:
		}
		select {
		case <-o.waiting:
			o.lost++
		default:
		}
	}
}

// run delivers until the reading has ended and nothing waits, or ctx ends, which it does after
// the reading.
func (o *outbox) run(ctx context.Context) error {
	var refused error
	for r := range o.waiting {
		err := o.deliver(ctx, r)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return errors.Join(refused, o.losses(1+len(o.waiting)), err)
		case refused == nil:
			refused = err
			o.log.Warn("progress report refused", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		default:
			o.log.Debug("progress report refused", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		}
	}
	return errors.Join(refused, o.losses(0))
}

// begin reports that the reading begins, concurrently with the reading, until that ends. The
// exporter may not have found the job yet, and an older one does not know such a report.
func (o *outbox) begin(ctx context.Context) {
	r := api.Report{Begins: true, Time: time.Now()}
	for pause := o.pause; ; pause = min(2*pause, 2*time.Second) {
		err := o.report(ctx, r)
		if err == nil || errors.Is(err, api.ErrInvalid) || !errors.Is(err, api.ErrUnavailable) && time.Since(r.Time) >= begins {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// deliver tries until the exporter takes or refuses the report, or ctx ends.
func (o *outbox) deliver(ctx context.Context, r api.Report) error {
	pause, since := o.pause, time.Now()
	for attempt := 1; ; attempt++ {
		err := o.report(ctx, r)
		if err == nil {
			o.absent = false
		}
		if err == nil || errors.Is(err, api.ErrDenied) || errors.Is(err, api.ErrInvalid) {
			return err
		}
		if errors.Is(err, api.ErrNotFound) && o.begins > 0 && (o.absent || time.Since(since) >= o.begins) {
			o.absent = true
			return err
		}
		if attempt == 1 {
			o.log.Info("progress report waits for the exporter", "epoch", r.Epoch, "saved", r.Saved, "err", err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause = min(2*pause, 2*time.Second)
	}
}

func (o *outbox) losses(left int) error {
	if n := o.lost + left; n > 0 {
		return fmt.Errorf("progress: %d reports were not delivered: %w", n, api.ErrUnavailable)
	}
	return nil
}
