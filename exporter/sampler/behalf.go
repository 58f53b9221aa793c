package sampler

import (
	"context"
	"fmt"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/attrib"
)

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

// late records a mark on behalf of a job that has ended, and reports whether there is one.
func (s *Sampler) late(m markRequest, report api.Report) bool {
	if m.who.PID != onBehalf {
		return false
	}
	key, ok := s.store.Ended(m.job.manager, m.job.id, m.job.attempt)
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

func (s *Sampler) repeat(key attrib.Key, m markRequest) {
	s.stats.MarksRepeated++
	s.log.Debug("reported before", "job", key.String(), "what", m.what(), "by", m.sender())
}
