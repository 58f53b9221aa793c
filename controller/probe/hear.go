package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

const (
	defaultPoll = 100 * time.Millisecond
	// gone is for how long a scheduler may be away before the short job is given up.
	gone = 2 * time.Minute
	// maxRead bounds what is read of an output at a time.
	maxRead = 1 << 20
)

// lines finds epochs in output.
type lines struct{ matcher *progress.Matcher }

func newLines(p tuning.Progress) (*lines, error) {
	if p.Pattern == "" {
		return nil, errors.New("its stanza has no progress pattern, by which epochs are known in its output")
	}
	re, err := regexp.Compile(p.Pattern)
	if err != nil {
		return nil, err
	}
	m, err := progress.NewMatcher(re, p.Total)
	if err != nil {
		return nil, err
	}
	return &lines{m}, nil
}

// mark is the end of an epoch, when its line was read. Late: it may have been written long
// before.
type mark struct {
	report api.Report
	at     time.Time
	late   bool
}

// heard is what a short job said.
type heard struct {
	job   driver.Job
	marks []mark
	late  bool // some of it was written before anybody read
}

// hear reads the output of a short job until that has ended.
func (p *prober) hear(ctx context.Context, job driver.Job) (heard, error) {
	h := heard{job: job}
	var rest []byte
	offset, away := int64(0), time.Time{}
	for first := true; ; first = false {
		now, err := p.Jobs.Get(ctx, job.ID)
		if err == nil {
			h.job = now
			var text []byte
			if text, err = p.output(ctx, job.ID, offset); err == nil {
				at := time.Now()
				offset += int64(len(text))
				rest = append(rest, text...)
				// What is there when the reading begins, or is read behind a gap, was
				// written at an unknown time.
				late := first || !away.IsZero()
				rest = h.read(p.lines, rest, at, late)
				away = time.Time{}
				if now.State.Ended() && len(text) == 0 {
					return h, nil
				}
			}
		}
		switch {
		case ctx.Err() != nil:
			return h, ctx.Err()
		case err == nil:
		case !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown):
			return h, fmt.Errorf("short job %s: %w", job.ID, err)
		case away.IsZero():
			away = time.Now()
		case time.Since(away) > gone:
			return h, fmt.Errorf("short job %s: %w", job.ID, err)
		}
		select {
		case <-ctx.Done():
			return h, ctx.Err()
		case <-time.After(p.Poll):
		}
	}
}

func (p *prober) output(ctx context.Context, id driver.JobID, offset int64) ([]byte, error) {
	in, err := p.Jobs.Logs(ctx, id, offset)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRead))
	return text, errors.Join(err, in.Close())
}

// read takes whole lines and returns what is left.
func (h *heard) read(l *lines, text []byte, at time.Time, late bool) []byte {
	for {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			return text
		}
		text = rest
		if r, ok := l.matcher.Match(string(bytes.TrimRight(line, "\r"))); ok {
			h.marks = append(h.marks, mark{r, at, late})
			h.late = h.late || late
		}
	}
}

// epochs are those between two marks. The first of a job has no beginning that is known.
// What was read late is polluted.
func epochs(marks []mark, settings tuning.Settings, warmup int) []tuning.Epoch {
	var out []tuning.Epoch
	for i := 1; i < len(marks); i++ {
		from, to := marks[i-1], marks[i]
		if to.report.Epoch != from.report.Epoch+1 {
			continue
		}
		out = append(out, tuning.Epoch{
			Number: to.report.Epoch, Attempt: 1, Start: from.at, End: to.at, Loss: to.report.Loss, Quality: to.report.Quality,
			Settings: settings.Clone(), Warmup: i < warmup, Polluted: from.late || to.late || !to.at.After(from.at),
		})
	}
	return out
}
