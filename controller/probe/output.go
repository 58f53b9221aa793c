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
	poll    = 100 * time.Millisecond
	gone    = 2 * time.Minute // a scheduler that is away for longer ends the probes
	maxRead = 1 << 20         // bytes of output at a time
)

func newMatcher(p tuning.Progress) (*progress.Matcher, error) {
	if p.Pattern == "" {
		return nil, errors.New("its stanza has no progress pattern, by which epochs are known in its output")
	}
	re, err := regexp.Compile(p.Pattern)
	if err != nil {
		return nil, err
	}
	return progress.NewMatcher(re, p.Total)
}

// mark is a line that ends an epoch, and when it was read. Late: it may have been written
// long before.
type mark struct {
	report api.Report
	at     time.Time
	late   bool
}

// follow reads the output of a short job until the job has ended.
func (p *prober) follow(ctx context.Context, job driver.Job) (ended driver.Job, marks []mark, err error) {
	var rest []byte
	offset, away := int64(0), time.Time{}
	// What is there when the reading begins, or is read behind a gap, was written at an
	// unknown time.
	late := true
	for {
		now, text, err := p.read(ctx, job.ID, offset)
		switch {
		case ctx.Err() != nil:
			return job, nil, ctx.Err()
		case err == nil:
			job, away = now, time.Time{}
			offset += int64(len(text))
			rest, marks = p.match(append(rest, text...), marks, late)
			if late = false; job.State.Ended() && len(text) == 0 {
				return job, marks, nil
			}
		case !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown), !away.IsZero() && time.Since(away) > gone:
			return job, nil, fmt.Errorf("short job %s: %w", job.ID, err)
		case away.IsZero():
			away, late = time.Now(), true
		}
		select {
		case <-ctx.Done():
			return job, nil, ctx.Err()
		case <-time.After(poll):
		}
	}
}

func (p *prober) read(ctx context.Context, id driver.JobID, offset int64) (driver.Job, []byte, error) {
	job, err := p.Jobs.Get(ctx, id)
	if err != nil {
		return job, nil, err
	}
	in, err := p.Jobs.Logs(ctx, id, offset)
	if err != nil {
		return job, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRead))
	return job, text, errors.Join(err, in.Close())
}

// match takes whole lines from the text and returns what is left.
func (p *prober) match(text []byte, marks []mark, late bool) ([]byte, []mark) {
	for {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			return text, marks
		}
		text = rest
		if r, ok := p.matcher.Match(string(bytes.TrimRight(line, "\r"))); ok {
			marks = append(marks, mark{r, time.Now(), late})
		}
	}
}

// epochs are those between two marks: when the first one of a job began is unknown. What was
// read late is polluted.
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
