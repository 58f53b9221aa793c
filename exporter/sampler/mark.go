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
)

// The oldest time that a mark may carry: listeners deliver late when the exporter
// was away.
const oldestMark = 15 * time.Minute

// A look for jobs reads all processes of the node, and a report from outside
// every job causes one: this is how long after the last one a further one may come.
const lookAgain = 100 * time.Millisecond

// errLook asks the reporter to come again after lookAgain.
var errLook = errors.New("looked for jobs just now")

var errNowhere = errors.New("in no job that runs")

type markRequest struct {
	who    peercred.Caller // whose PID is onBehalf: a caller outside the job, who names it
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

func (m markRequest) sender() string {
	if m.who.PID == onBehalf {
		return m.job.String()
	}
	return fmt.Sprintf("pid %d of user %d", m.who.PID, m.who.UID)
}

// Mark records that an epoch of the job in which the process is has ended, with a
// snapshot of the job's counters where the rate allows; or that the job saved a
// checkpoint, which only counts. What another process has reported before is taken and
// changes nothing. It waits for the sampler;
// a process in no job, or in one of another user, is ErrNoJob, once jobs have been looked
// for since. A process that has ended speaks for the job in which it reported before, and
// another process that has its number by now speaks for none.
func (s *Sampler) Mark(ctx context.Context, who peercred.Caller, report api.Report) error {
	return s.place(ctx, markRequest{who: who, report: report, asked: time.Now(), reply: make(chan error, 1)})
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
	if (j == nil || j.found.Renewed() || !s.accepts(j, m.who)) && !s.discovered.After(m.asked) {
		if since := now.Sub(s.discovered); since >= 0 && since < lookAgain {
			return errLook
		}
		s.discover(ctx)
		if j, err = s.locate(m); err != nil && !errors.Is(err, errNowhere) {
			return err
		}
	}
	report := m.report
	oldest := now.Add(-oldestMark)
	switch {
	case report.Time.IsZero(), report.Time.After(now), report.Time.Before(oldest) && !report.Saved:
		report.Time = now
	case report.Time.Before(oldest): // what was saved long ago is not news
		report.Time = oldest
	}
	if j != nil && !s.accepts(j, m.who) {
		s.stats.MarksRefused++
		return fmt.Errorf("%w of this user: %s", ErrNoJob, m.sender())
	}
	if j == nil {
		if s.late(m, report) {
			return nil
		}
		s.stats.MarksRefused++
		return fmt.Errorf("%w: %s", ErrNoJob, m.sender())
	}
	j.reports.by(m.who)
	switch {
	case j.reports.repeated(m.who.PID, report):
		s.repeat(j.stored, m)
		return nil
	case report.Saved:
		s.stats.Saves++
		s.log.Info("job saved", "job", j.stored.String(), "saves", s.store.Saved(j.stored, report.Time))
		return nil
	}
	s.stats.Marks++
	if !j.limiter.AllowN(now, 1) {
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

// locate reports in which job the reporter is. Slurm kills what is left of a job as soon
// as its script has ended, and with it a listener that has just sent the last epoch:
// where a process is not to be found it is in the job in which it was before.
// In no job, that is errNowhere; another error means that it is unknown now.
func (s *Sampler) locate(m markRequest) (*job, error) {
	if m.who.PID == onBehalf {
		if j := s.running(m.job); j != nil {
			return j, nil
		}
		return nil, errNowhere
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
		if j := s.jobs[at]; j != nil && j.takes() {
			return j, nil
		}
		return nil, errNowhere
	}
	for _, j := range s.jobs {
		// Tasks of others in Nomad may have the same uid, and by now the same number.
		if !j.over && j.reports.knows(m.who) && (m.who.Start != 0 || j.stored.Manager != attrib.Nomad) {
			return j, nil
		}
	}
	return nil, errNowhere
}

// accepts reports whether the caller may speak for the job that he is in: its user, or root
// beside it. A task of Nomad belongs to a namespace, and runs as the users of its image.
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

// takes reports whether the job is there to take marks.
func (j *job) takes() bool { return !j.over && !j.vanished }

var _ Finder = (*attrib.Scanner)(nil)

// onBehalf stands for the process of who reports on a job's behalf: it is none of
// this machine, and one for all jobs.
const onBehalf = -1

// wanted names a job as its scheduler does.
type wanted struct {
	manager string // empty = any
	id      string
	attempt int // 0 = the newest
}

func (w wanted) String() string {
	text := w.id
	if w.manager != "" {
		text = w.manager + "/" + w.id
	}
	if w.attempt > 0 {
		text += fmt.Sprintf(", attempt %d", w.attempt)
	}
	return text
}

func (w wanted) is(k attrib.Key) bool {
	return k.ID == w.id && (w.manager == "" || w.manager == k.Manager) && (w.attempt == 0 || w.attempt == k.Attempt)
}

// MarkFor records what a caller outside a job has read in its output: as Mark does,
// with the counters of the moment in which the sampler hears of it. An empty manager
// means any, attempt 0 the newest. Of a job that has ended and is still kept the mark
// stands at its end, since its last lines are often read after it. What was reported from
// within the job counts once, and so does a line that its reader reads again. A job
// that is not there is ErrNoJob, once jobs have been looked for since.
func (s *Sampler) MarkFor(ctx context.Context, manager, id string, attempt int, report api.Report) error {
	return s.place(ctx, markRequest{
		who: peercred.Caller{PID: onBehalf}, job: wanted{manager, id, attempt}, report: report, asked: time.Now(), reply: make(chan error, 1),
	})
}

// running is the newest job that runs under a name.
func (s *Sampler) running(w wanted) *job {
	var found *job
	for _, j := range s.jobs {
		if !j.over && w.is(j.stored) && (found == nil || j.first.After(found.first)) {
			found = j
		}
	}
	return found
}

// late records a mark for a job that has ended, and reports whether there is one. The
// scheduler may have removed the job while the last report of its listener waited here.
func (s *Sampler) late(m markRequest, report api.Report) bool {
	key, ok := s.endedWith(m)
	if !ok {
		return false
	}
	t := s.last[key]
	if t == nil { // an earlier exporter saw it
		t = &reportLog{}
		s.last[key] = t
	}
	switch {
	case t.repeated(m.who.PID, report):
		s.repeat(key, m)
	case !s.store.Late(key, report):
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
		return s.store.Ended(m.job.manager, m.job.id, m.job.attempt)
	}
	for key, log := range s.last {
		if m.who.Start != 0 && log.knows(m.who) {
			return key, true
		}
	}
	return attrib.Key{}, false
}

func (s *Sampler) repeat(key attrib.Key, m markRequest) {
	s.stats.MarksRepeated++
	s.log.Debug("reported before", "job", key.String(), "what", m.what(), "by", m.sender())
}
