package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"pitchpipe/exporter/api"
)

// begins is for how long an exporter that does not know a job may only not know it yet:
// it looks for jobs several times a second, and a loaded node takes its time.
const begins = 10 * time.Second

// Read is Follow for a process outside the job, to which its output comes as a stream: it
// reads from output until that ends, fails or ctx ends, and calls report for each line
// that matches, with the time at which it was read and its count (Report.Nth); Path,
// Offset and Poll's use for looking are Follow's alone. What was read is then delivered
// for at most Drain. The end of the stream is no error; a stream that failed is, and so
// is what could not be delivered. A line that is cut off by the end is not reported.
//
// report is usually api.Client.ReportFor. A report that it answers with api.ErrNotFound
// is tried again for ten seconds, since the job may just begin, then given up; others as
// Follow does.
//
// Reading the same output from its beginning again, after a restart, does no harm: the
// exporter knows by the count what was reported before. output.Read has to return when ctx
// ends, as the body of an HTTP answer does.
func Read(ctx context.Context, cfg Config, output io.Reader, report func(context.Context, api.Report) error) error {
	heard, err := cfg.hearer()
	if err != nil {
		return err
	}
	cfg = cfg.filled()
	out := newOutbox(cfg.Logger, cfg.Poll, report)
	out.begins = begins
	return delivering(ctx, cfg, out, func(put func(api.Report)) error {
		var epochs, saves int
		var cut lines
		see := func(line []byte) {
			for _, r := range heard(line) {
				n := &epochs
				if r.Saved {
					n = &saves
				}
				*n++
				r.Nth, r.Time = *n, time.Now()
				put(r)
			}
		}
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
	})
}
