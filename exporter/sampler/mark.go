package sampler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/window"
)

// The oldest time that a mark may carry: listeners deliver late when the exporter
// was away.
const oldestMark = 15 * time.Minute

// A look for jobs reads all processes of the node, and a report from outside
// every job causes one: this is how long after the last one a further one may come.
const lookAgain = 100 * time.Millisecond

// errLook asks the reporter to come again after lookAgain.
var errLook = errors.New("looked for jobs just now")

type markRequest struct {
	who     peercred.Caller // whose PID is onBehalf: a caller outside the job, who names it
	name    string          // of that job: its id, or manager and id as in slurm/42
	attempt int             // 0 = the newest
	report  api.Report
	asked   time.Time
	reply   chan error
}

func (m markRequest) what() string {
	switch {
	case m.report.Saved:
		return "a checkpoint"
	case m.report.Begins:
		return "the start of a listener"
	}
	return fmt.Sprintf("epoch %d", m.report.Epoch)
}

func (m markRequest) sender() string {
	if m.who.PID == onBehalf {
		return fmt.Sprintf("%s, attempt %d", m.name, m.attempt)
	}
	return fmt.Sprintf("pid %d of user %d", m.who.PID, m.who.UID)
}

// Mark records that an epoch of the job of a process has ended, with a snapshot of the job's
// counters where the rate allows, or counts a checkpoint. What another process reported before
// changes nothing. Mark waits for the sampler. A process in no job, or in one of another user,
// gets ErrNoJob, once jobs have been searched for since. A process that has ended speaks for
// the job in which it reported before; another process that has its number by now speaks for
// none.
func (s *Sampler) Mark(ctx context.Context, who peercred.Caller, report api.Report) error {
	return s.place(ctx, markRequest{who: who, report: report})
}

// MarkFor records what a caller outside a job read in its output, with the counters of the
// moment. The name is an id such as 42, or manager and id such as slurm/42; attempt 0 is the
// newest. For a job that has ended and is still kept the mark is put at its end, since its
// last lines are often read later. A line counts once, no matter who reports it and how often
// it is read. A job that is not there is ErrNoJob, once jobs have been searched for since.
func (s *Sampler) MarkFor(ctx context.Context, name string, attempt int, report api.Report) error {
	return s.place(ctx, markRequest{who: peercred.Caller{PID: onBehalf}, name: name, attempt: attempt, report: report})
}

// place hands a mark to the sampler, and again later where it searched for jobs just now: the
// wait is the reporter's own, and the sampler samples on.
func (s *Sampler) place(ctx context.Context, m markRequest) error {
	m.asked, m.reply = time.Now(), make(chan error, 1)
	for {
		var err error
		select {
		case s.marks <- m:
		case <-ctx.Done(): // no reply will come
		}
		select {
		case err = <-m.reply:
		case <-ctx.Done():
			return fmt.Errorf("mark of %s: %w", m.what(), ctx.Err())
		}
		if !errors.Is(err, errLook) {
			return err
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
		}
	}
}

func (s *Sampler) mark(ctx context.Context, m markRequest) error {
	now := time.Now()
	j, err := s.locate(m)
	// It may have begun just now, or another start of it, in cgroups of the same names.
	if err == nil && (j == nil || j.found.Renewed() || !s.accepts(j, m.who)) && !s.discovered.After(m.asked) {
		if since := now.Sub(s.discovered); since >= 0 && since < lookAgain {
			return errLook
		}
		s.discover(ctx)
		j, err = s.locate(m)
	}
	if err != nil {
		return err
	}
	report := m.report
	oldest := now.Add(-oldestMark)
	switch {
	case report.Time.IsZero(), report.Time.After(now), report.Time.Before(oldest) && !report.Saved:
		report.Time = now
	case report.Time.Before(oldest): // what was saved long ago is not news
		report.Time = oldest
	}
	switch {
	case j == nil && s.late(m, report):
		return nil
	case j == nil:
		s.stats.MarksRefused++
		return fmt.Errorf("%w: %s", ErrNoJob, m.sender())
	case !s.accepts(j, m.who):
		s.stats.MarksRefused++
		return fmt.Errorf("%w of this user: %s", ErrNoJob, m.sender())
	}
	j.reports.by(m.who)
	var values collector.Values
	switch {
	case report.Begins:
	case j.reports.repeated(m.who.PID, report):
		s.repeat(j.stored, m)
		return nil
	case report.Saved:
		s.stats.Saves++
		s.log.Info("job saved", "job", j.stored.String())
	case !j.limiter.AllowN(now, 1):
		s.stats.Marks++
		s.stats.MarksBare++
	default:
		s.stats.Marks++
		s.readNode()
		s.read(ctx, j)
		now = time.Now()
		values = s.complete(j, now, s.ledger.ahead(j, now))
	}
	s.store.Append(j.stored, now, values, &report)
	return nil
}

