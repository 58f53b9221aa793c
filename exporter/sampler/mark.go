package sampler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// The oldest time that a mark may carry: listeners deliver late when the exporter
// was away.
const oldestMark = 15 * time.Minute

// A look for jobs reads all processes of the node, and whoever reports from outside
// every job causes one: this is how long after the last one a further one may come.
const lookAgain = 100 * time.Millisecond

// errLook asks the reporter to come again after lookAgain.
var errLook = errors.New("looked for jobs just now")

var errNowhere = errors.New("in no job that runs")

type markRequest struct {
	pid    int // onBehalf = somebody outside the job, who names it
	uid    uint32
	job    wanted
	report api.Report
	asked  time.Time
	reply  chan error
}

func (m markRequest) what() string {
	if m.report.Saved {
		return "a checkpoint"
	}
	return fmt.Sprintf("epoch %d", m.report.Epoch)
}

func (m markRequest) who() string {
	if m.pid == onBehalf {
		return m.job.String()
	}
	return fmt.Sprintf("pid %d", m.pid)
}

// Mark records that an epoch of the job in which the process is has ended, with a
// snapshot of the job's counters where the rate allows; or that the job saved a
// checkpoint, which only counts. What another process has told before is taken and
// changes nothing. It waits for the sampler;
// a process in no job, or in one of another user that only its environment names,
// is ErrNoJob, once jobs have been looked for since.
func (s *Sampler) Mark(ctx context.Context, pid int, uid uint32, report api.Report) error {
	return s.place(ctx, markRequest{pid: pid, uid: uid, report: report, asked: time.Now(), reply: make(chan error, 1)})
}

// place hands a mark over, again where jobs were looked for just now.
func (s *Sampler) place(ctx context.Context, m markRequest) error {
	for {
		err := s.ask(ctx, m)
		if !errors.Is(err, errLook) {
			return err
		}
		// The wait is the reporter's own: the sampler samples on.
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return fmt.Errorf("mark of %s: %w", m.what(), ctx.Err())
		}
	}
}

func (s *Sampler) ask(ctx context.Context, m markRequest) error {
	select {
	case s.marks <- m:
	case <-ctx.Done():
		return fmt.Errorf("mark of %s: %w", m.what(), ctx.Err())
	}
	select {
	case err := <-m.reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("mark of %s: %w", m.what(), ctx.Err())
	}
}

func (s *Sampler) mark(ctx context.Context, m markRequest) error {
	now := time.Now()
	j, err := s.locate(m)
	if err != nil && !errors.Is(err, errNowhere) {
		return err
	}
	// It may have begun just now, or another start of it, in cgroups of the same names.
	if (j == nil || j.found.Renewed()) && !s.discovered.After(m.asked) {
		if since := now.Sub(s.discovered); since >= 0 && since < lookAgain {
			return errLook
		}
		s.discover(ctx)
		if j, err = s.locate(m); err != nil && !errors.Is(err, errNowhere) {
			return err
		}
	}
	report := m.report
	if report.Time.IsZero() || report.Time.After(now) || report.Time.Before(now.Add(-oldestMark)) {
		report.Time = now
	}
	if j == nil {
		if s.late(m, report) {
			return nil
		}
		s.stats.MarksRefused++
		return fmt.Errorf("%w: %s", ErrNoJob, m.who())
	}
	j.told.by(m.pid, m.uid)
	switch {
	case j.told.repeated(m.pid, report):
		s.repeat(j.stored, m)
		return nil
	case report.Saved:
		s.stats.Saves++
		s.log.Info("job saved", "job", j.stored.String(), "saves", s.store.Saved(j.stored))
		return nil
	}
	s.stats.Marks++
	if !j.bucket.take(now) {
		s.stats.MarksBare++
		s.store.Append(j.stored, now, nil, &report)
		return nil
	}
	s.readNode()
	s.read(ctx, j)
	at := time.Now()
	s.store.Append(j.stored, at, s.complete(j, at, s.ledger.ahead(j, at)), &report)
	return nil
}

// locate tells in which job the reporter is. Slurm kills what is left of a job as soon
// as its script has ended, and with it a listener that has just sent the last epoch:
// where a process is not to be found it is in the job in which it was before.
// Where he is in none that is errNowhere; another error is that nobody can tell now.
func (s *Sampler) locate(m markRequest) (*job, error) {
	if m.pid == onBehalf {
		if j := s.meant(m.job); j != nil {
			return j, nil
		}
		return nil, errNowhere
	}
	at := &struct {
		key attrib.Key
		ok  bool
	}{}
	if err := s.lane(finding).do(func() { at.key, at.ok = s.finder.Locate(m.pid, m.uid) }); err != nil {
		return nil, fmt.Errorf("where the reporter is: %w", err)
	}
	if at.ok {
		if j := s.jobs[at.key]; j != nil && j.takes() {
			return j, nil
		}
		return nil, errNowhere
	}
	for _, j := range s.jobs {
		if j.takes() && j.told.knows(m.pid, m.uid) {
			return j, nil
		}
	}
	return nil, errNowhere
}

// takes tells whether the job is there to take marks.
func (j *job) takes() bool { return !j.over && !j.vanished }

var _ Finder = (*attrib.Scanner)(nil)

// bucket allows a burst of one second and then a steady rate.
type bucket struct {
	rate   float64
	tokens float64
	last   time.Time
}

func newBucket(perSecond int, now time.Time) bucket {
	return bucket{rate: float64(perSecond), tokens: float64(perSecond), last: now}
}

func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.tokens+b.rate*max(now.Sub(b.last).Seconds(), 0), b.rate)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