// locate returns the job in which the reporter is; nil = in none. An error means that it is
// unknown now. Slurm kills what is left of a job as soon as its script has ended, and with it a
// listener that has just sent the last epoch: a process that is gone is in the job in which it
// was before.
func (s *Sampler) locate(m markRequest) (found *job, _ error) {
	if m.who.PID == onBehalf {
		for _, j := range s.jobs {
			if j.named(m.name, m.attempt) && (found == nil || j.first.After(found.first)) {
				found = j
			}
		}
		return found, nil
	}
	at, err := collector.Get(s.worker(finding), func() (attrib.Key, error) {
		key, ok := s.finder.Locate(m.who.PID, m.who.UID)
		// As it began then it was this process all the time.
		if !ok || m.who.Start == 0 || s.finder.Started(m.who.PID) != m.who.Start {
			return attrib.Key{}, nil
		}
		return key, nil
	})
	if err != nil {
		return nil, fmt.Errorf("where the reporter is: %w", err)
	}
	if at != (attrib.Key{}) {
		if j := s.jobs[at]; j != nil && !j.vanished {
			return j, nil
		}
		return nil, nil //nolint:nilnil // in no job that runs
	}
	for _, j := range s.jobs {
		// Tasks of others in Nomad may have the same uid, and by now the same number.
		if j.reports.knows(m.who) && (m.who.Start != 0 || j.stored.Manager != attrib.Nomad) {
			return j, nil
		}
	}
	return nil, nil //nolint:nilnil // in no job that runs
}

func (j *job) named(name string, attempt int) bool {
	return (name == j.stored.ID || name == j.stored.Manager+"/"+j.stored.ID) && (attempt == 0 || attempt == j.stored.Attempt)
}

// accepts reports whether the caller may speak for the job that he is in: its user, or root. A
// task of Nomad belongs to a namespace, and runs as the users of its image.
func (s *Sampler) accepts(j *job, who peercred.Caller) bool {
	if who.PID == onBehalf || who.UID == 0 || j.stored.Manager == attrib.Nomad || who.UID == j.uid {
		return true
	}
	if j.uid != 0 || j.found.HasUID {
		return false
	}
	// It seems to be root's: the first process that was seen was.
	if uid, err := collector.Get(s.worker(finding), func() (uint32, error) {
		uid, _ := s.finder.User(j.found.Processes()) // 0 where none lives
		return uid, nil
	}); err == nil {
		s.belongs(j, uid)
	}
	return who.UID == j.uid
}

// onBehalf stands for the process that reports on a job's behalf: it is not on this machine,
// and one for all jobs.
const onBehalf = -1

// late records a mark for a job that has ended, and reports whether there is one. The
// scheduler may have removed the job while the last report of its listener waited here.
func (s *Sampler) late(m markRequest, report api.Report) bool {
	key, ok := s.endedWith(m)
	if !ok || report.Begins {
		return ok
	}
	t := s.ended[key]
	if t == nil { // an earlier exporter saw it
		t = &reportLog{}
		s.ended[key] = t
	}
	switch {
	case t.repeated(m.who.PID, report):
		s.repeat(key, m)
	case !s.store.Append(key, report.Time, nil, &report):
		return false
	case report.Saved:
		s.stats.Saves++
	default:
		s.stats.Marks++
	}
	return true
}

// endedWith is the ended attempt that a report is about.
func (s *Sampler) endedWith(m markRequest) (attrib.Key, bool) {
	if m.who.PID == onBehalf {
		job, ok := s.store.Find(m.name, m.attempt, func(j api.Job) bool { return j.Ended })
		return window.Key(job), ok
	}
	for key, t := range s.ended {
		if m.who.Start != 0 && t.knows(m.who) {
			return key, true
		}
	}
	return attrib.Key{}, false
}

func (s *Sampler) repeat(key attrib.Key, m markRequest) {
	s.stats.MarksRepeated++
	s.log.Debug("reported before", "job", key.String(), "what", m.what(), "by", m.sender())
}
